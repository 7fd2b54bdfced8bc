//! Distributes the threads of a trace over threads of this program.

use std::sync::atomic::{AtomicUsize, Ordering};

use anytrace_core::Error;

use crate::wire::moment::Moments;
use crate::wire::record::Orders;

use super::decode::Decoder;
use super::index::{Index, Owner};

/// Most workers.
const WORKERS_MAX: usize = 256;

/// Emits each of these threads of the trace to one of several receivers, largest first.
pub(crate) fn emit<M: Moments + Send>(
    all: &[u8],
    index: &Index,
    mut owners: Vec<&Owner>,
    layout: Orders,
    version: u16,
    workers: usize,
    make: impl Fn() -> M + Sync,
) -> Result<Vec<M>, Error> {
    owners.sort_by_key(|owner| std::cmp::Reverse(owner.bytes));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut moments = make();
        while let Some(owner) = owners.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut decoder = Decoder::new(layout, version, owner);
            for (buffer, piece) in index.pieces(owner) {
                decoder.start(all, buffer, piece);
                decoder.emit(&mut moments)?;
            }
        }
        Ok(moments)
    };
    std::thread::scope(|scope| {
        let workers = workers.min(owners.len()).min(WORKERS_MAX);
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut given = vec![work()];
        for other in others {
            given.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        given.into_iter().collect()
    })
}
