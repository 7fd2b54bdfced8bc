"""What is wrong with a trace, and what could not be done."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Diagnostic:
    """One problem in a trace: which rule is broken, where, what was expected and what was found.

    The fields are those of ``anytrace check --format json``; absent ones are ``None``.
    """

    code: str
    """Stable code of the rule, the format first: ``heph/string-past-packet``."""
    severity: str
    """``error``, ``warning`` or ``note``."""
    offset: int
    """Byte offset, in the file or, where ``within`` is set, in that stream."""
    message: str
    """What the rule says."""
    text: str
    """All of it in one line or two, as ``anytrace check`` prints it without the file's name."""
    record: int | None = None
    """Number of the record, from 0."""
    field: str | None = None
    """The field that is wrong."""
    expected: str | None = None
    """What the format requires there."""
    found: str | None = None
    """What the trace contains there."""
    help: str | None = None
    """What to do about it, or why it matters."""
    skipped: int = 0
    """How many bytes were skipped because of it."""
    resumed: int | None = None
    """Number of the record at which reading resumed."""
    within: str | None = None
    """The stream that ``offset`` counts in, when it is not the file."""
    line: int | None = None
    """Line, from 1, in formats of text."""
    column: int | None = None
    """Column, from 1, in formats of text."""

    def __str__(self) -> str:
        return self.text


class Error(Exception):
    """Something could not be done. Damage of a trace is not an error: it is a :class:`DamageWarning`."""

    kind: str
    """Whose fault it is: ``malformed`` (the trace's), ``unsupported``, ``limit``, ``usage`` (the caller's), ``io``."""
    diagnostic: Diagnostic | None
    """Where the trace is wrong, if ``kind`` is ``malformed``."""

    def __init__(self, message: str, kind: str = "usage", diagnostic: Diagnostic | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.diagnostic = diagnostic


class DamageWarning(UserWarning):
    """A trace is damaged; everything else in it was read. The text has the place: ``app.heph: byte 0x1f40, …``."""

    diagnostic: Diagnostic | None
    """What is damaged; ``None`` in the warning that says how many more there are."""

    def __init__(self, message: str, diagnostic: Diagnostic | None = None) -> None:
        super().__init__(message)
        self.diagnostic = diagnostic


def _diagnostic(text: str) -> Diagnostic:
    return Diagnostic(**json.loads(text))


def _error(message: str, kind: str, diagnostic: str | None) -> Error:
    """Called by the native half."""
    return Error(message, kind, None if diagnostic is None else _diagnostic(diagnostic))


def _warn(file: str, shown: list[str], count: int) -> None:
    """Called by the native half: warns of damage, at the caller's line."""
    level = _caller()
    for text in shown:
        diagnostic = _diagnostic(text)
        warnings.warn(DamageWarning(f"{file}: {diagnostic}", diagnostic), stacklevel=level)
    if count > len(shown):
        text = f"{file}: {count - len(shown)} more diagnostics; Trace.check() has them all"
        warnings.warn(DamageWarning(text), stacklevel=level)


def _caller() -> int:
    """How far up the stack the code is that called this package, however many libraries are in between."""
    here = str(Path(__file__).parent)
    found, level, frame = 1, 0, sys._getframe(1)
    while frame is not None:
        level += 1
        if frame.f_code.co_filename.startswith(here):
            found = level + 1
        frame = frame.f_back
    return found
