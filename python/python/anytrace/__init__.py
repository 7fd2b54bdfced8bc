"""Program traces of any kind as tables.

>>> import anytrace
>>> trace = anytrace.open("app.heph")
>>> trace.tables
['events', 'packets', 'streams', 'loss', 'attributes', 'spans', 'stacks']
>>> frame = trace.table("spans", columns=["name", "start", "duration"]).to_pandas()

A table has ``__arrow_c_stream__``: pandas, Polars, DuckDB and pyarrow take it as it is. Reading goes on in threads that
do not hold the interpreter, in memory that does not grow with the trace.
"""

from ._anytrace import Record, __version__
from ._errors import DamageWarning, Diagnostic, Error
from ._table import Column, Table
from ._trace import Check, Trace, open
from ._writers import CacherayWriter, HephWriter

__all__ = [
    "CacherayWriter",
    "Check",
    "Column",
    "DamageWarning",
    "Diagnostic",
    "Error",
    "HephWriter",
    "Record",
    "Table",
    "Trace",
    "__version__",
    "open",
]
