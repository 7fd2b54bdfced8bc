//! Small batches to large ones: what a consumer does per batch should not count.

use std::sync::Arc;

use anytrace_core::table::{Batch, BatchColumn, Names, Strings, Values};

/// Rows of a large batch.
const ROWS: usize = 1 << 16;

/// A large batch ends early where its texts take this many bytes.
const BYTES: usize = 8 << 20;

/// Appends batches to each other.
#[derive(Default)]
pub(crate) struct Gather {
    /// What was gathered; `None` before the first rows.
    open: Option<Batch>,
}

impl Gather {
    /// Takes a batch; returns those that are complete, at most two.
    pub(crate) fn add(&mut self, batch: Batch) -> [Option<Batch>; 2] {
        let before = match &mut self.open {
            Some(open) if fits(open, &batch) => {
                append(open, batch);
                None
            }
            open => open.replace(batch),
        };
        let is_full = self.open.as_ref().is_some_and(|open| open.rows >= ROWS || bytes(open) >= BYTES);
        [before, if is_full { self.open.take() } else { None }]
    }

    /// What is left.
    pub(crate) fn finish(self) -> Option<Batch> {
        self.open
    }
}

/// True when a batch has the types of the batch before and its dictionaries continue those: keys mean the same in both.
fn fits(open: &Batch, batch: &Batch) -> bool {
    open.columns.iter().zip(&batch.columns).all(|(open, batch)| match (&open.values, &batch.values) {
        (Values::Name { names: of_open, .. }, Values::Name { names, .. }) => continues(of_open, names),
        (open, batch) => std::mem::discriminant(open) == std::mem::discriminant(batch),
    })
}

fn continues(before: &Arc<Names>, after: &Arc<Names>) -> bool {
    let (Names(old), Names(new)) = (&**before, &**after);
    Arc::ptr_eq(before, after) || (new.offsets.starts_with(&old.offsets) && new.bytes.starts_with(&old.bytes))
}

fn bytes(batch: &Batch) -> usize {
    let of = |column: &BatchColumn| match &column.values {
        Values::Text(strings) | Values::Bytes(strings) => strings.bytes.len(),
        _ => 0,
    };
    batch.columns.iter().map(of).sum()
}

fn append(open: &mut Batch, batch: Batch) {
    let rows = open.rows;
    for (to, from) in open.columns.iter_mut().zip(batch.columns) {
        append_validity(&mut to.validity, from.validity, rows, batch.rows);
        append_values(&mut to.values, from.values);
    }
    open.rows += batch.rows;
}

/// Empty is: all have a value.
fn append_validity(to: &mut Vec<bool>, from: Vec<bool>, rows: usize, more: usize) {
    if to.is_empty() && from.is_empty() {
        return;
    }
    to.resize(rows, true);
    if from.is_empty() { to.resize(rows + more, true) } else { to.extend(from) }
}

fn append_values(to: &mut Values, from: Values) {
    match (to, from) {
        (Values::Boolean(to), Values::Boolean(from)) => to.extend(from),
        (Values::Int32(to), Values::Int32(from)) => to.extend(from),
        (Values::Int64(to), Values::Int64(from)) => to.extend(from),
        (Values::UInt32(to), Values::UInt32(from)) => to.extend(from),
        (Values::UInt64(to), Values::UInt64(from)) => to.extend(from),
        (Values::Float64(to), Values::Float64(from)) => to.extend(from),
        (Values::Text(to), Values::Text(from)) | (Values::Bytes(to), Values::Bytes(from)) => append_strings(to, &from),
        (Values::Name { keys, names }, Values::Name { keys: more, names: newer }) => {
            keys.extend(more);
            *names = newer;
        }
        _ => debug_assert!(false, "`fits` compares the types"),
    }
}

fn append_strings(to: &mut Strings, from: &Strings) {
    let base = to.offsets.last().copied().unwrap_or(0);
    to.offsets.extend(from.offsets.iter().skip(1).map(|offset| base + offset));
    to.bytes.extend_from_slice(&from.bytes);
}
