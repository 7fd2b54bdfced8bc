//! `casemate check --follow`: the verdict on a trace that is still being written, and its state for a later run.

mod saved;

use anytrace_core::{Error, OpenOptions, Sink};

use super::check::{CheckOptions, CountingSink, Found, Report, Run};
use crate::model::Checker;
use crate::options::OPTIONS;
use crate::wire::walk::push::Push;
use crate::wire::walk::{Here, Item};
pub use saved::SaveError;

/// Checks a trace that arrives in pieces. Nothing in it waits: the caller reads, from wherever it likes.
///
/// ```
/// use anytrace_casemate::tools::{CheckOptions, Online};
/// use anytrace_core::{Collect, OpenOptions};
///
/// let mut online = Online::new("uart", &OpenOptions::default(), CheckOptions::default())?;
/// let (mut damage, mut messages) = (Collect::default(), Vec::new());
/// for piece in [&b"(lock 1 0 10)(lock 2 "[..], b"1 10", b")"] {
///     online.push(piece, &mut damage, &mut |found| {
///         messages.push(found.breach.name());
///         Ok(())
///     })?;
/// }
/// assert_eq!(messages, ["lock-held"]);
/// let report = online.end(&mut damage, &mut |_| Ok(()))?;
/// assert_eq!((report.events, report.errors), (2, 1));
/// # Ok::<(), anytrace_core::Error>(())
/// ```
///
/// The findings, and the report at the end, are those of [`super::check()`] for the same bytes, except that the report
/// lists no violations: each was passed on when the last byte of its record arrived. Memory: that of the [`Checker`],
/// and the longest record.
pub struct Online {
    open: OpenOptions,
    walk: Push,
    checker: Checker,
    run: Run,
    ids: Ids,
}

/// What shows that records are missing where a source was interrupted.
#[derive(Debug, Clone, Copy, Default)]
struct Ids {
    last: Option<u64>,
    /// Bytes may be missing before the next record.
    must_follow: bool,
}

impl Ids {
    /// Takes the next id; false where records are missing before it.
    #[inline]
    fn take(&mut self, id: u64) -> bool {
        let is_next = !self.must_follow || self.last.is_none_or(|last| last.checked_add(1) == Some(id));
        *self = Self { last: Some(id), must_follow: false };
        is_next
    }
}

impl Online {
    /// Starts with an empty machine. `name` is that of the report. Of the options for opening, only `radix` and
    /// `limits` are used.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Usage`] for options of other formats.
    pub fn new(name: &str, open: &OpenOptions, options: CheckOptions) -> Result<Self, Error> {
        open.only("casemate", &[], OPTIONS)?;
        Ok(Self {
            open: open.clone(),
            walk: Push::new(open),
            checker: Checker::new(options.model),
            run: Run::new(name.to_owned(), options),
            ids: Ids::default(),
        })
    }

    /// Takes the next bytes. `found` gets each violation, up to the limit of the options and the first of each
    /// severity in any case.
    ///
    /// # Errors
    /// Whatever the sink and `found` return. Damage is reported to the sink and skipped.
    pub fn push(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn Sink,
        found: &mut dyn FnMut(&Found) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut sink = CountingSink { inner: sink, errors: 0, lost: 0 };
        let walked =
            self.walk.push(bytes, &mut sink, &mut visitor(&mut self.run, &mut self.checker, &mut self.ids, found));
        self.run.count_damage(sink.errors, sink.lost);
        walked
    }

    /// Nothing follows: what is incomplete is damage. The report has the counts and the verdict.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn end(
        mut self,
        sink: &mut dyn Sink,
        found: &mut dyn FnMut(&Found) -> Result<(), Error>,
    ) -> Result<Report, Error> {
        let mut sink = CountingSink { inner: sink, errors: 0, lost: 0 };
        self.walk.end(&mut sink, &mut visitor(&mut self.run, &mut self.checker, &mut self.ids, found))?;
        self.run.count_damage(sink.errors, sink.lost);
        Ok(self.run.finish())
    }

    /// Bytes may be missing before the next record: unless its id follows that of the last one, records were lost.
    pub fn may_be_interrupted(&mut self) {
        self.ids.must_follow = true;
    }

    /// Offset of the first byte that was not checked yet: that of an incomplete record, or of the next byte.
    pub fn offset(&self) -> u64 {
        self.walk.offset()
    }

    /// Bytes that wait for the rest of their record.
    pub fn pending_bytes(&self) -> usize {
        self.walk.pending_bytes()
    }

    /// Records checked.
    pub fn records(&self) -> u64 {
        self.walk.records()
    }
}

/// What is done with each piece.
fn visitor<'a>(
    run: &'a mut Run,
    checker: &'a mut Checker,
    ids: &'a mut Ids,
    found: &'a mut dyn FnMut(&Found) -> Result<(), Error>,
) -> impl FnMut(Item<'_>, &mut Here<'_>) -> Result<(), Error> + 'a {
    move |item, place| {
        if let Item::Record(record) = &item
            && !ids.take(record.id)
        {
            run.lose();
        }
        run.take(checker, &item, place);
        run.take_new().iter().try_for_each(&mut *found)
    }
}
