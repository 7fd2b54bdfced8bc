"""A trace file."""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from ._anytrace import Record, Source
from ._errors import Diagnostic, Error, _diagnostic
from ._table import Column, Table

Path = str | os.PathLike[str]

# As the command line does: more than anybody reads, and the counts are exact all the same.
_LIMIT = 1000


def open(
    path: Path,
    symbols: Path | Sequence[Path] | Mapping[int, Path] | None = None,
    *,
    format: str | None = None,
    demangle: bool = True,
) -> Trace:
    """Opens a trace of any format that is known.

    ``symbols`` are programs, libraries or maps that have the names of what the trace has only numbers for: one, several,
    or by the number of the program's object (XRay: 0 is the program itself). ``format`` is for files that are not
    recognized. Only the first bytes are looked at; compressed files (gzip, zstd) are opened, too.

    Raises :class:`anytrace.Error` for what cannot be opened.
    """
    return Trace(path, symbols, format=format, demangle=demangle)


class Check(Sequence[Diagnostic]):
    """What :meth:`Trace.check` found: a sequence of diagnostics, and counts."""

    def __init__(self, report: dict[str, Any], diagnostics: list[Diagnostic]) -> None:
        self._diagnostics = diagnostics
        self.report: dict[str, Any] = report
        """The object of ``anytrace check --format json``."""

    @property
    def is_ok(self) -> bool:
        """True when there is no error."""
        return self.report["errors"] == 0

    @property
    def counts(self) -> dict[str, int]:
        """How often each rule is broken; exact also where the diagnostics are not all here."""
        return self.report["counts"]

    def __getitem__(self, at: Any) -> Any:
        return self._diagnostics[at]

    def __len__(self) -> int:
        return len(self._diagnostics)

    def __repr__(self) -> str:
        errors, warnings, notes = (self.report[key] for key in ("errors", "warnings", "notes"))
        return f"Check({errors} errors, {warnings} warnings, {notes} notes)"


class Trace:
    """A trace file. Every method reads it from its beginning; nothing of it is kept in memory.

    Iterating over it gives its records. Damage is a :class:`anytrace.DamageWarning`; everything else is read.
    """

    def __init__(
        self,
        path: Path,
        symbols: Path | Sequence[Path] | Mapping[int, Path] | None = None,
        *,
        format: str | None = None,
        demangle: bool = True,
    ) -> None:
        self.path: str = os.fsdecode(path)
        """The file, as given."""
        self._source: Source | None = Source(path, _symbols(symbols), format, demangle)
        self.format: str = self._source.format
        """The format's name; ``unknown`` for an empty file."""

    def __repr__(self) -> str:
        return f"Trace({self.path!r}, format={self.format!r})"

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forgets the trace. Tables that exist go on."""
        self._source = None

    def __iter__(self) -> Iterator[Record]:
        """The records, in the order of the file."""
        return iter(self._opened().records())

    @property
    def tables(self) -> list[str]:
        """The names of the tables that this trace can be read as."""
        return [name for name, _, _ in self._opened().tables()]

    def table(
        self,
        name: str,
        columns: Iterable[str] | None = None,
        start: int | None = None,
        end: int | None = None,
        threads: int | None = None,
        *,
        thread: int | Iterable[int] | None = None,
    ) -> Table:
        """One of the tables; nothing is read yet.

        ``columns``: only these, in this order; others are not made, which is faster. ``start``, ``end``: only rows whose
        time (``time_ns``, ``start`` or ``start_ns``) is at least ``start`` and less than ``end``. ``thread``: only rows
        of this thread, or of these. ``threads``: how many threads read, by default one a processor.
        """
        source = self._opened()
        tables = {name: columns for name, _, columns in source.tables()}
        if name not in tables:
            raise Error(f"{self.path}: no table {name}; there are: {', '.join(tables)}")
        if isinstance(columns, str):
            raise Error(f"columns={columns!r}: expected several names, such as [{columns!r}]")
        known = {column[0]: Column(*column) for column in tables[name]}
        wanted = list(known) if columns is None else list(columns)
        for column in wanted:
            if column not in known:
                raise Error(f"table {name} has no column {column}; it has {', '.join(known)}")
        if threads is not None and not 1 <= threads <= 64:
            raise Error(f"threads={threads}: expected 1 to 64")
        if isinstance(thread, int):
            thread = [thread]
        ids = None if thread is None else list(thread)
        chosen = [known[column] for column in wanted]
        return Table(source, name, chosen, start, end, ids, threads or 0, columns is not None)

    def info(self, *, limit: int = _LIMIT) -> dict[str, Any]:
        """What the trace is and what is in it: the object of ``anytrace info --format json``.

        ``limit``: most diagnostics under ``damage``; 0 is all.
        """
        return json.loads(self._opened().info(limit))

    def check(self, *, limit: int = _LIMIT) -> Check:
        """Every violation of the format's rules. It warns of nothing: what it finds is its result.

        ``limit``: most diagnostics; the first of each rule is always among them. 0 is all.
        """
        report, diagnostics = self._opened().check(limit)
        return Check(json.loads(report), [_diagnostic(text) for text in diagnostics])

    def stats(self, by: str = "name", *, sort: str = "total", top: int | None = None) -> dict[str, Any]:
        """Where time goes: the object of ``anytrace stats --format json``, of traces with spans.

        ``by``: ``name``, ``thread`` or ``name,thread``. ``sort``: ``total``, ``self``, ``count``, ``min``, ``p50``,
        ``p90``, ``p99``, ``max`` or ``name``. ``top``: only the first rows.
        """
        return json.loads(self._opened().stats(by, sort, top))

    def simulate(
        self,
        config: Path | Mapping[str, Any],
        *,
        cores: int | None = None,
        fetches: bool = False,
        types: bool = False,
        classes: bool = False,
        per_set: bool = False,
        per_thread: bool = False,
    ) -> dict[str, Any]:
        """Misses in caches: the object of ``anytrace memory sim --format json``, of traces with memory accesses.

        ``config``: a preset (``zen3``), a file with configurations, or what such a JSON file has: configurations by
        name. ``cores``: threads take turns on this many. ``fetches``: instruction fetches count as reads. ``types``:
        misses by type and field. ``classes``: why lines were missed. ``per_set``, ``per_thread``: misses of each.
        """
        preset: str | None = None
        text: tuple[str, str] | None = None
        if isinstance(config, (str, os.PathLike)):
            path = os.fsdecode(config)
            if os.path.isfile(path):
                with builtins.open(path, encoding="utf-8") as file:
                    text = (file.read(), os.path.splitext(os.path.basename(path))[0])
            else:
                preset = path
        else:
            text = (json.dumps(config), "config")
        request = {
            "preset": preset,
            "text": text,
            "cores": cores,
            "fetches": fetches,
            "types": types,
            "classes": classes,
            "per_set": per_set,
            "per_thread": per_thread,
        }
        return json.loads(self._opened().simulate(request))

    def convert(
        self, out: Path, to: str | None = None, *, table: str | None = None, force: bool = False
    ) -> list[str]:
        """Writes the trace in another form, as ``anytrace convert`` does; returns notes on what does not fit the form.

        ``to``: a form (``chrome``, ``perfetto``, ``parquet``, ``jsonl``, …); by default what the name of ``out`` says.
        ``table``: which one, for forms of tables. The file appears when it is complete; one that exists is replaced only
        by ``force``.
        """
        return self._opened().convert({"out": out, "to": to, "table": table, "force": force})

    def _opened(self) -> Source:
        if self._source is None:
            raise Error(f"{self.path}: the trace is closed")
        return self._source


def _symbols(symbols: Path | Sequence[Path] | Mapping[int, Path] | None) -> list[tuple[int | None, Path]]:
    if symbols is None:
        return []
    if isinstance(symbols, (str, os.PathLike)):
        return [(None, symbols)]
    if isinstance(symbols, Mapping):
        return list(symbols.items())
    return [(None, path) for path in symbols]
