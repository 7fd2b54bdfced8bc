//! Destinations that are slower than the program: memory stays bounded, and the counters show the losses.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{Folder, codes, read, wait_until};
use tracing_heph::{HephLayer, Recorder};
use tracing_subscriber::layer::SubscriberExt;

/// Holds each write up until it is let through.
struct Gate {
    open: Receiver<()>,
    is_open: bool,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Gate {
    fn new() -> (Self, Sender<()>, Arc<Mutex<Vec<u8>>>) {
        let (sender, open) = channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        (Self { open, is_open: false, written: written.clone() }, sender, written)
    }
}

impl Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_open {
            self.is_open = self.open.recv().is_ok();
        }
        self.written.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn events_without_room_are_a_gap_in_the_counters() {
    const EVENTS: u64 = 100_000;
    let (gate, open, written) = Gate::new();
    let (layer, guard) = HephLayer::builder().writer(gate).memory_bytes(1 << 20).build().unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        for n in 0..EVENTS {
            tracing::info!(n, "delayed");
        }
        open.send(()).unwrap();
        assert!(guard.flush());
        tracing::info!("after");
    });
    let stats = guard.close();
    assert_eq!(stats.written + stats.dropped, EVENTS + 1);
    let bytes = written.lock().unwrap();
    let trace = read(&bytes);
    assert_eq!(trace.events.len() as u64, stats.written);
    assert_eq!(trace.missing(), stats.dropped);
    // As much as the memory holds, and some that the writer had taken: not nothing, not everything.
    let kept_bytes = stats.written * 65;
    assert!((500_000..1_500_000).contains(&kept_bytes), "{kept_bytes}");
    assert_eq!(codes(&bytes), ["heph/counter-gap"]);
    let gap = trace.events.windows(2).find(|two| two[1].header.counter != two[0].header.counter + 1).unwrap();
    assert_eq!(u64::from(gap[1].header.counter - gap[0].header.counter), stats.dropped + 1);
    assert_eq!(gap[1].name, "after");
}

#[test]
fn a_slow_destination_gets_complete_packets_with_gaps_between() {
    /// Takes a few bytes at a time, and is interrupted.
    struct Slow(Arc<Mutex<Vec<u8>>>, bool);
    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            std::thread::yield_now();
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let taken = bytes.len().min(977);
            self.0.lock().unwrap().extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let written = Arc::new(Mutex::new(Vec::new()));
    let builder = Recorder::builder().writer(Slow(written.clone(), false)).memory_bytes(128 << 10);
    let (recorder, guard) = builder.close_timeout(Duration::from_secs(60)).build_recorder().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let recorder = &recorder;
            scope.spawn(move || {
                for n in 0..20_000_u64 {
                    recorder.point("p").u64("n", n).u64("thread", thread);
                }
            });
        }
    });
    let stats = guard.close();
    assert_eq!(stats.written + stats.dropped, 60_000);
    let trace = read(&written.lock().unwrap());
    assert_eq!(trace.complaints, Vec::<String>::new());
    assert_eq!(trace.events.len() as u64, stats.written);
    for event in &trace.events {
        assert_eq!(event.get("n"), Some(format!("u64 {}", event.header.counter).as_str()));
    }
}

#[test]
fn a_program_may_wait_for_its_destination() {
    const EVENTS: u64 = 30_000;
    let (gate, open, written) = Gate::new();
    let builder = Recorder::builder().writer(gate).memory_bytes(128 << 10).wait_when_full(Duration::from_secs(60));
    let (recorder, guard) = builder.close_timeout(Duration::from_secs(60)).build_recorder().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                (0..EVENTS).for_each(|n| {
                    recorder.point("p").u64("n", n).str("text", "more");
                })
            });
        }
        open.send(()).unwrap();
    });
    let stats = guard.close();
    assert_eq!((stats.written, stats.dropped), (3 * EVENTS, 0));
    assert_eq!(read(&written.lock().unwrap()).missing(), 0);
}

#[test]
fn many_threads_share_little_memory() {
    const THREADS: u64 = 100;
    let written = Arc::new(Mutex::new(Vec::new()));
    struct Shared(Arc<Mutex<Vec<u8>>>);
    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let builder = Recorder::builder().writer(Shared(written.clone())).memory_bytes(0);
    let (recorder, guard) = builder.wait_when_full(Duration::from_secs(60)).build_recorder().unwrap();
    let all_began = std::sync::Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                recorder.point("first");
                all_began.wait();
                for n in 0..1_000 {
                    recorder.point("p").u64("n", n).str("text", "more");
                }
                all_began.wait();
            });
        }
    });
    let stats = guard.close();
    assert_eq!((stats.written, stats.dropped), (THREADS * 1_001, 0));
    assert_eq!(read(&written.lock().unwrap()).missing(), 0);
}

#[test]
fn a_program_that_waited_in_vain_goes_on() {
    let (gate, open, written) = Gate::new();
    let builder = Recorder::builder().writer(gate).memory_bytes(128 << 10).wait_when_full(Duration::from_millis(100));
    let (recorder, guard) = builder.build_recorder().unwrap();
    let start = Instant::now();
    (0..30_000).for_each(|n| {
        recorder.point("p").u64("n", n);
    });
    // One wait and not one for each of the many that are lost, which would be half an hour.
    assert!(start.elapsed() > Duration::from_millis(100) && start.elapsed() < Duration::from_secs(60));
    open.send(()).unwrap();
    let stats = guard.close();
    assert!(stats.dropped > 10_000);
    assert_eq!(read(&written.lock().unwrap()).events.len() as u64, stats.written);
}

#[test]
fn events_recorded_by_a_destination_itself_are_left_out() {
    struct SelfRecording(Arc<Mutex<Option<Recorder>>>, Arc<Mutex<Vec<u8>>>);
    impl Write for SelfRecording {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(recorder) = &*self.0.lock().unwrap() {
                recorder.point("from the writer");
            }
            self.1.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (own, written) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(Vec::new())));
    let (recorder, guard) =
        Recorder::builder().writer(SelfRecording(own.clone(), written.clone())).build_recorder().unwrap();
    *own.lock().unwrap() = Some(recorder.clone());
    recorder.point("from the program");
    assert!(guard.flush());
    assert!(guard.flush());
    assert_eq!(guard.close().written, 1);
    assert_eq!(read(&written.lock().unwrap()).names(), ["from the program"]);
}

#[test]
fn an_error_of_the_destination_is_reported_and_the_write_repeated() {
    /// Fails a few times, then works.
    struct Full(u32, Arc<Mutex<Vec<u8>>>);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(left) = self.0.checked_sub(1) {
                self.0 = left;
                return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left"));
            }
            self.1.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let written = Arc::new(Mutex::new(Vec::new()));
    let (recorder, guard) = Recorder::builder().writer(Full(3, written.clone())).build_recorder().unwrap();
    recorder.point("kept").u64("n", 1);
    let stats = guard.close();
    assert_eq!((stats.written, stats.last_error.as_deref()), (1, Some("no space left")));
    assert_eq!(read(&written.lock().unwrap()).names(), ["kept"]);
}

#[test]
fn a_guard_does_not_wait_for_ever() {
    let (gate, _open, _) = Gate::new();
    let builder = Recorder::builder().writer(gate).close_timeout(Duration::from_millis(50));
    let (recorder, guard) = builder.build_recorder().unwrap();
    recorder.point("stuck").u64("n", 1);
    let start = Instant::now();
    assert!(!guard.flush());
    let stats = guard.close();
    // The writer hangs in the destination, and yet nothing is left out.
    assert_eq!((stats.recorded, stats.written, stats.dropped, stats.lost), (1, 0, 0, 1));
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[cfg(unix)]
#[test]
fn a_socket_nobody_reads_costs_events_and_not_the_program() {
    let folder = Folder::new();
    let path = folder.folder().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let builder = HephLayer::builder().unix(&path).memory_bytes(256 << 10).close_timeout(Duration::from_millis(200));
    let (layer, guard) = builder.build().unwrap();
    let (mut reader, _) = listener.accept().unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        for n in 0..50_000_u64 {
            tracing::info_span!("unread", n).in_scope(|| ());
        }
        wait_until("the writer counts the loss", || guard.stats().dropped > 0);
    });
    let stats = guard.close();
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    let trace = read(&bytes);
    // What the socket took, the last packet perhaps in part.
    assert!(trace.complaints.iter().all(|complaint| complaint.starts_with("heph/truncated")), "{:?}", trace.complaints);
    assert!(trace.complaints.len() <= 1);
    assert!(trace.events.len() as u64 >= stats.written && !trace.events.is_empty());
    assert!(trace.events.iter().all(|event| event.get("n") == Some(format!("u64 {}", event.header.counter).as_str())));
}

#[test]
fn what_is_in_memory_when_closing_gives_up_is_lost_and_counted() {
    const EVENTS: u64 = 60_000;
    struct FullDisk;
    impl Write for FullDisk {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    // A disk that is full, a reader that does not read, and one that goes away without another coming.
    for mode in ["full", "idle", "gone"] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let builder = match mode {
            "full" => Recorder::builder().writer(FullDisk),
            _ => Recorder::builder().tcp(address),
        };
        let builder = builder.close_timeout(Duration::from_millis(300)).memory_bytes(8 << 20);
        let (recorder, guard) = builder.build_recorder().unwrap();
        let mut reader = None;
        if mode != "full" {
            reader = Some(listener.accept().unwrap().0);
        }
        drop(listener);
        if mode == "gone" {
            recorder.point("first");
            assert!(guard.flush());
            drop(reader.take());
        }
        std::thread::scope(|scope| {
            for thread in 0..3_u64 {
                let recorder = &recorder;
                let text = "x".repeat(200);
                scope.spawn(move || {
                    for n in 0..EVENTS / 3 {
                        recorder.point(&text).u64("n", n).u64("thread", thread);
                    }
                });
            }
        });
        let stats = guard.close();
        let recorded = EVENTS + u64::from(mode == "gone");
        assert_eq!(stats.recorded, recorded, "{mode}: {stats:?}");
        assert_eq!(stats.written + stats.dropped + stats.lost, recorded, "{mode}: {stats:?}");
        assert!(stats.lost > 1000, "{mode}: {stats:?}");
        if mode == "full" {
            assert_eq!(stats.written, 0, "{stats:?}");
        }
        if let Some(mut reader) = reader {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).unwrap();
            // The last packet is cut.
            assert_eq!(read(&bytes).events.len() as u64, stats.written, "{mode}");
        }
    }
}
