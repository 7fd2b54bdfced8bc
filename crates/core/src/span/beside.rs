//! A sink that works on a thread of its own, beside the one that reads the trace.
//!
//! Reading a trace and working on its spans take about the same time, and a trace of one thread offers no other way to
//! use two processors. Edges arrive in the same order and in the same batches, so that results are the same.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};

use super::{EdgeBatch, Location, NameId, SpanSink, SpanSource, Track, TrackId};
use crate::Error;

/// Most messages that wait.
const WAITING_MAX: usize = 4;

/// Batches of a message: a thread that waits is woken less often. Edges of a full batch take 48 KiB, its attributes up to
/// about 300 KiB.
const BATCHES: usize = 8;

/// What a sink receives.
enum Message {
    Source(SpanSource),
    Track(TrackId, Track),
    Name(NameId, Vec<u8>, Option<Location>),
    Edges(Vec<EdgeBatch>),
}

/// Emits spans to a sink that works on another thread; with fewer than two threads on the same one. Returns when both are
/// done.
///
/// # Errors
/// What `emit` returns. Where the sink fails, `emit` gets its error from the sink that it is given; if it is done by
/// then, it is returned as `emit`'s.
pub fn emit_beside<R, E: From<Error>>(
    threads: usize,
    sink: &mut (dyn SpanSink + Send),
    emit: impl FnOnce(&mut dyn SpanSink) -> Result<R, E>,
) -> Result<R, E> {
    if threads < 2 {
        return emit(sink);
    }
    let wants = Wants::of(sink);
    let failure = Mutex::new(None);
    let (messages, waiting) = sync_channel(WAITING_MAX);
    let (done, spare) = channel();
    let emitted = std::thread::scope(|scope| {
        let failure = &failure;
        scope.spawn(move || {
            // Dropping the receiver ends the emitting side.
            if let Err(error) = receive(sink, &waiting, &done) {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
            drop(waiting);
        });
        let mut beside = Beside { messages, spare, empty: Vec::new(), full: Vec::new(), failure, wants };
        let emitted = emit(&mut beside);
        // An error of the sink is returned below.
        let _ = beside.flush();
        emitted
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        // Nobody asked for it before the end.
        Some(error) if emitted.is_ok() => Err(error.into()),
        _ => emitted,
    }
}

fn receive(
    sink: &mut (dyn SpanSink + Send),
    waiting: &Receiver<Message>,
    done: &Sender<Vec<EdgeBatch>>,
) -> Result<(), Error> {
    for message in waiting {
        match message {
            Message::Source(source) => sink.source(&source)?,
            Message::Track(id, track) => sink.track(id, &track)?,
            Message::Name(id, name, location) => sink.name(id, &name, location.as_ref())?,
            Message::Edges(batches) => {
                batches.iter().try_for_each(|batch| sink.edges(batch))?;
                // The emitting side may be done.
                let _ = done.send(batches);
            }
        }
    }
    Ok(())
}

/// What the sink answers, which does not change.
#[derive(Clone, Copy)]
struct Wants {
    attributes: bool,
    arrows: bool,
    counters: bool,
    lives: bool,
    complete: bool,
    identities: bool,
}

impl Wants {
    fn of(sink: &(dyn SpanSink + Send)) -> Self {
        Self {
            attributes: sink.wants_attributes(),
            arrows: sink.wants_arrows(),
            counters: sink.wants_counters(),
            lives: sink.wants_lives(),
            complete: sink.takes_complete(),
            identities: sink.wants_identities(),
        }
    }
}

/// The end of it that a format emits to.
struct Beside<'a> {
    messages: SyncSender<Message>,
    /// Batches that were used, and those not sent yet.
    spare: Receiver<Vec<EdgeBatch>>,
    empty: Vec<EdgeBatch>,
    full: Vec<EdgeBatch>,
    failure: &'a Mutex<Option<Error>>,
    wants: Wants,
}

impl Beside<'_> {
    /// Sends what is announced, behind the edges before it.
    fn send(&mut self, message: Message) -> Result<(), Error> {
        self.flush()?;
        self.put(message)
    }

    /// A batch that was used, or a new one.
    fn empty(&mut self) -> EdgeBatch {
        if self.empty.is_empty() {
            self.empty = self.spare.try_recv().unwrap_or_default();
        }
        self.empty.pop().unwrap_or_default()
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.full.is_empty() {
            return Ok(());
        }
        let full = std::mem::take(&mut self.full);
        self.put(Message::Edges(full))
    }

    fn put(&self, message: Message) -> Result<(), Error> {
        self.messages.send(message).map_err(|_| {
            let error = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
            error.unwrap_or_else(|| Error::io("working on spans", std::io::ErrorKind::BrokenPipe.into()))
        })
    }
}

impl SpanSink for Beside<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.send(Message::Source(*source))
    }

    fn wants_attributes(&self) -> bool {
        self.wants.attributes
    }

    fn wants_arrows(&self) -> bool {
        self.wants.arrows
    }

    fn wants_counters(&self) -> bool {
        self.wants.counters
    }

    fn wants_lives(&self) -> bool {
        self.wants.lives
    }

    fn takes_complete(&self) -> bool {
        self.wants.complete
    }

    fn wants_identities(&self) -> bool {
        self.wants.identities
    }

    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        self.send(Message::Track(id, track.clone()))
    }

    fn name(&mut self, id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        self.send(Message::Name(id, name.to_vec(), location.cloned()))
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        let mut copy = self.empty();
        copy.copy_from(batch);
        self.full.push(copy);
        if self.full.len() >= BATCHES { self.flush() } else { Ok(()) }
    }

    fn take_edges(&mut self, batch: &mut EdgeBatch) -> Result<(), Error> {
        let mut empty = self.empty();
        empty.clear();
        self.full.push(std::mem::replace(batch, empty));
        if self.full.len() >= BATCHES { self.flush() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::{Edge, EdgeFlags, EdgeKind, NO_CPU, TimeUnit, Value};

    /// Writes down what it receives; fails at one of its calls.
    #[derive(Default)]
    struct Log {
        lines: Vec<String>,
        fails_at: Option<usize>,
    }

    impl Log {
        fn add(&mut self, line: String) -> Result<(), Error> {
            if self.fails_at == Some(self.lines.len()) {
                return Err(Error::usage(format!("enough at {line}")));
            }
            self.lines.push(line);
            Ok(())
        }
    }

    impl SpanSink for Log {
        fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
            self.add(format!("{source:?}"))
        }
        fn takes_complete(&self) -> bool {
            true
        }
        fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
            self.add(format!("{id} {track:?}"))
        }
        fn name(&mut self, id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
            self.add(format!("{id} {name:?} {location:?}"))
        }
        fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
            let shown = |(edge, identity)| {
                let attributes: Vec<_> = batch.attributes(edge).collect();
                format!("{edge:?} {identity:?} {attributes:?}")
            };
            self.add(batch.identified().map(shown).collect())
        }
    }

    fn emit(batches: u64, out: &mut dyn SpanSink) -> Result<u64, Error> {
        assert!(out.takes_complete() && out.wants_attributes() && !out.wants_identities());
        let unit = TimeUnit::Nanoseconds;
        out.source(&SpanSource { format: "x", unit, origin: 0, epoch_ns: None, uptime: None })?;
        let mut batch = EdgeBatch::default();
        for n in 0..batches {
            let id = u32::try_from(n).unwrap();
            out.track(id, &Track { thread: n, ..Track::default() })?;
            out.name(id, b"name", Some(&Location { file: "f".to_owned(), line: id }))?;
            batch.clear();
            for time in 0..n % 7 {
                let (kind, flags) = (EdgeKind::Instant, EdgeFlags::NONE);
                let (track, name, seq, attributes) = (id, id, n, (0, 0));
                batch.push(Edge { seq, time, track, name, attributes, cpu: NO_CPU, kind, flags });
                batch.attribute(id, Value::Text(b"text"));
                batch.attribute(id, Value::U64(n));
                if time % 2 == 0 {
                    batch.identify(time, Some(n));
                }
            }
            if n % 3 == 0 {
                out.edges(&batch)?;
            } else {
                out.take_edges(&mut batch)?;
                assert!(batch.is_empty());
            }
        }
        Ok(batches)
    }

    #[test]
    fn a_sink_beside_receives_the_same_in_the_same_order() {
        let (mut here, mut beside) = (Log::default(), Log::default());
        for (threads, log) in [(1, &mut here), (2, &mut beside)] {
            assert_eq!(emit_beside(threads, log, |out| emit(500, out)).unwrap(), 500);
        }
        assert!(here.lines.len() == 1501 && here.lines == beside.lines);
    }

    #[test]
    fn what_fails_on_either_side_is_the_error() {
        // The last call, after which nothing is sent, and some before it.
        for fails_at in [0, 1, 2, 300, 1500] {
            let mut log = Log { fails_at: Some(fails_at), ..Log::default() };
            let error: Error = emit_beside(2, &mut log, |out| emit(500, out)).unwrap_err();
            assert!(error.to_string().contains("enough at"), "{fails_at}: {error}");
            assert_eq!(log.lines.len(), fails_at);
        }
        let mut log = Log::default();
        let own: Result<(), Error> = emit_beside(2, &mut log, |out| {
            emit(5, out)?;
            Err(Error::usage("of the source"))
        });
        assert!(own.unwrap_err().to_string().contains("of the source"));
        assert_eq!(log.lines.len(), 16);
    }
}
