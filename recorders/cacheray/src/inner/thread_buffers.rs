//! What threads keep for themselves, on its way to the log.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::compiler_fence;

use super::{Inner, Phase};
use crate::hot::{self, HOT};
use crate::loss;
use crate::record::{ACCESS_BYTES, address_of, bytes_of};
use crate::regions::Event;
use crate::thread::Local;
use crate::thread_buffer::{Slot, ThreadBuffer};

impl Inner {
    /// Appends a plain access that found no room, or lets the thread keep it.
    pub(crate) fn access_later(&mut self, me: &Local, tag: u8, address: usize, size: u8, code: usize) {
        let is_kept = self.buffer_of(me).is_some_and(|buffer| buffer.put(tag, address, size, me.id(), code));
        if !is_kept {
            self.access(me, tag, address, size, code);
        }
    }

    /// True where threads may keep accesses for themselves.
    fn has_buffers(&self) -> bool {
        let each_counts = self.options.as_ref().is_some_and(|options| options.flush_records > 0);
        self.phase == Phase::Running
            && self.is_marked
            && self.closer == 0
            && !each_counts
            && !self.must_replay
            && !self.is_strict
    }

    /// The thread's buffer, open; `None` where it is to have none.
    fn buffer_of(&mut self, me: &Local) -> Option<&'static ThreadBuffer> {
        if !self.has_buffers() || me.has_ended.load(Relaxed) {
            return None;
        }
        if me.buffer().is_none() {
            me.buffer.store(self.buffers.hand_out(me.token()), Relaxed);
        }
        let buffer = me.buffer()?;
        buffer.open(true);
        Some(buffer)
    }

    /// Appends what the calling thread has kept.
    #[inline]
    pub(crate) fn take_own(&mut self, me: &Local) {
        if let Some(buffer) = me.buffer()
            && buffer.is_filled()
        {
            self.take(buffer);
            buffer.restart();
        }
    }

    /// Appends what all threads have kept. Others than the calling one may go on meanwhile.
    pub(super) fn take_all(&mut self) {
        self.finish_taking();
        self.buffers.iter().for_each(|buffer| self.take(buffer));
    }

    fn take(&mut self, buffer: &'static ThreadBuffer) {
        while let rest @ [first, ..] = buffer.rest() {
            if hot::limit().is_null() {
                // Before it is put: a jump out of a handler may lose it, but not double it.
                buffer.take(1);
                self.append_one(first, buffer.owner());
                continue;
            }
            let room = (hot::limit() as usize).saturating_sub(hot::head() as usize) / ACCESS_BYTES;
            match rest.get(..room.min(rest.len())) {
                Some(records @ [_, ..]) => self.append_slots(buffer, records),
                _ => self.flush(),
            }
        }
    }

    /// Appends records for which there is room.
    fn append_slots(&mut self, buffer: &'static ThreadBuffer, slots: &[Slot]) {
        let mut head = hot::head();
        let end = head.wrapping_add(slots.len() * ACCESS_BYTES);
        let taking = &HOT.taking;
        taking.end.set(end);
        taking.records.set(slots.len() as u32);
        taking.before.set(buffer.taken() as u32);
        compiler_fence(SeqCst);
        taking.from.set(buffer);
        compiler_fence(SeqCst);
        let mut codes = hot::codes();
        for slot in slots {
            if let Some(codes) = &mut codes {
                codes.put(slot.code, address_of(&slot.record));
            }
            // SAFETY: the caller saw that the buffer has room for all of them; the log is held.
            unsafe { head.cast::<[u8; ACCESS_BYTES]>().write_unaligned(slot.record) };
            head = head.wrapping_add(ACCESS_BYTES);
        }
        compiler_fence(SeqCst);
        hot::set_head(end);
        compiler_fence(SeqCst);
        buffer.take(slots.len());
        compiler_fence(SeqCst);
        taking.from.set(std::ptr::null());
    }

    /// Appends one where adds wait, or none of the usual holds.
    #[cold]
    fn append_one(&mut self, slot: &Slot, owner: usize) {
        if self.is_open_for(owner) {
            let address = address_of(&slot.record);
            self.settle_for(Event::Access, owner, address, bytes_of(&slot.record));
            self.put_access(&slot.record, slot.code, address);
        }
    }

    /// Puts right what a signal handler interrupted that does not come back.
    pub(super) fn finish_taking(&mut self) {
        let taking = &HOT.taking;
        // SAFETY: null, or a buffer, which is mapped for good.
        let Some(from) = (unsafe { taking.from.replace(std::ptr::null()).as_ref() }) else { return };
        if hot::head() != taking.end.get() {
            // None of them is in the log, but their codes may be.
            self.forget_codes();
        } else if from.taken() == taking.before.get() as usize {
            from.take(taking.records.get() as usize);
        }
    }

    /// Sends all threads to the log with their next records.
    pub(super) fn call_in(&self) {
        self.buffers.iter().for_each(|buffer| buffer.open(false));
    }

    /// From now on each access is appended at once, or not any more, unless the user has said which.
    pub(crate) fn set_strict(&mut self, is_strict: bool) {
        self.is_strict = self.options.as_ref().and_then(|options| options.is_strict).unwrap_or(is_strict);
        self.call_in();
        if self.is_strict {
            // What threads have kept until now would stay behind what they append at once.
            self.take_all();
        }
    }

    /// The calling thread ends; what it does from now on is appended at once.
    pub(crate) fn end_buffer(&mut self, me: &Local) {
        me.has_ended.store(true, Relaxed);
        if let Some(buffer) = me.buffer() {
            me.buffer.store(std::ptr::null_mut(), Relaxed);
            buffer.give_back();
        }
    }

    /// A forked process has the calling thread alone: what others kept is their process's.
    pub(super) fn leave_buffers(&mut self, me: &Local) {
        for buffer in self.buffers.iter() {
            buffer.open(false);
            buffer.restart();
            if buffer.owner() != me.token() {
                buffer.give_back();
            }
        }
    }

    /// Reports what threads keep where nothing can be appended any more.
    pub(super) fn report_kept(&self) {
        let kept: usize = self.buffers.iter().map(|buffer| buffer.rest().len()).sum();
        if kept > 0 {
            loss::note(&[
                kept.to_string().as_bytes(),
                b" records are lost: a signal ended the process in an allocation",
            ]);
        }
    }
}
