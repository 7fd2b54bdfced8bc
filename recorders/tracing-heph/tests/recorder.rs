//! The API for programs without `tracing`.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::io::{self, Write};

use common::{Folder, read_sound};
use tracing_heph::{HephLayer, Recorder};
use tracing_subscriber::layer::SubscriberExt;

#[test]
fn spans_points_and_given_times_carry_every_type() {
    let folder = Folder::new();
    let (recorder, guard) = Recorder::builder().file(folder.path()).build_recorder().unwrap();
    let before = recorder.now();
    {
        let mut outer = recorder.span("outer");
        outer
            .u64("u", u64::MAX)
            .i64("i", -1)
            .f64("f", 0.5)
            .bool("b", true)
            .str("s", "text")
            .display("d", 1_u128 << 100);
        outer.u64s("us", &[1, 2]).i64s("is", &[-1]).f64s("fs", &[]).strs("ss", &["a", "b"]);
        recorder.point("point").u64("n", 1);
        recorder.span("wrong").u64("gone", 1).rename(format_args!("right {}", 1)).u64("kept", 2);
    }
    recorder.between("given", before, recorder.now()).substream(77).u64("n", 2);
    recorder.between("turned round", recorder.now(), before);
    drop(guard);
    let trace = read_sound(&folder.path());
    assert_eq!(trace.names(), ["point", "right 1", "outer", "given", "turned round"]);
    let values: Vec<&str> = trace.events[2].attributes.iter().map(|(_, value)| value.as_str()).collect();
    let wide = format!("str {}", 1_u128 << 100);
    assert_eq!(
        values,
        [
            "u64 18446744073709551615",
            "i64 -1",
            "f64 0.5",
            "u64 1",
            "str text",
            &wide,
            "[u64 1, u64 2]",
            "[i64 -1]",
            "[]",
            "[str a, str b]"
        ]
    );
    assert_eq!(trace.events[1].attributes, [("kept".to_owned(), "u64 2".to_owned())]);
    let header = |at: usize| trace.events[at].header;
    assert_eq!(header(0).start_ns, header(0).end_ns);
    assert!(header(2).start_ns <= header(0).start_ns && header(1).end_ns <= header(2).end_ns);
    assert!(header(3).start_ns <= header(2).start_ns && header(3).end_ns >= header(2).end_ns);
    assert_eq!((header(3).substream, header(2).substream), (77, 0));
    assert!(header(4).end_ns >= header(4).start_ns);
}

#[test]
fn it_shares_a_trace_with_the_layer() {
    let folder = Folder::new();
    let (layer, guard) = HephLayer::builder().file(folder.path()).build().unwrap();
    let recorder = layer.recorder().clone();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let _outer = tracing::info_span!("by tracing").entered();
        let substream = recorder.new_substream();
        recorder.span("by hand").substream(substream);
    });
    drop(guard);
    let trace = read_sound(&folder.path());
    assert_eq!(trace.names(), ["by hand", "by tracing"]);
    let [inner, outer] = [0, 1].map(|at| trace.events[at].header);
    assert_eq!((inner.stream, inner.counter, outer.counter), (outer.stream, 0, 1));
    assert!(outer.start_ns <= inner.start_ns && inner.end_ns <= outer.end_ns);
    assert!(inner.substream != outer.substream && inner.substream != 0);
}

#[test]
fn a_writer_that_panics_takes_nothing_with_it() {
    struct Panics;
    impl Write for Panics {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            panic!("a destination's own fault")
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (recorder, guard) = Recorder::builder().writer(Panics).flush_on_panic(false).build_recorder().unwrap();
    recorder.point("lost");
    assert!(!guard.flush());
    assert_eq!(guard.close().written, 0);
    recorder.point("after");
}

#[test]
fn long_recordings_keep_to_the_systems_clock() {
    let folder = Folder::new();
    let (recorder, guard) = Recorder::builder().file(folder.path()).build_recorder().unwrap();
    let start = std::time::Instant::now();
    recorder.point("first");
    let first = start.elapsed();
    // Some comparisons of the clocks.
    while start.elapsed().as_millis() < 3_500 {
        recorder.point("between");
        assert!(guard.flush());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let before_last = start.elapsed();
    recorder.point("last");
    let last = start.elapsed();
    drop(guard);
    let trace = read_sound(&folder.path());
    assert!(trace.events.windows(2).all(|two| two[0].header.start_ns <= two[1].header.start_ns));
    let time = u128::from(trace.named("last")[0].header.start_ns - trace.named("first")[0].header.start_ns);
    // The first rate of the processor's counter may be off by several hundred us a second when the machine is busy while
    // it is measured; the comparisons bring the times back to the clock within a few seconds.
    assert!(time + 200_000 > (before_last - first).as_nanos() && time < last.as_nanos() + 200_000, "{time} {last:?}");
}
