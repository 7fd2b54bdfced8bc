//! Drives the parser over an input of any size: records and damage in the order of the bytes.

use std::collections::VecDeque;

use anytrace_core::{Collect, Cursor, Diagnostic, Error, Input, Layer, OpenOptions, Passed, Place, Rule, Step};

use super::content::{Content, read, read_sized};
use super::parse::{Fault, Need, parse};
use super::record::{Layout, Record};
use crate::rules;

/// Of longer records it is examined whether others are inside.
const LONG_BYTES: usize = 256;

/// Records that must follow each other behind damage.
const CHAIN: usize = 3;

/// Most bytes in which they are looked for.
const CHAIN_BYTES_MAX: usize = 256 << 10;

/// Reads a trace, record by record, past damage, in one pass and bounded memory.
///
/// ```no_run
/// use anytrace_core::{Input, InputOptions, OpenOptions, Step};
/// use anytrace_fuchsia::Reader;
///
/// let input = Input::open("app.fxt".as_ref(), InputOptions::default())?;
/// let mut reader = Reader::new(input, &OpenOptions::default())?;
/// while let Some(step) = reader.next()? {
///     match step {
///         Step::Record(place, record) => println!("{:#x} {}", place.offset, record.kind_name()),
///         Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
///     }
/// }
/// # Ok::<(), anytrace_core::Error>(())
/// ```
pub struct Reader {
    cursor: Cursor,
    layout: Layout,
    record_bytes_max: u64,
    /// The number of the next record.
    seq: u64,
    bytes_lost: u64,
    /// True when everything was read.
    is_ended: bool,
    /// Bytes of the window that were read. The cursor passes them when the next record is wanted, so that this one can
    /// borrow from the window.
    read_bytes: usize,
    /// Diagnostics that were not returned yet, all of them about what precedes the next record.
    damage: VecDeque<Diagnostic>,
}

impl Reader {
    /// Starts at the first byte. Of the options, only `record_bytes_max` of the limits is used: longer records are
    /// damage.
    ///
    /// # Errors
    /// None so far.
    pub fn new(input: Input, options: &OpenOptions) -> Result<Self, Error> {
        Ok(Self {
            cursor: Cursor::new(input),
            layout: Layout::default(),
            record_bytes_max: options.limits.record_bytes_max.max(64),
            seq: 0,
            bytes_lost: 0,
            is_ended: false,
            read_bytes: 0,
            damage: VecDeque::new(),
        })
    }

    /// The layout, which is always the same.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Compression layers around the trace, outermost first.
    pub(crate) fn layers(&self) -> &[Layer] {
        self.cursor.layers()
    }

    /// True if the input can be read twice: a file, or a stream of which the start is short enough to be kept.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn can_read_twice(&mut self) -> Result<bool, Error> {
        self.cursor.can_read_twice(Cursor::BUFFERED_BYTES_MAX)
    }

    /// Returns to the first record; false if the input cannot be read twice.
    pub(crate) fn rewind(&mut self) -> bool {
        if !self.cursor.rewind() {
            return false;
        }
        (self.seq, self.bytes_lost, self.read_bytes, self.is_ended) = (0, 0, 0, false);
        self.damage.clear();
        true
    }

    /// Returns the next record or damage; `None` after the last one. A record borrows from the reader's window.
    ///
    /// # Errors
    /// I/O.
    #[allow(clippy::should_implement_trait, reason = "an iterator's items cannot borrow from it")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Step<'_, Record<'_>>>, Error> {
        loop {
            if let Some(diagnostic) = self.damage.pop_front() {
                return Ok(Some(Step::Damage(diagnostic)));
            }
            if self.is_ended {
                return Ok(None);
            }
            self.cursor.advance(std::mem::take(&mut self.read_bytes));
            if self.advance()? {
                break;
            }
        }
        let place = Place { offset: self.cursor.offset(), seq: self.seq };
        self.seq += 1;
        // Only this borrow may last longer than the call, so the record is parsed again.
        let record = parse(self.cursor.window(), &self.layout).ok();
        Ok(record.map(|(record, _)| Step::Record(place, record)))
    }

    /// Calls `visit` with every step to the end of the trace: [`Self::next`] in a loop.
    ///
    /// # Errors
    /// I/O, and errors of `visit`, which end the pass.
    pub fn for_each(
        &mut self,
        mut visit: impl FnMut(Step<'_, Record<'_>>) -> Result<(), Error>,
    ) -> Result<Passed, Error> {
        while let Some(step) = self.next()? {
            visit(step)?;
        }
        Ok(self.passed())
    }

    /// What was read so far.
    pub(crate) fn passed(&self) -> Passed {
        let bytes = self.cursor.offset() + self.read_bytes as u64;
        Passed { records: self.seq, bytes, bytes_lost: self.bytes_lost }
    }

    /// Finds the next record; true where the window begins with one.
    #[inline]
    fn advance(&mut self) -> Result<bool, Error> {
        loop {
            let need = match parse(self.cursor.window(), &self.layout) {
                Ok((record, used)) if used as u64 <= self.record_bytes_max => {
                    if used > LONG_BYTES
                        && let Some(at) = read_sized(&record).ok().map(|(_, at)| at).filter(|at| *at < used)
                        && self.is_record_at(at)?
                    {
                        self.swollen(used, at)?;
                        return Ok(false);
                    }
                    self.read_bytes = used;
                    return Ok(true);
                }
                Ok((record, _)) => record.bytes.len() as u64,
                Err(Need::More(need)) => need,
                Err(Need::Bad(fault)) => {
                    self.bad(fault)?;
                    return Ok(false);
                }
            };
            if need > self.record_bytes_max {
                let damage = self.diagnostic(&rules::RECORD_TOO_LONG, 0).field("size");
                let damage = damage.expected(format!("at most {} bytes", self.record_bytes_max));
                self.lose_until_record(damage.found(need.to_string()))?;
                return Ok(false);
            }
            let need = usize::try_from(need).unwrap_or(usize::MAX);
            let have = self.cursor.fill(need)?;
            if have < need {
                self.cut(have, need)?;
                return Ok(false);
            }
        }
    }

    /// A record with others behind its fields: its length is damaged.
    #[cold]
    fn swollen(&mut self, used: usize, at: usize) -> Result<(), Error> {
        let damage = self.diagnostic(&rules::BAD_RECORD, 0).field("size").expected(format!("{at} bytes"));
        self.lose_until_record(damage.found(used.to_string()))
    }

    /// The data end inside a record, or where one would begin.
    #[cold]
    fn cut(&mut self, have: usize, need: usize) -> Result<(), Error> {
        if have == 0 {
            let mut layers = Collect::default();
            self.cursor.report_layers(&mut layers)?;
            self.damage.extend(layers.0);
            self.is_ended = true;
            return Ok(());
        }
        let damage = self.diagnostic(&rules::TRUNCATED, have).field("record").expected(format!("{need} bytes"));
        let damage = damage.found(format!("{have}, then the end of the input"));
        if need > LONG_BYTES {
            // The length may be what is damaged, so that records follow all the same.
            return self.lose_until_record(damage);
        }
        self.cursor.advance(have);
        self.bytes_lost += have as u64;
        self.damage.push_back(damage.skipped(have as u64));
        Ok(())
    }

    #[cold]
    fn bad(&mut self, fault: Fault) -> Result<(), Error> {
        let damage = self.diagnostic(&rules::BAD_RECORD, fault.at).field(fault.field).expected(fault.expected);
        self.lose_until_record(damage.found("0"))
    }

    /// Passes words until records seem to follow each other: a guess.
    fn lose_until_record(&mut self, damage: Diagnostic) -> Result<(), Error> {
        let mut lost = 0_u64;
        loop {
            let have = self.cursor.fill(8)?.min(8);
            self.cursor.advance(have);
            lost += have as u64;
            if have < 8 || self.is_record_at(0)? {
                break;
            }
        }
        self.bytes_lost += lost;
        self.damage.push_back(damage.skipped(lost));
        Ok(())
    }

    /// True where the next records are of known types and can be read, or the data end.
    fn is_record_at(&mut self, start: usize) -> Result<bool, Error> {
        let mut at = start;
        for _ in 0..CHAIN {
            loop {
                let rest = self.cursor.window().get(at..).unwrap_or_default();
                match parse(rest, &self.layout) {
                    Ok((record, used)) => {
                        if read(&record).is_ok_and(|content| content != Content::Unknown) {
                            at += used;
                            break;
                        }
                        return Ok(false);
                    }
                    Err(Need::More(need)) => {
                        let need = usize::try_from(need).unwrap_or(usize::MAX).saturating_add(at);
                        if need > CHAIN_BYTES_MAX {
                            return Ok(false);
                        }
                        let have = self.cursor.fill(need)?;
                        if have < need {
                            return Ok(have == at);
                        }
                    }
                    Err(Need::Bad(_)) => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    /// A diagnostic about the byte `at` of the window.
    fn diagnostic(&self, rule: &'static Rule, at: usize) -> Diagnostic {
        rule.at(self.cursor.offset() + at as u64).record(self.seq)
    }
}
