//! The trace as accesses, for the engines of `anytrace-analysis`.

use anytrace_core::access::{Access, AccessFlags, AccessKind, AccessSink, BATCH_ACCESSES};
use anytrace_core::{Error, Sink, Summary};

use crate::wire::reader::{LinePlace, Piece, Reader, Visit};
use crate::wire::record::{Kind, Record};

/// Emits a trace to `out`; damage is reported to `sink`.
///
/// A modify is a read and a write with the same number. A superblock is not an access. Everything is emitted as thread
/// 0, because a log names no threads.
pub(crate) fn emit(reader: Reader, out: &mut dyn AccessSink, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let mut emitter = AccessEmitter { out, batch: Vec::with_capacity(BATCH_ACCESSES), has_thread: false };
    let passed = reader.walk(&mut emitter, sink)?;
    emitter.flush()?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

struct AccessEmitter<'a> {
    out: &'a mut dyn AccessSink,
    batch: Vec<Access>,
    has_thread: bool,
}

impl AccessEmitter<'_> {
    #[cold]
    fn flush(&mut self) -> Result<(), Error> {
        if self.batch.is_empty() {
            return Ok(());
        }
        if !std::mem::replace(&mut self.has_thread, true) {
            self.out.thread(0, Some(0))?;
        }
        self.out.accesses(&self.batch)?;
        self.batch.clear();
        Ok(())
    }
}

impl Visit for AccessEmitter<'_> {
    #[inline]
    fn record(&mut self, record: &Record<'_>, at: LinePlace, _sink: &mut dyn Sink) -> Result<(), Error> {
        let kind = match record.kind {
            Kind::Fetch => AccessKind::Fetch,
            Kind::Read | Kind::Modify => AccessKind::Read,
            Kind::Write => AccessKind::Write,
            Kind::Block => return Ok(()),
        };
        let (address, bytes) = (record.address, record.size);
        let access = Access { address, seq: at.seq, thread: 0, bytes, kind, flags: AccessFlags::NONE };
        self.batch.push(access);
        if record.kind == Kind::Modify {
            self.batch.push(Access { kind: AccessKind::Write, ..access });
        }
        // A modify's two accesses stay in one batch.
        if self.batch.len() >= BATCH_ACCESSES - 1 { self.flush() } else { Ok(()) }
    }

    fn piece(&mut self, _piece: Piece<'_>, _at: LinePlace, _sink: &mut dyn Sink) -> Result<(), Error> {
        Ok(())
    }
}
