"""Tables: pyarrow, pandas, Polars and DuckDB see the same rows."""

import anytrace
import duckdb
import pandas
import polars
import pyarrow
import pyarrow.compute
import pytest

NUMBERS = ("Int32", "Int64", "UInt32", "UInt64", "Float64", "Boolean")


def tables(path):
    trace = anytrace.open(path)
    return [trace.table(name) for name in trace.tables]


def number(value):
    return None if value is None or value is pandas.NA else value if isinstance(value, float) else int(value)


def wide(dtype):
    return polars.Float64 if dtype.is_float() else polars.Int64


def summary_of_arrow(table, columns):
    sums = [number(pyarrow.compute.sum(table[column]).as_py()) for column in columns]
    return table.num_rows, [sum_ or 0 for sum_ in sums], [table[column].null_count for column in columns]


@pytest.mark.filterwarnings("ignore::anytrace.DamageWarning")
def test_readers_agree_on_counts_sums_and_absent_values(example):
    for table in tables(example):
        columns = [column.name for column in table.columns if column.type in NUMBERS and column.type != "UInt64"]
        arrow = table.to_arrow()
        arrow.validate(full=True)
        expected = summary_of_arrow(arrow, columns)
        assert summary_of_arrow(pyarrow.table(table), columns) == expected, table
        assert summary_of_arrow(table.batches().read_all(), columns) == expected, table
        assert [field.name for field in arrow.schema] == [column.name for column in table.columns]

        frame = table.to_pandas()
        sums = [number(frame[column].sum()) or 0 for column in columns]
        assert (len(frame), sums, [int(frame[column].isna().sum()) for column in columns]) == expected, table

        frame = table.to_polars()
        sums = [frame[column].cast(wide(frame[column].dtype)).sum() or 0 for column in columns]
        assert (frame.height, sums, [frame[column].null_count() for column in columns]) == expected, table

        batches = table.batches()
        cells = [f'coalesce(sum("{column}"), 0), count(*) - count("{column}")' for column in columns]
        row = duckdb.execute(f"select {', '.join(['count(*)', *cells])} from batches")
        count, *rest = row.fetchone()
        assert (count, [number(n) for n in rest[0::2]], rest[1::2]) == expected, table


@pytest.mark.filterwarnings("ignore::anytrace.DamageWarning")
def test_readers_agree_on_every_text_and_number(example):
    for table in tables(example):
        rows = table.to_arrow().to_pylist()
        polars_rows = table.to_polars().to_dicts()
        assert [{k: str(v) if isinstance(v, float) else v for k, v in row.items()} for row in rows] == [
            {k: str(v) if isinstance(v, float) else v for k, v in row.items()} for row in polars_rows
        ], table


def test_each_use_of_a_table_is_a_new_reading(heph):
    table = anytrace.open(heph).table("events")
    assert pyarrow.table(table).equals(pyarrow.table(table))
    assert pyarrow.table(table).num_rows == 4


def test_a_batch_reader_is_read_once(heph):
    batches = anytrace.open(heph).table("events").batches()
    assert sum(batch.num_rows for batch in batches) == 4
    assert sum(batch.num_rows for batch in batches) == 0


def test_names_are_dictionaries_of_int32(heph):
    schema = pyarrow.schema(anytrace.open(heph).table("events"))
    assert schema.field("kind").type == pyarrow.dictionary(pyarrow.int32(), pyarrow.utf8())


def test_only_the_columns_asked_for_come_in_their_order(heph):
    table = anytrace.open(heph).table("events", columns=["name", "seq"])
    assert table.to_arrow().column_names == ["name", "seq"]
    assert table.to_arrow()["name"].to_pylist() == ["epoch", "a", "b", "a"]


def test_no_column_at_all_still_counts(heph):
    assert anytrace.open(heph).table("events", columns=[]).to_arrow().num_rows == 4


def test_start_is_in_the_range_and_end_is_not(heph):
    packets = anytrace.open(heph).table("packets", columns=["description"], start=150, end=300)
    assert packets.to_arrow().to_pylist() == [{"description": "b"}]
    packets = anytrace.open(heph).table("packets", columns=["description"], start=150)
    assert packets.to_arrow()["description"].to_pylist() == ["b", "a"]


def test_a_thread_selects_rows_of_its_own(accesses):
    path, count, _ = accesses
    table = anytrace.open(path).table("accesses", columns=["kind"], thread=1)
    assert table.to_arrow().num_rows == count // 2


def test_conditions_that_a_table_has_no_column_for_are_errors(heph):
    trace = anytrace.open(heph)
    with pytest.raises(anytrace.Error, match="no column of times"):
        trace.table("loss", start=1).to_arrow()
    with pytest.raises(anytrace.Error, match="no table nosuch; there are: events"):
        trace.table("nosuch")
    with pytest.raises(anytrace.Error, match="no column nosuch; it has seq"):
        trace.table("events", columns=["nosuch"])
    with pytest.raises(anytrace.Error, match="several names"):
        trace.table("events", columns="seq")
    with pytest.raises(anytrace.Error, match="1 to 64"):
        trace.table("events", threads=0)


def test_the_number_of_threads_changes_no_row(example):
    trace = anytrace.open(example)
    if trace.format == "xray":
        # Stacks are numbered as they are found, tracks too.
        return
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", anytrace.DamageWarning)
        for name in trace.tables:
            one = trace.table(name, threads=1).to_arrow().to_pylist()
            assert trace.table(name, threads=4).to_arrow().to_pylist() == one, name


def test_libraries_take_a_table_as_it_is(heph):
    table = anytrace.open(heph).table("packets")
    assert polars.DataFrame(table)["description"].to_list() == ["a", "b", "a"]
    assert pandas.DataFrame.from_arrow(table)["description"].tolist() == ["a", "b", "a"]
    assert pyarrow.schema(table).names == [column.name for column in table.columns]


def test_frames_of_two_tables_merge(heph):
    trace = anytrace.open(heph)
    events = trace.table("events", columns=["seq", "name"]).to_pandas()
    packets = trace.table("packets", columns=["seq", "description"]).to_pandas()
    merged = events.merge(packets, on="seq")
    assert merged["name"].tolist() == merged["description"].tolist() == ["a", "b", "a"]


def test_pandas_keeps_integers_with_absent_values(heph):
    frame = anytrace.open(heph).table("events").to_pandas()
    assert str(frame["thread"].dtype) == "int64[pyarrow]"
    assert frame["thread"].isna().sum() == 1
