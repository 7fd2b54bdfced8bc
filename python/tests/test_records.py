"""Records one by one, and traces that Python writes."""

import struct

import anytrace
import pytest

from conftest import heph_event, heph_metadata


def test_records_have_the_fields_of_the_events(heph):
    records = list(anytrace.open(heph))
    assert [record.seq for record in records] == [0, 1, 2, 3]
    assert [record.offset for record in records] == [0, 23, 23 + 43, 23 + 86]
    assert [record.name for record in records] == ["epoch", "a", "b", "a"]
    assert records[0].thread is None
    assert [record.thread for record in records[1:]] == [1, 2, 1]
    assert isinstance(records[1].attributes, dict)


@pytest.mark.filterwarnings("ignore::anytrace.DamageWarning")
def test_records_are_the_rows_of_events(example):
    trace = anytrace.open(example)
    fields = ("seq", "offset", "thread", "time_ns", "duration_ns", "kind", "name")
    rows = trace.table("events", columns=fields).to_arrow().to_pylist()
    assert [{field: getattr(record, field) for field in fields} for record in trace] == rows


def test_a_record_outlives_its_iterator_and_shows_itself(heph):
    records = iter(anytrace.open(heph))
    first = next(records)
    del records
    assert repr(first).startswith("Record(seq=0, offset=0")


def test_iterations_are_independent(heph):
    trace = anytrace.open(heph)
    assert [one.seq == other.seq for one, other in zip(trace, trace)] == [True] * 4


def test_heph_bytes_are_those_of_the_document(heph, tmp_path):
    path = tmp_path / "written.heph"
    with anytrace.HephWriter(path, epoch_ns=1) as trace:
        trace.event("a", 100, 200, stream=1)
        trace.event("b", 150, 250, stream=2)
        trace.event("a", 300, 310, stream=1)
    assert path.read_bytes() == heph.read_bytes()


def test_attributes_come_back_as_they_were_written(tmp_path):
    path = tmp_path / "written.heph"
    values = {"u": 2**64 - 1, "i": -5, "f": 0.5, "s": "ä", "us": [1, 2], "is": [1, -2], "fs": [1, 0.5], "ss": ["x", ""]}
    with anytrace.HephWriter(path, epoch_ns=0) as trace:
        trace.event("poll", 1, 2, attributes=values)
    rows = anytrace.open(path).table("attributes").to_arrow().to_pylist()
    seen = {}
    for row in rows:
        filled = [row[column] for column in ("int", "uint", "float", "text") if row[column] is not None]
        seen.setdefault(row["key"], []).extend(filled)
    expected = {key: value if isinstance(value, list) else [value] for key, value in values.items()}
    assert seen == expected
    assert anytrace.open(path).check().is_ok


def test_attributes_may_repeat_a_key_and_nothing_else_is_an_attribute(tmp_path):
    path = tmp_path / "written.heph"
    with anytrace.HephWriter(path, epoch_ns=0) as trace:
        trace.event("poll", 1, 2, attributes=[("k", 1), ("k", 2)])
        for wrong in (None, 2**64, ["x", 1], object(), {"a": 1}):
            with pytest.raises(anytrace.Error, match="attribute k: expected"):
                trace.event("poll", 1, 2, attributes={"k": wrong})
    assert anytrace.open(path).info()["records"] == 2


def test_heph_options_are_written(tmp_path):
    path = tmp_path / "written.heph"
    with anytrace.HephWriter(path) as trace:
        trace.option("epoch", struct.pack(">Q", 7))
    assert path.read_bytes() == heph_metadata(b"epoch", struct.pack(">Q", 7))


@pytest.mark.parametrize("endian, order", [("little", "<"), ("big", ">")])
@pytest.mark.parametrize("pointer_bytes, letter", [(8, "Q"), (4, "I")])
def test_cacheray_bytes_are_those_of_the_document(endian, order, pointer_bytes, letter, tmp_path):
    path = tmp_path / "written.cacheray"
    with anytrace.CacherayWriter(path, endian=endian, pointer_bytes=pointer_bytes) as trace:
        trace.add(0x1000, "Node", element_bytes=16, elements=4, thread=9)
        trace.write(0x1008, 8, thread=1, atomic=True)
        trace.read(0x1010, 4)
        trace.remove(0x1000)
    expected = struct.pack(f"{order}B{letter}QIII", 2, 0x1000, 9, 16, 4, 4) + b"Node"
    expected += struct.pack(f"{order}B{letter}BQ", 0x41, 0x1008, 8, 1)
    expected += struct.pack(f"{order}B{letter}BQ", 0x00, 0x1010, 4, 0)
    expected += struct.pack(f"{order}B{letter}Q", 0x03, 0x1000, 0)
    assert path.read_bytes() == expected


def test_what_does_not_fit_is_refused(tmp_path):
    with anytrace.CacherayWriter(tmp_path / "x", pointer_bytes=4) as trace:
        with pytest.raises(anytrace.Error):
            trace.read(1 << 32, 8)
        with pytest.raises(OverflowError):
            trace.read(0, 256)
        with pytest.raises(anytrace.Error, match="NUL"):
            trace.add(0, b"a\0b", element_bytes=1)
    for options in ({"endian": "middle"}, {"pointer_bytes": 5}):
        with pytest.raises(anytrace.Error):
            anytrace.CacherayWriter(tmp_path / "y", **options)


@pytest.mark.parametrize("writer", [anytrace.HephWriter, anytrace.CacherayWriter])
def test_a_file_appears_when_it_is_closed_and_not_after_an_exception(writer, tmp_path):
    path = tmp_path / "written"
    open_writer = writer(path)
    assert list(tmp_path.glob("written")) == []
    open_writer.close()
    assert path.exists()
    with pytest.raises(anytrace.Error, match="force"):
        writer(path)
    path.unlink()
    with pytest.raises(ZeroDivisionError):
        with writer(path):
            1 / 0
    assert list(tmp_path.iterdir()) == []


def test_a_closed_writer_says_so(tmp_path):
    trace = anytrace.CacherayWriter(tmp_path / "x")
    trace.close()
    with pytest.raises(anytrace.Error, match="closed"):
        trace.read(0, 1)


def test_events_written_by_hand_and_by_the_writer_differ_in_nothing(tmp_path):
    path = tmp_path / "x"
    with anytrace.HephWriter(path) as trace:
        trace.event("däta", 5, 6, stream=3, substream=4, counter=7)
    assert path.read_bytes() == heph_event("däta".encode(), 5, 6, stream=3, counter=7, substream=4)


def test_every_public_name_has_documentation():
    for name in anytrace.__all__:
        thing = getattr(anytrace, name)
        if name == "__version__":
            continue
        assert thing.__doc__, name
        for method in vars(thing) if isinstance(thing, type) else ():
            if not method.startswith("_") and callable(getattr(thing, method)):
                assert getattr(thing, method).__doc__, f"{name}.{method}"
