"""What the tests share: the repository's traces, and traces of bytes written by hand."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path for path in (ROOT / "examples/traces").iterdir() if path.suffix != ".md")
BAD = ROOT / "crates/heph/corpus/bad"


def pytest_generate_tests(metafunc):
    if "example" in metafunc.fixturenames:
        metafunc.parametrize("example", EXAMPLES, ids=lambda path: path.name)


def skip(why):
    """Leaves a test out, in the words that `cargo xtask test` counts; with ANYTRACE_REQUIRE_ALL it fails."""
    if os.environ.get("ANYTRACE_REQUIRE_ALL", "0") not in ("", "0"):
        pytest.fail(f"skipped: {why}")
    print(f"skipped: {why}", file=sys.__stderr__)
    pytest.skip(why)


@pytest.fixture
def command():
    """Runs the command `anytrace`, which `ANYTRACE_COMMAND` names; returns the exit code and what it printed."""
    program = os.environ.get("ANYTRACE_COMMAND")
    if not program:
        skip("ANYTRACE_COMMAND names no command to compare with")

    def run(*arguments):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, check=False)
        return done.returncode, done.stdout, done.stderr.decode()

    return run


@pytest.fixture
def script(tmp_path):
    """Runs a program of its own in Python."""

    def run(text, *arguments, **options):
        path = tmp_path / "script.py"
        path.write_text(text)
        return subprocess.Popen([sys.executable, "-u", str(path), *map(str, arguments)], text=True, **options)

    return run


def heph_metadata(option, value):
    """A metadata packet (format document, "Metadata Packet")."""
    body = struct.pack(">H", len(option)) + option + value
    return struct.pack(">II", 0x75D11D4D, 8 + len(body)) + body


def heph_event(description, start, end, stream=0, counter=0, substream=0):
    """An event packet without attributes (format document, "Event Packet")."""
    body = struct.pack(">IIQQQ", stream, counter, substream, start, end)
    body += struct.pack(">H", len(description)) + description
    return struct.pack(">II", 0xC1FC1FB7, 8 + len(body)) + body


@pytest.fixture
def heph(tmp_path):
    """Three events in two streams: a 100..200, b 150..250, a 300..310."""
    path = tmp_path / "three.heph"
    events = [
        heph_event(b"a", 100, 200, stream=1),
        heph_event(b"b", 150, 250, stream=2),
        heph_event(b"a", 300, 310, stream=1, counter=1),
    ]
    path.write_bytes(heph_metadata(b"epoch", struct.pack(">Q", 1)) + b"".join(events))
    return path


@pytest.fixture
def damaged(heph, tmp_path):
    """The same with five bytes of no packet after the first event; returns the path and their offset."""
    whole = heph.read_bytes()
    at = 23 + 43
    path = tmp_path / "damaged.heph"
    path.write_bytes(whole[:at] + b"\xff" * 5 + whole[at:])
    return path, at


def write_accesses(path, count):
    """A cacheray trace of 8-byte accesses, each third a write; returns the sum of their addresses."""
    record = numpy.dtype([("tag", "u1"), ("address", "<u8"), ("size", "u1"), ("thread", "<u8")])
    base, total, step = 0x7F0000000000, 0, 1 << 20
    with open(path, "wb") as file:
        for first in range(0, count, step):
            number = numpy.arange(first, min(first + step, count), dtype="u8")
            rows = numpy.zeros(len(number), dtype=record)
            rows["tag"] = number % 3 == 0
            rows["address"] = base + 8 * (number % 65536)
            rows["size"] = 8
            rows["thread"] = number % 2
            # A sum of the addresses themselves would need more than 64 bits.
            total += base * len(number) + int((rows["address"] - base).sum())
            rows.tofile(file)
    return total


@pytest.fixture(scope="session")
def accesses(tmp_path_factory):
    """A trace of 20 M accesses: path, count, sum of addresses."""
    path, count = tmp_path_factory.mktemp("accesses") / "large.cacheray", 20_000_000
    return path, count, write_accesses(path, count)
