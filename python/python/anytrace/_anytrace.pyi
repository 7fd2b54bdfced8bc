"""The native half of the package; `anytrace` has everything that is meant to be used."""

from os import PathLike
from typing import Any

__version__: str

class Source:
    def __new__(
        cls,
        path: str | PathLike[str],
        symbols: list[tuple[int | None, str | PathLike[str]]],
        format: str | None,
        demangle: bool,
    ) -> Source: ...
    @property
    def format(self) -> str: ...
    def tables(self) -> list[tuple[str, str, list[tuple[str, str, bool, str]]]]: ...
    def info(self, limit: int) -> str: ...
    def check(self, limit: int) -> tuple[str, list[str]]: ...
    def schema(self, table: str, columns: list[str] | None) -> object: ...
    def stream(
        self,
        table: str,
        columns: list[str] | None,
        start: int | None,
        end: int | None,
        thread: list[int] | None,
        threads: int,
    ) -> Stream: ...
    def records(self) -> Records: ...
    def stats(self, by: str, sort: str, top: int | None) -> str: ...
    def simulate(self, request: dict[str, Any]) -> str: ...
    def convert(self, request: dict[str, Any]) -> list[str]: ...

class Stream:
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def failure(self) -> BaseException | None: ...

class Records:
    def __iter__(self) -> Records: ...
    def __next__(self) -> Record: ...

class Record:
    """One record. Its fields are those of the table ``events``; absent ones are ``None``."""

    @property
    def seq(self) -> int:
        """Its number, from 0."""
    @property
    def offset(self) -> int:
        """Its first byte, in the format's own bytes."""
    @property
    def thread(self) -> int | None:
        """Thread id, or the number of what the format has instead."""
    @property
    def time_ns(self) -> int | None:
        """Nanoseconds, as far as the format has a clock of known unit."""
    @property
    def duration_ns(self) -> int | None:
        """Its own length in nanoseconds."""
    @property
    def kind(self) -> str:
        """What it is, as ``anytrace dump --format jsonl`` calls it."""
    @property
    def name(self) -> str | None:
        """Function, description, type."""
    @property
    def attributes(self) -> dict[str, Any]:
        """Its other fields, as ``anytrace dump --format jsonl`` has them: a new dictionary each time."""

class HephFile:
    def __new__(cls, path: str | PathLike[str], epoch_ns: int | None, force: bool) -> HephFile: ...
    def event(
        self,
        description: str,
        start_ns: int,
        end_ns: int,
        stream: int,
        substream: int,
        counter: int | None,
        attributes: list[tuple[str, Any]],
    ) -> None: ...
    def option(self, name: str, value: bytes) -> None: ...
    def close(self, is_kept: bool) -> None: ...

class CacherayFile:
    def __new__(cls, path: str | PathLike[str], endian: str, pointer_bytes: int, force: bool) -> CacherayFile: ...
    def access(
        self, is_write: bool, address: int, size: int, thread: int, atomic: bool, unaligned: bool
    ) -> None: ...
    def add(self, address: int, name: bytes, elemsize: int, elemcount: int, thread: int) -> None: ...
    def remove(self, address: int, thread: int) -> None: ...
    def close(self, is_kept: bool) -> None: ...
