//! `convert`, `repair` and `trim`: the same bytes, fewer of them, Valgrind's spelling, or JSON lines.

use anytrace_core::{Error, Outcome, Plan, Selection, Sink, Target};

use crate::NAME;
use crate::options::OPTIONS;
use crate::verbs::lines::{push_header, push_piece_json, push_record_json};
use crate::verbs::out::Out;
use crate::verbs::record_form::RecordForm;
use crate::wire::reader::{LinePlace, Piece, Reader, Visit};
use crate::wire::record::Record;
use crate::wire::writer::push_record;

/// Executes a plan.
pub(crate) fn rewrite(
    reader: Reader,
    plan: &Plan,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let form = RecordForm::new(plan.target())?;
    let selection = match plan {
        Plan::Trim(selection, _) => Some(selection),
        _ => None,
    };
    if let Some(selection) = selection {
        selection.only(NAME, &["records"], OPTIONS)?;
    }
    let mut out = out;
    let mut rewrite = Rewrite {
        out: Out::new(&mut out),
        form,
        selection: selection.filter(|selection| !selection.is_all()),
        is_repair: matches!(plan, Plan::Repair(_)),
        written: 0,
        has_line_end: true,
        line_ends: 0,
        left_out: 0,
        is_done: false,
    };
    if form == RecordForm::Jsonl {
        push_header(&mut rewrite.out.buffer);
    }
    let passed = reader.walk(&mut rewrite, sink)?;
    if rewrite.is_repair {
        rewrite.end_line();
    }
    rewrite.out.flush()?;
    let Rewrite { written, line_ends, left_out, .. } = rewrite;
    let mut notes = Vec::new();
    let mut say = |count: u64, one: &str, several: &str| {
        notes.extend((count > 0).then(|| if count == 1 { one.to_owned() } else { format!("{count} {several}") }));
    };
    say(passed.bytes_lost, "1 byte that is not a record was left out.", "bytes that are not records were left out.");
    say(line_ends, "A line end was added.", "line ends were added.");
    say(
        left_out,
        "A line that Valgrind wrote after the first record was left out: it describes the complete run.",
        "lines that Valgrind wrote after the first record were left out: they describe the complete run.",
    );
    Ok(Outcome { records_read: passed.records, records_written: written, bytes_lost: passed.bytes_lost, notes })
}

struct Rewrite<'a> {
    out: Out<'a>,
    form: RecordForm,
    /// What a trim keeps; `None` for everything.
    selection: Option<&'a Selection>,
    is_repair: bool,
    written: u64,
    /// False while the last line written has no line end.
    has_line_end: bool,
    line_ends: u64,
    left_out: u64,
    is_done: bool,
}

impl Rewrite<'_> {
    /// Ends the last line written, if it has no line end.
    fn end_line(&mut self) {
        if self.has_line_end || self.form == RecordForm::Jsonl {
            return;
        }
        self.out.buffer.push(b'\n');
        self.has_line_end = true;
        self.line_ends += 1;
    }

    /// True while the selected part has begun and not ended.
    fn is_inside(&self, seq: u64) -> bool {
        self.selection.is_none_or(|selection| selection.has_record(seq))
    }
}

impl Visit for Rewrite<'_> {
    fn record(&mut self, record: &Record<'_>, at: LinePlace, _sink: &mut dyn Sink) -> Result<(), Error> {
        if let Some(range) = self.selection.and_then(|selection| selection.records.as_ref()) {
            self.is_done = at.seq + 1 >= range.end;
            if !range.contains(&at.seq) {
                return Ok(());
            }
        }
        if self.is_repair || at.column == 1 {
            self.end_line();
        }
        match self.form {
            RecordForm::Copy => {
                self.out.buffer.extend_from_slice(record.text);
                self.has_line_end = record.text.ends_with(b"\n");
            }
            RecordForm::Canonical => {
                push_record(&mut self.out.buffer, record.kind, record.address, record.size);
                self.has_line_end = true;
            }
            RecordForm::Jsonl => push_record_json(&mut self.out.buffer, record, None),
        }
        self.written += 1;
        self.out.flush_if_full()
    }

    fn piece(&mut self, piece: Piece<'_>, at: LinePlace, _sink: &mut dyn Sink) -> Result<(), Error> {
        let bytes = match piece {
            Piece::Message(_) if self.selection.is_some() && at.seq > 0 => {
                self.left_out += 1;
                return Ok(());
            }
            // Messages before the first record describe what was traced.
            Piece::Message(bytes) => bytes,
            Piece::Text(bytes) | Piece::Space(bytes) if self.is_inside(at.seq) => bytes,
            _ => return Ok(()),
        };
        if at.column == 1 {
            // The text in between was lost, and its line end with it.
            self.end_line();
        }
        if self.form == RecordForm::Jsonl {
            push_piece_json(&mut self.out.buffer, piece, at, false);
        } else {
            self.out.buffer.extend_from_slice(bytes);
            self.has_line_end = bytes.ends_with(b"\n");
        }
        self.out.flush_if_full()
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}
