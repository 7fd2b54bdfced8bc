//! Tests of places on the axis.

use super::*;

fn facts(unit: TimeUnit, origin: u64) -> Facts {
    let source = SpanSource { format: "test", unit, origin, epoch_ns: None, uptime: None };
    Facts { source, range: None, offset: 0 }
}

fn dated(origin: u64, epoch_ns: i128) -> Facts {
    let mut facts = facts(TimeUnit::Nanoseconds, origin);
    facts.source.epoch_ns = Some(epoch_ns);
    facts
}

fn up(origin: u64, zero_ns: i128, spread_ns: u64) -> Facts {
    let mut facts = facts(TimeUnit::Ticks { per_second: Some(2_000_000_000) }, origin);
    facts.source.uptime = Some(Uptime { zero_ns, spread_ns });
    facts
}

fn begins(facts: &[Facts], align: Align) -> Vec<(u64, By)> {
    let placed = place(facts, align);
    facts.iter().zip(&placed.traces).map(|(facts, at)| (at.time(facts.source.origin), at.by)).collect()
}

#[test]
fn dates_decide_whatever_the_traces_own_times_are() {
    let traces = [dated(500, 1_000_000), dated(7, 1_000_900)];
    assert_eq!(begins(&traces, Align::Clocks), [(0, By::Date), (407, By::Date)]);
    assert_eq!(place(&traces, Align::Clocks).source.epoch_ns, Some(1_000_500));
    assert_eq!(begins(&traces, Align::Begin), [(0, By::Begin); 2]);
    assert_eq!(begins(&traces, Align::AsTheyAre), [(493, By::Counter), (0, By::Counter)]);
}

#[test]
fn uptime_relates_the_programs_of_a_machine_with_what_is_not_sure() {
    // 2,000 ticks are a microsecond.
    let mut traces = [up(2_000, 50_000, 30), up(400, 2_050_010, 200)];
    assert_eq!(begins(&traces, Align::Clocks), [(0, By::Uptime(30)), (1_999_210, By::Uptime(200))]);
    assert_eq!(place(&traces, Align::Clocks).source.epoch_ns, None);
    // The same counter: then it decides.
    traces[1].source.uptime = Some(Uptime { zero_ns: 50_010, spread_ns: 200 });
    assert_eq!(begins(&traces, Align::Clocks), [(800, By::Counter), (0, By::Counter)]);
    // Counters of other rates are others.
    traces[1].source.unit = TimeUnit::Ticks { per_second: Some(1_000_000_000) };
    assert_eq!(begins(&traces, Align::Clocks), [(590, By::Uptime(30)), (0, By::Uptime(200))]);
}

#[test]
fn a_trace_with_date_and_uptime_dates_the_others() {
    let mut both = dated(100, 1_000_000);
    both.source.uptime = Some(Uptime { zero_ns: 40_000, spread_ns: 5 });
    // The machine started at 960,000.
    let traces = [up(0, 40_500, 20), dated(0, 1_000_050), both];
    let places = begins(&traces, Align::Clocks);
    assert_eq!(places, [(450, By::Uptime(25)), (0, By::Date), (50, By::Date)]);
    assert_eq!(place(&traces, Align::Clocks).source.epoch_ns, Some(1_000_050));
}

#[test]
fn counters_of_one_rate_are_one_if_they_count_at_about_the_same_time() {
    let ticks = |per_second, origin| facts(TimeUnit::Ticks { per_second: Some(per_second) }, origin);
    let near = [ticks(1_000, 5_000_000), ticks(1_000, 5_000_007), ticks(2_000, 5_000_000)];
    let places = begins(&near, Align::Clocks);
    assert_eq!(places, [(0, By::Counter), (7_000_000, By::Counter), (0, By::Begin)]);
    // An hour and a tick.
    let far = [ticks(1_000, 5_000_000), ticks(1_000, 8_600_001)];
    assert_eq!(begins(&far, Align::Clocks), [(0, By::Begin), (0, By::Apart(3_600_001_000_000))]);
    assert_eq!(begins(&far, Align::AsTheyAre), [(0, By::Counter), (3_600_001_000_000, By::Counter)]);
}

#[test]
fn runs_of_different_days_begin_together_unless_their_dates_are_asked_for() {
    const DAY_NS: i128 = 86_400_000_000_000;
    let day = u64::try_from(DAY_NS).unwrap();
    let traces = [dated(5, 1_000), dated(5, 1_000 + DAY_NS), dated(9, 1_000 + DAY_NS), up(0, 7, 1)];
    let places = begins(&traces, Align::Near);
    assert_eq!(places, [(0, By::Date), (0, By::Apart(day)), (4, By::Apart(day)), (0, By::Begin)]);
    assert_eq!(place(&traces, Align::Near).source.epoch_ns, Some(1_005));
    let places = begins(&traces, Align::Clocks);
    assert_eq!(places, [(0, By::Date), (day, By::Date), (day + 4, By::Date), (0, By::Begin)]);
    // An hour is near.
    let hour = [dated(0, 0), dated(0, 3_600_000_000_000)];
    assert_eq!(begins(&hour, Align::Near), [(0, By::Date), (3_600_000_000_000, By::Date)]);
}

#[test]
fn what_has_nothing_in_common_begins_together() {
    let traces = [dated(100, 5_000), up(6_000, 1, 1), facts(TimeUnit::Nanoseconds, 77)];
    assert_eq!(begins(&traces, Align::Clocks), [(0, By::Date), (0, By::Begin), (0, By::Begin)]);
}

#[test]
fn a_person_moves_traces_and_the_earliest_is_at_0() {
    let mut traces = [dated(0, 1_000), dated(0, 1_000), facts(TimeUnit::Order, 0)];
    (traces[0].range, traces[1].range, traces[2].range) = (Some((0, 50)), Some((0, 100)), Some((0, 10)));
    traces[1].offset = -30;
    assert_eq!(begins(&traces, Align::Clocks), [(30, By::Date), (0, By::Date), (0, By::Spread)]);
    assert_eq!(place(&traces, Align::Clocks).source.epoch_ns, Some(970));
    traces[2].offset = -200;
    assert_eq!(begins(&traces, Align::Clocks), [(230, By::Date), (200, By::Date), (0, By::Spread)]);
}

#[test]
fn records_without_a_clock_are_spread_over_the_time_of_the_others() {
    let mut traces = [dated(1_000, 0), facts(TimeUnit::Order, 10)];
    (traces[0].range, traces[1].range) = (Some((1_000, 1_400)), Some((10, 30)));
    let placed = place(&traces, Align::Clocks);
    assert_eq!([10, 11, 20, 30].map(|record| placed.traces[1].time(record)), [0, 20, 200, 400]);
    assert_eq!((placed.traces[1].ns_a_unit(), placed.traces[0].ns_a_unit()), (20.0, 1.0));
    assert_eq!(placed.source.unit, TimeUnit::Nanoseconds);
}

#[test]
fn without_any_clock_records_stay_records() {
    let mut traces = [facts(TimeUnit::Order, 10), facts(TimeUnit::Order, 3)];
    assert_eq!(begins(&traces, Align::Clocks), [(0, By::Begin); 2]);
    traces[1].offset = 5;
    let placed = place(&traces, Align::Clocks);
    assert_eq!((placed.source.unit, placed.traces[1].time(4)), (TimeUnit::Order, 6));
    traces[1].offset = 0;
    assert_eq!(begins(&traces, Align::AsTheyAre), [(7, By::Counter), (0, By::Counter)]);
}

#[test]
fn times_out_of_range_are_the_nearest_there_are() {
    let traces = [dated(0, i128::from(u64::MAX) * 4), dated(5, 0)];
    assert_eq!(begins(&traces, Align::Clocks), [(u64::MAX, By::Date), (0, By::Date)]);
    assert_eq!(place(&traces, Align::Clocks).traces[1].time(4), 0, "before the axis begins");
    assert_eq!(place(&[], Align::Clocks).traces, []);
}
