//! Counters of a trace file: one source.

use anytrace_core::{Diagnostic, Error, Input, OpenOptions, Place, Sink};

use super::{Accounts, LossOptions, SessionKey, Sessions, SourceLoss};
use crate::wire::fault::Damage;
use crate::wire::reader::{Reader, Visitor};
use crate::wire::record::{Metadata, Record};

/// Reads a trace and returns the counts of its counters; events of a session are also counted there. Damage is reported
/// to the sink, and counters of damaged packets count if they are readable.
///
/// # Errors
/// I/O errors, and whatever the sink returns.
pub fn read_file(
    name: &str,
    input: Input,
    open: &OpenOptions,
    sessions: &mut Sessions,
    sink: &mut dyn Sink,
) -> Result<SourceLoss, Error> {
    let books = Books::new(name, *sessions.options());
    let mut counting = Counting { books, sessions, sink };
    Reader::new(input, open)?.read(&mut counting)?;
    Ok(counting.books.close())
}

/// A source and its counters.
pub(super) struct Books {
    pub(super) accounts: Accounts,
    pub(super) source: SourceLoss,
    session: Option<SessionKey>,
}

impl Books {
    pub(super) fn new(name: &str, options: LossOptions) -> Self {
        let source = SourceLoss { name: name.to_owned(), ..SourceLoss::default() };
        Self { accounts: Accounts::new(options), source, session: None }
    }

    pub(super) fn close(self) -> SourceLoss {
        let Self { accounts, mut source, .. } = self;
        source.close(&accounts);
        source
    }

    #[inline(always)]
    pub(super) fn packet(&mut self, bytes: &[u8], packet: &Record<'_>, sessions: &mut Sessions) {
        match packet {
            Record::Event(event) => {
                self.accounts.event(&event.header, bytes, 0);
                if let Some(session) = self.session {
                    sessions.event(session, &event.header, false);
                }
            }
            Record::Metadata(metadata) => self.metadata(metadata, sessions),
        }
    }

    #[cold]
    fn metadata(&mut self, metadata: &Metadata<'_>, sessions: &mut Sessions) {
        self.source.metadata += 1;
        if let Some(epoch_ns) = metadata.epoch_ns() {
            self.source.epoch(epoch_ns);
        } else if let Some(session) = metadata.session() {
            let Some(key) = sessions.begin(&session) else { return };
            // Datagrams may arrive in another order: what came before belongs to the session too.
            if self.session.is_none() {
                self.accounts.parts().for_each(|(stream, part)| sessions.adopt(key, stream, &part));
            }
            self.session = Some(key);
            self.source.session(session.id);
        } else if let Some(account) = metadata.account() {
            sessions.account(&account);
        }
    }

    /// Counts a damaged place. `bytes` are those of the packet, or others that distinguish it.
    pub(super) fn damage(&mut self, damage: &Damage, bytes: &[u8], sessions: &mut Sessions) {
        self.source.damaged_places += 1;
        let Some(header) = damage.header else {
            self.source.skipped_bytes += damage.skipped;
            return;
        };
        self.accounts.damaged(&header, bytes, 0);
        if let Some(session) = self.session {
            sessions.event(session, &header, true);
        }
    }
}

pub(super) struct Counting<'s> {
    pub(super) books: Books,
    pub(super) sessions: &'s mut Sessions,
    pub(super) sink: &'s mut dyn Sink,
}

impl Visitor for Counting<'_> {
    // As a call of its own it would cost a twentieth of the verb's time: the record would have to go through memory.
    #[inline(always)]
    fn packet(&mut self, _: Place, bytes: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        self.books.packet(bytes, packet, self.sessions);
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        // The bytes are not available; the place distinguishes damaged packets with equal counters.
        self.books.damage(damage, &damage.offset.to_le_bytes(), self.sessions);
        self.sink.report(damage.to_diagnostic())
    }
}
