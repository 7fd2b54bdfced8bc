use anytrace_core::testing::dripping;
use anytrace_core::{Collect, Limits};

use super::*;

/// Pieces and records in order, as letters, and what was reported: code, offset, record, skipped bytes, resumed at.
type Seen = (Vec<String>, Vec<(&'static str, u64, Option<u64>, u64, Option<u64>)>);

struct Gather(Vec<String>);

impl Visit for Gather {
    fn record(&mut self, record: &Record<'_>, at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        self.0.push(format!("{}@{}:{}", record.kind().name(), at.offset, at.seq));
        Ok(())
    }

    fn piece(&mut self, piece: Piece<'_>, _at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        let (label, bytes) = match piece {
            Piece::Head(bytes) => ("head ", bytes),
            Piece::Separator(bytes) => ("between ", bytes),
            Piece::Tail(bytes) => ("tail ", bytes),
            Piece::Lost(bytes) => ("lost ", bytes),
        };
        let text = String::from_utf8_lossy(bytes);
        match self.0.last_mut().filter(|last| last.starts_with(label)) {
            Some(last) => last.push_str(&text),
            None => self.0.push(format!("{label}{text}")),
        }
        Ok(())
    }
}

fn read(input: Input, record_bytes_max: u64) -> Seen {
    let limits = Limits::default().with_record_bytes_max(record_bytes_max);
    let mut reader = Reader::new(input, &OpenOptions { limits, ..OpenOptions::default() }).unwrap();
    let (mut gather, mut sink) = (Gather(Vec::new()), Collect::default());
    let passed = reader.walk(&mut gather, &mut sink).unwrap();
    let reports = sink.0.iter().map(|d| (d.code(), d.offset, d.record, d.skipped_bytes, d.resumed_at)).collect();
    let skipped: u64 = sink.0.iter().map(|d| d.skipped_bytes).sum();
    assert_eq!(skipped, passed.bytes_lost);
    (gather.0, reports)
}

fn seen(text: &str) -> Seen {
    let whole = read(Input::from_bytes("x", text.as_bytes().to_vec()), 1000);
    for at_once in [1, 5] {
        assert_eq!(read(dripping("x", text.as_bytes(), at_once), 1000), whole, "{text}, {at_once} bytes at once");
    }
    whole
}

const A: &str = r#"{"ph":"B","ts":1}"#;
const C: &str = r#"{"ph":"E","ts":2}"#;

#[test]
fn every_form_is_read_to_its_end() {
    let (pieces, reports) = seen(&format!("\u{feff} [ {A} ,\r\n{C}]\n"));
    assert_eq!(pieces, ["head \u{feff} [", "between  ", "begin@6:0", "between  ,\r\n", "end@27:1", "tail ]\n"]);
    assert!(reports.is_empty());
    let (pieces, reports) = seen(&format!(r#"{{"a":[{{}}],"traceEvents":[{A},{C}],"b":"x"}}"#));
    assert_eq!(pieces[0], r#"head {"a":[{}],"traceEvents":["#);
    assert_eq!(pieces.last().unwrap(), r#"tail ],"b":"x"}"#);
    assert!(reports.is_empty() && pieces.len() == 5);
    let (pieces, reports) = seen(&format!("{A}\n{C}\n"));
    assert_eq!(pieces, ["head ", "begin@0:0", "between \n", "end@18:1", "between \n"]);
    assert!(reports.is_empty());
}

#[test]
fn an_array_needs_no_end_and_an_object_does() {
    for text in [format!("[{A}"), format!("[{A},"), format!("[{A},\n"), "[".to_owned(), String::new(), " ".to_owned()] {
        assert_eq!(seen(&text).1, [], "{text}");
    }
    for text in [format!(r#"{{"traceEvents":[{A}"#), format!(r#"{{"traceEvents":[{A}],"#), r#"{"a":"#.to_owned()] {
        let records = u64::from(text.contains("ph"));
        assert_eq!(seen(&text).1, [("chrome/truncated", text.len() as u64, Some(records), 0, None)], "{text}");
    }
}

#[test]
fn damage_costs_the_event_it_is_in() {
    let bad = r#"{"ph":"X" "ts":1,"args":{"a":"b"}}"#;
    let (pieces, reports) = seen(&format!("[{A},{bad},{C}]"));
    assert_eq!(pieces[3], format!("lost {bad},"));
    assert_eq!(reports, [("chrome/bad-event", 29, Some(1), 35, Some(2 - 1))]);
    assert_eq!(pieces.last().unwrap(), "tail ]");
    // In the last event; the end is found.
    let (pieces, reports) = seen(&format!("[{A},{bad}]\n"));
    assert_eq!(
        (pieces.last().unwrap().as_str(), reports),
        ("tail ]\n", vec![("chrome/bad-event", 29, Some(1), 34, None)])
    );
    let (pieces, reports) = seen(&format!("{{\"traceEvents\":[{A},{bad}],\"x\":[1]}}"));
    assert_eq!((pieces.last().unwrap().as_str(), reports.len()), ("tail ],\"x\":[1]}", 1));
}

#[test]
fn a_lost_quote_does_not_cost_the_next_event() {
    let (pieces, reports) = seen(&format!("[{A},\n{{\"ph\":\"X\",\"name\":\"lost}},\n{C},\n{A}]"));
    assert_eq!(pieces.iter().filter(|piece| piece.contains('@')).count(), 3, "{pieces:?}");
    assert_eq!(reports.len(), 1);
}

#[test]
fn a_cut_event_is_truncated_and_what_is_whole_inside_is_not_lost() {
    let text = format!("[{A},{}", r#"{"ph":"X","args":{"a":[1]}"#);
    let (_, reports) = seen(&text);
    assert_eq!(reports, [("chrome/truncated", text.len() as u64, Some(1), 26, None)]);
}

#[test]
fn elements_that_are_no_events_and_data_behind_the_end_are_reported() {
    let (pieces, reports) = seen(&format!("[1,{A},null,{C}]{A}"));
    assert_eq!(pieces.iter().filter(|piece| piece.contains('@')).count(), 3);
    let codes: Vec<_> = reports.iter().map(|report| report.0).collect();
    assert_eq!(codes, ["chrome/bad-event", "chrome/bad-event", "chrome/trailing-data"]);
    let (_, reports) = seen(&format!("[{A}] x"));
    assert_eq!(reports, [("chrome/trailing-data", 20, Some(1), 1, None)]);
}

#[test]
fn commas_are_counted() {
    for text in [format!("[{A}{C}]"), format!("[{A},,{C}]"), format!("[,{A}]"), format!("[{A},,]"), format!("{A},{C}")]
    {
        assert_eq!(seen(&text).1.iter().map(|report| report.0).collect::<Vec<_>>(), ["chrome/separator"], "{text}");
    }
    assert!(seen(&format!("[{A},]")).1.is_empty());
}

#[test]
fn an_event_longer_than_the_limit_is_skipped() {
    let long = format!(r#"{{"ph":"X","name":"{}"}}"#, "x".repeat(2000));
    let (_, reports) = seen(&format!("[{A},{long},{C}]"));
    assert_eq!(reports, [("chrome/event-too-long", 19, Some(1), long.len() as u64 + 1, Some(1))]);
}

#[test]
fn what_is_no_json_is_damage_and_events_in_it_are_found() {
    let (pieces, reports) = seen(&format!("trace: {A}, {C}\n"));
    assert_eq!(reports[0], ("chrome/bad-frame", 0, Some(0), 7, Some(0)));
    assert_eq!(pieces.iter().filter(|piece| piece.contains('@')).count(), 2);
    assert_eq!(seen("{\"a\":1}").1, [("chrome/no-events", 6, None, 0, None)]);
    assert_eq!(seen("{\"a\" 1}").1[0].0, "chrome/bad-frame");
}
