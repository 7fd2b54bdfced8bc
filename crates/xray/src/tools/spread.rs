//! Work on many things of different sizes, on several threads.

use std::sync::{Mutex, PoisonError};

/// Processes all items on up to `workers` threads, those behind first; results come in no order.
pub(super) fn spread<T: Send, R: Send>(items: Vec<T>, workers: usize, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let workers = workers.clamp(1, items.len().max(1));
    let items = Mutex::new(items);
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let each = || std::iter::from_fn(next).map(&work).collect::<Vec<_>>();
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(each)).collect();
        let mut all = each();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    })
}
