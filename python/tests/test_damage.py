"""Damage is a warning with its place; errors reach whoever reads."""

import concurrent.futures
import threading
import warnings

import anytrace
import pyarrow
import pytest

from conftest import BAD


def caught(use):
    with warnings.catch_warnings(record=True) as all_warnings:
        warnings.simplefilter("always")
        use()
    return [one for one in all_warnings if issubclass(one.category, anytrace.DamageWarning)]


USES = {
    "info": lambda trace: trace.info(),
    "arrow": lambda trace: trace.table("events").to_arrow(),
    "pandas": lambda trace: trace.table("events").to_pandas(),
    "polars": lambda trace: trace.table("events").to_polars(),
    "batches": lambda trace: list(trace.table("events").batches()),
    "a consumer": lambda trace: pyarrow.table(trace.table("events")),
    "records": lambda trace: list(trace),
    "stats": lambda trace: trace.stats(),
}


@pytest.mark.parametrize("use", USES)
def test_damage_is_warned_of_with_its_place_at_the_line_that_read(use, damaged):
    path, at = damaged
    found = caught(lambda: USES[use](anytrace.open(path)))
    assert found, use
    text = str(found[0].message)
    assert text.startswith(f"{path}: byte {at:#x}"), text
    assert found[0].message.diagnostic.offset == at
    assert found[0].message.diagnostic.code.startswith("heph/")
    assert not found[0].filename.endswith(("_errors.py", "_table.py", "_trace.py"))


def test_everything_beside_the_damage_is_read(damaged, heph):
    path, _ = damaged
    with pytest.warns(anytrace.DamageWarning, match="byte 0x"):
        names = anytrace.open(path).table("packets").to_arrow()["description"].to_pylist()
    assert names == anytrace.open(heph).table("packets").to_arrow()["description"].to_pylist() == ["a", "b", "a"]


def test_an_intact_trace_warns_of_nothing(heph):
    for use in USES.values():
        assert not caught(lambda: use(anytrace.open(heph)))


@pytest.mark.parametrize("use", [use for use in USES if use != "a consumer"])
def test_a_warning_that_is_an_error_is_raised_as_it_is(use, damaged):
    path, at = damaged
    with warnings.catch_warnings():
        warnings.simplefilter("error", anytrace.DamageWarning)
        with pytest.raises(anytrace.DamageWarning, match=f"byte {at:#x}"):
            USES[use](anytrace.open(path))


def test_check_gives_diagnostics_as_objects(damaged):
    path, at = damaged
    check = anytrace.open(path).check()
    assert not check.is_ok
    assert check[0].offset == at
    assert check[0].severity == "error"
    assert check[0].skipped == 5
    assert check.counts[check[0].code] == 1
    assert f"byte {at:#x}" in str(check[0])


@pytest.mark.parametrize("bad", sorted(BAD.iterdir()), ids=lambda path: path.stem)
def test_each_bad_sample_has_the_code_that_it_is_named_after(bad):
    check = anytrace.open(bad, format="heph").check()
    assert "heph/" + bad.name.split("--")[0] in [diagnostic.code for diagnostic in check]


def test_many_faults_are_few_warnings_and_exact_counts(tmp_path, heph):
    path = tmp_path / "many.heph"
    packet = heph.read_bytes()[23 : 23 + 43]
    path.write_bytes(heph.read_bytes() + (b"\xff" * 3 + packet) * 500)
    found = caught(lambda: anytrace.open(path).info())
    assert len(found) == 21
    assert "more diagnostics" in str(found[-1].message)
    check = anytrace.open(path).check(limit=10)
    assert 10 <= len(check) < 20
    assert check.report["errors"] >= 500


def test_a_file_that_vanishes_is_an_error_for_whoever_reads(heph):
    trace = anytrace.open(heph)
    table = trace.table("events")
    heph.unlink()
    for use in (table.to_arrow, table.to_pandas, table.to_polars, lambda: list(table.batches()), lambda: list(trace)):
        with pytest.raises(anytrace.Error, match=str(heph)) as raised:
            use()
        assert raised.value.kind == "io"
    # A consumer that takes the table itself has errors of its own class; the text is ours.
    with pytest.raises(Exception, match=str(heph)):
        pyarrow.table(table)


def test_stats_of_what_has_no_spans_and_caches_of_what_has_no_accesses_are_errors(heph, accesses):
    with pytest.raises(anytrace.Error, match="no spans"):
        anytrace.open(accesses[0]).stats()
    with pytest.raises(anytrace.Error, match="no memory accesses"):
        anytrace.open(heph).simulate("zen3")


def test_threads_read_one_trace_at_the_same_time(damaged):
    path, _ = damaged
    trace = anytrace.open(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", anytrace.DamageWarning)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            rows = list(pool.map(lambda _: trace.table("events").to_arrow().num_rows, range(64)))
    assert rows == [4] * 64


def test_threads_that_share_an_iterator_get_each_record_once(accesses):
    path, _, _ = accesses
    records, lock, seen = iter(anytrace.open(path)), threading.Lock(), []

    def take():
        mine = [next(records).seq for _ in range(10_000)]
        with lock:
            seen.extend(mine)

    threads = [threading.Thread(target=take) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(seen) == list(range(40_000))


def test_polars_needs_no_pyarrow(script, heph):
    text = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import anytrace; assert anytrace.open(sys.argv[1]).table('events').to_polars().height == 4"
    )
    assert script(text, heph).wait() == 0
