//! A thread that reads a table and hands out batches through a channel of a few.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use anytrace_core::table::{Batch, Table};
use anytrace_core::{Error, tables};
use anytrace_export::Findings;

use crate::failure::{Damage, Failure};
use crate::gather::Gather;
use crate::keep::Conditions;
use crate::opening::Opening;
use crate::work;

/// Batches that wait for the reader; the thread stops while there are so many.
const WAITING_MAX: usize = 4;

/// Diagnostics kept of one reading: more than are ever shown.
const KEPT_MAX: u64 = 100;

/// How a reading ended.
pub(crate) struct Ended {
    /// Damage on the way.
    pub(crate) damage: Damage,
    /// What ended it early.
    pub(crate) failure: Option<Failure>,
}

enum Message<T> {
    Batch(T),
    End(Box<Ended>),
}

/// What a reader finds when it looks.
pub(crate) enum Found<T> {
    /// The next batch.
    Batch(T),
    /// Nothing yet.
    Nothing,
    /// No more will come.
    End(Box<Ended>),
}

/// The reader's end. The thread ends when this is dropped, at the latest with its next batch.
pub(crate) struct Producer<T> {
    receiver: Receiver<Message<T>>,
}

impl<T: Send + 'static> Producer<T> {
    /// Starts a thread that reads a table; `make` turns its batches into what is handed out.
    pub(crate) fn start(
        opening: Opening,
        table: Table,
        conditions: Conditions,
        threads: usize,
        make: impl FnMut(Batch) -> Result<T, Error> + Send + 'static,
    ) -> Result<Self, Failure> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        work::spawn(move || read(&opening, &table, &conditions, threads, make, &sender))?;
        Ok(Self { receiver })
    }

    /// The next batch, or how it ended; nothing where neither came in time.
    pub(crate) fn wait(&self, time: Duration) -> Found<T> {
        match self.receiver.recv_timeout(time) {
            Ok(Message::Batch(batch)) => Found::Batch(batch),
            Ok(Message::End(ended)) => Found::End(ended),
            Err(RecvTimeoutError::Timeout) => Found::Nothing,
            Err(RecvTimeoutError::Disconnected) => {
                let damage = Damage::of(&Findings::new(1), "record");
                Found::End(Box::new(Ended { damage, failure: Some(Failure::Bare(work::died())) }))
            }
        }
    }
}

fn read<T>(
    opening: &Opening,
    table: &Table,
    conditions: &Conditions,
    threads: usize,
    mut make: impl FnMut(Batch) -> Result<T, Error>,
    sender: &SyncSender<Message<T>>,
) {
    let mut findings = Findings::new(KEPT_MAX);
    let mut gather = Gather::default();
    let mut send = |batch: Batch| {
        // The reader may have gone away, which ends the reading and interests nobody.
        sender.send(Message::Batch(make(batch)?)).map_err(|_| Error::usage("no more rows are wanted"))
    };
    let mut take = |batch: Batch| -> Result<(), Error> {
        let batch = conditions.apply(batch);
        if batch.rows == 0 {
            return Ok(());
        }
        gather.add(batch).into_iter().flatten().try_for_each(&mut send)
    };
    let mut read = || -> Result<(), Error> {
        let Some((format, trace)) = opening.format.zip(opening.trace(threads, &mut findings)?) else { return Ok(()) };
        let options = opening.span_options();
        tables::read(format, trace, table.name, &conditions.scan, &options, &mut take, &mut findings).map(drop)
    };
    let done = read().and_then(|()| gather.finish().map_or(Ok(()), send));
    let failure = opening.checked(done).err();
    let damage = Damage::of(&findings, opening.noun());
    let _ = sender.send(Message::End(Box::new(Ended { damage, failure })));
}
