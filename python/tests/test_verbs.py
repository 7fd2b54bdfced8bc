"""Verbs: what they return is what the command prints; what they write is what the command writes."""

import json
import warnings

import anytrace
import pytest

from conftest import EXAMPLES


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", anytrace.DamageWarning)
        yield


def printed(command, *arguments):
    code, out, complaints = command(*arguments)
    assert code in (0, 1), complaints
    return json.loads(out)


def test_info_is_what_the_command_prints(example, command):
    assert anytrace.open(example).info() == printed(command, "info", "--format", "json", example)


def test_info_of_damage_is_what_the_command_prints(damaged, command):
    path, _ = damaged
    assert anytrace.open(path).info() == printed(command, "info", "--format", "json", path)


def test_check_is_what_the_command_prints(example, command):
    check = anytrace.open(example).check()
    expected = printed(command, "check", "--format", "json", example)
    assert check.report == expected
    assert [one.code for one in check] == [one["code"] for one in expected["diagnostics"]]


@pytest.mark.parametrize("by", ["name", "thread", "name,thread"])
def test_stats_are_what_the_command_prints(by, example, command):
    trace = anytrace.open(example)
    if "spans" not in trace.tables:
        with pytest.raises(anytrace.Error):
            trace.stats()
        return
    expected = printed(command, "stats", "--format", "json", "--by", by, "--sort", "self", "--top", "5", example)
    assert trace.stats(by, sort="self", top=5) == expected


@pytest.mark.parametrize("options", [{}, {"types": True, "classes": True, "per_thread": True, "cores": 2}])
def test_simulations_are_what_the_command_prints(options, example, command):
    trace = anytrace.open(example)
    if "accesses" not in trace.tables:
        with pytest.raises(anytrace.Error):
            trace.simulate("zen3")
        return
    words = {"types": ["--types"], "classes": ["--classes"], "per_thread": ["--per-thread"], "cores": ["--cores", "2"]}
    arguments = [word for option in options for word in words[option]]
    expected = printed(command, "memory", "sim", "--config", "zen3", "--format", "json", *arguments, example)
    assert trace.simulate("zen3", **options) == expected


SMALL = {"small": {"levels": [{"name": "L1", "size": 1024, "line": 64, "ways": 2}]}}


def test_a_configuration_may_be_a_mapping_or_a_file(tmp_path):
    trace = anytrace.open(next(path for path in EXAMPLES if path.suffix == ".cacheray"))
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SMALL))
    results = trace.simulate(SMALL)["results"]
    assert list(results) == ["small"]
    assert trace.simulate(path)["results"] == results


def test_a_simulation_of_caches_that_nobody_knows_is_an_error():
    trace = anytrace.open(next(path for path in EXAMPLES if path.suffix == ".cacheray"))
    with pytest.raises(anytrace.Error, match="nosuch: neither a file nor a preset; presets: "):
        trace.simulate("nosuch")
    with pytest.raises(anytrace.Error):
        trace.simulate({"levels": "many"})


def test_a_first_access_to_each_line_misses_and_the_second_hits(tmp_path):
    path = tmp_path / "lines.cacheray"
    with anytrace.CacherayWriter(path) as trace:
        for address in [0x1000, 0x1040, 0x1000, 0x1040]:
            trace.read(address, 8)
    level = anytrace.open(path).simulate(SMALL)["results"]["small"]["levels"][0]
    assert level["name"] == "L1"
    assert (level["read_hits"], level["read_misses"]) == (2, 2)


def forms(trace):
    yield None, None
    yield "jsonl", None
    if "spans" in trace.tables:
        for form in ("chrome", "perfetto", "speedscope", "firefox", "folded", "csv", "svg"):
            yield form, None
    if "accesses" in trace.tables:
        for form in ("din", "xdin", "lackey"):
            yield form, None
    for table in trace.tables:
        yield "arrow", table
        yield "parquet", table


def test_convert_writes_what_the_command_writes(example, command, tmp_path):
    trace = anytrace.open(example)
    for form, table in forms(trace):
        ours, theirs = tmp_path / "ours", tmp_path / "theirs"
        options = [*(["--to", form] if form else []), *(["--table", table] if table else [])]
        code, _, complaints = command("convert", example, "-o", theirs, "--force", *options)
        if code == 2 and "cannot be written as" in complaints:
            continue
        assert code in (0, 1), complaints
        trace.convert(ours, form, table=table, force=True)
        assert ours.read_bytes() == theirs.read_bytes(), (form, table)


def test_the_name_of_the_output_says_which_form(heph, tmp_path):
    trace = anytrace.open(heph)
    trace.convert(tmp_path / "out.heph")
    assert (tmp_path / "out.heph").read_bytes() == heph.read_bytes()
    trace.convert(tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    with pytest.raises(anytrace.Error, match="no form of heph traces has this extension"):
        trace.convert(tmp_path / "out.nosuch")


def test_nothing_is_replaced_without_force_and_nothing_is_left_of_a_failure(heph, tmp_path):
    trace, out = anytrace.open(heph), tmp_path / "folder" / "out.heph"
    with pytest.raises(anytrace.Error, match="cannot write"):
        trace.convert(out)
    out.parent.mkdir()
    trace.convert(out)
    with pytest.raises(anytrace.Error, match="force"):
        trace.convert(out)
    trace.convert(out, force=True)
    for options in ({"to": "nosuch"}, {"to": "parquet"}, {"to": "parquet", "table": "nosuch"}, {"to": "din"}):
        with pytest.raises(anytrace.Error):
            trace.convert(out.with_name("other"), **options)
    assert [path.name for path in out.parent.iterdir()] == ["out.heph"]


def test_a_trace_converts_onto_itself_by_force(heph):
    before = heph.read_bytes()
    anytrace.open(heph).convert(heph, force=True)
    assert heph.read_bytes() == before
