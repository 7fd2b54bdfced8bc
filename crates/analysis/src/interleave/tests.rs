//! Schedules against their promises, checked from the trace alone.

use anytrace_core::access::AccessKind;
use proptest::prelude::*;

use super::*;

/// The contents of a trace, by record number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Record {
    Access { thread: u32, is_atomic: bool },
    Add,
    Remove,
}

impl Record {
    fn is_point(self) -> bool {
        !matches!(self, Self::Access { is_atomic: false, .. })
    }
}

/// Notes the numbers of records in the order in which they arrive.
#[derive(Default)]
struct Order(Vec<u64>);

impl AccessSink for Order {
    fn thread(&mut self, _: ThreadNumber, _: Option<u64>) -> Result<(), Error> {
        Ok(())
    }

    fn type_name(&mut self, _: TypeNumber, _: Option<&[u8]>) -> Result<(), Error> {
        Ok(())
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.0.push(region.seq);
        Ok(())
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.0.push(region.seq);
        Ok(())
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        assert!(!batch.is_empty() && batch.len() <= BATCH_ACCESSES);
        self.0.extend(batch.iter().map(|access| access.seq));
        Ok(())
    }
}

fn orders(records: &[Record], schedules: &[Schedule], window: usize) -> (Vec<Vec<u64>>, Interleaved) {
    let mut sinks: Vec<Order> = schedules.iter().map(|_| Order::default()).collect();
    let ways = schedules.iter().zip(&mut sinks).map(|(schedule, sink)| (*schedule, sink as &mut dyn AccessSink));
    let mut interleaver = Interleaver::with_window(ways, window);
    (0..8).for_each(|number| interleaver.thread(number, None).unwrap());
    for (record, seq) in records.iter().zip(0..) {
        match *record {
            Record::Access { thread, is_atomic } => {
                let flags = if is_atomic { AccessFlags::ATOMIC } else { AccessFlags::NONE };
                let access = Access { address: seq, seq, thread, bytes: 8, kind: AccessKind::Write, flags };
                interleaver.accesses(&[access]).unwrap();
            }
            Record::Add => {
                let region =
                    RegionAdded { seq, address: seq, element_bytes: 1, elements: 1, type_number: 0, thread: 0 };
                interleaver.region_added(&region).unwrap();
            }
            Record::Remove => interleaver.region_removed(&RegionRemoved { seq, address: seq, thread: 0 }).unwrap(),
        }
    }
    let done = interleaver.finish().unwrap();
    (sinks.into_iter().map(|sink| sink.0).collect(), done)
}

/// All that a schedule promises: every record appears once, the records of one thread keep their order, and nothing
/// passes a point in either direction.
fn assert_is_an_order(records: &[Record], order: &[u64]) {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..records.len() as u64), "every record once");
    let mut place = vec![0; records.len()];
    order.iter().enumerate().for_each(|(at, seq)| place[*seq as usize] = at);
    for (a, first) in records.iter().enumerate() {
        for (b, second) in records.iter().enumerate().skip(a + 1) {
            let is_same_thread = match (first, second) {
                (Record::Access { thread: one, .. }, Record::Access { thread: other, .. }) => one == other,
                _ => false,
            };
            if is_same_thread || first.is_point() || second.is_point() {
                assert!(place[a] < place[b], "{a} before {b}");
            }
        }
    }
}

/// Runs of accesses, and points now and then.
fn records() -> impl Strategy<Value = Vec<Record>> {
    let run =
        (0_u32..5, 1_usize..12).prop_map(|(thread, length)| vec![Record::Access { thread, is_atomic: false }; length]);
    let atomic = (0_u32..5).prop_map(|thread| vec![Record::Access { thread, is_atomic: true }]);
    let part = prop_oneof![12 => run, 1 => atomic, 1 => Just(vec![Record::Add]), 1 => Just(vec![Record::Remove])];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.into_iter().flatten().collect())
}

proptest! {
    #[test]
    fn schedules_keep_counts_threads_and_points(records in records(), window in 1_usize..300, turn in 1_u32..9, seed in 0_u32..99) {
        let mut schedules = Schedule::auto();
        schedules.extend([Schedule::Turns(turn), Schedule::Random { turn, seed }]);
        let (all, done) = orders(&records, &schedules, window);
        for (order, schedule) in all.iter().zip(&schedules) {
            assert_is_an_order(&records, order);
            if *schedule == Schedule::Recorded {
                prop_assert!(order.is_sorted());
            }
        }
        prop_assert_eq!(done.points, records.iter().filter(|record| record.is_point()).count() as u64);
        prop_assert_eq!(&all, &orders(&records, &schedules, window).0);
    }
}

#[test]
fn threads_take_turns_between_points_and_windows() {
    let access = |thread, is_atomic| Record::Access { thread, is_atomic };
    let apart: Vec<_> = [access(0, false); 4].into_iter().chain([access(1, false); 4]).collect();
    let turns = |records: &[Record], window| {
        let (mut all, done) = orders(records, &[Schedule::Turns(2)], window);
        (all.remove(0), done.exceeded)
    };
    assert_eq!(turns(&apart, 100), (vec![0, 1, 4, 5, 2, 3, 6, 7], 0));
    assert_eq!(turns(&apart, 8).1, 0);
    // Not all of both threads fits.
    assert_eq!(turns(&apart, 6), (vec![0, 1, 4, 5, 2, 3, 6, 7], 1));
    assert_eq!(turns(&apart, 4), ((0..8).collect(), 1));
    let with_point: Vec<_> = [&apart[..5], &[access(2, true)], &apart[5..]].concat();
    assert_eq!(turns(&with_point, 100).0, [0, 1, 4, 2, 3, 5, 6, 7, 8]);
}

#[test]
fn long_windows_of_many_threads_take_no_more_than_a_moment() {
    let records: Vec<_> = (0..400_000_u32).map(|n| Record::Access { thread: n / 50_000, is_atomic: false }).collect();
    let (all, done) = orders(&records, &Schedule::auto(), WINDOW_ACCESSES);
    assert!(all.iter().all(|order| order.len() == records.len()) && done.exceeded == 0);
    let switches = |order: &[u64]| order.windows(2).filter(|pair| pair[0] / 50_000 != pair[1] / 50_000).count();
    assert_eq!(all.iter().map(|order| switches(order)).take(2).collect::<Vec<_>>(), [7, 399_999]);
}
