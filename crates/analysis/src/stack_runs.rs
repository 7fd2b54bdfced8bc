//! Counts by call stack for traces with more stacks than fit in memory: sorted runs, merged when they are read.
//!
//! Programs whose calls vary have millions of different stacks, most of which occur once. A [`StackTable`] that has
//! grown large is written as *runs*, one per root, each the stacks below that root in depth-first order with callees by
//! number; then the table starts over. Reading merges the runs of a root on the fly, so memory contains one window per
//! run, whatever the number of stacks. Runs stay in memory up to a limit and go to a file of the caller beyond it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, PoisonError};

use anytrace_core::Error;

use crate::stacks::{ROOT, StackId, StackTable};

/// Bytes of runs kept in memory before a file is asked for.
const MEMORY_BYTES_MAX: usize = 48 << 20;

/// Bytes of a run looked at at once.
const WINDOW_BYTES: usize = 8 << 10;

/// Longest node: a byte and eight varints of ten bytes.
const NODE_BYTES_MAX: usize = 96;

/// Runs of one root that are merged at once; when there are more they are merged into one first.
const RUNS_MAX: usize = 512;

/// Makes a file that is deleted automatically, for runs that do not fit into memory.
pub type MakeFile = fn() -> io::Result<File>;

/// Counts of one stack, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackSums {
    /// Calls that were leaves.
    pub leaf_count: u64,
    /// Ticks of those.
    pub leaf_sum: u64,
    /// All calls that were left.
    pub count: u64,
    /// Ticks of those.
    pub sum: u64,
    /// Ticks not spent in calls inside.
    pub self_sum: u64,
}

impl StackSums {
    /// Adds another's.
    #[inline]
    pub fn add(&mut self, other: &Self) {
        self.leaf_count += other.leaf_count;
        self.leaf_sum = self.leaf_sum.saturating_add(other.leaf_sum);
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.self_sum = self.self_sum.saturating_add(other.self_sum);
    }
}

/// One stack below a root, as [`StackRuns::for_each`] emits it: callers first, callees by number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Merged {
    /// Frames around it; 0 for those right below the root.
    pub depth: u32,
    /// Its innermost name.
    pub name: u32,
    /// Smaller for stacks that appeared earlier.
    pub ordinal: u64,
    /// Its counts.
    pub sums: StackSums,
}

/// Bytes, in memory and then in a file.
#[derive(Debug, Default)]
struct Store {
    memory: Vec<u8>,
    file: Option<Mutex<File>>,
    file_bytes: u64,
}

/// One sorted run.
#[derive(Debug, Clone, Copy)]
struct Run {
    store: usize,
    start: u64,
    end: u64,
    /// Ordinal of its stacks' zero.
    base: u64,
}

/// Runs of any number of roots.
#[derive(Debug)]
pub struct StackRuns {
    stores: Vec<Store>,
    /// By root, in the order in which they were added.
    runs: BTreeMap<u32, Vec<Run>>,
    make_file: Option<MakeFile>,
    ordinals: u64,
    scratch: Scratch,
}

/// The buffers for writing a run, kept from run to run.
#[derive(Debug, Default)]
struct Scratch {
    first: Vec<StackId>,
    next: Vec<StackId>,
    work: Vec<(StackId, u32)>,
    bytes: Vec<u8>,
}

impl StackRuns {
    /// No runs. Without `make_file` all stay in memory.
    pub fn new(make_file: Option<MakeFile>) -> Self {
        Self {
            stores: vec![Store::default()],
            runs: BTreeMap::new(),
            make_file,
            ordinals: 0,
            scratch: Scratch::default(),
        }
    }

    /// True when nothing was added.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Writes a table's stacks; its outermost stacks are roots. `sums` are by stack; missing ones are zero.
    ///
    /// # Errors
    /// I/O of the file.
    pub fn add(&mut self, table: &StackTable, sums: &[StackSums]) -> Result<(), Error> {
        let roots = self.scratch.list_children(table);
        for root in roots {
            let mut bytes = std::mem::take(&mut self.scratch.bytes);
            bytes.clear();
            self.scratch.write(root, table, sums, &mut bytes);
            let (root, base) = (table.name(root), self.ordinals);
            let added = self.append_run(root, base, &bytes);
            self.scratch.bytes = bytes;
            added
                .and_then(|()| self.compact(root))
                .map_err(|error| Error::io("cannot store call stacks in a temporary file", error))?;
        }
        // Ordinals of later tables follow those of this one, so that the smallest ordinal of a stack is that of its
        // first appearance.
        self.ordinals += table.len() as u64;
        Ok(())
    }

    fn append_run(&mut self, root: u32, base: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let make_file = self.make_file;
        let store = self.stores.first_mut().expect("there is always a first store");
        let start = store.append(bytes, make_file)?;
        let run = Run { store: 0, start, end: start + bytes.len() as u64, base };
        self.runs.entry(root).or_default().push(run);
        Ok(())
    }

    /// Too many runs of a root become one.
    fn compact(&mut self, root: u32) -> io::Result<()> {
        let Some(parts) = self.runs.get_mut(&root).filter(|runs| runs.len() >= RUNS_MAX) else { return Ok(()) };
        let make_file = self.make_file;
        let mut writer = RunWriter::default();
        let mut merged = Vec::new();
        // The merged run is written after the others in pieces, so that it need not fit into memory.
        let mut own = Store { memory: Vec::new(), file: None, file_bytes: 0 };
        // Merged nodes carry their final ordinals, which is why the new run has a base of 0.
        merge(&self.stores, parts, &mut |node| {
            writer.node(node, &mut merged);
            if merged.len() > WINDOW_BYTES * 8 {
                own.append(&merged, make_file)?;
                merged.clear();
            }
            Ok(())
        })?;
        writer.finish(&mut merged);
        own.append(&merged, make_file)?;
        let end = own.length();
        // The old runs stay in their store: cutting pieces out of the middle of a file would cost more than their
        // bytes.
        self.stores.push(own);
        *parts = vec![Run { store: self.stores.len() - 1, start: 0, end, base: 0 }];
        Ok(())
    }

    /// Adds the runs of another; `root` maps its roots to ours.
    pub fn absorb(&mut self, other: Self, root: impl Fn(u32) -> u32) {
        let stores = self.stores.len();
        let shift = self.ordinals;
        for (of, runs) in other.runs {
            let moved = |run: Run| Run { store: run.store + stores, base: run.base + shift, ..run };
            self.runs.entry(root(of)).or_default().extend(runs.into_iter().map(moved));
        }
        self.stores.extend(other.stores);
        self.ordinals += other.ordinals;
    }

    /// Visits every stack below one root, or below all roots together, with its counts added up.
    ///
    /// # Errors
    /// I/O of the file, and what `visit` returns.
    pub fn for_each(&self, root: Option<u32>, visit: &mut dyn FnMut(&Merged) -> io::Result<()>) -> io::Result<()> {
        let runs: Vec<Run> = match root {
            Some(root) => self.runs.get(&root).cloned().unwrap_or_default(),
            None => self.runs.values().flatten().copied().collect(),
        };
        merge(&self.stores, &runs, visit)
    }
}

impl Store {
    fn length(&self) -> u64 {
        self.memory.len() as u64 + self.file_bytes
    }

    fn append(&mut self, bytes: &[u8], make_file: Option<MakeFile>) -> io::Result<u64> {
        let start = self.length();
        let Some(make_file) = make_file else {
            self.memory.extend_from_slice(bytes);
            return Ok(start);
        };
        // Once there is a file, everything goes there: positions from `memory.len()` on are positions in the file.
        if self.file.is_none() && self.memory.len() + bytes.len() <= MEMORY_BYTES_MAX {
            self.memory.extend_from_slice(bytes);
            return Ok(start);
        }
        if self.file.is_none() {
            self.file = Some(Mutex::new(make_file()?));
        }
        if let Some(file) = &mut self.file {
            let file = file.get_mut().unwrap_or_else(PoisonError::into_inner);
            file.seek(SeekFrom::End(0)).and_then(|_| file.write_all(bytes))?;
            self.file_bytes += bytes.len() as u64;
        }
        Ok(start)
    }

    /// Appends bytes of the store from `at` on, at most a window's and none from `end` on.
    fn read(&self, at: u64, end: u64, out: &mut Vec<u8>) -> io::Result<usize> {
        let want = usize::try_from(end - at).unwrap_or(WINDOW_BYTES).min(WINDOW_BYTES);
        let in_memory = self.memory.len() as u64;
        if at < in_memory {
            let start = usize::try_from(at).unwrap_or(usize::MAX);
            let bytes = self.memory.get(start..).unwrap_or_default();
            let bytes = bytes.get(..want).unwrap_or(bytes);
            out.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let Some(file) = &self.file else { return Ok(0) };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let before = out.len();
        out.resize(before + want, 0);
        file.seek(SeekFrom::Start(at - in_memory))
            .and_then(|_| file.read_exact(out.get_mut(before..).unwrap_or_default()))?;
        Ok(want)
    }
}

impl Scratch {
    /// Lists the callees of each stack that has several; returns the roots.
    fn list_children(&mut self, table: &StackTable) -> Vec<StackId> {
        let count = table.len();
        self.first.clear();
        self.first.resize(count, ROOT);
        self.next.clear();
        self.next.resize(count, ROOT);
        let mut roots = Vec::new();
        for id in 0..u32::try_from(count).unwrap_or(ROOT) {
            let parent = table.parent(id);
            if parent == ROOT {
                roots.push(id);
            } else if table.has_many(parent)
                && let (Some(first), Some(next)) = (self.first.get_mut(parent as usize), self.next.get_mut(id as usize))
            {
                // Lists are built back to front; `push_many` sorts them anyway.
                *next = std::mem::replace(first, id);
            }
        }
        roots
    }

    /// Writes the stacks below a root, callees by number.
    fn write(&mut self, root: StackId, table: &StackTable, sums: &[StackSums], out: &mut Vec<u8>) {
        let mut writer = RunWriter::default();
        self.work.clear();
        self.push_children(root, 0, table);
        while let Some((id, depth)) = self.work.pop() {
            let sums = sums.get(id as usize).copied().unwrap_or_default();
            writer.node(&Merged { depth, name: table.name(id), ordinal: u64::from(id), sums }, out);
            self.push_children(id, depth + 1, table);
        }
        writer.finish(out);
    }

    #[inline]
    fn push_children(&mut self, parent: StackId, depth: u32, table: &StackTable) {
        if let Some(child) = table.only_child(parent) {
            self.work.push((child, depth));
        } else if table.has_many(parent) {
            self.push_many(parent, depth, table);
        }
    }

    fn push_many(&mut self, parent: StackId, depth: u32, table: &StackTable) {
        let start = self.work.len();
        let mut child = self.first.get(parent as usize).copied().unwrap_or(ROOT);
        while child != ROOT {
            self.work.push((child, depth));
            child = self.next.get(child as usize).copied().unwrap_or(ROOT);
        }
        if let Some(children) = self.work.get_mut(start..).filter(|children| children.len() > 1) {
            children.sort_unstable_by_key(|&(id, _)| Reverse(table.name(id)));
        }
    }
}

/// How a node's counts are written: the two usual cases are short.
mod form {
    /// Never left: no counts.
    pub(super) const NONE: u8 = 0;
    /// Left once, as a leaf: its ticks.
    pub(super) const LEAF_ONCE: u8 = 1;
    /// Left once, not as a leaf: its ticks, and those of its own.
    pub(super) const INNER_ONCE: u8 = 2;
    /// All five counts.
    pub(super) const ANY: u8 = 3;
}

/// Set in a node's first byte when the next node is its callee.
const HAS_CALLEE: u8 = 4;

/// How many frames further out the next node is, from bit 3 on; with this value the number follows.
const FAR: u32 = 31;

/// Writes nodes; each waits for the next, because it contains the place of the next.
#[derive(Debug, Default)]
struct RunWriter {
    waiting: Option<Merged>,
}

impl RunWriter {
    #[inline]
    fn node(&mut self, node: &Merged, out: &mut Vec<u8>) {
        // A node says how deep the next one is. Depths alone then suffice to rebuild the tree, without an end mark per
        // stack.
        if let Some(before) = self.waiting.replace(*node) {
            put_node(&before, node.depth, out);
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(last) = self.waiting.take() {
            put_node(&last, last.depth, out);
        }
    }
}

#[inline]
fn put_node(node: &Merged, next_depth: u32, out: &mut Vec<u8>) {
    let sums = &node.sums;
    let form = match (sums.count, sums.leaf_count) {
        (0, 0) if *sums == StackSums::default() => form::NONE,
        (1, 1) if sums.leaf_sum == sums.sum && sums.self_sum == sums.sum => form::LEAF_ONCE,
        (1, 0) if sums.leaf_sum == 0 => form::INNER_ONCE,
        _ => form::ANY,
    };
    let (place, far) = if next_depth > node.depth {
        (HAS_CALLEE, None)
    } else {
        let up = node.depth - next_depth;
        ((up.min(FAR) as u8) << 3, (up >= FAR).then_some(up))
    };
    out.push(form | place);
    if let Some(up) = far {
        put_varint(u64::from(up), out);
    }
    put_varint(u64::from(node.name), out);
    put_varint(node.ordinal, out);
    match form {
        form::NONE => {}
        form::LEAF_ONCE => put_varint(sums.sum, out),
        form::INNER_ONCE => {
            put_varint(sums.sum, out);
            put_varint(sums.self_sum, out);
        }
        _ => {
            for value in [sums.leaf_count, sums.leaf_sum, sums.count, sums.sum, sums.self_sum] {
                put_varint(value, out);
            }
        }
    }
}

#[inline]
fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads one run.
struct Cursor<'s> {
    store: &'s Store,
    at: u64,
    end: u64,
    base: u64,
    window: Vec<u8>,
    used: usize,
    next_depth: u32,
    node: Merged,
}

impl<'s> Cursor<'s> {
    fn new(store: &'s Store, run: &Run) -> Self {
        let window = Vec::with_capacity(WINDOW_BYTES + NODE_BYTES_MAX);
        let (at, end, base) = (run.start, run.end, run.base);
        Self { store, at, end, base, window, used: 0, next_depth: 0, node: Merged::default() }
    }

    /// Reads the next node; false at the end.
    #[inline]
    fn advance(&mut self) -> io::Result<bool> {
        if self.window.len() - self.used < NODE_BYTES_MAX && self.at < self.end {
            self.refill()?;
        }
        if self.used >= self.window.len() {
            return Ok(false);
        }
        let mut bytes = Bytes { bytes: self.window.get(self.used..).unwrap_or_default() };
        let head = bytes.byte();
        let depth = self.next_depth;
        self.next_depth = if head & HAS_CALLEE != 0 {
            depth + 1
        } else {
            let up = u32::from(head >> 3);
            let up = if up == FAR { u32::try_from(bytes.varint()).unwrap_or(u32::MAX) } else { up };
            depth.saturating_sub(up)
        };
        let name = bytes.varint() as u32;
        let ordinal = self.base + bytes.varint();
        let sums = match head & 3 {
            form::NONE => StackSums::default(),
            form::LEAF_ONCE => {
                let sum = bytes.varint();
                StackSums { leaf_count: 1, leaf_sum: sum, count: 1, sum, self_sum: sum }
            }
            form::INNER_ONCE => {
                let (sum, self_sum) = (bytes.varint(), bytes.varint());
                StackSums { leaf_count: 0, leaf_sum: 0, count: 1, sum, self_sum }
            }
            _ => {
                let [leaf_count, leaf_sum, count, sum, self_sum] = std::array::from_fn(|_| bytes.varint());
                StackSums { leaf_count, leaf_sum, count, sum, self_sum }
            }
        };
        self.used = self.window.len() - bytes.bytes.len();
        self.node = Merged { depth, name, ordinal, sums };
        Ok(true)
    }

    #[cold]
    fn refill(&mut self) -> io::Result<()> {
        self.window.drain(..self.used);
        self.used = 0;
        self.at += self.store.read(self.at, self.end, &mut self.window)? as u64;
        Ok(())
    }

    /// Smaller for the node that is first in the merged order: the innermost, then the smallest name.
    #[inline]
    fn key(&self) -> u64 {
        u64::from(!self.node.depth) << 32 | u64::from(self.node.name)
    }
}

/// Reads our own bytes, which are complete.
struct Bytes<'b> {
    bytes: &'b [u8],
}

impl Bytes<'_> {
    #[inline]
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        first
    }

    #[inline]
    fn varint(&mut self) -> u64 {
        let first = self.byte();
        if first < 0x80 {
            return u64::from(first);
        }
        let (mut value, mut shift) = (u64::from(first & 0x7f), 7);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 || shift > 63 {
                return value;
            }
        }
    }
}

/// Merges runs. A cursor advances only when its node was emitted, so all cursors at the greatest depth are below the
/// same stack, and the smallest name among them is the next node.
fn merge(stores: &[Store], runs: &[Run], visit: &mut dyn FnMut(&Merged) -> io::Result<()>) -> io::Result<()> {
    let mut cursors: Vec<Cursor<'_>> =
        runs.iter().filter_map(|run| Some(Cursor::new(stores.get(run.store)?, run))).collect();
    let mut heap = BinaryHeap::new();
    for (at, cursor) in cursors.iter_mut().enumerate() {
        if cursor.advance()? {
            heap.push(Reverse((cursor.key(), at)));
        }
    }
    // Reused from node to node: most have no twin.
    let mut twins = Vec::new();
    while let Some(Reverse((key, at))) = heap.pop() {
        let Some(cursor) = cursors.get(at) else { continue };
        let mut node = cursor.node;
        twins.clear();
        while let Some(&Reverse((other, twin))) = heap.peek().filter(|Reverse((other, _))| *other == key) {
            debug_assert_eq!(other, key);
            heap.pop();
            if let Some(other) = cursors.get(twin) {
                node.sums.add(&other.node.sums);
                node.ordinal = node.ordinal.min(other.node.ordinal);
            }
            twins.push(twin);
        }
        // Every cursor with this stack is in `twins` or is `at`: the sums are complete.
        visit(&node)?;
        for &twin in &twins {
            if let Some(cursor) = cursors.get_mut(twin)
                && cursor.advance()?
            {
                heap.push(Reverse((cursor.key(), twin)));
            }
        }
        let next = heap.peek().map_or(u64::MAX, |Reverse((key, _))| *key);
        let Some(cursor) = cursors.get_mut(at) else { continue };
        // Most stacks are in one run only: no other cursor need be asked while this one is deeper.
        while cursor.advance()? {
            let key = cursor.key();
            if key >= next {
                heap.push(Reverse((key, at)));
                break;
            }
            visit(&cursor.node)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
