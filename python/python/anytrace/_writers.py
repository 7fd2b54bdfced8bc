"""Writers of traces. A file appears when it is closed, complete."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, TypeVar

from ._anytrace import CacherayFile, HephFile

Path = str | os.PathLike[str]
Scalar = int | float | str
W = TypeVar("W", bound="_Writer")


class _Writer:
    _file: Any

    def __enter__(self: W) -> W:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close(kind is None)

    def close(self) -> None:
        """Gives the file its name. Without this, or after an exception in a ``with`` block, nothing is left of it."""
        self._file.close(True)


class HephWriter(_Writer):
    """Writes a Heph trace.

    >>> with anytrace.HephWriter("app.heph", epoch_ns=time.time_ns()) as trace:
    ...     trace.event("poll", start_ns=100, end_ns=200, stream=1, attributes={"fd": 3})
    """

    def __init__(self, path: Path, *, epoch_ns: int | None = None, force: bool = False) -> None:
        """``epoch_ns``: the zero of all times, since 1970. ``force``: replace a file that exists."""
        self._file = HephFile(path, epoch_ns, force)

    def event(
        self,
        description: str,
        start_ns: int,
        end_ns: int,
        *,
        stream: int = 0,
        substream: int = 0,
        counter: int | None = None,
        attributes: Mapping[str, Scalar | Iterable[Scalar]] | Iterable[tuple[str, Scalar | Iterable[Scalar]]] = (),
    ) -> None:
        """Writes an event, which is over: inner ones come first.

        ``counter`` is the number of the event in its stream, by default the next one. Attributes are ``int``, ``float``,
        ``str`` or lists of one of them; pairs may repeat a key.
        """
        pairs = attributes.items() if isinstance(attributes, Mapping) else attributes
        self._file.event(description, start_ns, end_ns, stream, substream, counter, list(pairs))

    def option(self, name: str, value: bytes) -> None:
        """Writes an option of the trace."""
        self._file.option(name, value)


class CacherayWriter(_Writer):
    """Writes a cacheray trace: reads, writes, and which memory has which type.

    >>> with anytrace.CacherayWriter("app.cacheray") as trace:
    ...     trace.add(0x1000, "Node", element_bytes=16, elements=4)
    ...     trace.write(0x1008, 8, thread=1)
    """

    def __init__(
        self, path: Path, *, endian: str = "little", pointer_bytes: int = 8, force: bool = False
    ) -> None:
        """``endian``: ``little`` or ``big``. ``pointer_bytes``: 4 or 8. ``force``: replace a file that exists."""
        self._file = CacherayFile(path, endian, pointer_bytes, force)

    def read(
        self, address: int, size: int, *, thread: int = 0, atomic: bool = False, unaligned: bool = False
    ) -> None:
        """Writes a read of ``size`` bytes."""
        self._file.access(False, address, size, thread, atomic, unaligned)

    def write(
        self, address: int, size: int, *, thread: int = 0, atomic: bool = False, unaligned: bool = False
    ) -> None:
        """Writes a write of ``size`` bytes."""
        self._file.access(True, address, size, thread, atomic, unaligned)

    def add(self, address: int, type: str | bytes, *, element_bytes: int, elements: int = 1, thread: int = 0) -> None:
        """Says that memory has a type from here on."""
        name = type.encode() if isinstance(type, str) else type
        self._file.add(address, name, element_bytes, elements, thread)

    def remove(self, address: int, *, thread: int = 0) -> None:
        """Says that memory has that type no longer."""
        self._file.remove(address, thread)
