//! Tests of merging.

use anytrace_core::span::{NO_CPU, TimeUnit};

use super::*;

/// What a sink got, as text.
#[derive(Default)]
struct Got {
    tracks: Vec<String>,
    names: Vec<String>,
    edges: Vec<String>,
    identities: Vec<(u64, Option<u64>)>,
}

impl SpanSink for Got {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        assert_eq!(source.format, "merged");
        Ok(())
    }
    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        assert_eq!(id as usize, self.tracks.len());
        let process = track.process_name.as_deref().unwrap_or_default();
        self.tracks.push(format!("{}/{} of {process}", track.process, track.thread));
        Ok(())
    }
    fn name(&mut self, id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        assert_eq!(id as usize, self.names.len());
        let line = location.map_or(0, |location| location.line);
        self.names.push(format!("{}:{line}", String::from_utf8_lossy(name)));
        Ok(())
    }
    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            let attributes: Vec<_> =
                batch.attributes(edge).map(|(key, value)| format!("{}={value:?}", self.names[key as usize])).collect();
            let (track, name) = (&self.tracks[edge.track as usize], &self.names[edge.name as usize]);
            self.edges.push(format!("{:?} {name} on {track} at {} {}", edge.kind, edge.time, attributes.join(" ")));
        }
        self.identities.extend(batch.identified().filter_map(|(_, identity)| identity));
        Ok(())
    }
}

/// A trace of one process: a complete span from 10 to 20, and an arrow of number 7 at 15.
fn play(sink: &mut dyn SpanSink, process: u64, names: &[(&str, u32)]) {
    sink.source(&facts(0, 0).source).unwrap();
    sink.track(0, &Track { process, thread: 4, ..Track::default() }).unwrap();
    for (id, (name, line)) in (0..).zip(names) {
        let location = Location { file: "a.c".to_owned(), line: *line };
        sink.name(id, name.as_bytes(), (*line > 0).then_some(&location)).unwrap();
    }
    let last = NameId::try_from(names.len() - 1).unwrap();
    let edge =
        |kind, time, flags| Edge { seq: 1, time, track: 0, name: last, attributes: (0, 0), cpu: NO_CPU, kind, flags };
    let mut batch = EdgeBatch::default();
    batch.push(edge(EdgeKind::Begin, 10, EdgeFlags::COMPLETE));
    batch.attribute(0, Value::U64(20));
    batch.attribute(0, Value::U64(20));
    batch.identify(5, Some(3));
    batch.push(edge(EdgeKind::FlowOut, 15, EdgeFlags::NONE));
    batch.attribute(0, Value::U64(7));
    sink.edges(&batch).unwrap();
}

fn facts(origin: u64, epoch_ns: i128) -> Facts {
    let unit = TimeUnit::Nanoseconds;
    let source = SpanSource { format: "test", unit, origin, epoch_ns: Some(epoch_ns), uptime: None };
    Facts { source, range: None, offset: 0 }
}

fn merged(traces: &[(u64, &[(&str, u32)])]) -> Got {
    let facts: Vec<_> = (0..).zip(traces).map(|(at, _)| facts(10, at * 100)).collect();
    let placed = place(&facts, Align::Clocks);
    let mut got = Got::default();
    let mut merger = Merger::new(&mut got, &placed).unwrap();
    for (number, (process, names)) in traces.iter().enumerate() {
        play(&mut merger.trace(number, ["a.x", "b.x", "c.x"][number]), *process, names);
    }
    got
}

#[test]
fn times_move_with_their_trace_and_so_do_the_ends_of_complete_spans() {
    let got = merged(&[(7, &[("end", 0), ("f", 0)]), (8, &[("end", 0), ("f", 0)])]);
    let arrow = 7_u64.wrapping_add(0x9e37_79b9_7f4a_7c15);
    assert_eq!(
        got.edges,
        [
            "Begin f:0 on 7/4 of a.x at 0 end:0=U64(10) end:0=U64(20)".to_owned(),
            "FlowOut f:0 on 7/4 of a.x at 5 end:0=U64(7)".to_owned(),
            "Begin f:0 on 8/4 of b.x at 100 end:0=U64(110) end:0=U64(20)".to_owned(),
            format!("FlowOut f:0 on 8/4 of b.x at 105 end:0=U64({arrow})"),
        ]
    );
    let other = |own: u64| own.wrapping_add(0x9e37_79b9_7f4a_7c15);
    assert_eq!(got.identities, [(5, Some(3)), (other(5), Some(other(3)))]);
}

#[test]
fn equal_names_are_one_unless_a_trace_tells_them_apart() {
    let got = merged(&[(1, &[("f", 1), ("f", 2), ("g", 0), ("g", 0)]), (2, &[("g", 0), ("f", 2), ("h", 0), ("g", 0)])]);
    assert_eq!(got.names, ["f:1", "f:2", "g:0", "g:0", "h:0"]);
    assert!(got.edges[2].contains(" g:0 "), "{:?}", got.edges);
}

#[test]
fn processes_of_one_number_are_two() {
    let names: &[(&str, u32)] = &[("f", 0)];
    let got = merged(&[(0, names), (0, names), (1, names)]);
    assert_eq!(got.tracks, ["0/4 of a.x", "1/4 of b.x", "2/4 of c.x (process 1)"]);
    let got = merged(&[(70, names), (70, names), (5, names)]);
    assert_eq!(got.tracks, ["70/4 of a.x", "71/4 of b.x (process 70)", "5/4 of c.x"]);
}
