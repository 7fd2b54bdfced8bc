"""Converts several traces to folders of tables, and a large one to a table of many row groups; asks pyarrow, DuckDB, Polars
and DataFusion about them.

partitions.py ANYTRACE TRACES FOLDER: works in FOLDER, with the examples of TRACES.
"""

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import datafusion
import duckdb
import polars
import pyarrow
import pyarrow.dataset
import pyarrow.parquet

from tables import cell

ANYTRACE, TRACES, FOLDER = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])

# Accesses of the large trace, and most rows of a row group.
ACCESSES, GROUP_ROWS = 400_000, 131_072


def convert(*words):
    subprocess.run([ANYTRACE, "convert", "--to", "parquet", *words], check=True)


def rows(columns):
    """How often each row occurs."""
    return Counter(zip(*([repr(cell(value)) for value in column] for column in columns.values())))


def of_datafusion(folder, name):
    context = datafusion.SessionContext()
    context.register_listing_table("t", str(folder), [(name, pyarrow.string())], file_extension=".parquet")
    return context.sql("select * from t").to_pydict()


def of_duckdb(folder):
    result = duckdb.sql(f"select * from read_parquet('{folder}/*/*.parquet', hive_partitioning = true)")
    return {name: list(column) for name, column in zip(result.columns, zip(*result.fetchall()))}


def several():
    """What is wrong with the tables of traces of one format, of which two have the same name."""
    other = FOLDER / "other" / "imm.trace"
    other.parent.mkdir()
    shutil.copy(TRACES / "imm-trim.trace", other)
    inputs = {f"{TRACES.name}/imm.trace": TRACES / "imm.trace", "imm-trim.trace": TRACES / "imm-trim.trace", "other/imm.trace": other}
    convert(*inputs.values(), "--all-tables", "-o", FOLDER / "several")
    for number, file in enumerate(inputs.values()):
        convert(file, "--all-tables", "-o", FOLDER / f"single-{number}")
    wrong = []
    tables = sorted(path.stem for path in (FOLDER / "single-0").iterdir())
    if tables != sorted(path.name for path in (FOLDER / "several").iterdir()):
        wrong.append(f"tables are {tables}")
    for table in tables:
        folder = FOLDER / "several" / table
        expected = Counter()
        for number, name in enumerate(inputs):
            own = pyarrow.parquet.read_table(FOLDER / f"single-{number}" / f"{table}.parquet")
            expected += rows({key: own[key].to_pylist() for key in own.column_names} | {"file": [name] * own.num_rows})
        found = {
            "pyarrow": lambda: pyarrow.dataset.dataset(folder, partitioning="hive").to_table().to_pydict(),
            "pandas' pyarrow": lambda: pyarrow.parquet.read_table(folder).to_pydict(),
            "duckdb": lambda: of_duckdb(folder),
            "polars": lambda: polars.read_parquet(folder, hive_partitioning=True).to_dict(as_series=False),
            "datafusion": lambda: of_datafusion(folder, "file"),
        }
        for reader, read in found.items():
            columns = read()
            if not expected:
                continue
            if list(columns)[-1] != "file" or rows(columns) != expected:
                wrong.append(f"{table}, {reader}: {len(rows(columns))} different rows, not {len(expected)}")
    return wrong


def large():
    """What is wrong with the row groups of a large trace: readers must skip those in which nothing can be."""
    log, table = FOLDER / "large.lackey", FOLDER / "large.parquet"
    lines = (f" {'LS'[at % 2]} {0x10000000 + at:08x},{1 + at % 8}\n" for at in range(ACCESSES))
    log.write_text("==1== Lackey, an example Valgrind tool\n" + "".join(lines))
    convert(log, "--table", "accesses", "-o", table)
    about = pyarrow.parquet.ParquetFile(table).metadata
    wrong, groups = [], [about.row_group(number) for number in range(about.num_row_groups)]
    sizes = [group.num_rows for group in groups]
    if sum(sizes) != ACCESSES or len(sizes) != -(-ACCESSES // GROUP_ROWS) or max(sizes) > GROUP_ROWS:
        wrong.append(f"row groups have {sizes} rows")
    for group in groups:
        for at in range(group.num_columns):
            column = group.column(at)
            if not column.is_stats_set or not column.statistics.has_min_max or column.statistics.null_count != 0:
                wrong.append(f"{column.path_in_schema}: {column.statistics}")
    ends = [(group.column(0).statistics.min, group.column(0).statistics.max) for group in groups]
    if any(before[1] >= after[0] for before, after in zip(ends, ends[1:])):
        wrong.append(f"seq goes from {ends}")
    for column, low, high in [("seq", 200_001, 200_100), ("address", 0x10000000 + 399_000, 0x10000000 + 399_099)]:
        condition = f"from read_parquet('{table}') where {column} between {low} and {high}"
        plan = duckdb.sql(f"explain analyze select count(*), sum(size) {condition}").fetchall()[0][1]
        count = duckdb.sql(f"select count(*) {condition}").fetchall()[0][0]
        if f"Row Groups Scanned: 1 / {len(groups)}" not in plan or count != 100:
            wrong.append(f"{condition}: {count} rows\n{plan}")
    return wrong


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    wrong = several() + large()
    print("\n".join(wrong))
    print(f"folders of several traces and row groups: {len(wrong)} differences")
    sys.exit(1 if wrong else 0)


main()
