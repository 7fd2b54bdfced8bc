//! An address that is listened on, with what was refused there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::datagram::{Receiver, Shared};
use crate::listen::Bound;
use crate::report::ListenerReport;

/// An address and what belongs to it.
pub(crate) struct Listener {
    pub(crate) bound: Bound,
    pub(crate) receiver: Option<Receiver>,
    pub(crate) rejected: u64,
    pub(crate) refused: u64,
    pub(crate) unauthorized: u64,
    pub(crate) rests_until: Option<Instant>,
}

impl Listener {
    pub(crate) fn report(&self) -> ListenerReport {
        let number = |of: fn(&Shared) -> &AtomicU64| {
            self.receiver.as_ref().map_or(0, |receiver| of(&receiver.shared).load(Ordering::Relaxed))
        };
        ListenerReport {
            address: self.bound.endpoint.to_string(),
            receive_buffer_bytes: self.receiver.as_ref().map(|receiver| receiver.granted_bytes),
            kernel_dropped: number(|shared| &shared.kernel_dropped),
            rejected: self.rejected,
            cut: number(|shared| &shared.cut),
            refused: self.refused,
            unauthorized: self.unauthorized,
        }
    }
}
