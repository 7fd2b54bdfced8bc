//! The log's cold part: the buffer, the target, the regions.

mod thread_buffers;
mod writing;

use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;

use crate::codes::Codes;
use crate::hot::{self, HOT};
use crate::loss;
use crate::options::Options;
use crate::record::{self, ACCESS_BYTES};
use crate::regions::{Event, Region, Regions};
use crate::sys;
use crate::target::{self, Target};
use crate::thread::Local;
use crate::thread_buffer::ThreadBuffers;

/// The state of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The C library is not initialized yet.
    Unstarted,
    Running,
    /// Switched off, or nothing more can be written.
    Stopped,
}

/// Everything but lock, head and limit.
pub(crate) struct Inner {
    phase: Phase,
    buffer: *mut u8,
    capacity: usize,
    /// Bytes of the buffer that are written already; other than 0 only while it is being written.
    sent: usize,
    target: Option<Target>,
    /// The file of code addresses.
    codes_target: Option<Target>,
    /// True when the target is opened with the first bytes, under the process's own name.
    is_child: bool,
    options: Option<Options>,
    next_id: u64,
    /// Records since the buffer was written.
    kept: u64,
    /// The thread that ends the process, once one does.
    closer: usize,
    /// Live regions that a forked process begins its trace with.
    must_replay: bool,
    regions: Option<Regions>,
    /// True while the regions are being changed.
    is_fragile: bool,
    /// True while `loss` knows that this process has records in memory.
    is_marked: bool,
    lost: u64,
    /// What threads keep for themselves.
    buffers: ThreadBuffers,
    /// True where each access is to be appended at once.
    is_strict: bool,
}

impl Inner {
    pub(crate) const NEW: Self = Self {
        phase: Phase::Unstarted,
        buffer: null_mut(),
        capacity: 0,
        sent: 0,
        target: None,
        codes_target: None,
        is_child: false,
        options: None,
        next_id: 0,
        kept: 0,
        closer: 0,
        must_replay: false,
        regions: None,
        is_fragile: false,
        is_marked: false,
        lost: 0,
        buffers: ThreadBuffers::NONE,
        is_strict: false,
    };

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// The next thread's id.
    pub(crate) fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// Takes back the id of a thread that could not be created, unless the next one has been taken meanwhile.
    pub(crate) fn give_back_id(&mut self, id: u64) {
        if self.next_id == id + 1 {
            self.next_id = id;
        }
    }

    /// True when this thread need not ask again.
    pub(crate) fn is_over(&self, me: &Local) -> bool {
        self.phase == Phase::Stopped || (self.phase == Phase::Running && !self.is_open(me))
    }

    /// True while this thread's records are taken: once the process ends, only those of the thread that ends it.
    pub(crate) fn is_open(&self, me: &Local) -> bool {
        self.is_open_for(me.token())
    }

    fn is_open_for(&self, token: usize) -> bool {
        self.phase == Phase::Running && (self.closer == 0 || self.closer == token)
    }

    /// Sets out with a target and a buffer.
    pub(crate) fn run(&mut self, options: Options, target: Option<Target>) {
        self.buffer = sys::pages(options.buffer_bytes);
        if self.buffer.is_null() {
            loss::note(&[b"not enough memory for the buffer; nothing is recorded"]);
            return self.stop();
        }
        self.capacity = options.buffer_bytes;
        self.is_child = target.is_none();
        if options.has_codes && target.as_ref().is_none_or(Target::is_file) {
            HOT.codes.set(Codes::new(options.buffer_bytes));
        }
        self.target = target;
        let mut regions = Regions::default();
        regions.places.wrappers = options.wrappers.clone();
        regions.places.callers = options.callers;
        self.regions = Some(regions);
        self.is_strict = options.is_strict == Some(true);
        hot::RANGE_BYTES.store(options.range_bytes, Relaxed);
        self.options = Some(options);
        self.phase = Phase::Running;
        hot::set_head(self.buffer);
        self.set_limit();
    }

    /// Stops recording for good.
    pub(crate) fn stop(&mut self) {
        self.unmark();
        self.phase = Phase::Stopped;
        hot::IS_OFF.store(1, Relaxed);
        self.sent = 0;
        hot::set_head(self.buffer);
        self.set_limit();
        self.call_in();
    }

    /// True when allocations without annotation are recorded.
    pub(crate) fn follows_malloc(&self) -> bool {
        self.regions.is_some() && self.options.as_ref().is_some_and(|options| options.is_malloc)
    }

    /// True when variables and stacks are recorded.
    pub(crate) fn follows_statics(&self) -> bool {
        self.regions.is_some() && self.options.as_ref().is_some_and(|options| options.has_statics)
    }

    /// The live regions; `None` where they were lost.
    pub(crate) fn regions(&mut self) -> Option<&mut Regions> {
        self.regions.as_mut()
    }

    /// Appends an access.
    pub(crate) fn access(&mut self, me: &Local, tag: u8, address: usize, size: u8, code: usize) {
        if !self.is_open(me) {
            return;
        }
        self.settle_for(Event::Access, me.token(), address, usize::from(size));
        self.put_access(&record::access(tag, address as u64, size, me.id()), code, address);
    }

    /// Appends an access. Its code is noted where the record is in the buffer: writing may take both, or neither.
    fn put_access(&mut self, bytes: &[u8; ACCESS_BYTES], code: usize, address: usize) {
        if self.capacity - self.used() < ACCESS_BYTES {
            self.flush();
        }
        if self.phase == Phase::Running {
            hot::note_code(code, address);
        }
        self.put(&[bytes]);
    }

    /// Appends a range in pieces, at most this many; returns where the rest begins.
    pub(crate) fn range(
        &mut self,
        me: &Local,
        tag: u8,
        range: std::ops::Range<usize>,
        code: usize,
        pieces: usize,
    ) -> usize {
        let longest = hot::RANGE_BYTES.load(Relaxed);
        let std::ops::Range { start: mut next, end } = range;
        for _ in 0..pieces {
            if next >= end {
                break;
            }
            let piece = record::piece(next, end - next, longest);
            let head = hot::head();
            if (hot::limit() as usize) < (head as usize).wrapping_add(ACCESS_BYTES) || !self.is_open(me) {
                self.access(me, tag, next, piece as u8, code);
            } else {
                hot::note_code(code, next);
                let bytes = record::access(tag, next as u64, piece as u8, me.id());
                // SAFETY: `limit` is the end of the buffer that `head` points into, so 18 bytes fit; the log is held.
                unsafe { head.cast::<[u8; ACCESS_BYTES]>().write_unaligned(bytes) };
                hot::set_head(head.wrapping_add(ACCESS_BYTES));
            }
            next += piece;
        }
        next
    }

    /// Appends a remove.
    pub(crate) fn remove(&mut self, me: &Local, address: usize) {
        if !self.is_open(me) {
            return;
        }
        self.settle(me, address, 1);
        self.put(&[&record::remove(address as u64, me.id())]);
    }

    /// Appends an add that is in no table.
    pub(crate) fn add(&mut self, me: &Local, add: &record::Add<'_>) {
        if !self.is_open(me) {
            return;
        }
        self.settle(me, 0, 0);
        self.put(&[&record::add(add), add.name]);
    }

    /// Appends the add of a region in the table.
    pub(crate) fn add_region(&mut self, me: &Local, address: usize) {
        if self.is_open(me) {
            self.put_region(address);
        }
    }

    fn put_region(&mut self, address: usize) {
        let Some(regions) = self.regions.take() else { return };
        self.is_fragile = true;
        if let Some(region) = regions.get(address) {
            let add = regions.add(address, region);
            self.put(&[&record::add(&add), add.name]);
        }
        self.regions = Some(regions);
        self.is_fragile = false;
    }

    /// Changes the regions.
    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut Regions) -> R) -> Option<R> {
        self.is_fragile = true;
        let changed = self.regions.as_mut().map(change);
        self.is_fragile = false;
        self.set_limit();
        changed
    }

    /// Lets a region's add wait for an annotation.
    pub(crate) fn add_later(&mut self, me: &Local, address: usize, region: Region) {
        let token = me.token();
        if let Some(Some(due)) = self.change(|regions| regions.wait(address, region, token)) {
            self.add_region(me, due);
        }
    }

    /// Writes the adds that must precede an allocation, a free or a type declaration of this thread.
    pub(crate) fn settle(&mut self, me: &Local, address: usize, bytes: usize) {
        self.settle_for(Event::Region, me.token(), address, bytes);
    }

    fn settle_for(&mut self, event: Event, token: usize, address: usize, bytes: usize) {
        if !self.regions.as_ref().is_some_and(Regions::is_waiting) {
            return;
        }
        let _ = self.change(|regions| regions.pass(token));
        while let Some(Some(due)) = self.change(|regions| regions.due(event, token, address, bytes)) {
            if self.is_open_for(token) {
                self.put_region(due);
            }
        }
    }

    /// Appends records of signal handlers that interrupted the recorder. Complete records stay complete: the buffer
    /// contains them in one order, wherever it is cut.
    pub(crate) fn take_spilled(&mut self, me: &Local) {
        self.lost += me.take_lost();
        // Handlers leave accesses only.
        me.read_spilled(|part| {
            for access in part.as_chunks::<ACCESS_BYTES>().0 {
                self.put_access(access, 0, record::address_of(access));
            }
        });
    }

    /// Removes such records where nothing is recorded any more.
    pub(crate) fn discard_spilled(&mut self, me: &Local) {
        self.lost += me.take_lost();
        me.read_spilled(|_| {});
    }

    /// Appends one record, given in parts.
    fn put(&mut self, parts: &[&[u8]]) {
        if self.phase != Phase::Running {
            return;
        }
        // Who ends the process writes each record at once.
        if !self.is_marked && self.closer == 0 {
            loss::begin_process();
            self.is_marked = true;
            self.set_limit();
        }
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if self.capacity - self.used() < length {
            self.flush();
        }
        // A name may be longer than a small buffer.
        for part in parts {
            for piece in part.chunks(self.capacity.max(1)) {
                if self.capacity - self.used() < piece.len() {
                    self.flush();
                }
                if self.phase != Phase::Running {
                    return;
                }
                let head = hot::head();
                // SAFETY: the buffer has room for the piece behind `head`, as was just seen to; it is ours alone
                // while the log is held, and `piece` lies elsewhere.
                unsafe { head.copy_from_nonoverlapping(piece.as_ptr(), piece.len()) };
                hot::set_head(head.wrapping_add(piece.len()));
            }
        }
        self.kept += 1;
        let every = self.options.as_ref().map_or(0, |options| options.flush_records);
        if self.closer != 0 || (every > 0 && self.kept >= every) {
            self.flush();
        }
    }

    /// Begins a forked process's trace with the regions live at the fork, where that is due.
    pub(crate) fn replay(&mut self, me: &Local) {
        if !self.must_replay {
            return;
        }
        self.must_replay = false;
        let thread = me.id();
        let addresses = self.change(|regions| {
            regions.give_to(thread);
            regions.addresses()
        });
        for address in addresses.into_iter().flatten() {
            self.add_region(me, address);
        }
    }

    fn used(&self) -> usize {
        (hot::head() as usize).saturating_sub(self.buffer as usize).min(self.capacity)
    }

    /// Writes everything, waiting adds included.
    pub(crate) fn flush_all(&mut self, me: &Local) {
        self.take_all();
        while let Some(Some(due)) = self.change(|regions| regions.any()) {
            self.add_region(me, due);
        }
        self.take_spilled(me);
        self.flush();
    }

    /// Says that no record is in memory; the next one takes the long way and says so again.
    fn unmark(&mut self) {
        if self.is_marked && loss::end_process() {
            self.is_marked = false;
            self.set_limit();
            self.call_in();
        }
    }

    /// Writes the buffer, for a process that ends from within a signal handler: nothing else can be relied on.
    pub(crate) fn flush_last(&mut self, me: &Local) {
        self.flush_shared(me);
        if self.phase == Phase::Running {
            self.closer = me.token();
            self.set_limit();
            self.call_in();
        }
        self.unmark();
    }

    /// The same for `_exit` and `exec`, which the child of a `vfork` also calls: it shares the log with its parent, who
    /// goes on.
    pub(crate) fn flush_shared(&mut self, me: &Local) {
        if self.is_fragile {
            self.report_kept();
            self.flush();
        } else {
            self.flush_all(me);
        }
        self.unmark();
    }

    fn set_limit(&self) {
        let each_counts = self.options.as_ref().is_some_and(|options| options.flush_records > 0);
        let waits = self.regions.as_ref().is_some_and(Regions::is_waiting);
        let is_plain = self.phase == Phase::Running
            && !each_counts
            && !waits
            && self.closer == 0
            && !self.must_replay
            && self.is_marked;
        hot::set_limit(if is_plain { self.buffer.wrapping_add(self.capacity) } else { null_mut() });
    }

    /// The calling thread ends the process: from here on it alone records, and each record is written at once.
    pub(crate) fn close(&mut self, me: &Local) {
        if self.phase != Phase::Running {
            return;
        }
        self.flush_all(me);
        self.send_codes(&sys::sigset_t::ALL, true);
        if self.lost > 0 {
            let lost = std::mem::take(&mut self.lost).to_string();
            loss::note(&[lost.as_bytes(), b" records of signal handlers were lost: no room"]);
        }
        self.closer = me.token();
        self.set_limit();
        self.call_in();
        self.unmark();
    }

    /// Becomes the log of a forked process: a trace of its own, its own thread ids.
    pub(crate) fn fork(&mut self, me: &Local) {
        loss::forget_process();
        self.is_marked = false;
        self.leave_buffers(me);
        if self.phase != Phase::Running {
            return;
        }
        if let Some(target) = self.codes_target.take() {
            target.leave();
        }
        if let Some(codes) = hot::codes() {
            codes.restart();
        }
        if let Some(target) = self.target.take() {
            let has_own = target.is_file();
            let is_device =
                !has_own && self.options.as_ref().is_some_and(|options| target::may_open_again(&options.to));
            if !has_own && !is_device {
                loss::note(&[b"a forked process is not recorded: it cannot share its parent's stream"]);
                self.stop();
            }
            target.leave();
        }
        self.is_child = true;
        self.next_id = 0;
        self.closer = 0;
        self.lost = 0;
        self.sent = 0;
        self.kept = 0;
        hot::set_head(self.buffer);
        self.must_replay = self.regions.as_ref().is_some_and(|regions| !regions.is_empty());
        me.begin_anew();
        self.set_limit();
    }

    /// Resumes after a signal handler left an unfinished operation by `longjmp`.
    pub(crate) fn recover(&mut self) {
        self.finish_taking();
        if self.is_fragile {
            loss::note(&[b"a signal handler interrupted an allocation; allocations are no longer recorded"]);
            std::mem::forget(self.regions.take());
            self.is_fragile = false;
        }
        self.forget_codes();
        self.set_limit();
    }

    /// Forgets the codes of the accesses in the buffer: of the last ones either code or record may be missing.
    fn forget_codes(&mut self) {
        if let Some(codes) = hot::codes() {
            // SAFETY: as in `send`.
            let bytes = unsafe { std::slice::from_raw_parts(self.buffer, self.used()) };
            let (accesses, check) = record::accesses(bytes);
            codes.forget(accesses, check);
        }
    }
}
