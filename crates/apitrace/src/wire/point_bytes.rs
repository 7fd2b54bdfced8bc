//! Points, definitions and enters of open calls as bytes: small, and never trusted. Numbers that grow from row to row are
//! stored as differences.

use crate::wire::point::{OpenEnter, Rows, SPACES, SeekPoint, WAITING_MAX, Waiting};
use crate::wire::scan::{Scan, Stop, push_uint};
use crate::wire::stream::DecodeStart;
use crate::wire::walker::pass_definition;

/// Largest number of an event, call or byte, so that no count that begins here can overflow.
pub(crate) const NUMBER_MAX: u64 = 1 << 60;

/// Most definitions: as many as a reader keeps.
const ROWS_MAX: usize = 1 << 20;

/// Most bytes of enter events of open calls.
pub(crate) const ENTERS_BYTES_MAX: usize = 8 << 20;

/// Writes numbers as the raw stream has them, with seven bits per byte.
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn number(&mut self, number: u64) {
        push_uint(&mut self.0, number);
    }

    pub(crate) fn difference(&mut self, number: u64, before: u64) {
        self.number(number.saturating_sub(before));
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn point(&mut self, point: &SeekPoint, before: &SeekPoint) {
        for (now, then) in growing(point).into_iter().zip(growing(before)) {
            self.difference(now, then);
        }
        self.number(point.waiting.len() as u64);
        let mut last = 0;
        for &Waiting { number, thread, frame, seq, function } in &point.waiting {
            self.difference(number, last);
            last = number;
            self.number(thread);
            self.number(frame);
            self.number(seq);
            self.number(u64::from(function.wrapping_add(1)));
        }
        self.number(u64::from(point.recent));
    }

    pub(crate) fn definitions(&mut self, definitions: &[Rows; 5]) {
        for rows in definitions {
            self.number(rows.len() as u64);
            for (id, definition) in rows.iter() {
                self.number(id);
                self.bytes(definition);
            }
        }
    }

    pub(crate) fn enters(&mut self, enters: &[OpenEnter]) {
        self.number(enters.len() as u64);
        let mut last = 0;
        for enter in enters {
            self.difference(enter.call, last);
            self.number(enter.offset);
            self.bytes(&enter.bytes);
            last = enter.call;
        }
    }
}

/// The numbers of a point that never decrease from one point to the next.
fn growing(point: &SeekPoint) -> [u64; 12] {
    let [a, b, c, d, e] = point.rows.map(u64::from);
    let &SeekPoint { raw, place, seq, call, frame, thread_max, .. } = point;
    [raw, place.file, place.raw, seq, call, frame, thread_max, a, b, c, d, e]
}

/// Reads what a [`Writer`] wrote; methods return `None` if it is invalid.
pub(crate) struct Parser<'a> {
    pub(crate) scan: Scan<'a>,
}

impl Parser<'_> {
    pub(crate) fn number(&mut self) -> Option<u64> {
        self.scan.uint().ok()
    }

    /// A count of items that take at least one byte each.
    pub(crate) fn count(&mut self, most: usize) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= most && count <= self.scan.rest().len()).then_some(count)
    }

    pub(crate) fn definitions(&mut self, version: u64) -> Option<[Rows; 5]> {
        let mut definitions: [Rows; 5] = Default::default();
        let mut left = ROWS_MAX;
        for (space, rows) in SPACES.into_iter().zip(&mut definitions) {
            let count = self.count(left)?;
            left -= count;
            for _ in 0..count {
                let id = self.number()?;
                let definition = self.scan.string().ok()?;
                // Users of a definition trust its counts.
                let mut scan = Scan::new(definition);
                let passed: Result<(), Stop> = pass_definition(&mut scan, space, version);
                if passed.is_err() || !scan.rest().is_empty() {
                    return None;
                }
                rows.push(id, definition);
            }
        }
        Some(definitions)
    }

    /// The bytes are checked where reading begins.
    pub(crate) fn enters(&mut self) -> Option<Vec<OpenEnter>> {
        let mut enters: Vec<OpenEnter> = Vec::new();
        let mut call = 0_u64;
        for at in 0..self.count(ENTERS_BYTES_MAX / size_of::<OpenEnter>() + 1)? {
            let step = self.number()?;
            call = call.checked_add(step).filter(|_| at == 0 || step > 0)?;
            let offset = self.number()?;
            enters.push(OpenEnter { call, offset, bytes: self.scan.string().ok()?.into() });
        }
        Some(enters)
    }

    pub(crate) fn point(
        &mut self,
        before: Option<&SeekPoint>,
        definitions: &[Rows; 5],
        waiting_left: &mut usize,
    ) -> Option<SeekPoint> {
        let mut numbers = before.map_or([0; 12], growing);
        for number in &mut numbers {
            *number = number.checked_add(self.number()?).filter(|number| *number <= NUMBER_MAX)?;
        }
        let [raw, file, place_raw, seq, call, frame, thread_max, a, b, c, d, e] = numbers;
        let mut rows = [0; 5];
        for ((place, number), known) in rows.iter_mut().zip([a, b, c, d, e]).zip(definitions) {
            *place = u32::try_from(number).ok().filter(|number| *number as usize <= known.len())?;
        }
        let [functions, ..] = rows;
        let count = self.count(WAITING_MAX)?;
        *waiting_left = waiting_left.checked_sub(count)?;
        let mut waiting = Vec::new();
        let mut number = 0_u64;
        for at in 0..count {
            let step = self.number()?;
            number = number.checked_add(step).filter(|_| at == 0 || step > 0)?;
            let (thread, frame, seq) = (self.number()?, self.number()?, self.number()?);
            let function = u32::try_from(self.number()?).ok()?.wrapping_sub(1);
            if number >= call || function >= functions && function != u32::MAX {
                return None;
            }
            waiting.push(Waiting { number, thread, frame, seq, function });
        }
        let recent = u32::try_from(self.number()?).ok().filter(|recent| *recent as usize <= count)?;
        let place = DecodeStart { file, raw: place_raw };
        Some(SeekPoint { raw, place, seq, call, frame, thread_max, rows, waiting, recent, last_frame: None })
    }
}
