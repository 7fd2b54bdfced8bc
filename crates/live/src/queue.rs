//! Datagrams between the threads that receive and the thread that sorts: bounded, the newest dropped when full.

use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anytrace_core::hash::Map;

/// Most senders whose drops are counted separately.
const SENDERS_MAX: usize = 1024;

/// Who sent a datagram.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Sender {
    /// An address of the network.
    Net(SocketAddr),
    /// A process of this machine.
    Process(i32),
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net(address) => write!(f, "{address}"),
            Self::Process(process) => write!(f, "process {process}"),
        }
    }
}

/// Datagrams that arrived together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    /// The sender of each, and where it ends in `bytes`.
    pub(crate) items: Vec<(Sender, usize)>,
}

/// What was dropped because the queue was full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) datagrams: u64,
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

#[derive(Default)]
struct QueueState {
    batches: Vec<(usize, Batch)>,
    bytes: usize,
    dropped: Map<(usize, Sender), Dropped>,
    dropped_of_others: Dropped,
}

/// The queue.
#[derive(Clone)]
pub(crate) struct Queue {
    state: Arc<Mutex<QueueState>>,
    bytes_max: usize,
    bell: Arc<UnixStream>,
}

/// What one look at the queue takes out of it.
#[derive(Default)]
pub(crate) struct Taken {
    /// Batches and the listener each came by.
    pub(crate) batches: Vec<(usize, Batch)>,
    pub(crate) dropped: Vec<((usize, Sender), Dropped)>,
    pub(crate) dropped_of_others: Dropped,
}

impl Queue {
    /// A queue of at most this many bytes; `bell` is written to when it is no longer empty.
    pub(crate) fn new(bytes_max: usize, bell: UnixStream) -> Self {
        Self { state: Arc::default(), bytes_max, bell: Arc::new(bell) }
    }

    /// Adds a batch, or counts it as dropped.
    pub(crate) fn push(&self, listener: usize, batch: Batch) {
        if batch.items.is_empty() {
            return;
        }
        let mut state = self.lock();
        // Capacities, not lengths: the bound is on memory.
        let size = size_of_batch(&batch);
        if state.bytes + size > self.bytes_max {
            state.drop_all(listener, &batch);
            return;
        }
        let was_empty = state.batches.is_empty();
        state.bytes += size;
        state.batches.push((listener, batch));
        // Unlocked before the bell rings, so that the thread it wakes need not wait.
        drop(state);
        if was_empty {
            // A full bell rings already.
            let _ = (&*self.bell).write(&[1]);
        }
    }

    /// Takes the entire contents.
    pub(crate) fn take(&self) -> Taken {
        let mut state = self.lock();
        state.bytes = 0;
        let mut dropped: Vec<_> = state.dropped.drain().collect();
        // Reports must not depend on the order of the map.
        dropped.sort_by(|a, b| a.0.cmp(&b.0));
        Taken {
            batches: std::mem::take(&mut state.batches),
            dropped,
            dropped_of_others: std::mem::take(&mut state.dropped_of_others),
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // Each change of the state is complete before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    #[cold]
    fn drop_all(&mut self, listener: usize, batch: &Batch) {
        let mut start = 0;
        for (sender, end) in &batch.items {
            let datagram = batch.bytes.get(start..*end).unwrap_or_default();
            start = *end;
            let key = (listener, sender.clone());
            let is_full = self.dropped.len() >= SENDERS_MAX && !self.dropped.contains_key(&key);
            let dropped = if is_full { &mut self.dropped_of_others } else { self.dropped.entry(key).or_default() };
            dropped.datagrams += 1;
            dropped.events += count_events(datagram);
            dropped.bytes += datagram.len() as u64;
        }
    }
}

fn size_of_batch(batch: &Batch) -> usize {
    batch.bytes.capacity() + batch.items.capacity() * size_of::<(Sender, usize)>()
}

/// Events of a datagram by their frames, without a look inside.
pub(crate) fn count_events(datagram: &[u8]) -> u64 {
    let (mut rest, mut events) = (datagram, 0);
    while let Some(head) = rest.first_chunk::<8>() {
        let [m0, m1, m2, m3, s0, s1, s2, s3] = *head;
        let size = u32::from_be_bytes([s0, s1, s2, s3]) as usize;
        let is_event = u32::from_be_bytes([m0, m1, m2, m3]) == anytrace_heph::EVENT_MAGIC;
        match rest.get(size..) {
            // A smaller size would not move on: the datagram is damaged and its rest is not counted.
            Some(after) if size >= 8 => rest = after,
            _ => break,
        }
        events += u64::from(is_event);
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn batch(sender: i32, bytes: &[u8]) -> Batch {
        Batch { bytes: bytes.to_vec(), items: vec![(Sender::Process(sender), bytes.len())] }
    }

    #[test]
    fn a_full_queue_drops_the_newest_and_says_whose() {
        let (mut ear, bell) = UnixStream::pair().unwrap();
        let queue = Queue::new(4096, bell);
        let event = [&0xC1FC_1FB7_u32.to_be_bytes()[..], &42_u32.to_be_bytes(), &[0; 34]].concat();
        queue.push(0, batch(1, &event));
        let two = [&event[..], &event].concat();
        queue.push(0, batch(2, &[two.clone(), vec![0; 5000]].concat()));
        queue.push(1, batch(1, &event));
        let taken = queue.take();
        assert_eq!(taken.batches.len(), 2);
        let expected = Dropped { datagrams: 1, events: 2, bytes: 5084 };
        assert_eq!(taken.dropped, [((0, Sender::Process(2)), expected)]);
        assert!(queue.take().dropped.is_empty());
        ear.set_nonblocking(true).unwrap();
        assert_eq!(ear.read(&mut [0; 9]).unwrap(), 1);
        assert_eq!(count_events(&two), 2);
        assert_eq!(count_events(&[0; 7]), 0);
        assert_eq!(count_events(&[0; 70]), 0);
    }

    #[test]
    fn every_datagram_is_taken_or_counted_for_its_sender() {
        let (_ear, bell) = UnixStream::pair().unwrap();
        let queue = Queue::new(40_000, bell);
        let event = [&0xC1FC_1FB7_u32.to_be_bytes()[..], &42_u32.to_be_bytes(), &[0; 34]].concat();
        let mut random = 7_u64;
        let mut below = |end: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 11) % end
        };
        let (mut waiting, mut sizes) = (Vec::new(), 0);
        let mut dropped: std::collections::BTreeMap<(usize, Sender), Dropped> = std::collections::BTreeMap::new();
        let mut others = Dropped::default();
        let mut seen = (0, 0, 0);
        for _ in 0..4000 {
            let listener = below(2) as usize;
            let mut made = Batch::default();
            for _ in 0..below(6) {
                let events = below(4);
                (0..events).for_each(|_| made.bytes.extend_from_slice(&event));
                made.bytes.extend(vec![0; below(900) as usize]);
                made.items.push((Sender::Process(below(900) as i32), made.bytes.len()));
            }
            let size = made.bytes.capacity() + made.items.capacity() * size_of::<(Sender, usize)>();
            if sizes + size <= 40_000 {
                if !made.items.is_empty() {
                    sizes += size;
                    waiting.push((listener, made.bytes.clone(), made.items.clone()));
                }
            } else {
                let mut start = 0;
                for (sender, end) in &made.items {
                    let key = (listener, sender.clone());
                    let of = if dropped.len() < SENDERS_MAX || dropped.contains_key(&key) {
                        dropped.entry(key).or_default()
                    } else {
                        &mut others
                    };
                    let bytes = &made.bytes[start..*end];
                    let events = bytes.windows(event.len()).filter(|part| *part == event).count() as u64;
                    *of = Dropped {
                        datagrams: of.datagrams + 1,
                        events: of.events + events,
                        bytes: of.bytes + bytes.len() as u64,
                    };
                    start = *end;
                }
            }
            queue.push(listener, made);
            if below(if dropped.len() < SENDERS_MAX { 900 } else { 300 }) == 0 {
                let taken = queue.take();
                let found: Vec<_> =
                    taken.batches.into_iter().map(|(listener, batch)| (listener, batch.bytes, batch.items)).collect();
                assert_eq!(found, std::mem::take(&mut waiting));
                assert!(taken.dropped.iter().cloned().eq(std::mem::take(&mut dropped)));
                assert_eq!(taken.dropped_of_others, std::mem::take(&mut others));
                sizes = 0;
                let more = u64::from(taken.dropped_of_others.datagrams > 0);
                seen = (seen.0 + found.len(), seen.1 + taken.dropped.len(), seen.2 + more);
            }
        }
        assert!(seen.0 > 20 && seen.1 > 500 && seen.2 > 0, "{seen:?}");
    }
}
