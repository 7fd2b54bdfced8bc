//! The recordings, and storing spans in them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anytrace_core::hash::Map;
use opentelemetry_proto::tonic::trace::v1::ResourceSpans;
use prost::Message;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::link::{Batch, Carrier};
use super::recording::{Encoded, Recording, earliest};
use crate::request::Serve;

/// How long a request may wait for the collector; after that the sender gets UNAVAILABLE and retries.
const WAIT: Duration = Duration::from_secs(10);

/// Packets that the collector has not stored, in bytes, of all recordings together.
const ROOM_BYTES: usize = 64 << 20;

/// A recording that had no span for that long is closed.
const IDLE: Duration = Duration::from_secs(300);

/// All recordings.
pub(crate) struct Store {
    collector: PathBuf,
    recordings_max: usize,
    packet_bytes: u64,
    room: Arc<Semaphore>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    live: Map<Vec<u8>, Live>,
    /// Carriers of all, also of those that are ending.
    carriers: JoinSet<()>,
}

/// A recording and its way to the collector.
struct Live {
    recording: Arc<Mutex<Recording>>,
    batches: mpsc::UnboundedSender<Batch>,
    stored: watch::Receiver<u64>,
    /// Bytes handed to the carrier.
    sent: u64,
    used: Instant,
    restarts: u32,
}

/// Why spans are not stored; the sender may try again.
#[derive(Debug)]
pub(crate) struct Unavailable(pub(crate) &'static str);

fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    pub(crate) fn new(task: &Serve) -> Self {
        Self {
            collector: task.collector.clone(),
            recordings_max: task.recordings,
            packet_bytes: task.packet_bytes,
            room: Arc::new(Semaphore::new(ROOM_BYTES)),
            known: Mutex::default(),
        }
    }

    /// Stores spans; returns when all are stored. Spans that cannot be kept are counted.
    pub(crate) async fn store(&self, all: Vec<ResourceSpans>) -> Result<Encoded, Unavailable> {
        let mut sum = Encoded::default();
        let mut waits = Vec::new();
        for spans in all {
            if spans.scope_spans.iter().all(|scope| scope.spans.is_empty()) {
                continue;
            }
            // The packets are about as long as the message: three times is enough for ids in text.
            let bytes = (3 * spans.encoded_len()).clamp(1, ROOM_BYTES);
            let room = Arc::clone(&self.room).acquire_many_owned(u32::try_from(bytes).unwrap_or(u32::MAX));
            let room = timeout(WAIT, room).await;
            let Ok(Ok(room)) = room else { return Err(Unavailable("the collector does not keep up")) };
            let (made, until, stored) = self.hand_over(&spans, room);
            sum.refused += made.refused;
            if made.refused > 0 {
                sum.why = made.why;
            }
            waits.push((until, stored));
        }
        let all_stored = async {
            for (until, mut stored) in waits {
                if stored.wait_for(|stored| *stored >= until).await.is_err() {
                    return Err(Unavailable("the collector is ending"));
                }
            }
            Ok(())
        };
        match timeout(WAIT, all_stored).await {
            Ok(result) => result.map(|()| sum),
            Err(_) => Err(Unavailable("the collector has not stored this yet")),
        }
    }

    /// Hands the spans of a resource to the carrier of its recording.
    fn hand_over(
        &self,
        spans: &ResourceSpans,
        room: tokio::sync::OwnedSemaphorePermit,
    ) -> (Encoded, u64, watch::Receiver<u64>) {
        let mut known = unpoisoned(&self.known);
        let live = self.live(&mut known, spans);
        let mut made = unpoisoned(&live.recording).encode(&spans.scope_spans);
        let packets = std::mem::take(&mut made.packets);
        live.sent += packets.len() as u64;
        live.used = Instant::now();
        // The carrier ends after the recording.
        let _ = live.batches.send(Batch { packets, _room: Some(room) });
        (made, live.sent, live.stored.clone())
    }

    /// The recording of a resource, a new one if there is none that has room for the times of these spans.
    fn live<'k>(&self, known: &'k mut Known, spans: &ResourceSpans) -> &'k mut Live {
        let key = key(spans);
        let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let earliest_ns = earliest(spans).unwrap_or(now_ns);
        let mut restarts = 0;
        if let Some(live) = known.live.get(&key)
            && !unpoisoned(&live.recording).covers(earliest_ns)
        {
            restarts = live.restarts + 1;
            known.end(&key);
        }
        if !known.live.contains_key(&key) && known.live.len() >= self.recordings_max {
            known.end_least_used();
        }
        known.end_idle();
        let Known { live, carriers } = known;
        live.entry(key).or_insert_with(|| {
            let recording = Recording::new(spans, now_ns, earliest_ns, restarts, self.packet_bytes);
            let recording = Arc::new(Mutex::new(recording));
            let (batches, of_carrier) = mpsc::unbounded_channel();
            let (stored, of_live) = watch::channel(0);
            let begun = Arc::clone(&recording);
            let carrier = Carrier {
                collector: self.collector.clone(),
                begin: Arc::new(move |part| unpoisoned(&begun).begin(part)),
                batches: of_carrier,
                stored,
            };
            while carriers.try_join_next().is_some() {}
            carriers.spawn(carrier.run());
            Live { recording, batches, stored: of_live, sent: 0, used: Instant::now(), restarts }
        })
    }

    /// Ends all recordings and waits until the collector has that.
    pub(crate) async fn close(&self) {
        let mut carriers = {
            let mut known = unpoisoned(&self.known);
            let keys: Vec<Vec<u8>> = known.live.keys().cloned().collect();
            keys.iter().for_each(|key| known.end(key));
            std::mem::take(&mut known.carriers)
        };
        while carriers.join_next().await.is_some() {}
    }
}

impl Known {
    /// Ends a recording: its last account is sent, and its carrier ends after that.
    fn end(&mut self, key: &[u8]) {
        if let Some(live) = self.live.remove(key) {
            let packets = unpoisoned(&live.recording).end();
            let _ = live.batches.send(Batch { packets, _room: None });
        }
    }

    fn end_least_used(&mut self) {
        let least = self.live.iter().min_by_key(|(_, live)| live.used).map(|(key, _)| key.clone());
        if let Some(key) = least {
            self.end(&key);
        }
    }

    fn end_idle(&mut self) {
        let idle: Vec<_> =
            self.live.iter().filter(|(_, live)| live.used.elapsed() >= IDLE).map(|(key, _)| key.clone()).collect();
        idle.iter().for_each(|key| self.end(key));
    }
}

/// What distinguishes resources: their attributes, in whatever order.
fn key(spans: &ResourceSpans) -> Vec<u8> {
    let mut attributes = spans
        .resource
        .as_ref()
        .map_or_else(Vec::new, |resource| resource.attributes.iter().map(Message::encode_to_vec).collect::<Vec<_>>());
    attributes.sort_unstable();
    attributes.push(spans.schema_url.clone().into_bytes());
    // Lengths keep apart what would be the same joined.
    attributes.iter().flat_map(|one| (one.len() as u64).to_le_bytes().into_iter().chain(one.iter().copied())).collect()
}
