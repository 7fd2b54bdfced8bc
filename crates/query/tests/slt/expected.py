"""The expected results of the files beside this one, worked out without the library's tables and without its SQL.

expected.py ANYTRACE [--write] FILE.slt...

A comment `# = EXPRESSION` before a query is Python, which may go on in lines that begin with `#   `. It is evaluated over
what `ANYTRACE dump --format jsonl` prints of the traces of the last `OPEN`, and must give the rows of the result.
Without --write they are compared with those in the file; with it they replace them. In an expression `r` is the records
of the first trace, each a dictionary with its number as `seq`, `T` the records of each trace by its name, `broken` the
rules that `check` finds broken in each; the functions below are there too.
"""

import json
import re
import shlex
import struct
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[4]
ANYTRACE = sys.argv[1]


def trace(name):
    """The file of an OPEN: an example, or CRATE:PATH in a corpus."""
    crate, colon, path = name.partition(":")
    return ROOT / "crates" / crate / "corpus" / path if colon else ROOT / "examples/traces" / name


def damaged(content, damage):
    """The same damage as in tests/slt.rs."""
    offset, sign, length = re.fullmatch(r"(\d*)(\+|\.\.)(\d+)", damage).groups()
    length = int(length)
    if sign == "..":
        return content[:length]
    return content[: int(offset)] + b"\xee" * length + content[int(offset) + length :]


def run(verb, file):
    done = subprocess.run([ANYTRACE, *verb, file], capture_output=True)
    if done.returncode > 1:
        sys.exit(f"{file}: {done.stderr.decode()}")
    return done.stdout.decode()


def records(file):
    """What is dumped, without the line that begins it."""
    lines = [json.loads(line) for line in run(["dump", "--format", "jsonl"], file).splitlines()]
    lines = lines[1:] if lines and "anytrace" in lines[0] else lines
    # Bytes and lines that are no record have a line too, and no number.
    lines = [line for line in lines if line.get("kind") not in ("error", "message")]
    return [{"seq": seq} | record for seq, record in enumerate(lines)]


def rules(file):
    """The rules of what `check` finds, each once, without notes."""
    found = json.loads(run(["check", "--format", "json"], file))["diagnostics"]
    return sorted({one["code"] for one in found if one["severity"] != "note"})


class Opened:
    """The traces of an OPEN."""

    def __init__(self, words):
        self.records, self.rules = {}, []
        for word in (word for word in words if not word.startswith("-m")):
            name, _, rest = word.rpartition("=")
            rest, _, damage = rest.partition("!")
            file = trace(rest)
            with tempfile.TemporaryDirectory() as folder:
                if damage:
                    copy = Path(folder) / file.name
                    copy.write_bytes(damaged(file.read_bytes(), damage))
                    file = copy
                self.records[name or file.name] = records(file)
                self.rules.append(rules(file))


# Counting.


def of(rows, *kinds):
    """Records of these kinds."""
    return [row for row in rows if row["kind"] in kinds]


def counts(values):
    """Each value, as a row, with how often it occurs; in order."""
    counted = Counter(value if isinstance(value, tuple) else (value,) for value in values)
    return sorted([*value, count] for value, count in counted.items())


def grouped(pairs):
    """Values by key."""
    groups = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def pick(rows, *keys):
    """Members of records as rows."""
    return [[row.get(key) for key in keys] for row in rows]


# XRay.


def xray(rows):
    """Records of functions and events with their thread, process, processor and tick."""
    made = []
    for row in rows:
        kind = row["kind"]
        if kind == "new-buffer":
            thread = row["thread"]
        elif kind == "pid":
            process = row["process"]
        elif kind == "new-cpu-id":
            cpu, tick = row["cpu"], row["tsc"]
        elif kind == "tsc-wrap":
            tick = row["tsc"]
        elif "delta" in row:
            tick += row["delta"]
            made.append(row | {"thread": thread, "process": process, "cpu": cpu, "tick": tick})
    return made


def calls(rows):
    """Calls in the order in which they end; only of traces in which every call returns by itself."""
    made, stacks = [], defaultdict(list)
    for row in xray(rows):
        stack = stacks[row["thread"]]
        if row["kind"] == "function-enter":
            stack.append(row | {"inner": 0})
        elif row["kind"] == "function-exit":
            call = stack.pop()
            assert call["id"] == row["id"]
            duration = row["tick"] - call["tick"]
            if stack:
                stack[-1]["inner"] += duration
            path = tuple(around["id"] for around in [*stack, call])
            parent = stack[-1]["seq"] if stack else None
            call |= {"end_seq": row["seq"], "duration": duration, "self": duration - call["inner"]}
            made.append(call | {"depth": len(stack), "path": path, "parent": parent})
    assert not any(stacks.values())
    return made


def ns(ticks, per_second):
    """Nanoseconds, rounded to the nearest."""
    return (2 * ticks * 10**9 + per_second) // (2 * per_second)


def payload(row):
    """The bytes of a custom event, which are a text where they can be."""
    data = row["data"]
    return data.encode() if isinstance(data, str) else bytes.fromhex(data["hex"])


# apitrace.


def api(rows):
    """Calls, with the number of the frame and of the events that enter and leave."""
    made, frame = {}, 0
    for row in rows:
        if row["kind"] == "enter":
            made[row["call"]] = row | {"frame": frame, "leave": None, "given": list(row["details"])}
            frame += "SwapBuffers" in row["name"]
        else:
            made[row["call"]] |= {"leave": row["seq"]}
            made[row["call"]]["given"] += row["details"]
    return list(made.values())


def given(call):
    """Arguments by position: the last one of each counts."""
    return {one["argument"]: one["value"] for one in call["given"] if "argument" in one}


def values(call):
    """All values of a call, those inside others too."""
    return [value for one in call["given"] for value in inside(one.get("value", one.get("return")))]


def inside(value):
    inner = value.get("members") or value.get("repr") or [] if isinstance(value, dict) else value
    inner = inner if isinstance(inner, list) else []
    return [value] + [deeper for one in inner for deeper in inside(one)]


def kind_of(value):
    """The type of a value by its form in JSON."""
    if isinstance(value, dict):
        return {"float_bits": "float", "double_bits": "double", "hex": "text", "minus": "int"}.get(next(iter(value)), next(iter(value)))
    names = {bool: "bool", list: "array", str: "text", type(None): "null"}
    return names.get(type(value)) or ("int" if value < 0 else "uint")


def number(value):
    return struct.unpack("<d", struct.pack("<Q", value["double_bits"]))[0]


def blob(value):
    """The bytes of a blob."""
    return bytes.fromhex(value["blob"]) if isinstance(value, dict) and "blob" in value else None


def fnv(content):
    """FNV-1a, 64 bits."""
    made = 0xCBF29CE484222325
    for byte in content:
        made = (made ^ byte) * 0x100000001B3 % 2**64
    return made


# Heph.


def packets(rows):
    return of(rows, "event")


def attributes(rows):
    """An attribute, or an element of one that is an array, with the place in its array."""
    made = []
    for row in packets(rows):
        for key, kind, value in row["attributes"]:
            values = value if kind.endswith("[]") else [value]
            made += [{"seq": row["seq"], "key": key, "type": kind, "at": at, "value": one} for at, one in enumerate(values)]
    return made


# Cacheray.


def regions(rows):
    """Regions of typed memory with the records that begin and end them."""
    made, live = [], defaultdict(list)
    for row in rows:
        if row["kind"] == "rtta_add":
            made.append(row | {"removed": None})
            live[row["address"]].append(made[-1])
        elif row["kind"] == "rtta_remove" and live[row["address"]]:
            live[row["address"]].pop()["removed"] = row["seq"]
    return made


# Casemate.


def breaches(name):
    """What `check` finds against the rules of page tables."""
    found = json.loads(run(["casemate", "check", "--all", "--format", "json"], trace(name)))["violations"]
    return sorted([one["index"], one["rule"], one["severity"]] for one in found)


# The files.


def cell(value):
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return "(empty)" if value == "" else " ".join(str(value).split())


def evaluate(expression, opened):
    first = next(iter(opened.records.values()))
    scope = globals() | {"r": first, "T": opened.records, "broken": opened.rules}
    result = eval(expression, scope)
    rows = result if isinstance(result, list) else [[result]]
    return [" ".join(cell(value) for value in (row if isinstance(row, (list, tuple)) else [row])) for row in rows]


def block(lines, opened):
    """A block of the file with the rows that Python gives; its queries have an expression each."""
    sql = [line for line in lines if not line.startswith("#")]
    if sql[:1] and sql[0].startswith("statement") and sql[1].startswith("OPEN "):
        return lines, Opened(shlex.split(sql[1])[1:])
    if not sql or not sql[0].startswith("query"):
        return lines, opened
    at = next((n for n, line in enumerate(lines) if line.startswith("# = ")), None)
    if at is None:
        sys.exit("no expression: " + " ".join(sql))
    end = at + 1
    while lines[end].startswith("#   "):
        end += 1
    expression = "\n".join(line[4:] for line in lines[at:end])
    try:
        rows = evaluate(f"({expression})", opened)
    except Exception as error:
        sys.exit(f"{expression}: {error!r}")
    if "rowsort" in sql[0]:
        rows.sort()
    return [*lines[: lines.index("----") + 1], *rows], opened


def check(path, is_written):
    old = path.read_text()
    opened, blocks = None, []
    for text in old.rstrip("\n").split("\n\n"):
        lines, opened = block(text.split("\n"), opened)
        blocks.append("\n".join(lines))
    new = "\n\n".join(blocks) + "\n"
    if new != old and is_written:
        path.write_text(new)
    elif new != old:
        different = [b for b, text in zip(blocks, old.rstrip("\n").split("\n\n")) if b != text]
        print(f"{path.name}: Python has\n" + "\n\n".join(different))
    return new == old or is_written


files = [Path(word) for word in sys.argv[2:] if word != "--write"]
sys.exit(0 if all([check(file, "--write" in sys.argv) for file in files]) else 1)
