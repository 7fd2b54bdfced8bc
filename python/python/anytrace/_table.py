"""A table of a trace, for programs that read Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from ._anytrace import Source, Stream

T = TypeVar("T")


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    """Its name; ends in the unit where it has one."""
    type: str
    """``Boolean``, ``Int32``, ``Int64``, ``UInt32``, ``UInt64``, ``Float64``, ``Text``, ``Bytes`` or ``Name``."""
    is_nullable: bool
    """Whether a row may have no value here."""
    help: str
    """What it means."""


class Table:
    """Rows of a trace. Nothing is read before they are asked for, and each use reads the trace again.

    It goes wherever an object with ``__arrow_c_stream__`` goes: ``pyarrow.table(table)``, ``polars.DataFrame(table)``,
    ``pandas.DataFrame.from_arrow(table)``. Columns of few different texts are dictionaries: ``Dictionary(Int32, Utf8)``.
    """

    def __init__(
        self,
        source: Source,
        name: str,
        columns: list[Column],
        start: int | None,
        end: int | None,
        thread: list[int] | None,
        threads: int,
        is_projected: bool,
    ) -> None:
        self._source = source
        self.name: str = name
        """The table's name."""
        self.columns: list[Column] = columns
        """Its columns, in order."""
        names = [column.name for column in columns] if is_projected else None
        self._wanted = (name, names, start, end, thread, threads)

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {[column.name for column in self.columns]})"

    def __arrow_c_schema__(self) -> object:
        """The columns, for Arrow's C interface."""
        return self._source.schema(self._wanted[0], self._wanted[1])

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A new reading of the rows, for Arrow's C interface.

        What ends it early (Ctrl-C, too) is an error of the consumer's own class, with our text.
        """
        return self._source.stream(*self._wanted).__arrow_c_stream__(requested_schema)

    def batches(self) -> pyarrow.RecordBatchReader:
        """A new reading of the rows, batch by batch, in bounded memory: iterate over it, or give it to DuckDB.

        Needs pyarrow.
        """
        import pyarrow

        stream = self._stream()
        reader = pyarrow.RecordBatchReader.from_stream(stream)
        return pyarrow.RecordBatchReader.from_batches(reader.schema, _batches(stream, reader))

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a ``pyarrow.Table``."""
        import pyarrow

        return self._consume(lambda stream: pyarrow.RecordBatchReader.from_stream(stream).read_all())

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """All rows as a ``pandas.DataFrame``; ``options`` are those of ``pyarrow.Table.to_pandas``.

        Unless they say otherwise, columns keep their Arrow types (``pandas.ArrowDtype``), so that integers with absent
        values stay integers.
        """
        if not options:
            import pandas

            options = {"types_mapper": pandas.ArrowDtype}
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> polars.DataFrame:
        """All rows as a ``polars.DataFrame``. pyarrow is not needed."""
        import polars

        return self._consume(polars.DataFrame)

    def _stream(self) -> Stream:
        return self._source.stream(*self._wanted)

    def _consume(self, consumer: Callable[[Stream], T]) -> T:
        """Has a library read the rows; what ended the reading early is raised as what it was."""
        stream = self._stream()
        try:
            return consumer(stream)
        except BaseException:
            failure = stream.failure()
            if failure is not None:
                raise failure from None
            raise


def _batches(stream: Stream, reader: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    try:
        yield from reader
    except BaseException:
        failure = stream.failure()
        if failure is not None:
            raise failure from None
        raise
