//! Sends a recording again, with its timing.
//!
//! The packets are sent unchanged. An event was written when it was over, so its end determines when it is due; as fast
//! as the receiver takes it, a recording is sent in its own order. The epoch is sent first, because a listener may join at any time.

mod outlet;
mod pace;
mod reorder;

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anytrace_core::{Diagnostic, Error, Input, InputOptions, OpenOptions, Place, Sink};
use anytrace_heph::{Damage, Reader, Record, Visitor};

use crate::address::Endpoint;
use crate::tally::Percentiles;
use outlet::Outlet;
use pace::Pace;
use reorder::{Lag, Reorder};

/// Longest UDP datagram.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;

/// How to send.
#[derive(Debug, Clone)]
pub struct ReplayOptions {
    /// How fast.
    pub speed: Speed,
    /// How often.
    pub rounds: Rounds,
    /// Events that end before this are left out, in nanoseconds since the trace's epoch.
    pub from_ns: u64,
    /// Events that end at this or later are left out.
    pub to_ns: Option<u64>,
    /// Most bytes of a datagram that holds more than one packet.
    pub datagram_bytes: usize,
    /// What damage means.
    pub damage: OnDamage,
    /// How the trace is read.
    pub open: OpenOptions,
    /// How the file is read.
    pub input: InputOptions,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self {
            speed: Speed::Times(1.0),
            rounds: Rounds::One,
            from_ns: 0,
            to_ns: None,
            // The size that fits into an Ethernet frame after the headers of IP version 4 and UDP.
            datagram_bytes: 1472,
            damage: OnDamage::Refuses,
            open: OpenOptions::default(),
            input: InputOptions::default(),
        }
    }
}

/// How fast a recording is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Speed {
    /// This many times as fast as it was recorded; more than 0.
    Times(f64),
    /// As fast as the receiver takes it.
    Max,
}

/// How often a recording is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounds {
    /// Once.
    One,
    /// Until it is stopped. Counters start again each time, as if the program did.
    Endless,
}

/// What damage of a recording means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDamage {
    /// Nothing is sent; of a recording that can be read only once, nothing after the damage.
    Refuses,
    /// It is left out.
    Skips,
}

/// Where a recording is sent.
pub enum Destination<'w> {
    /// An address.
    Address(Endpoint),
    /// Standard output, or whatever takes bytes.
    Writer(&'w mut dyn Write),
}

/// What was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayReport {
    /// Packets.
    pub packets: u64,
    /// Events among them.
    pub events: u64,
    /// Bytes.
    pub bytes: u64,
    /// Datagrams; 0 on streams.
    pub datagrams: u64,
    /// Datagrams that nobody received: the system reported that no program listens there.
    pub refused: u64,
    /// Rounds that were begun.
    pub rounds: u64,
    /// Events outside the selected times.
    pub left_out: u64,
    /// Damaged places left out.
    pub damaged: u64,
    /// Time it took.
    pub elapsed: Duration,
    /// How far events were behind their time; nothing where no times are kept.
    pub late: Percentiles,
    /// True when it was stopped before its end.
    pub was_stopped: bool,
}

/// What must be known before anything is sent.
#[derive(Default)]
struct Survey {
    /// The first epoch packet and its record number.
    epoch: Option<(u64, Vec<u8>)>,
    longest: usize,
    damaged: u64,
    lag: Lag,
}

/// Sends a file; `-` is standard input, which is read once and sent as it arrives.
///
/// `watch` receives the input being sent, `sink` the damage.
///
/// # Errors
/// [`Malformed`](anytrace_core::Kind::Malformed) where the trace is damaged and damage is not skipped; nothing was sent
/// then, unless the input can be read only once. Usage: a packet that fits no datagram. I/O: nobody listens, or the
/// listener is gone.
pub fn replay(
    path: &Path,
    to: Destination<'_>,
    options: &ReplayOptions,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(&Input),
    sink: &mut dyn Sink,
) -> Result<ReplayReport, Error> {
    let is_once = path.as_os_str() == "-";
    if is_once && options.rounds == Rounds::Endless {
        return Err(Error::usage("standard input can be sent only once"));
    }
    let open = || Input::open(path, options.input);
    let survey = if is_once { Survey::default() } else { survey(open()?, options, sink)? };
    if survey.longest > DATAGRAM_BYTES_MAX
        && let Destination::Address(Endpoint::Udp(_)) = to
    {
        let message =
            format!("a packet of {} bytes is too large for a datagram; send it to tcp:// or unix:", survey.longest);
        return Err(Error::usage(message));
    }
    let start = Instant::now();
    let outlet = Outlet::open(to, options.datagram_bytes)?;
    let mut player = Player {
        options,
        stop,
        outlet,
        pace: Pace::new(options.speed),
        lag_ns: if options.speed == Speed::Max { 0 } else { survey.lag.ns },
        ahead: Reorder::default(),
        epoch: survey.epoch.as_ref().map(|(seq, _)| *seq),
        report: ReplayReport::default(),
        sink: is_once.then_some(sink),
    };
    let ended = loop {
        player.report.rounds += 1;
        player.pace.restart();
        player.ahead = Reorder::new(player.lag_ns);
        if let Some((_, packet)) = &survey.epoch {
            player.send(packet)?;
        }
        let input = open()?;
        watch(&input);
        let mut reader = Reader::new(input, &options.open)?;
        let ended = reader.read(&mut player).map(|_| ()).and_then(|()| player.send_due(true));
        let is_last = options.rounds == Rounds::One || player.is_stopped() || player.report.events == 0;
        if ended.is_err() || is_last {
            break ended;
        }
    };
    let stopped = player.is_stopped();
    let mut report = player.finish(stopped && ended.is_err())?;
    if !stopped {
        ended?;
    }
    report.elapsed = start.elapsed();
    Ok(report)
}

/// Reads all of it once.
fn survey(input: Input, options: &ReplayOptions, sink: &mut dyn Sink) -> Result<Survey, Error> {
    let mut surveyor = Surveyor { survey: Survey::default(), first: None, sink };
    Reader::new(input, &options.open)?.read(&mut surveyor)?;
    let Surveyor { survey, first, .. } = surveyor;
    match first {
        Some(diagnostic) if options.damage == OnDamage::Refuses => Err(Error::malformed(diagnostic)),
        _ => Ok(survey),
    }
}

struct Surveyor<'s> {
    survey: Survey,
    first: Option<Diagnostic>,
    sink: &'s mut dyn Sink,
}

impl Visitor for Surveyor<'_> {
    fn packet(&mut self, place: Place, bytes: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        self.survey.longest = self.survey.longest.max(bytes.len());
        if let Record::Metadata(metadata) = packet
            && metadata.epoch_ns().is_some()
            && self.survey.epoch.is_none()
        {
            self.survey.epoch = Some((place.seq, bytes.to_vec()));
        }
        if let Record::Event(event) = packet {
            self.survey.lag.event(event.header.stream, event.header.end_ns);
        }
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        self.survey.damaged += 1;
        self.first.get_or_insert_with(|| damage.to_diagnostic());
        self.report(damage.to_diagnostic())
    }
}

struct Player<'a, 'w> {
    options: &'a ReplayOptions,
    stop: &'a AtomicBool,
    outlet: Outlet<'w>,
    pace: Pace,
    /// The furthest that events are behind others in the file.
    lag_ns: u64,
    /// What is read and not due yet.
    ahead: Reorder,
    /// The record that was sent before all others.
    epoch: Option<u64>,
    report: ReplayReport,
    /// Receives damage that no survey reported.
    sink: Option<&'a mut dyn Sink>,
}

impl Player<'_, '_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn send(&mut self, packet: &[u8]) -> Result<(), Error> {
        self.report.packets += 1;
        self.report.bytes += packet.len() as u64;
        self.outlet.push(packet, self.stop)
    }

    fn finish(mut self, is_broken: bool) -> Result<ReplayReport, Error> {
        if !is_broken {
            self.outlet.end(self.stop)?;
        }
        (self.report.datagrams, self.report.refused) = self.outlet.counts();
        self.report.late = self.pace.late();
        self.report.was_stopped = is_broken;
        Ok(self.report)
    }

    /// Sends an event when it is due.
    fn send_event(&mut self, end_ns: u64, packet: &[u8]) -> Result<(), Error> {
        self.wait(end_ns)?;
        self.report.events += 1;
        self.send(packet)
    }

    /// Sends what was read ahead and has nothing before it in the rest of the file; with `all`, everything.
    fn send_due(&mut self, all: bool) -> Result<(), Error> {
        while let Some(next) = self.ahead.pop(all) {
            self.send_event(next.end_ns, &next.bytes)?;
        }
        Ok(())
    }

    /// Waits until an event that ended then is due.
    fn wait(&mut self, end_ns: u64) -> Result<(), Error> {
        while let Some(left) = self.pace.left(end_ns) {
            self.outlet.flush(self.stop)?;
            if self.is_stopped() {
                return Err(stopped());
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        Ok(())
    }
}

/// Ends the reading; it never reaches the caller.
fn stopped() -> Error {
    Error::io("stopped", std::io::ErrorKind::Interrupted.into())
}

impl Visitor for Player<'_, '_> {
    fn packet(&mut self, place: Place, bytes: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        if self.is_stopped() {
            return Err(stopped());
        }
        match packet {
            Record::Metadata(_) if self.epoch == Some(place.seq) => Ok(()),
            // A thread has its name before its events, wherever those of others are.
            Record::Metadata(metadata) if metadata.thread().is_some() => self.send(bytes),
            Record::Metadata(_) => {
                self.send_due(true)?;
                self.send(bytes)
            }
            Record::Event(event) => {
                let end = event.header.end_ns;
                if end < self.options.from_ns || self.options.to_ns.is_some_and(|to| end >= to) {
                    self.report.left_out += 1;
                    return Ok(());
                }
                if self.lag_ns == 0 {
                    return self.send_event(end, bytes);
                }
                self.ahead.push(event.header.stream, end, bytes);
                self.send_due(false)
            }
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        match &mut self.sink {
            Some(sink) => sink.report(diagnostic),
            None => Ok(()),
        }
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        self.report.damaged += u64::from(self.report.rounds == 1);
        let diagnostic = damage.to_diagnostic();
        if self.sink.is_some() && self.options.damage == OnDamage::Refuses {
            self.outlet.flush(self.stop)?;
            return Err(Error::malformed(diagnostic));
        }
        Visitor::report(self, diagnostic)
    }
}
