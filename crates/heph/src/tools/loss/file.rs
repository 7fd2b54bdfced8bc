//! Counters of a trace file: one source.

use anytrace_core::{Diagnostic, Error, Input, OpenOptions, Place, Sink};

use super::{Accounts, LossOptions, SourceLoss};
use crate::wire::fault::Damage;
use crate::wire::reader::{Reader, Visitor};
use crate::wire::record::Record;

/// Reads a trace and returns the counts of its counters. Damage is reported to the sink, and counters of damaged
/// packets count if they are readable.
///
/// # Errors
/// I/O errors, and whatever the sink returns.
pub fn read_file(
    name: &str,
    input: Input,
    open: &OpenOptions,
    options: &LossOptions,
    sink: &mut dyn Sink,
) -> Result<SourceLoss, Error> {
    let source = SourceLoss { name: name.to_owned(), ..SourceLoss::default() };
    let mut counting = Counting { accounts: Accounts::new(*options), source, sink };
    Reader::new(input, open)?.read(&mut counting)?;
    let Counting { accounts, mut source, .. } = counting;
    source.close(&accounts);
    Ok(source)
}

pub(super) struct Counting<'s> {
    pub(super) accounts: Accounts,
    pub(super) source: SourceLoss,
    pub(super) sink: &'s mut dyn Sink,
}

impl Visitor for Counting<'_> {
    // As a call of its own it would cost a twentieth of the verb's time: the record would have to go through memory.
    #[inline(always)]
    fn packet(&mut self, _: Place, bytes: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        match packet {
            Record::Event(event) => {
                self.accounts.event(event.header.stream, event.header.counter, bytes, 0);
            }
            Record::Metadata(metadata) => {
                self.source.metadata += 1;
                if let Some(epoch_ns) = metadata.epoch_ns() {
                    self.source.epoch(epoch_ns);
                }
            }
        }
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        self.source.damaged_places += 1;
        match damage.header {
            // The bytes are not available; the place distinguishes damaged packets with equal counters.
            Some(header) => {
                self.accounts.damaged(header.stream, header.counter, &damage.offset.to_le_bytes(), 0);
            }
            None => self.source.skipped_bytes += damage.skipped,
        }
        self.sink.report(damage.to_diagnostic())
    }
}
