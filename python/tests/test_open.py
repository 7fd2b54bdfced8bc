"""Opening: what is a trace, what is none, and how that is said."""

import gzip
import json
import os
from pathlib import Path

import anytrace
import pytest


def test_each_example_has_a_format_and_tables_of_which_the_first_is_events(example):
    trace = anytrace.open(example)
    assert trace.format in ("apitrace", "cacheray", "casemate", "heph", "lackey", "xray")
    assert trace.tables[0] == "events"
    assert len(set(trace.tables)) == len(trace.tables)


def test_a_path_may_be_text_bytes_or_an_object(heph):
    for path in (str(heph), os.fsencode(heph), Path(heph)):
        assert anytrace.open(path if not isinstance(path, bytes) else os.fsdecode(path)).format == "heph"


def test_a_missing_file_is_an_error_that_names_it(tmp_path):
    with pytest.raises(anytrace.Error, match="no-such-file.heph") as raised:
        anytrace.open(tmp_path / "no-such-file.heph")
    assert raised.value.kind == "io"


def test_a_folder_is_an_error(tmp_path):
    with pytest.raises(anytrace.Error):
        anytrace.open(tmp_path)


def test_what_no_format_knows_is_an_error_that_names_the_way_out(tmp_path):
    path = tmp_path / "noise"
    path.write_bytes(b"\x24\x87\x01\xcc\x9b no trace \xfe")
    with pytest.raises(anytrace.Error, match="unknown format.*format=") as raised:
        anytrace.open(path)
    assert raised.value.kind == "usage"
    with pytest.raises(anytrace.Error, match="unknown format nosuch"):
        anytrace.open(path, format="nosuch")


def test_a_format_may_be_chosen(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"\0" * 18)
    assert anytrace.open(path, format="cacheray").format == "cacheray"


def test_json_lines_are_an_error_that_says_how_to_convert_them(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"format": "heph", "version": 1}) + "\n")
    with pytest.raises(anytrace.Error):
        anytrace.open(path)


def test_a_pipe_is_an_error_for_it_can_be_read_only_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(anytrace.Error, match="only once"):
        anytrace.open(path)


def test_an_empty_file_has_no_tables_and_no_records(tmp_path):
    path = tmp_path / "empty"
    path.write_bytes(b"")
    trace = anytrace.open(path)
    assert (trace.format, trace.tables, list(trace)) == ("unknown", [], [])
    assert trace.info()["records"] == 0
    assert trace.check().is_ok


def test_a_compressed_trace_opens(heph, tmp_path):
    path = tmp_path / "three.heph.gz"
    path.write_bytes(gzip.compress(heph.read_bytes()))
    info = anytrace.open(path).info()
    assert (info["container"], info["records"]) == ("gzip", 4)


def test_with_closes_the_trace_and_its_tables_go_on(heph):
    with anytrace.open(heph) as trace:
        table = trace.table("events")
    assert table.to_arrow().num_rows == 4
    with pytest.raises(anytrace.Error, match="closed"):
        trace.info()


def test_missing_symbols_are_an_error_at_once(heph, tmp_path):
    with pytest.raises(anytrace.Error):
        anytrace.open(heph, symbols=tmp_path / "no-program")


def test_info_counts_what_the_bytes_have(heph):
    info = anytrace.open(heph).info()
    assert (info["format"], info["records"], info["lost"], info["damage"]) == ("heph", 4, 0, [])
    assert info["bytes"] == heph.stat().st_size
