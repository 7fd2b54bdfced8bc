//! The reader: records with their places, damage as a value, in the order of the bytes.

use std::cell::RefCell;

use anytrace_core::{Diagnostic, Error, Input, OpenOptions, Passed, Place, Sink, Step, Steps, Stored};

use crate::options::OPTIONS;
use crate::wire::parse::parse;
use crate::wire::record::Record;
use crate::wire::walk::{Here, Item, Walk};
use crate::wire::writer::Layout;

/// Bytes walked at once: what [`Reader::next`] copies before it hands out the first record of them.
const STEP_BYTES: usize = 1 << 15;

/// Reads a trace record by record.
///
/// ```
/// use anytrace_casemate::Reader;
/// use anytrace_core::{Input, OpenOptions, Step};
///
/// let log = b"(lock (id 0) (tid 1) (address 42))\n(unlock 1 1 \"a.c:7\" 42)\n(lock 2 1)\n";
/// let mut reader = Reader::new(Input::from_bytes("x.log", log.to_vec()), &OpenOptions::default())?;
/// let mut seen = Vec::new();
/// while let Some(step) = reader.next()? {
///     seen.push(match step {
///         Step::Record(place, record) => format!("{} {}", place.offset, record.kind().name()),
///         Step::Damage(diagnostic) => diagnostic.code().to_owned(),
///     });
/// }
/// assert_eq!(seen, ["0 lock", "35 unlock", "casemate/missing-field"]);
/// # Ok::<(), anytrace_core::Error>(())
/// ```
///
/// A step walks a bounded piece of the input and copies the bytes of its records; each call of [`Self::next`] parses
/// one of them. Memory: a few times 32 KiB, or of the longest record. Comments, and what the reference prints between
/// records, are no steps.
pub struct Reader {
    walk: Walk,
    layout: Layout,
    steps: Steps,
    reach: usize,
    bytes_lost: u64,
    has_layout: bool,
    is_at_end: bool,
}

impl Reader {
    /// Opens a trace and reads up to the first record, so that the layout is known. Of the options, only `radix`,
    /// `limits` and `part` are used.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Usage`] for options of other formats and marks of other traces; I/O errors.
    pub fn new(input: Input, options: &OpenOptions) -> Result<Self, Error> {
        options.only("casemate", &[], OPTIONS)?;
        let walk = Walk::new(input, options)?;
        let layout = Layout { radix: walk.radix(), ..Layout::default() };
        let steps = Steps::default();
        let mut reader =
            Self { walk, layout, steps, reach: STEP_BYTES, bytes_lost: 0, has_layout: false, is_at_end: false };
        reader.walk_to_a_step()?;
        Ok(reader)
    }

    /// The base of numbers, and the layout nearest to the spelling of the first record.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The next record or damage; `None` at the end. Damage is skipped: reading continues with the next call.
    /// Compression around the trace that did not end well is reported last.
    ///
    /// # Errors
    /// I/O errors.
    #[allow(clippy::should_implement_trait, reason = "a record borrows from the reader, which no iterator can express")]
    pub fn next(&mut self) -> Result<Option<Step<'_, Record<'_>>>, Error> {
        self.walk_to_a_step()?;
        match self.steps.pop() {
            Some(Stored::Record(place, bytes)) => match parse(bytes, &self.layout) {
                Ok((record, _)) => Ok(Some(Step::Record(place, record))),
                Err(_) => Err(Error::unsupported(format!("transition {}: it cannot be parsed again", place.seq))),
            },
            Some(Stored::Damage(diagnostic)) => Ok(Some(Step::Damage(diagnostic))),
            None => Ok(None),
        }
    }

    /// Visits every step to the end.
    ///
    /// # Errors
    /// I/O errors, and whatever the visitor returns.
    pub fn for_each(
        &mut self,
        mut visit: impl FnMut(Step<'_, Record<'_>>) -> Result<(), Error>,
    ) -> Result<Passed, Error> {
        while let Some(step) = self.next()? {
            visit(step)?;
        }
        Ok(Passed { records: self.walk.records(), bytes: self.walk.offset(), bytes_lost: self.bytes_lost })
    }

    fn walk_to_a_step(&mut self) -> Result<(), Error> {
        while self.steps.is_empty() && !self.is_at_end {
            self.walk_on()?;
        }
        Ok(())
    }

    fn walk_on(&mut self) -> Result<(), Error> {
        let Self { walk, layout, bytes_lost, has_layout, .. } = self;
        let before = walk.offset();
        let steps = RefCell::new(std::mem::take(&mut self.steps));
        let mut visit = |item: Item<'_>, here: &mut Here<'_>| {
            match item {
                Item::Record(record) => {
                    if !std::mem::replace(has_layout, true) {
                        *layout = Layout { radix: layout.radix, ..Layout::nearest(record) };
                    }
                    steps.borrow_mut().push(Place { offset: here.offset, seq: here.seq }, record.text);
                }
                Item::Lost(bytes) => *bytes_lost += bytes.len() as u64,
                _ => {}
            }
            Ok(())
        };
        let went = walk.step(self.reach, &mut Shared(&steps), &mut visit);
        self.reach = if walk.offset() > before { STEP_BYTES } else { self.reach.saturating_mul(2) };
        self.steps = steps.into_inner();
        self.is_at_end = !went?;
        Ok(())
    }
}

/// The steps as a sink, while the visitor appends records to them.
struct Shared<'s>(&'s RefCell<Steps>);

impl Sink for Shared<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.0.borrow_mut().report(diagnostic)
    }
}
