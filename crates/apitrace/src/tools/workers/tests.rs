//! Runs everything that may wait for something else under a watchdog: a run that does not end fails its test.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::Duration;

use super::*;
use crate::wire::record::Space;

/// Longer than any run takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Every buffer and queue that can be full is always full.
const NARROW: Sizes =
    Sizes { batch_bytes: 64, batch_calls: 1, batches_each: 1, queue_each: 1, large_bytes: 1 << 20, text_bytes: 32 };

/// A few calls per batch, and batches that are processed alone.
const SMALL: Sizes =
    Sizes { batch_bytes: 48, batch_calls: 3, batches_each: 2, queue_each: 1, large_bytes: 64, text_bytes: 256 };

/// Fails where `act` does not end.
fn watched<T: Send + 'static>(what: &str, act: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ended) = channel();
    let thread = thread::spawn(move || done.send(act()));
    match ended.recv_timeout(PATIENCE) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("{what}: still not over"),
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(_) => panic!("{what}: ended without a result"),
        },
    }
}

#[derive(Clone, Copy)]
enum Step {
    /// A function is seen for the first time.
    Define(u32),
    /// A call of a function, whose text has this many separately flushed pieces.
    Call(u32, u8),
}

/// Calls of functions that are first defined throughout the trace, most often right after a call with a long text.
fn steps(count: u32) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut known = 0;
    for n in 0..count {
        let is_new = n % 3 == 0 || n % 50 > 40;
        if is_new {
            steps.push(Step::Define(known));
            known += 1;
        }
        let function = if is_new { known - 1 } else { n.wrapping_mul(7919) % known };
        steps.push(Step::Call(function, if n % 5 == 4 { 40 } else { (n % 3) as u8 }));
    }
    steps
}

/// Writes a call's number and its function's name, over and over.
struct Repeats {
    /// Panics at this call.
    breaks_at: Option<u64>,
}

impl Formatter for Repeats {
    fn call(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        flush: Flush<'_>,
    ) -> Result<(), Error> {
        assert_ne!(self.breaks_at, Some(call.number), "as asked for");
        let name = dictionary.function(call.function).map_or(&b"unknown"[..], |named| named.name());
        for piece in 0..=call.enter.first().copied().unwrap_or(0) {
            write!(out, "{} {piece} ", call.number)?;
            out.extend_from_slice(name);
            out.push(b'\n');
            if piece > 2 {
                flush(out)?;
            }
        }
        Ok(())
    }
}

/// Feeds steps, like the reader of a trace.
fn feed(mut printer: &mut WorkerPool<'_, Repeats>, steps: &[Step]) -> Result<(), Error> {
    printer.begin(6, b"begin\n".to_vec())?;
    let mut number = 0;
    for step in steps {
        match *step {
            Step::Define(slot) => {
                let name = format!("function{slot}");
                let bytes = [&[name.len() as u8], name.as_bytes(), &[0]].concat();
                let (space, id) = (Space::Function, u64::from(slot));
                printer.define(&Definition { space, id, slot, bytes: &bytes });
            }
            Step::Call(function, pieces) => {
                let enter = [&[pieces][..], &[0; 15]].concat();
                printer.print(&Call { number, function, enter: &enter, ..Call::NONE })?;
                number += 1;
            }
        }
    }
    Ok(())
}

/// What one thread would write.
fn expected(steps: &[Step]) -> Vec<u8> {
    let mut text = b"begin\n".to_vec();
    let calls = steps.iter().filter_map(|step| match step {
        Step::Call(function, pieces) => Some((function, *pieces)),
        Step::Define(_) => None,
    });
    for (number, (function, pieces)) in calls.enumerate() {
        for piece in 0..=pieces {
            writeln!(text, "{number} {piece} function{function}").unwrap();
        }
    }
    text
}

/// Sends each piece to a reader that does something else first.
struct Slow(SyncSender<Vec<u8>>);

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes.to_vec()).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes texts slowly, and stops after this many.
fn slow_reader(texts_max: usize) -> (Slow, thread::JoinHandle<Vec<u8>>) {
    let (sender, receiver) = sync_channel::<Vec<u8>>(0);
    let reader = thread::spawn(move || {
        let mut all = Vec::new();
        for text in receiver.iter().take(texts_max) {
            (0..20).for_each(|_| thread::yield_now());
            all.extend(text);
        }
        all
    });
    (Slow(sender), reader)
}

#[test]
fn long_texts_and_late_definitions_never_stop_the_reader() {
    for (name, sizes) in [("narrow", NARROW), ("small", SMALL), ("usual", SIZES)] {
        for workers in 1..=8 {
            let what = format!("{name}, {workers} workers");
            watched(&what.clone(), move || {
                for count in [1, 7, 60, 400] {
                    let steps = steps(count);
                    let mut out = Vec::new();
                    let make = || Repeats { breaks_at: None };
                    WorkerPool::run_with(sizes, workers, make, &mut out, |pool| feed(pool, &steps)).unwrap();
                    assert!(out == expected(&steps), "{what}: other text of {count} calls");
                }
            });
        }
    }
}

#[test]
fn a_slow_reader_of_the_text_gets_all_of_it() {
    for workers in [1, 2, 5, 8] {
        let text = watched("slow reader", move || {
            let (mut slow, reader) = slow_reader(usize::MAX);
            let make = || Repeats { breaks_at: None };
            WorkerPool::run_with(NARROW, workers, make, &mut slow, |pool| feed(pool, &steps(60))).unwrap();
            drop(slow);
            reader.join().unwrap()
        });
        assert!(text == expected(&steps(60)), "{workers} workers");
    }
}

#[test]
fn workers_end_when_the_reader_stops() {
    for workers in [1, 2, 5, 8] {
        for texts in [0, 1, 2, 40] {
            let result = watched("closed pipe", move || {
                let (mut slow, _reader) = slow_reader(texts);
                let make = || Repeats { breaks_at: None };
                WorkerPool::run_with(NARROW, workers, make, &mut slow, |pool| feed(pool, &steps(400)))
            });
            assert!(result.is_err(), "{workers} workers, {texts} texts");
        }
    }
}

#[test]
fn an_error_of_the_trace_ends_the_workers() {
    for workers in [1, 2, 8] {
        let error = watched("early error", move || {
            let make = || Repeats { breaks_at: None };
            WorkerPool::run_with(NARROW, workers, make, &mut io::sink(), |pool| {
                feed(pool, &steps(100))?;
                Err::<(), _>(Error::limit("as asked for"))
            })
        });
        assert!(error.unwrap_err().to_string().contains("as asked for"));
    }
}

#[test]
fn a_worker_that_panics_ends_the_run() {
    for workers in [1, 2, 8] {
        for breaks_at in [0, 1, 50, 399] {
            let ended = watched("panic", move || {
                let make = || Repeats { breaks_at: Some(breaks_at) };
                let run =
                    || WorkerPool::run_with(NARROW, workers, make, &mut io::sink(), |pool| feed(pool, &steps(400)));
                !matches!(catch_unwind(AssertUnwindSafe(run)), Ok(Ok(())))
            });
            assert!(ended, "{workers} workers, call {breaks_at}");
        }
    }
}
