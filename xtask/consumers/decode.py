"""Checks files with programs that exist for Python; prints one JSON object.

decode.py FOLDER: with Perfetto's own protobuf classes (every *.pftrace) and speedscope's schema (every *.speedscope.json).
"""

import json
import sys
from pathlib import Path

import jsonschema
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos


def unknown(message):
    """Number of fields the classes do not know, at any depth."""
    count = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            values = value if field.is_repeated else [value]
            count += sum(unknown(inner) for inner in values)
    return count


def packets(path):
    trace = protos.Trace()
    trace.ParseFromString(path.read_bytes())
    begins = sum(p.HasField("track_event") and p.track_event.type == protos.TrackEvent.TYPE_SLICE_BEGIN for p in trace.packet)
    ends = sum(p.HasField("track_event") and p.track_event.type == protos.TrackEvent.TYPE_SLICE_END for p in trace.packet)
    return {"packets": len(trace.packet), "begins": begins, "ends": ends, "unknown": unknown(trace)}


def main():
    folder, schema = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    results = {}
    for path in sorted(folder.glob("*.pftrace")):
        results[path.name] = packets(path)
    for path in sorted(folder.glob("*.speedscope.json")):
        profile = json.loads(path.read_text())
        jsonschema.validate(profile, schema)
        results[path.name] = {"profiles": len(profile["profiles"]), "frames": len(profile["shared"]["frames"])}
    print(json.dumps(results))


main()
