//! Where each of several traces lies on their common axis.
//!
//! Clocks are compared in this order: dates; the uptime of the machine, which a trace with both also dates; counters of
//! one rate that count at about the same time, as those of a machine's processors do. Where uptimes say that two counters
//! are one, the counter decides, which is finer. Traces that begin more than an hour apart were not recorded together:
//! they begin together, as do those that have nothing in common. What has no clock is spread over the time of the others.

use anytrace_core::span::{SpanSource, TimeUnit, Uptime};

/// Traces that begin at most this far apart were recorded together, and counters of one rate are one.
const TOGETHER_NS: i128 = 3_600_000_000_000;

/// Counters of one rate whose zeros are at most this far apart on the clock of uptime are one.
const SAME_COUNTER_NS: i128 = 1_000_000;

/// How clocks are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Align {
    /// By what the traces say, if they say that they begin within an hour.
    #[default]
    Near,
    /// By what the traces say; dates and uptimes however far apart.
    Clocks,
    /// All begin together.
    Begin,
    /// All times are of one clock, as they are.
    AsTheyAre,
}

/// What is known of a trace before it is placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Its clock.
    pub source: SpanSource,
    /// First and last time; needed only where a trace has no clock.
    pub range: Option<(u64, u64)>,
    /// By how much a person moves it: nanoseconds, or records where no trace has a clock.
    pub offset: i128,
}

/// Why a trace lies where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Its times are dates.
    Date,
    /// It has the machine's uptime, up to this many nanoseconds.
    Uptime(u64),
    /// Its counter is that of another trace.
    Counter,
    /// It was recorded this many nanoseconds from the others, too far to show: it begins with them.
    Apart(u64),
    /// Nothing relates its clock to the others: it begins with them.
    Begin,
    /// It has no clock: its records are spread evenly.
    Spread,
}

/// How the times of a trace become those of the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Unit(TimeUnit),
    /// Its records, from the first to the last.
    Spread(u64, u64),
    /// Records or ticks of unknown length, of traces that have nothing else.
    Own,
}

/// The place of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// Why it is there.
    pub by: By,
    scale: Scale,
    /// The place of its time 0 (of [`Scale::Spread`], of its first record), in the axis' unit.
    shift: i128,
    /// With [`Scale::Spread`]: the length of the others.
    length: u64,
}

impl Placement {
    /// A time of the trace on the axis. Times before the axis begins are at 0, where only a trace has them that was not
    /// read before it was placed.
    #[inline]
    pub fn time(&self, time: u64) -> u64 {
        let own = match self.scale {
            Scale::Unit(TimeUnit::Nanoseconds) | Scale::Own => time,
            Scale::Unit(unit) => unit.to_ns(time).unwrap_or(u64::MAX),
            Scale::Spread(first, last) => spread(time, first, last, self.length),
        };
        to_u64(i128::from(own) + self.shift)
    }

    /// How far the trace's times are moved, in the axis' unit.
    pub fn shift(&self) -> i128 {
        self.shift
    }

    /// Nanoseconds of a unit of the trace on the axis (1 where the axis has no clock).
    #[expect(clippy::cast_precision_loss, reason = "for people and pictures")]
    pub fn ns_a_unit(&self) -> f64 {
        match self.scale {
            Scale::Unit(TimeUnit::Ticks { per_second: Some(hz) }) if hz > 0 => 1e9 / hz as f64,
            Scale::Unit(_) | Scale::Own => 1.0,
            Scale::Spread(first, last) => self.length as f64 / (last.saturating_sub(first)).max(1) as f64,
        }
    }
}

/// All traces on their axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Of each trace.
    pub traces: Vec<Placement>,
    /// The axis: it begins at 0.
    pub source: SpanSource,
}

/// A trace's beginning, and what it is on.
#[derive(Debug, Clone, Copy)]
struct Begun {
    group: usize,
    by: By,
    /// Time 0 of the trace on the clock of its group.
    zero: i128,
    first: i128,
}

/// Places traces.
pub fn place(facts: &[Facts], align: Align) -> Placed {
    let has_clock = |facts: &Facts| ns(facts.source.unit, facts.source.origin).is_some();
    if !facts.iter().any(has_clock) {
        return without_clock(facts, align);
    }
    let date_of_uptime = date_of_uptime(facts);
    let mut groups: Vec<Group> = Vec::new();
    let begun: Vec<Option<Begun>> = facts
        .iter()
        .map(|one| {
            let first = ns(one.source.unit, one.source.origin)?;
            let (clock, by, zero) = clock_of(one, align, date_of_uptime, same_counter(one, facts));
            let first = first + zero;
            let group = groups.iter().position(|group| group.has(clock, first, align)).unwrap_or(groups.len());
            match groups.get_mut(group) {
                Some(group) => group.add(first),
                None => groups.push(Group { clock, first, traces: 1 }),
            }
            Some(Begun { group, by, zero, first })
        })
        .collect();
    let axis = Axis::of(&begun, facts, &groups);
    let traces = facts.iter().zip(&begun).map(|(facts, begun)| axis.place(facts, *begun)).collect();
    // Dates of the axis' beginning: those of its first clock with dates.
    let dated = begun.iter().flatten().find(|begun| begun.by == By::Date);
    let epoch_ns = dated.and_then(|begun| Some(groups.get(begun.group)?.first + axis.first));
    let unit = TimeUnit::Nanoseconds;
    Placed { traces, source: SpanSource { format: "merged", unit, origin: 0, epoch_ns, uptime: None } }
}

/// What a trace's times are compared on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clock {
    Date,
    Uptime,
    Counter(TimeUnit),
    AsTheyAre,
    /// Like no other.
    Alone,
}

/// Traces whose clocks can be compared.
#[derive(Debug, Clone, Copy)]
struct Group {
    clock: Clock,
    first: i128,
    traces: usize,
}

impl Group {
    fn has(&self, clock: Clock, first: i128, align: Align) -> bool {
        let is_near = || (first - self.first).abs() <= TOGETHER_NS;
        self.clock == clock
            && match clock {
                Clock::Alone => false,
                Clock::AsTheyAre => true,
                Clock::Date | Clock::Uptime => align == Align::Clocks || is_near(),
                Clock::Counter(_) => is_near(),
            }
    }

    fn add(&mut self, first: i128) {
        self.first = self.first.min(first);
        self.traces += 1;
    }
}

/// The uptime of the first trace whose counter is that of this trace, too: their uptimes say that the counters have one
/// 0. Its own where no other is; the counter itself relates them exactly.
fn same_counter(one: &Facts, all: &[Facts]) -> (Option<Uptime>, bool) {
    let is_same = |other: &&Facts| {
        let pair = one.source.uptime.zip(other.source.uptime);
        let is_near = pair.is_some_and(|(one, other)| (one.zero_ns - other.zero_ns).abs() <= SAME_COUNTER_NS);
        is_near && one.source.unit == other.source.unit && other.source.epoch_ns.is_none()
    };
    let mut same = all.iter().filter(is_same);
    let first = same.next();
    (first.and_then(|first| first.source.uptime).or(one.source.uptime), same.next().is_some())
}

/// The clock of a trace, and where its time 0 is on it.
fn clock_of(
    facts: &Facts,
    align: Align,
    date_of_uptime: Option<(i128, u64)>,
    (uptime, is_shared): (Option<Uptime>, bool),
) -> (Clock, By, i128) {
    let by_uptime = |spread: u64| if is_shared { By::Counter } else { By::Uptime(spread) };
    match (align, facts.source.epoch_ns, uptime, date_of_uptime) {
        (Align::Begin, ..) => (Clock::Alone, By::Begin, 0),
        (Align::AsTheyAre, ..) => (Clock::AsTheyAre, By::Counter, 0),
        (_, Some(epoch), ..) => (Clock::Date, By::Date, epoch),
        (_, None, Some(Uptime { zero_ns, spread_ns }), Some((start, spread))) => {
            (Clock::Date, by_uptime(spread_ns.saturating_add(spread)), start + zero_ns)
        }
        (_, None, Some(Uptime { zero_ns, spread_ns }), None) => (Clock::Uptime, by_uptime(spread_ns), zero_ns),
        (_, None, None, _) => (Clock::Counter(facts.source.unit), By::Counter, 0),
    }
}

/// The date at which the machine's uptime began and how sure it is, from a trace that has both.
fn date_of_uptime(facts: &[Facts]) -> Option<(i128, u64)> {
    facts.iter().find_map(|facts| {
        let uptime = facts.source.uptime?;
        Some((facts.source.epoch_ns? - uptime.zero_ns, uptime.spread_ns))
    })
}

/// The axis in nanoseconds: groups begin together, then persons move traces, then the earliest is at 0.
struct Axis<'a> {
    groups: &'a [Group],
    /// The earliest beginning, relative to that of its group.
    first: i128,
    /// The same of the traces with a clock.
    first_clocked: i128,
    /// From there to the latest end of those.
    length: u64,
}

impl<'a> Axis<'a> {
    fn of(begun: &[Option<Begun>], facts: &[Facts], groups: &'a [Group]) -> Self {
        let start = |begun: &Begun| groups.get(begun.group).map_or(0, |group| begun.first - group.first);
        let clocked = || begun.iter().zip(facts).filter_map(|(begun, facts)| Some((begun.as_ref()?, facts)));
        let first_clocked = clocked().map(|(begun, facts)| start(begun) + facts.offset).min().unwrap_or(0);
        let clockless = begun.iter().zip(facts).filter(|(begun, _)| begun.is_none());
        let first = clockless.map(|(_, facts)| first_clocked + facts.offset).fold(first_clocked, i128::min);
        let end = |(begun, facts): (&Begun, &Facts)| {
            let last = facts.range.and_then(|(_, last)| ns(facts.source.unit, last));
            let begin = groups.get(begun.group).map_or(0, |group| group.first);
            last.map_or(first_clocked, |last| last + begun.zero - begin + facts.offset)
        };
        let length = to_u64(clocked().map(end).max().unwrap_or(first_clocked) - first_clocked);
        Self { groups, first, first_clocked, length }
    }

    /// How far the traces of a group are from the first on the same clock.
    fn apart(&self, group: usize) -> Option<u64> {
        let own = self.groups.get(group).filter(|own| own.clock != Clock::Alone)?;
        let first = self.groups.iter().take(group).find(|first| first.clock == own.clock)?;
        Some(to_u64((own.first - first.first).abs()))
    }

    fn place(&self, facts: &Facts, begun: Option<Begun>) -> Placement {
        let Some(begun) = begun else {
            let (first, last) = facts.range.unwrap_or((0, 0));
            let (scale, shift) = (Scale::Spread(first, last), self.first_clocked + facts.offset - self.first);
            return Placement { by: By::Spread, scale, shift, length: self.length };
        };
        let group = self.groups.get(begun.group);
        let is_alone = group.is_none_or(|group| group.traces < 2);
        let by = match self.apart(begun.group) {
            Some(apart) => By::Apart(apart),
            None if is_alone && begun.by != By::Date => By::Begin,
            None => begun.by,
        };
        let shift = begun.zero - group.map_or(0, |group| group.first) + facts.offset - self.first;
        Placement { by, scale: Scale::Unit(facts.source.unit), shift, length: 0 }
    }
}

/// Traces of which none has a clock: each from its own first record or tick.
fn without_clock(facts: &[Facts], align: Align) -> Placed {
    let zero = |facts: &Facts| if align == Align::AsTheyAre { 0 } else { -i128::from(facts.source.origin) };
    let first = facts.iter().map(|one| zero(one) + i128::from(one.source.origin) + one.offset).min().unwrap_or(0);
    let by = if align == Align::AsTheyAre { By::Counter } else { By::Begin };
    let place = |one: &Facts| Placement { by, scale: Scale::Own, shift: zero(one) + one.offset - first, length: 0 };
    let units: Vec<TimeUnit> = facts.iter().map(|facts| facts.source.unit).collect();
    let is_one = units.windows(2).all(|pair| matches!(pair, [one, other] if one == other));
    let unit = units.first().copied().filter(|_| is_one).unwrap_or(TimeUnit::Order);
    let source = SpanSource { format: "merged", unit, origin: 0, epoch_ns: None, uptime: None };
    Placed { traces: facts.iter().map(place).collect(), source }
}

fn ns(unit: TimeUnit, time: u64) -> Option<i128> {
    unit.sum_to_ns(u128::from(time)).and_then(|ns| i128::try_from(ns).ok())
}

fn spread(time: u64, first: u64, last: u64, length: u64) -> u64 {
    let (at, all) = (time.clamp(first, last) - first, (last - first).max(1));
    to_u64(i128::from(at) * i128::from(length) / i128::from(all))
}

/// The nearest time there is.
fn to_u64(time: i128) -> u64 {
    u64::try_from(time.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
