//! Each thread of the trace has one here, as some drivers behave differently then. Calls still come in the trace's order:
//! whoever plays the trace waits for each.
#![allow(unsafe_code, reason = "what is done in another thread borrows from the one that waits for it")]

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use anytrace_apitrace::tools::program::{GlCall, Machine, MemoryChange, Moment, NewContext, Unfit};
use anytrace_core::Error;

use crate::Replayed;
use crate::driver::Driver;

/// Threads besides the first; calls of more are made in the last of them.
const THREADS_MAX: usize = 256;

/// What a thread is to do.
struct Task(*mut (dyn FnMut() + 'static));

// SAFETY: the thread that sends a task does nothing until it is done, so what it borrows has one user at any time.
unsafe impl Send for Task {}

/// A thread that does one task after the other.
struct Worker {
    tasks: SyncSender<Task>,
    done: Receiver<()>,
    thread: JoinHandle<()>,
}

impl Worker {
    fn start(number: u64) -> Result<Self, Error> {
        let (tasks, incoming) = sync_channel::<Task>(0);
        let (finished, done) = sync_channel(0);
        let thread = Builder::new().name(format!("thread {number}")).spawn(move || {
            for Task(task) in incoming {
                // SAFETY: the closure lives until `finished` is received, and nobody else uses it before.
                unsafe { (*task)() };
                if finished.send(()).is_err() {
                    break;
                }
            }
        });
        let thread = thread.map_err(|error| Error::io("cannot start a thread", error))?;
        Ok(Self { tasks, done, thread })
    }

    /// Does something in this thread and waits until it is done.
    fn run(&self, task: &mut dyn FnMut()) -> Result<(), Error> {
        let ended = || Error::io("a thread that replays", std::io::Error::other("it ended early"));
        let task: *mut dyn FnMut() = task;
        // SAFETY: only the lifetime changes; this function does not return before the thread is done with it, or has ended.
        let task = Task(unsafe { std::mem::transmute::<*mut dyn FnMut(), *mut (dyn FnMut() + 'static)>(task) });
        self.tasks.send(task).map_err(|_| ended())?;
        self.done.recv().map_err(|_| ended())
    }
}

/// Plays each thread of the trace in one of its own.
pub(crate) struct Threads<'o> {
    driver: Driver<'o>,
    /// The first thread of the trace is the one that plays it.
    first: Option<u64>,
    workers: HashMap<u64, Worker>,
    /// The thread whose calls come, and that in which the driver did something last.
    now: u64,
    last: u64,
    /// Which context is current in which thread.
    current: HashMap<u64, u32>,
}

impl<'o> Threads<'o> {
    pub(crate) fn new(driver: Driver<'o>) -> Self {
        Self { driver, first: None, workers: HashMap::new(), now: 0, last: 0, current: HashMap::new() }
    }

    /// Does something with the driver in the thread with this number.
    fn run_in<R>(&mut self, number: u64, act: impl FnOnce(&mut Driver<'o>) -> R) -> Result<R, Error> {
        let Self { driver, first, workers, .. } = self;
        if *first.get_or_insert(number) == number {
            return Ok(act(driver));
        }
        if !workers.contains_key(&number) && workers.len() < THREADS_MAX {
            workers.insert(number, Worker::start(number)?);
        }
        let Some(worker) = workers.get(&number) else { return Ok(act(driver)) };
        let (mut act, mut result) = (Some(act), None);
        worker.run(&mut || result = act.take().map(|act| act(driver)))?;
        result.ok_or_else(|| Error::io("a thread that replays", std::io::Error::other("it did nothing")))
    }

    /// Does something in the thread whose calls come. What the driver did last in another is completed there.
    fn run<R>(&mut self, act: impl FnOnce(&mut Driver<'o>) -> R) -> Result<R, Error> {
        if self.last != self.now {
            self.run_in(self.last, Driver::leave)??;
            self.last = self.now;
        }
        self.run_in(self.now, act)
    }

    /// A context is no longer current in another thread.
    fn take_from_others(&mut self, context: u32) -> Result<(), Error> {
        let holds = |(thread, current): &(&u64, &u32)| **current == context && **thread != self.now;
        let Some(thread) = self.current.iter().find(holds).map(|(thread, _)| *thread) else { return Ok(()) };
        let last = self.last;
        self.run_in(last, Driver::leave)??;
        self.run_in(thread, |driver| driver.release())?;
        self.current.remove(&thread);
        Ok(())
    }

    /// Ends the replay; the number of threads that made calls.
    pub(crate) fn finish(mut self, started: Instant) -> Result<Replayed, Error> {
        let last = self.last;
        self.run_in(last, Driver::leave)??;
        let Self { driver, workers, .. } = self;
        let threads = workers.len() + 1;
        for worker in workers.into_values() {
            drop(worker.tasks);
            // One that panicked has said so.
            let _ = worker.thread.join();
        }
        Ok(Replayed { threads, ..driver.finish(started)? })
    }
}

impl Machine for Threads<'_> {
    fn thread(&mut self, number: u64) -> bool {
        if self.first.is_none() {
            (self.first, self.last) = (Some(number), number);
        }
        std::mem::replace(&mut self.now, number) != number
    }

    fn new_context(&mut self, new: &NewContext) -> Result<(), Error> {
        self.run(|driver| driver.new_context(new))?
    }

    fn share_contexts(&mut self, first: u32, second: u32) -> Result<(), Error> {
        self.run(|driver| driver.share_contexts(first, second))?
    }

    fn end_context(&mut self, context: u32) -> Result<(), Error> {
        // A context that is current elsewhere would only end when it no longer is.
        self.take_from_others(context)?;
        self.current.retain(|_, current| *current != context);
        self.run(|driver| driver.end_context(context))?
    }

    fn make_current(&mut self, context: u32, drawable: usize) -> Result<(), Error> {
        // Nothing can be current in two threads.
        self.take_from_others(context)?;
        self.current.insert(self.now, context);
        self.run(|driver| driver.make_current(context, drawable))?
    }

    fn end_frame(&mut self, number: u64) -> Result<(), Error> {
        self.run(|driver| driver.end_frame(number))?
    }

    fn call(&mut self, call: &GlCall<'_>) -> Result<(), Unfit> {
        self.run(|driver| driver.call(call)).map_err(Unfit::Failed)?
    }

    fn is_done(&self) -> bool {
        self.driver.is_done()
    }

    fn asks(&self) -> bool {
        self.driver.asks()
    }

    fn memory(&mut self, number: u64, change: &MemoryChange<'_>) -> Result<(), Unfit> {
        self.run(|driver| driver.memory(number, change)).map_err(Unfit::Failed)?
    }

    fn done(&mut self, moment: &Moment) -> Result<(), Error> {
        self.run(|driver| driver.done(moment))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_does_what_it_is_given_in_its_own_thread_and_ends() {
        let worker = Worker::start(7).unwrap();
        let mut seen = Vec::new();
        for number in 0..3 {
            worker.run(&mut || seen.push((number, std::thread::current().name().map(str::to_owned)))).unwrap();
        }
        assert_eq!(seen, (0..3).map(|number| (number, Some("thread 7".to_owned()))).collect::<Vec<_>>());
        drop(worker.tasks);
        worker.thread.join().unwrap();
    }

    #[test]
    fn a_task_that_panics_is_an_error_of_whoever_waits() {
        let worker = Worker::start(8).unwrap();
        let failed = worker.run(&mut || panic!("in the thread")).unwrap_err();
        assert!(failed.to_string().contains("ended early"), "{failed}");
    }
}
