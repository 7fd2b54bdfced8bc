"""Reading goes on beside Python: interrupts, readers that stop early, threads, speed, memory."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import anytrace
import pyarrow
import pyarrow.compute
import pytest

MANY = 40
"""How often a program reads the large trace, so that it cannot be done before it is interrupted."""


def threads_of_anytrace():
    """Names of this process's threads that read a trace."""
    names = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as file:
                names.append(file.read().strip())
        except FileNotFoundError:
            pass
    return names.count("anytrace")


def wait_for(condition):
    """True as soon as the condition holds; false when it does not for a minute."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            return False
        threading.Event().wait(0.01)
    return True


INTERRUPTED = {
    "to_arrow": "trace.table('accesses').to_arrow()",
    "to_polars": "trace.table('accesses').to_polars()",
    "batches": "[batch.num_rows for batch in trace.table('accesses').batches()]",
    "records": "sum(1 for record in trace)",
    "info": "trace.info()",
    "simulate": "trace.simulate('zen3')",
    "convert": "trace.convert(sys.argv[2], to='parquet', table='accesses', force=True)",
}


@pytest.mark.parametrize("use", INTERRUPTED)
def test_an_interrupt_ends_a_long_read(use, script, accesses, tmp_path):
    text = f"""
import sys, time, anytrace, pyarrow
trace = anytrace.open(sys.argv[1])
try:
    print("begins")
    for _ in range({MANY}):
        {INTERRUPTED[use]}
except KeyboardInterrupt:
    print("interrupted")
"""
    process = script(text, accesses[0], tmp_path / "out.parquet", stdout=subprocess.PIPE)
    assert process.stdout.readline() == "begins\n"
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.read() == "interrupted\n"
    assert process.wait() == 0
    assert time.monotonic() - begin < 20
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


def test_an_interrupt_ends_a_consumer_with_an_error_of_its_own(script, accesses):
    text = f"""
import sys, anytrace, pyarrow
trace = anytrace.open(sys.argv[1])
try:
    print("begins")
    for _ in range({MANY}):
        pyarrow.table(trace.table("accesses"))
except pyarrow.ArrowInvalid as error:
    print("KeyboardInterrupt" in str(error))
except KeyboardInterrupt:
    # It came between two readings.
    print(True)
"""
    process = script(text, accesses[0], stdout=subprocess.PIPE)
    assert process.stdout.readline() == "begins\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.read() == "True\n"


@pytest.mark.parametrize("use", ["reader", "records", "stream"])
def test_a_reader_that_stops_early_ends_the_thread(use, accesses):
    trace = anytrace.open(accesses[0])
    if use == "reader":
        reader = trace.table("accesses").batches()
        assert next(iter(reader)).num_rows > 0
    elif use == "records":
        reader = iter(trace)
        assert next(reader).seq == 0
    else:
        reader = pyarrow.RecordBatchReader.from_stream(trace.table("accesses"))
        assert reader.read_next_batch().num_rows > 0
    assert threads_of_anytrace() >= 1
    del reader
    gc.collect()
    assert wait_for(lambda: threads_of_anytrace() == 0)


def test_a_stream_that_nobody_reads_starts_nothing(accesses):
    table = anytrace.open(accesses[0]).table("accesses")
    assert wait_for(lambda: threads_of_anytrace() == 0)
    capsule = table.__arrow_c_stream__()
    assert threads_of_anytrace() == 0
    del capsule


def test_other_threads_run_while_a_trace_is_read(accesses):
    trace, counted, done = anytrace.open(accesses[0]), [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            done.wait(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    for use in (trace.info, trace.table("accesses").to_arrow, lambda: trace.simulate("zen3")):
        before = counted[0]
        use()
        assert counted[0] - before > 20, use
    done.set()
    thread.join()


PEAK = """
def peak():
    # Not ru_maxrss, which a process takes over from its parent.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))
"""

MEMORY = """
import sys, anytrace
trace = anytrace.open(sys.argv[1])
trace.table("accesses").batches().read_next_batch()
before = peak()
rows = sum(batch.num_rows for batch in trace.table("accesses").batches())
print(rows, peak() - before)
"""

DUCKDB = """
import sys, anytrace, duckdb
duckdb.execute("set threads = 2")
batches = anytrace.open(sys.argv[1]).table("accesses").batches()
rows, total = duckdb.execute("select count(*), sum(address) from batches").fetchone()
print(rows, total, peak())
"""


def test_memory_does_not_grow_with_the_trace(script, accesses):
    path, count, _ = accesses
    rows, mebibytes = script(PEAK + MEMORY, path, stdout=subprocess.PIPE).communicate()[0].split()
    assert int(rows) == count
    # All rows at once would take 500 MiB.
    assert int(mebibytes) < 64


def test_duckdb_reads_batches_in_bounded_memory(script, accesses):
    path, count, total = accesses
    rows, found, mebibytes = script(PEAK + DUCKDB, path, stdout=subprocess.PIPE).communicate()[0].split()
    assert (int(rows), int(found)) == (count, total)
    assert int(mebibytes) < 256


@pytest.mark.skipif(not os.environ.get("ANYTRACE_SPEED"), reason="a measurement: `cargo xtask python` asks for it")
def test_ten_million_rows_a_second(accesses):
    path, count, total = accesses
    trace = anytrace.open(path)
    best, best_by_clock = 0.0, 0.0
    for _ in range(5):
        # Seconds of the processor, of all threads together: what else runs on the machine does not count.
        begin, begin_by_clock, rows = time.process_time(), time.monotonic(), 0
        for batch in trace.table("accesses").batches():
            rows += batch.num_rows
        best = max(best, rows / (time.process_time() - begin))
        best_by_clock = max(best_by_clock, rows / (time.monotonic() - begin_by_clock))
        assert rows == count
    shown = f"{best / 1e6:.1f} million rows per second of a processor, {best_by_clock / 1e6:.1f} by the clock"
    print(f"\n{shown}: all columns of accesses", file=sys.__stderr__)
    assert best >= 10e6
    addresses = trace.table("accesses", columns=["address"]).to_arrow()["address"]
    assert sum(pyarrow.compute.sum(chunk).as_py() for chunk in addresses.chunks) == total
