//! An overview of an entire trace: which thread was busy when, and with what, in memory that does not grow with time.
//!
//! Each thread has a row of bins of time, and cells of several bins with the busiest names. The end of a trace is not
//! known ahead, so bins double their width whenever there are too few.

use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, NameId, Value};

use crate::directory::ThreadIndex;
use crate::filter::Resolved;
use crate::pass::{About, Additive, Engine, Numbers};

/// Bins of a row, at most.
const BINS: usize = CELLS << CELL_SHIFT_MAX;

/// Cells of a row.
const CELLS: usize = 128;

/// Bins of a cell, as a power of two; fewer as long as the trace is short, or its names would share a cell.
const CELL_SHIFT_MAX: u32 = 4;

/// Names counted in a cell; where there are more, the smallest are dropped.
const CELL_NAMES: usize = 16;

/// Most threads with a row of their own; the others share the last.
pub const ROWS_MAX: usize = 512;

/// Most spans open on one track; spans inside these count as part of them.
const DEPTH_MAX: usize = 1 << 16;

/// The engine. It ignores the duration in the filter, which is not known before a span ends.
#[derive(Debug, Clone, Default)]
pub struct Overview {
    grid: Grid,
    rows: Vec<Row>,
    tracks: Vec<TrackState>,
    names: Vec<u128>,
    open: OpenCell,
    range: Option<(u64, u64)>,
    /// Of each thread, whether spans of it count.
    has_spans: Vec<bool>,
}

/// The times of the bins: bin `n` of a row covers times from `(first + n) << shift` on, and is in cell `n >>
/// cell_shift`.
#[derive(Debug, Clone, Copy, Default)]
struct Grid {
    shift: u32,
    cell_shift: u32,
    first: u64,
}

#[derive(Debug, Clone)]
struct Row {
    busy: Vec<u64>,
    has_instant: Vec<bool>,
    cells: Vec<Cell>,
    total: u128,
    spans: u64,
}

/// Names and their own times.
type Cell = Vec<(NameId, u64)>;

/// The cell that own times are added to at present, with all of its names; the largest go to the row when another cell
/// is.
#[derive(Debug, Clone, Default)]
struct OpenCell {
    row: usize,
    cell: usize,
    /// Own time by name, and the names that have any.
    own: Vec<u64>,
    names: Vec<NameId>,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            busy: vec![0; BINS],
            has_instant: vec![false; BINS],
            cells: vec![Cell::new(); CELLS],
            total: 0,
            spans: 0,
        }
    }
}

#[derive(Debug, Clone, Default)]
struct TrackState {
    /// Of each open span, whether it counts.
    open: Vec<bool>,
    /// Names of the open spans that count.
    shown: Vec<NameId>,
    skipped: u64,
    last: u64,
}

/// An overview drawn with this many columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// First time, in the source's unit.
    pub from: u64,
    /// Last time.
    pub to: u64,
    /// Threads with spans, also those that share a line.
    pub threads: u64,
    /// One line per thread, in order of first appearance.
    pub lines: Vec<Line>,
    /// Names by their own time, the busiest first; those without any are not there.
    pub names: Vec<(NameId, u128)>,
}

/// One thread's line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The thread; the last possible row represents all further threads.
    pub thread: ThreadIndex,
    /// True when the row represents several threads.
    pub is_shared: bool,
    /// Time in spans that count.
    pub busy: u128,
    /// Spans that began.
    pub spans: u64,
    /// The columns.
    pub columns: Vec<Column>,
}

/// A stretch of time on a line.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Column {
    /// Share of the time in spans, 0 to 1.
    pub busy: f64,
    /// The name with the most own time; near enough where many names share a stretch.
    pub name: Option<NameId>,
    /// Something of no length happened.
    pub has_instant: bool,
}

impl Overview {
    /// Draws it: this many columns over the times that occurred.
    pub fn picture(&self, width: usize) -> Picture {
        let Some(range) = self.range else { return self.draw(width) };
        // The bins are as wide as the range of times wants them, whichever of its times came first.
        let mut settled = self.clone();
        settled.regrid(range);
        settled.draw(width)
    }

    fn draw(&self, width: usize) -> Picture {
        let (from, to) = self.range.unwrap_or_default();
        let width = width.max(1);
        let mut lines = Vec::with_capacity(self.rows.len());
        for (thread, row) in (0..).zip(&self.rows) {
            let is_shared = thread as usize == ROWS_MAX - 1;
            let columns = (0..width).map(|column| self.column(row, from, to, column, width)).collect();
            lines.push(Line { thread, is_shared, busy: row.total, spans: row.spans, columns });
        }
        let mut names: Vec<(NameId, u128)> =
            (0..).zip(self.names.iter().copied()).filter(|(_, own)| *own > 0).collect();
        names.sort_by_key(|&(name, own)| (std::cmp::Reverse(own), name));
        let threads = self.has_spans.iter().filter(|has_spans| **has_spans).count() as u64;
        Picture { from, to, threads, lines, names }
    }

    fn column(&self, row: &Row, from: u64, to: u64, column: usize, width: usize) -> Column {
        let length = u128::from(to - from).max(1);
        let edge = |n: usize| {
            let offset = length * n as u128 / width as u128;
            from.saturating_add(u64::try_from(offset).unwrap_or(u64::MAX))
        };
        let start = edge(column);
        // A column narrower than a unit shows that unit.
        let end = edge(column + 1).max(start.saturating_add(1));
        let Grid { shift, first, cell_shift } = self.grid;
        let bins_end = self.grid.bins() as usize - 1;
        let mut shown = Column::default();
        let mut busy = 0.0;
        let mut names: Vec<(NameId, f64)> = Vec::new();
        let bin_of = |time: u64| usize::try_from((time >> shift).saturating_sub(first)).unwrap_or(BINS).min(bins_end);
        // Events at the very end are in the last column.
        let is_last = column + 1 == width;
        let last = if is_last { bin_of(to) } else { bin_of(end - 1) };
        for bin in bin_of(start)..=last {
            let bin_start = (first + bin as u64) << shift;
            let share = overlap(start, end, bin_start, shift);
            busy += row.busy[bin] as f64 * share;
            shown.has_instant |= row.has_instant[bin] && (share > 0.0 || is_last);
            for &(name, own) in &row.cells[bin >> cell_shift] {
                let own = own as f64 * share;
                match names.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, sum)) => *sum += own,
                    None => names.push((name, own)),
                }
            }
        }
        shown.busy = (busy / (end - start) as f64).clamp(0.0, 1.0);
        if shown.busy > 0.0 {
            let most = names.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
            shown.name = most.map(|(name, _)| name);
        }
        shown
    }

    fn edge(&mut self, edge: &Edge, batch: &EdgeBatch, about: About<'_>) {
        let filter = about.filter;
        if !filter.keeps_track(edge.track) {
            return;
        }
        let track = edge.track as usize;
        if track >= self.tracks.len() {
            self.tracks.resize_with(track + 1, TrackState::default);
        }
        let thread = about.directory.thread_of(edge.track) as usize;
        let row = thread.min(ROWS_MAX - 1);
        if row >= self.rows.len() {
            self.rows.resize_with(row + 1, Row::default);
        }
        let state = &mut self.tracks[track];
        if edge.flags.has(EdgeFlags::RESUMED) || edge.flags.has(EdgeFlags::CONTINUES) {
            return state.cross(edge, batch, filter);
        }
        // Time never goes back here, so that stretches neither overlap nor count twice.
        let (since, now) = (state.last, edge.time.max(state.last));
        // The name that was innermost until this edge: it gets the time since the edge before.
        let name = state.shown.last().copied();
        state.last = now;
        match edge.kind {
            EdgeKind::Begin => {
                let counts = state.begin(edge, filter) && filter.keeps_time(edge.time);
                self.rows[row].spans += u64::from(counts);
                if thread >= self.has_spans.len() {
                    self.has_spans.resize(thread + 1, false);
                }
                self.has_spans[thread] |= counts;
            }
            EdgeKind::End => state.end(),
            EdgeKind::Instant | EdgeKind::Counter | EdgeKind::FlowOut | EdgeKind::FlowIn => {
                // An end without its beginning is not an event.
                let is_event = edge.kind == EdgeKind::Instant && !edge.flags.has(EdgeFlags::ORPHAN);
                if is_event && filter.keeps_time(now) && filter.keeps_name(edge.name) {
                    self.see(now, now);
                    let bin = self.bin(now);
                    self.rows[row].has_instant[bin] = true;
                }
            }
        }
        if let Some(name) = name {
            let time = filter.time();
            let (from, to) = (since.max(time.start), now.min(time.end));
            if from < to {
                self.add(row, from, to, name);
            }
        }
    }

    /// Adds own time of a name.
    fn add(&mut self, row: usize, from: u64, to: u64, name: NameId) {
        self.see(from, to);
        let index = name as usize;
        if index >= self.names.len() {
            self.names.resize(index + 1, 0);
        }
        self.names[index] += u128::from(to - from);
        // Bins are looked up when there is room for the entire stretch: making room may widen them.
        let (first, last) = (self.bin(from), self.bin(to - 1));
        let Grid { shift, cell_shift, first: base } = self.grid;
        self.rows[row].total += u128::from(to - from);
        for bin in first..=last {
            let start = (base + bin as u64) << shift;
            let end = start.saturating_add((1_u64 << shift) - 1);
            let own = to.min(end.saturating_add(1)).saturating_sub(from.max(start));
            self.rows[row].busy[bin] += own;
            self.add_to_cell((row, bin >> cell_shift), name, own);
        }
    }

    #[inline]
    fn add_to_cell(&mut self, place: (usize, usize), name: NameId, own: u64) {
        if (self.open.row, self.open.cell) != place {
            self.close_cell();
            (self.open.row, self.open.cell) = place;
        }
        let index = name as usize;
        if index >= self.open.own.len() {
            self.open.own.resize(index + 1, 0);
        }
        if self.open.own[index] == 0 && own > 0 {
            self.open.names.push(name);
        }
        self.open.own[index] += own;
    }

    /// Takes the names of the open cell to its row: the largest first, as a cell has room for a few.
    fn close_cell(&mut self) {
        let OpenCell { row, cell, own, names } = &mut self.open;
        if names.len() > CELL_NAMES {
            names.sort_unstable_by_key(|name| (std::cmp::Reverse(own[*name as usize]), *name));
        }
        for name in names.drain(..) {
            let own = std::mem::take(&mut own[name as usize]);
            add_name(&mut self.rows[*row].cells[*cell], name, own);
        }
    }

    /// Widens the range of times, and the grid with it.
    fn see(&mut self, from: u64, to: u64) {
        let (low, high) = self.range.unwrap_or((from, to));
        let range = (low.min(from), high.max(to));
        let is_first = self.range.replace(range).is_none();
        if is_first || !(self.grid.holds(from) && self.grid.holds(to)) {
            self.regrid(range);
        }
    }

    /// The bin of a time the grid holds.
    fn bin(&self, time: u64) -> usize {
        usize::try_from((time >> self.grid.shift) - self.grid.first).unwrap_or(0).min(self.grid.bins() as usize - 1)
    }

    #[cold]
    fn regrid(&mut self, range: (u64, u64)) {
        self.close_cell();
        let old = self.grid;
        self.grid = old.extended(range);
        let narrower = self.grid.shift - old.shift;
        let (bins, cell_shift) = (self.grid.bins() as usize, self.grid.cell_shift);
        let place =
            |bin: usize| usize::try_from(((old.first + bin as u64) >> narrower).saturating_sub(self.grid.first));
        for row in &mut self.rows {
            let mut moved = Row { total: row.total, spans: row.spans, ..Row::default() };
            for bin in 0..BINS {
                let (busy, instant) = (row.busy[bin], row.has_instant[bin]);
                // Bins outside the new grid were never in use.
                if let Some(to) = place(bin).ok().filter(|to| *to < bins && (busy > 0 || instant)) {
                    moved.busy[to] += busy;
                    moved.has_instant[to] |= instant;
                }
            }
            for (cell, names) in row.cells.iter().enumerate().filter(|(_, names)| !names.is_empty()) {
                if let Some(to) = place(cell << old.cell_shift).ok().filter(|to| *to < bins) {
                    names.iter().for_each(|&(name, own)| add_name(&mut moved.cells[to >> cell_shift], name, own));
                }
            }
            *row = moved;
        }
    }
}

impl Grid {
    fn holds(&self, time: u64) -> bool {
        let bin = time >> self.shift;
        bin >= self.first && bin - self.first < self.bins()
    }

    /// Bins in use at this width.
    fn bins(self) -> u64 {
        (CELLS as u64) << self.cell_shift
    }

    /// A grid that covers an entire range of times, with room on both sides.
    fn extended(self, range: (u64, u64)) -> Self {
        let Self { mut shift, mut cell_shift, .. } = self;
        // A quarter of the bins stays free for later times.
        while (range.1 >> shift) - (range.0 >> shift) >= ((CELLS as u64) << cell_shift) / 4 * 3 {
            if cell_shift < CELL_SHIFT_MAX {
                cell_shift += 1;
            } else {
                shift += 1;
            }
        }
        let grid = Self { shift, cell_shift, first: 0 };
        let (low, high) = (range.0 >> shift, range.1 >> shift);
        let room = (grid.bins() - (high - low + 1)) / 2;
        // Cells begin at multiples of their size in bins.
        Self { first: low.saturating_sub(room) >> cell_shift << cell_shift, ..grid }
    }
}

impl TrackState {
    /// True when the span counts.
    fn begin(&mut self, edge: &Edge, filter: &Resolved) -> bool {
        if self.skipped > 0 || self.open.len() >= DEPTH_MAX {
            self.skipped += 1;
            return false;
        }
        let depth = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        let counts = filter.keeps_name(edge.name) && filter.keeps_depth(depth);
        self.open.push(counts);
        if counts {
            self.shown.push(edge.name);
        }
        counts
    }

    /// Takes the edge of a part of a trace, of a span that began before it or ends after it: another part counts it.
    #[cold]
    fn cross(&mut self, edge: &Edge, batch: &EdgeBatch, filter: &Resolved) {
        if edge.kind == EdgeKind::End {
            return self.end();
        }
        self.begin(edge, filter);
        // The time since the track's last edge is that of the innermost span that is open now.
        if let Some((_, Value::U64(last))) = batch.attributes(edge).nth(1) {
            self.last = last;
        }
    }

    fn end(&mut self) {
        if self.skipped > 0 {
            self.skipped -= 1;
        } else if self.open.pop() == Some(true) {
            self.shown.pop();
        }
    }
}

/// Share of a bin between two times.
fn overlap(start: u64, end: u64, bin_start: u64, shift: u32) -> f64 {
    let bin_end = u128::from(bin_start) + (1_u128 << shift);
    let from = u128::from(start.max(bin_start));
    let to = u128::from(end).min(bin_end);
    to.saturating_sub(from) as f64 / (1_u128 << shift) as f64
}

fn add_name(cell: &mut Cell, name: NameId, own: u64) {
    if let Some((_, sum)) = cell.iter_mut().find(|(known, _)| *known == name) {
        *sum += own;
    } else if cell.len() < CELL_NAMES {
        cell.push((name, own));
    // A frequent name that comes late must be able to enter a full cell; what it replaces is the smallest.
    } else if let Some(least) = cell.iter_mut().min_by_key(|(_, sum)| *sum)
        && least.1 < own
    {
        *least = (name, own);
    }
}

impl Additive for Overview {
    /// Where more than 16 names share a stretch of time, which of the smaller ones are known may depend on the parts.
    fn join(&mut self, mut other: Self, numbers: &Numbers) {
        if let Some((from, to)) = other.range {
            self.see(from, to);
        }
        if let Some(range) = self.range {
            self.regrid(range);
            other.regrid(range);
        }
        if self.rows.len() < other.rows.len() {
            self.rows.resize_with(other.rows.len(), Row::default);
        }
        for (own, other) in self.rows.iter_mut().zip(other.rows) {
            own.total += other.total;
            own.spans += other.spans;
            own.busy.iter_mut().zip(other.busy).for_each(|(own, other)| *own += other);
            own.has_instant.iter_mut().zip(other.has_instant).for_each(|(own, other)| *own |= other);
            for (own, other) in own.cells.iter_mut().zip(other.cells) {
                other.into_iter().for_each(|(name, time)| add_name(own, numbers.name(name), time));
            }
        }
        for (name, time) in (0..).zip(other.names).filter(|(_, time)| *time > 0) {
            let name = numbers.name(name) as usize;
            if name >= self.names.len() {
                self.names.resize(name + 1, 0);
            }
            self.names[name] += time;
        }
        let threads = self.has_spans.len().max(other.has_spans.len());
        self.has_spans.resize(threads, false);
        self.has_spans.iter_mut().zip(other.has_spans).for_each(|(own, other)| *own |= other);
    }
}

impl Engine for Overview {
    fn wants_spans(&self) -> bool {
        false
    }

    fn wants_counters(&self) -> bool {
        true
    }

    fn batch(&mut self, batch: &EdgeBatch, about: About<'_>) {
        for edge in batch.edges() {
            self.edge(edge, batch, about);
        }
    }
}

#[cfg(test)]
mod tests;
