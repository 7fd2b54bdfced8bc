//! Reads the events of a raw stream in a second thread, while the first one copies its bytes.
//!
//! The two threads never wait for each other in a circle: a piece is sent only in a buffer that came back, and no more
//! buffers exist than the channel has room for; so only taking what comes back ever blocks the thread that copies.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use anytrace_core::{Diagnostic, Error, Limits, OpenOptions, Sink};

use crate::wire::pieces::{Back, Piece, Pieces};
use crate::wire::reader::Reader;
use crate::wire::record::Event;
use crate::wire::signatures::Signatures;
use crate::wire::stream::Stream;
use crate::wire::visitor::Visitor;

/// Pieces on their way.
const PIECES_MAX: usize = 4;

/// Versions from here on are none.
const FIRST_VERSION_OF_NOTHING: u64 = 64;

/// Diagnostics on their way.
const FOUND_MAX: usize = 1024;

/// The thread that reads.
pub(super) struct Reading {
    pieces: SyncSender<Piece>,
    back: Receiver<Back>,
    spare: Vec<Vec<u8>>,
    /// Returns whether there was a header.
    thread: JoinHandle<Result<bool, Error>>,
}

impl Reading {
    pub(super) fn start(limits: &Limits) -> Result<Self, Error> {
        let (pieces, incoming) = sync_channel(PIECES_MAX);
        let (outgoing, back) = sync_channel(FOUND_MAX);
        let options = OpenOptions { limits: *limits, ..OpenOptions::default() };
        let thread = thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || {
                let pieces = Pieces { pieces: incoming, back: outgoing.clone() };
                let mut reader = Reader::over(Stream::of_pieces(pieces), &options);
                reader.read(&mut Glance, &mut Reported(outgoing))?;
                let header = reader.header();
                // A version to come has a header, too; far beyond, it is the first byte of something else.
                Ok(!header.raw.is_empty() && header.version < FIRST_VERSION_OF_NOTHING)
            })
            .map_err(|error| Error::io("cannot start a thread", error))?;
        Ok(Self { pieces, back, spare: vec![Vec::new(); PIECES_MAX], thread })
    }

    /// Hands over a copy of a piece.
    pub(super) fn give(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), Error> {
        self.send(bytes, Vec::new(), false, 0, sink)
    }

    /// Says that bytes are missing here.
    pub(super) fn give_gap(&mut self, damage: Vec<Diagnostic>, sink: &mut dyn Sink) -> Result<(), Error> {
        self.send(&[], damage, true, 0, sink)
    }

    /// Says what the container met at its end.
    pub(super) fn give_end(
        &mut self,
        damage: Vec<Diagnostic>,
        file_bytes: u64,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        self.send(&[], damage, false, file_bytes, sink)
    }

    fn send(
        &mut self,
        bytes: &[u8],
        damage: Vec<Diagnostic>,
        is_gap: bool,
        file_bytes: u64,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let Some(mut buffer) = self.buffer(sink)? else { return Ok(()) };
        buffer.clear();
        buffer.extend_from_slice(bytes);
        // A thread that failed says why when it is asked at the end.
        let _ = self.pieces.send(Piece { bytes: buffer, damage, is_gap, file_bytes });
        Ok(())
    }

    /// A buffer that is not in use; `None` where the thread has ended.
    fn buffer(&mut self, sink: &mut dyn Sink) -> Result<Option<Vec<u8>>, Error> {
        loop {
            if let Some(buffer) = self.spare.pop() {
                return Ok(Some(buffer));
            }
            match self.back.recv() {
                Ok(Back::Spare(buffer)) => self.spare.push(buffer),
                Ok(Back::Found(diagnostic)) => sink.report(diagnostic)?,
                Err(_) => return Ok(None),
            }
        }
    }

    /// Waits for the end; true when there was a header.
    pub(super) fn finish(self, sink: &mut dyn Sink) -> Result<bool, Error> {
        let Self { pieces, back, thread, .. } = self;
        drop(pieces);
        for back in back {
            if let Back::Found(diagnostic) = back {
                sink.report(diagnostic)?;
            }
        }
        thread
            .join()
            .unwrap_or_else(|_| Err(Error::io("cannot read the events", std::io::Error::other("a thread ended early"))))
    }
}

/// Diagnostics on their way to the thread that copies.
struct Reported(SyncSender<Back>);

impl Sink for Reported {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        let gone = |_| Error::io("cannot report", std::io::Error::other("copying ended early"));
        self.0.send(Back::Found(diagnostic)).map_err(gone)
    }
}

/// Passes over events.
struct Glance;

impl Visitor for Glance {
    fn takes_plain(&self) -> bool {
        true
    }

    fn keeps_definitions(&self) -> bool {
        false
    }

    fn plain_call(&mut self, _: &Event, _: [&[u8]; 2], _: &mut dyn Sink) -> Result<bool, Error> {
        Ok(true)
    }

    fn plain_event(&mut self, _: &Event, _: &[u8], _: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        Ok(0)
    }
}
