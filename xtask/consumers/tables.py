"""Reads Parquet and Arrow files with pyarrow, DuckDB, Polars and pandas, and compares what they say.

tables.py FOLDER: every *.parquet and *.arrow below it. Beside NAME.parquet, NAME-small.parquet and so on, NAME.rows.json
has all rows, or NAME.summary.json counts, sums and ends of each column, as the library has them.
"""

import json
import math
import struct
import sys
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.compute
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet


def cell(value):
    """A value as the JSON has it."""
    if value is None or value is pandas.NA or value is pandas.NaT:
        return None
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def of_pandas(frame):
    """Columns of a frame of Arrow types: pandas' own have no absent integers and take NaN for absent."""
    return {name: [cell(value) for value in column.array._pa_array.to_pylist()] for name, column in frame.items()}


def of_arrow(table):
    table.validate(full=True)
    return {name: [cell(value) for value in column.to_pylist()] for name, column in zip(table.column_names, table.columns)}


def of_polars(frame):
    return {column.name: [cell(value) for value in column.to_list()] for column in frame}


def of_duckdb(query, **views):
    with duckdb.connect() as connection:
        for name, view in views.items():
            connection.register(name, view)
        result = connection.execute(query)
        names, rows = [about[0] for about in result.description], result.fetchall()
    return {name: [cell(row[at]) for row in rows] for at, name in enumerate(names)}


def readers(path):
    """Every way to read a file, each a function that returns its columns."""
    name = str(path)
    if path.suffix == ".parquet":
        return {
            "pyarrow": lambda: of_arrow(pyarrow.parquet.read_table(name)),
            "pyarrow, dictionaries": lambda: of_arrow(
                pyarrow.parquet.read_table(name, read_dictionary=strings(pyarrow.parquet.read_schema(name)))
            ),
            "duckdb": lambda: of_duckdb(f"select * from read_parquet('{name}')"),
            "polars": lambda: of_polars(polars.read_parquet(name)),
            "polars, lazily": lambda: of_polars(polars.scan_parquet(name).collect()),
            "pandas": lambda: of_pandas(pandas.read_parquet(name, dtype_backend="pyarrow")),
        }
    table = pyarrow.ipc.open_file(pyarrow.memory_map(name)).read_all()
    return {
        "pyarrow": lambda: of_arrow(table),
        "feather": lambda: of_arrow(pyarrow.feather.read_table(name, memory_map=True)),
        "duckdb": lambda: of_duckdb("select * from mapped", mapped=table),
        "polars": lambda: of_polars(polars.read_ipc(name)),
        "polars, lazily": lambda: of_polars(polars.scan_ipc(name).collect()),
        "pandas": lambda: of_pandas(pandas.read_feather(name, dtype_backend="pyarrow")),
    }


def strings(schema):
    return [field.name for field in schema if pyarrow.types.is_string(field.type)]


def same(a, b):
    """Equal, also where they are no numbers; 0 is not -0."""
    return type(a) is type(b) and a == b and (not isinstance(a, float) or math.copysign(1, a) == math.copysign(1, b))


def differ(expected, found):
    """Where columns differ, or nothing."""
    if list(expected) != list(found):
        return f"columns are {list(found)}"
    for name, column in expected.items():
        if len(column) != len(found[name]):
            return f"{name} has {len(found[name])} rows, not {len(column)}"
        for row, (a, b) in enumerate(zip(column, found[name])):
            # JSON has no difference between 1 and 1.0.
            if not same(a, b) and not (isinstance(b, float) and a == b and a != 0):
                return f"{name}, row {row}: {b!r}, not {a!r}"
    return None


def whole(value):
    """A number whose sum does not depend on the order: of floating point its bits."""
    return struct.unpack("<Q", struct.pack("<d", value))[0] if isinstance(value, float) else int(value)


def summary(columns):
    """Counts, sums and ends of columns; sums and numbers as texts, for they are larger than JSON's."""
    result = {}
    for name, column in columns.items():
        values = [value for value in column if value is not None]
        about = {"rows": len(column), "nulls": len(column) - len(values)}
        if values and isinstance(values[0], str):
            about["sum"] = str(sum(len(value.encode()) for value in values))
            about["min"], about["max"] = min(values, key=str.encode), max(values, key=str.encode)
        elif values:
            values = [whole(value) for value in values]
            about["sum"], about["min"], about["max"] = str(sum(values)), str(min(values)), str(max(values))
        result[name] = about
    return result


def statistics(path, columns):
    """What is wrong with the statistics of a Parquet file's column chunks."""
    file = pyarrow.parquet.ParquetFile(path)
    first = 0
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        for at, name in enumerate(columns):
            values = columns[name][first : first + group.num_rows]
            present = [value for value in values if value is not None]
            about = group.column(at).statistics
            if about.null_count != len(values) - len(present) or group.column(at).num_values != len(values):
                return f"{name}, row group {number}: {about}"
            floats = [value for value in present if value != "NaN"]
            if about.physical_type == "DOUBLE":
                present = [float(value) for value in floats]
            if about.physical_type == "BYTE_ARRAY" and any(str(value).startswith("ff" * 64) for value in present):
                # No upper bound of 64 bytes; pyarrow shows both bounds or none.
                continue
            if bool(present) != about.has_min_max:
                return f"{name}, row group {number}: {about}"
            if present and about.physical_type == "BYTE_ARRAY":
                # Cut: bounds, not values.
                is_text = about.logical_type.type == "STRING"
                key = (lambda value: value.encode()) if is_text else bytes.fromhex
                raw = [key(value) for value in present]
                low, high = (value.encode() if isinstance(value, str) else value for value in (about.min, about.max))
                ends = [(low, min(raw)), (high, max(raw))]
                if low > min(raw) or high < max(raw) or any(bound != value and len(value) <= 64 for bound, value in ends):
                    return f"{name}, row group {number}: {about}"
            elif present and (about.min != min(present) or about.max != max(present)):
                return f"{name}, row group {number}: {about}"
        first += group.num_rows
    return None if first == len(next(iter(columns.values()))) else f"{first} rows in all row groups"


def pushdown(path, columns):
    """What DuckDB and Polars find of single values, when statistics and dictionaries may exclude row groups."""
    wrong = []
    for name, column in columns.items():
        if name.startswith(("bytes", "float", "boolean")):
            continue
        present = [value for value in column if value is not None]
        for value in {present[0], present[-1], min(present), max(present)} if present else ():
            expected = sum(other == value for other in column)
            with duckdb.connect() as connection:
                query = f"select count(*) from read_parquet('{path}') where \"{name}\" = ?"
                found = connection.execute(query, [value]).fetchone()[0]
            lazily = polars.scan_parquet(path).filter(polars.col(name) == value).select(polars.len()).collect().item()
            if found != expected or lazily != expected:
                wrong.append(f"{name} = {value!r}: {found} rows by DuckDB, {lazily} by Polars, not {expected}")
    return wrong


def of_rows(path):
    made = json.loads(path.read_text())
    columns = list(zip(*made["rows"])) or [()] * len(made["columns"])
    return {name: list(column) for name, column in zip(made["columns"], columns)}


def check(path):
    """What is wrong with one file."""
    stem = path.with_name(path.name.removesuffix(path.suffix).removesuffix("-small"))
    rows, expected = stem.with_name(stem.name + ".rows.json"), stem.with_name(stem.name + ".summary.json")
    wrong = []
    for reader, read in readers(path).items():
        try:
            found = read()
        except Exception as error:
            wrong.append(f"{path.name}, {reader}: {error!r}")
            continue
        if rows.exists():
            difference = differ(of_rows(rows), found)
        else:
            expect, found_summary = json.loads(expected.read_text()), summary(found)
            difference = None if expect == found_summary else f"{found_summary}\n  not {expect}"
        if difference:
            wrong.append(f"{path.name}, {reader}: {difference}")
    if path.suffix == ".parquet" and not wrong:
        columns = of_arrow(pyarrow.parquet.read_table(path))
        difference = statistics(path, columns)
        wrong += [f"{path.name}, statistics: {difference}"] if difference else []
        wrong += [f"{path.name}: {difference}" for difference in pushdown(path, columns)]
    return wrong


def main():
    files = sorted(path for path in Path(sys.argv[1]).rglob("*") if path.suffix in (".parquet", ".arrow"))
    wrong = [difference for path in files for difference in check(path)]
    print("\n".join(wrong))
    print(f"{len(files)} files of tables, {len(wrong)} differences")
    sys.exit(1 if wrong or not files else 0)


if __name__ == "__main__":
    main()
