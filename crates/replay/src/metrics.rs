//! What of calls, draws and frames is measured on request, by the names of apitrace's players, and its tables.

use std::io::{Read, Seek, SeekFrom, Write};

use anytrace_core::Error;
use tempfile::SpooledTempFile;

use crate::probe::{DeviceTime, Measured, Wants};

/// The backend whose metrics are known: what OpenGL and the system say.
const BACKEND: &str = "opengl";

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its group, and its number in it.
    pub id: (u32, u32),
    /// Nanoseconds since the replay began, nanoseconds, or a number.
    kind: &'static str,
}

const fn metric(name: &'static str, group: u32, number: u32, kind: &'static str) -> Metric {
    Metric { name, id: (group, number), kind }
}

/// The groups.
const GROUPS: [&str; 2] = ["CPU", "GPU"];

/// All metrics, in the order of their columns.
static METRICS: [Metric; 9] = [
    metric("CPU Start", 0, 0, "CNT_TYPE_TIMESTAMP"),
    metric("CPU Duration", 0, 1, "CNT_TYPE_DURATION"),
    metric("VSIZE Start", 0, 2, "CNT_TYPE_GENERIC"),
    metric("VSIZE Duration", 0, 3, "CNT_TYPE_GENERIC"),
    metric("RSS Start", 0, 4, "CNT_TYPE_GENERIC"),
    metric("RSS Duration", 0, 5, "CNT_TYPE_GENERIC"),
    metric("GPU Start", 1, 0, "CNT_TYPE_TIMESTAMP"),
    metric("GPU Duration", 1, 1, "CNT_TYPE_DURATION"),
    metric("Pixels Drawn", 1, 2, "CNT_TYPE_GENERIC"),
];

/// A set of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MetricSet([bool; METRICS.len()]);

impl MetricSet {
    /// Reads `opengl: CPU Duration, [1, 2]`: names, or groups and numbers. Several backends have semicolons between them.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Usage`] for a backend or a metric that is not known.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut set = Self::default();
        for part in text.split(';').filter(|part| !part.trim().is_empty()) {
            let (backend, names) = part.split_once(':').unwrap_or((BACKEND, part));
            let backend = backend.trim();
            if backend != BACKEND {
                return Err(Error::usage(format!("there is no backend {backend}; known is {BACKEND}")));
            }
            for name in names_of(names) {
                let at = METRICS.iter().position(|metric| is_called(metric, &name));
                let place = at.and_then(|at| set.0.get_mut(at)).ok_or_else(|| {
                    Error::usage(format!("there is no metric {name}; --list-metrics has those that there are"))
                })?;
                *place = true;
            }
        }
        Ok(set)
    }

    /// True where nothing is measured.
    pub fn is_empty(&self) -> bool {
        self.0 == [false; METRICS.len()]
    }

    fn all(&self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().filter_map(|(at, is_wanted)| is_wanted.then_some(at))
    }

    fn has_any(&self, names: &[&str]) -> bool {
        self.all().any(|at| METRICS.get(at).is_some_and(|metric| names.contains(&metric.name)))
    }

    fn with(self, other: Self) -> Self {
        let mut both = self;
        both.0.iter_mut().zip(other.0).for_each(|(one, other)| *one |= other);
        both
    }
}

/// Names with commas between them; a comma in brackets is part of a name.
fn names_of(text: &str) -> Vec<String> {
    let (mut names, mut name, mut depth) = (Vec::new(), String::new(), 0_u32);
    for character in text.chars() {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if character == ',' && depth == 0 {
            names.push(std::mem::take(&mut name));
        } else {
            name.push(character);
        }
    }
    names.push(name);
    names.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

fn is_called(metric: &Metric, name: &str) -> bool {
    let numbers = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).and_then(|name| name.split_once(','));
    match numbers {
        Some((group, number)) => (group.trim().parse(), number.trim().parse()) == (Ok(metric.id.0), Ok(metric.id.1)),
        None => metric.name == name,
    }
}

/// What there is, as apitrace's players list it.
pub fn list_of_metrics() -> String {
    let mut text = format!("Available metrics: \n\nBackend {BACKEND}:\n");
    for (number, group) in (0..).zip(GROUPS) {
        text.push_str(&format!("\n  Group #{number}: {group}.\n"));
        for metric in METRICS.iter().filter(|metric| metric.id.0 == number) {
            let Metric { name, id, kind } = metric;
            text.push_str(&format!("    Metric #{}: {name} (type: {kind}, num. type: CNT_NUM_INT64).\n", id.1));
            text.push_str("           Description: \n");
        }
    }
    text.push('\n');
    text
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Metrics {
    /// Of each call.
    pub calls: MetricSet,
    /// Of each frame.
    pub frames: MetricSet,
    /// Of each draw.
    pub draws: MetricSet,
}

impl Metrics {
    /// True where something is measured.
    pub fn is_any(&self) -> bool {
        ![self.calls, self.frames, self.draws].iter().all(MetricSet::is_empty)
    }
}

/// The values of the metrics, in their order; of those that are not measured, or that the driver does not have, 0.
type Values = [i64; METRICS.len()];

/// Bytes of a table that are kept in memory.
const TABLE_BYTES_MAX: usize = 1 << 20;

/// The table of one kind of thing.
struct Table {
    set: MetricSet,
    out: SpooledTempFile,
}

impl Table {
    fn new(set: MetricSet, head: &str) -> Result<Option<Self>, Error> {
        if set.is_empty() {
            return Ok(None);
        }
        let mut table = Self { set, out: SpooledTempFile::new(TABLE_BYTES_MAX) };
        let names: Vec<&str> = set.all().filter_map(|at| METRICS.get(at)).map(|metric| metric.name).collect();
        table.line(&format!("{head}\t{}", names.join("\t")))?;
        Ok(Some(table))
    }

    fn line(&mut self, text: &str) -> Result<(), Error> {
        writeln!(self.out, "{text}").map_err(|error| Error::io("a temporary file", error))
    }

    fn row(&mut self, begin: &str, values: &Values) -> Result<(), Error> {
        let mut text = begin.to_owned();
        for at in self.set.all() {
            text.push('\t');
            text.push_str(&values.get(at).copied().unwrap_or(0).to_string());
        }
        self.line(&text)
    }
}

/// What the device did in the frame at hand.
#[derive(Debug, Default)]
struct FrameSums {
    /// First and last time.
    gpu: Option<(u64, u64)>,
    pixels: i64,
}

/// Time in nanoseconds, and virtual and resident bytes.
type Now = (u64, (u64, u64));

/// Puts what was measured of calls, draws and frames into tables.
pub(crate) struct Meter {
    wants: Wants,
    frames: Option<Table>,
    calls: Option<Table>,
    draws: Option<Table>,
    frame: FrameSums,
}

impl Meter {
    pub(crate) fn new(metrics: Metrics) -> Result<Self, Error> {
        let wanted = metrics.calls.with(metrics.frames).with(metrics.draws);
        let call = "#\tcall no\tprogram\tname";
        let has_device = wanted.has_any(&["GPU Start", "GPU Duration"]);
        let device = match has_device {
            true if metrics.calls.is_empty() => DeviceTime::Draws,
            true => DeviceTime::Calls,
            false => DeviceTime::Never,
        };
        let has_memory = wanted.has_any(&["VSIZE Start", "VSIZE Duration", "RSS Start", "RSS Duration"]);
        Ok(Self {
            wants: Wants { device, has_pixels: wanted.has_any(&["Pixels Drawn"]), has_memory },
            frames: Table::new(metrics.frames, "#")?,
            calls: Table::new(metrics.calls, call)?,
            draws: Table::new(metrics.draws, call)?,
            frame: FrameSums::default(),
        })
    }

    /// What must be measured.
    pub(crate) fn wants(&self) -> Wants {
        self.wants
    }

    /// Puts calls into the tables.
    pub(crate) fn calls(&mut self, calls: &[Measured]) -> Result<(), Error> {
        for call in calls {
            let pixels = call.pixels.map_or(0, signed);
            let values = values(call.cpu, call.memory, call.gpu.unwrap_or_default(), pixels);
            if let Some((start, end)) = call.gpu.filter(|(start, _)| *start > 0) {
                let (first, last) = self.frame.gpu.unwrap_or((start, end));
                self.frame.gpu = Some((first.min(start), last.max(end)));
            }
            self.frame.pixels += pixels;
            let begin = format!("call\t{}\t{}\t{}", call.number, call.program, call.name);
            if let Some(calls) = &mut self.calls {
                calls.row(&begin, &values)?;
            }
            if let Some(draws) = self.draws.as_mut().filter(|_| call.is_draw) {
                draws.row(&begin, &values)?;
            }
        }
        Ok(())
    }

    /// After the call that ends a frame, whose calls were put into the tables. `start`: before its first call.
    pub(crate) fn end_frame(&mut self, start: Option<Now>, now: Now) -> Result<(), Error> {
        self.frame_row(start, now)?;
        for table in [&mut self.calls, &mut self.draws].into_iter().flatten() {
            table.line("frame_end")?;
        }
        Ok(())
    }

    fn frame_row(&mut self, start: Option<Now>, now: Now) -> Result<(), Error> {
        let frame = std::mem::take(&mut self.frame);
        let start = start.unwrap_or_default();
        let values = values((start.0, now.0), (start.1, now.1), frame.gpu.unwrap_or_default(), frame.pixels);
        self.frames.as_mut().map_or(Ok(()), |table| table.row("frame", &values))
    }

    /// Writes the tables, with an empty line after each: frames, calls, draws. `start`: before the first call of a frame
    /// that did not end.
    pub(crate) fn finish(mut self, start: Option<Now>, now: Now, out: &mut dyn Write) -> Result<(), Error> {
        if start.is_some() {
            self.frame_row(start, now)?;
        }
        let failed = |error| Error::io("standard output", error);
        for mut table in [self.frames, self.calls, self.draws].into_iter().flatten() {
            table.out.seek(SeekFrom::Start(0)).map_err(|error| Error::io("a temporary file", error))?;
            let mut part = vec![0; 1 << 16];
            loop {
                let read = table.out.read(&mut part).map_err(|error| Error::io("a temporary file", error))?;
                if read == 0 {
                    break;
                }
                out.write_all(part.get(..read).unwrap_or_default()).map_err(failed)?;
            }
            writeln!(out).map_err(failed)?;
        }
        Ok(())
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// From times, memory and samples before and after.
fn values(cpu: (u64, u64), memory: ((u64, u64), (u64, u64)), gpu: (u64, u64), pixels: i64) -> Values {
    let added = |after: u64, before: u64| signed(after).saturating_sub(signed(before));
    let (before, after) = memory;
    [
        signed(cpu.0),
        added(cpu.1, cpu.0),
        signed(before.0),
        added(after.0, before.0),
        signed(before.1),
        added(after.1, before.1),
        signed(gpu.0),
        added(gpu.1, gpu.0),
        pixels,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&'static str> {
        MetricSet::parse(text).unwrap().all().map(|at| METRICS[at].name).collect()
    }

    #[test]
    fn metrics_are_chosen_by_names_and_numbers_and_come_in_their_own_order() {
        assert_eq!(names("opengl: GPU Duration, CPU Duration"), ["CPU Duration", "GPU Duration"]);
        assert_eq!(names("opengl: [1, 2], [0,4],CPU Start;"), ["CPU Start", "RSS Start", "Pixels Drawn"]);
        assert_eq!(names("Pixels Drawn"), ["Pixels Drawn"], "without a backend");
        assert!(MetricSet::parse("").unwrap().is_empty());
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        let refused = |text: &str| MetricSet::parse(text).unwrap_err().to_string();
        assert!(refused("foo: CPU Start").contains("no backend foo"));
        assert!(refused("opengl: Cycles").contains("no metric Cycles"));
        assert!(refused("opengl: [0, 9]").contains("no metric [0, 9]"));
        assert!(refused("opengl: CPU Start; intel: x").contains("no backend intel"));
    }

    #[test]
    fn the_list_has_every_metric_once() {
        let list = list_of_metrics();
        for metric in &METRICS {
            assert_eq!(list.matches(&format!(": {} (", metric.name)).count(), 1, "{list}");
        }
        assert_eq!(list.matches("  Group #").count(), GROUPS.len());
    }
}
