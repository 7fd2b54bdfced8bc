//! The reader of all three forms: records with their places, damage as a value, in the order of the bytes.

use anytrace_core::{Cursor, Diagnostic, Error, Input, OpenOptions, Passed, Place, Sink, Step, Steps, Stored};

use crate::options::OPTIONS;
use crate::wire::any::{Layout, LayoutForm, Record, entry_of, parse};
use crate::wire::basic::{BasicVisitor, BasicWalk};
use crate::wire::fdr::{FdrWalk, GapKind, Run, Visitor};
use crate::wire::marks::refused;
use crate::wire::open::{Form, Opened, XrayTrace};
use crate::wire::record::{BASIC_BYTES, BasicRecord, FUNCTION_BYTES, Metadata, TYPE_FDR};
use crate::wire::yaml::{YamlEntry, YamlHeader, YamlVisitor, YamlWalk};

/// Bytes of Basic records that are walked at once.
const BASIC_REACH: usize = 512 * BASIC_BYTES;

/// Most lines that are read for a YAML header before the first record is requested.
const HEADER_LINES_MAX: usize = 4096;

/// Reads a trace of any form record by record.
///
/// ```
/// use anytrace_core::{Input, OpenOptions, Step};
/// use anytrace_xray::record::{Body, Function, FunctionKind, Metadata};
/// use anytrace_xray::{Reader, Record, Writer};
///
/// let mut writer = Writer::new(Vec::new());
/// writer.write(&Record::Metadata(Metadata { body: Body::BufferExtents { bytes: 24 }, reserved: &[] }))?;
/// writer.write(&Record::Metadata(Metadata { body: Body::NewBuffer { thread: 7 }, reserved: &[] }))?;
/// writer.write(&Record::Function(Function { kind: FunctionKind::Enter, id: 1, delta: 5 }))?;
///
/// let mut reader = Reader::new(Input::from_bytes("x.xray", writer.finish()?), &OpenOptions::default())?;
/// let mut seen = Vec::new();
/// while let Some(step) = reader.next()? {
///     seen.push(match step {
///         Step::Record(place, record) => format!("{} {}", place.offset, record.name()),
///         Step::Damage(diagnostic) => diagnostic.code().to_owned(),
///     });
/// }
/// assert_eq!(seen, ["32 buffer-extents", "48 new-buffer", "64 function-enter"]);
/// # Ok::<(), anytrace_core::Error>(())
/// ```
///
/// A step walks a bounded piece of the input (a run of at most 16 KiB of small records, or one other record) and copies
/// its bytes; each call of [`Self::next`] parses one record of them. Memory: about one MiB, or twice the longest
/// record. Filler and padding between buffers are not steps.
pub struct Reader {
    walk: Walk,
    layout: Layout,
    steps: Steps,
    bytes_lost: u64,
    records: u64,
    has_header: bool,
    is_at_end: bool,
}

enum Walk {
    Fdr(Box<FdrWalk>),
    Basic(BasicWalk),
    Yaml(Box<YamlWalk>),
    /// No bytes, or a header that names no known version or type: there are no records.
    Nothing(Cursor),
}

impl Reader {
    /// Opens a trace and reads its header. Of the options, only `endian`, `limits` and `part` are used. A header that is
    /// cut or of an unknown version is damage, and the only step.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Usage`] for options of other formats and marks of other traces; I/O errors.
    pub fn new(input: Input, options: &OpenOptions) -> Result<Self, Error> {
        options.only("xray", &["endian"], OPTIONS)?;
        let mut steps = Steps::default();
        let Opened { cursor, form, limits } = XrayTrace::new(input, options).start(&mut steps)?;
        let part = options.part.clone().unwrap_or_default();
        if let (Some(mark), Form::Yaml | Form::Empty | Form::Unreadable(_)) = (&part.from, &form) {
            return Err(refused(mark.offset));
        }
        let mut layout = Layout { record_bytes_max: limits.record_bytes_max, ..Layout::default() };
        let mut has_header = true;
        let walk = match form {
            Form::Yaml => {
                layout.form = LayoutForm::Yaml(YamlHeader::default());
                has_header = false;
                Walk::Yaml(Box::new(YamlWalk::new(cursor, &limits)))
            }
            Form::Binary(header, orders) => {
                layout.orders = orders;
                if header.type_code == TYPE_FDR {
                    layout.form = LayoutForm::Fdr(header);
                    let mut walk = FdrWalk::new(cursor, header, orders, &limits);
                    walk.read_part(&part)?;
                    Walk::Fdr(Box::new(walk))
                } else {
                    layout.form = LayoutForm::Basic(header);
                    let mut walk = BasicWalk::new(cursor, orders);
                    walk.read_part(&part)?;
                    Walk::Basic(walk)
                }
            }
            Form::Empty | Form::Unreadable(_) => Walk::Nothing(cursor),
        };
        let mut reader = Self { walk, layout, steps, bytes_lost: 0, records: 0, has_header, is_at_end: false };
        for _ in 0..HEADER_LINES_MAX {
            if !reader.has_header && !reader.is_at_end {
                reader.walk_on()?;
            }
        }
        Ok(reader)
    }

    /// Form, orders and header. With more than 4096 lines before the list of a YAML trace, known after the first record.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The next record or damage; `None` at the end. Damage is skipped: reading continues with the next call.
    /// Compression around the trace that did not end well is reported last.
    ///
    /// # Errors
    /// I/O errors, and a YAML entry beyond the limit on records.
    #[allow(clippy::should_implement_trait, reason = "a record borrows from the reader, which no iterator can express")]
    pub fn next(&mut self) -> Result<Option<Step<'_, Record<'_>>>, Error> {
        while self.steps.is_empty() && !self.is_at_end {
            self.walk_on()?;
        }
        match self.steps.pop() {
            Some(Stored::Record(place, bytes)) => {
                // The end of an entry was found before: it may be that of the data.
                let record = if let LayoutForm::Yaml(_) = self.layout.form {
                    entry_of(bytes).ok().map(Record::Entry)
                } else {
                    parse(bytes, &self.layout).ok().map(|(record, _)| record)
                };
                let again = || Error::unsupported(format!("record {}: it cannot be parsed again", place.seq));
                record.map(|record| Some(Step::Record(place, record))).ok_or_else(again)
            }
            Some(Stored::Damage(diagnostic)) => Ok(Some(Step::Damage(diagnostic))),
            None => Ok(None),
        }
    }

    /// Visits every step to the end.
    ///
    /// # Errors
    /// As [`Self::next`], and whatever the visitor returns.
    pub fn for_each(
        &mut self,
        mut visit: impl FnMut(Step<'_, Record<'_>>) -> Result<(), Error>,
    ) -> Result<Passed, Error> {
        while let Some(step) = self.next()? {
            visit(step)?;
        }
        let bytes = self.cursor().offset();
        Ok(Passed { records: self.records, bytes, bytes_lost: self.bytes_lost })
    }

    fn cursor(&self) -> &Cursor {
        match &self.walk {
            Walk::Fdr(walk) => &walk.cursor,
            Walk::Basic(walk) => &walk.cursor,
            Walk::Yaml(walk) => &walk.cursor,
            Walk::Nothing(cursor) => cursor,
        }
    }

    fn walk_on(&mut self) -> Result<(), Error> {
        let mut gather = Gather {
            steps: &mut self.steps,
            layout: &mut self.layout,
            bytes_lost: &mut self.bytes_lost,
            records: &mut self.records,
            has_header: &mut self.has_header,
            entry: None,
        };
        let goes_on = match &mut self.walk {
            Walk::Fdr(walk) => walk.step(&mut gather)?,
            Walk::Basic(walk) => walk.step(BASIC_REACH, &mut gather)?,
            Walk::Yaml(walk) => walk.step(&mut gather)?,
            Walk::Nothing(cursor) => {
                cursor.skip(u64::MAX)?;
                self.bytes_lost = cursor.offset();
                false
            }
        };
        if !goes_on {
            self.is_at_end = true;
            let mut steps = std::mem::take(&mut self.steps);
            let reported = self.cursor().report_layers(&mut steps);
            self.steps = steps;
            reported?;
        }
        Ok(())
    }
}

/// Receives what a walk finds, and queues it as steps.
struct Gather<'r> {
    steps: &'r mut Steps,
    layout: &'r mut Layout,
    bytes_lost: &'r mut u64,
    records: &'r mut u64,
    has_header: &'r mut bool,
    /// A YAML entry whose text comes next.
    entry: Option<Place>,
}

impl Gather<'_> {
    fn push(&mut self, at: Place, bytes: &[u8]) {
        *self.records += 1;
        self.steps.push(at, bytes);
    }
}

impl Visitor for Gather<'_> {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        let mut at = run.at;
        for record in run.bytes.chunks_exact(FUNCTION_BYTES) {
            self.push(at, record);
            at = Place { offset: at.offset + FUNCTION_BYTES as u64, seq: at.seq + 1 };
        }
        Ok(())
    }

    fn metadata(&mut self, _metadata: &Metadata<'_>, raw: &[u8], at: Place) -> Result<(), Error> {
        self.push(at, raw);
        Ok(())
    }

    fn gap(&mut self, kind: GapKind, bytes: &[u8], _at: Place) -> Result<(), Error> {
        if kind == GapKind::Damage {
            *self.bytes_lost += bytes.len() as u64;
        }
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.steps.report(diagnostic)
    }
}

impl BasicVisitor for Gather<'_> {
    fn record(&mut self, _record: &BasicRecord, raw: &[u8], at: Place) -> Result<(), Error> {
        self.push(at, raw);
        Ok(())
    }

    fn damage(&mut self, bytes: &[u8]) -> Result<(), Error> {
        *self.bytes_lost += bytes.len() as u64;
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.steps.report(diagnostic)
    }
}

impl YamlVisitor for Gather<'_> {
    fn header(&mut self, header: &YamlHeader) -> Result<(), Error> {
        self.layout.form = LayoutForm::Yaml(*header);
        *self.has_header = true;
        Ok(())
    }

    fn entry(&mut self, _entry: &YamlEntry, at: Place, _line: u64) -> Result<(), Error> {
        self.entry = Some(at);
        Ok(())
    }

    fn text(&mut self, text: &[u8], is_damaged: bool) -> Result<(), Error> {
        if is_damaged {
            *self.bytes_lost += text.len() as u64;
        }
        if let Some(at) = self.entry.take() {
            self.push(at, text);
        }
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.steps.report(diagnostic)
    }
}
