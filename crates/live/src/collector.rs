//! The collector: one loop that waits for all sockets and files, takes the available bytes and passes them to the
//! store.

mod helpers;

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anytrace_core::Error;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::access::Gate;
use crate::address::Endpoint;
use crate::census::{Census, NOT_ALLOWED};
use crate::connection::{Connection, Standing, Stream};
use crate::datagram::Receiver;
use crate::descriptors;
use crate::feed::{Got, SCRATCH_BYTES};
use crate::follow::{Follow, GLANCE};
use crate::forward::Forwarder;
use crate::listen::{Bound, Socket, bind};
use crate::listener::Listener;
use crate::observer::Observer;
use crate::options::CollectOptions;
use crate::peer::Address;
use crate::places::{make_room, turns};
use crate::pool::Pool;
use crate::queue::Queue;
use crate::report::{EndedBy, ListenerReport, Report, SourceName, Summary};
use crate::source::Shared;

/// Longest wait: conditions that depend on time are checked this often.
const TICK: Duration = Duration::from_millis(50);

/// How often the losses are written beside the files.
const LOSSES_EVERY: Duration = Duration::from_secs(5);

/// How long bytes waiting in sockets and files are still taken when the collection ends.
const LAST_READ: Duration = Duration::from_secs(1);

/// Reads of one file before others have their turn.
const READS_AT_ONCE: usize = 8;

/// How long a connection may take to send its first packet while others wait to come in.
const GREETING: Duration = Duration::from_millis(250);

/// How long one that has sent a packet waits for a place.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long nobody is accepted while all who wait came but now.
const BREATH: Duration = Duration::from_millis(10);

/// Connections accepted in one go.
const ACCEPT_AT_ONCE: usize = 64;

/// Collects until `stop` is set or a limit of the options is reached.
///
/// # Errors
/// Usage: an address that others can reach without permission, a folder in use. I/O: an address that cannot be opened,
/// a full disk; everything received before is in the files.
pub fn collect(options: &CollectOptions, stop: &AtomicBool, observer: &mut dyn Observer) -> Result<Report, Error> {
    if options.listen.is_empty() && options.follow.is_empty() {
        return Err(Error::usage("nothing to collect from: no address and no file"));
    }
    let mut collector = Collector::open(options, observer)?;
    match collector.run(stop) {
        Ok(ended_by) => collector.finish(ended_by),
        Err(error) => {
            // The first failure is returned; files that can still be closed are closed.
            let _ = collector.census.leave_all(&mut collector.shared);
            let _ = collector.shared.store.finish();
            Err(error)
        }
    }
}

/// True where one more connection may wait; the one that has waited longest without a packet goes for it, if that is long
/// enough to send one.
fn make_way(connections: &mut [Connection], most: usize, now: Instant) -> bool {
    let waits = |one: &Connection| one.standing != Standing::Placed && !one.has_ended;
    if connections.iter().filter(|one| waits(one)).count() < most {
        return true;
    }
    let mute = connections.iter_mut().find(|one| one.standing == Standing::Waits && !one.has_ended);
    let Some(mute) = mute.filter(|one| now.duration_since(one.since) >= GREETING) else { return false };
    mute.has_ended = true;
    mute.is_refused = true;
    true
}

struct Collector<'o> {
    options: &'o CollectOptions,
    shared: Shared<'o>,
    census: Census,
    pool: Pool,
    scratch: Vec<u8>,
    gate: Gate,
    queue: Queue,
    ear: UnixStream,
    listeners: Vec<Listener>,
    connections: Vec<Connection>,
    follows: Vec<(Follow, usize)>,
    forwarder: Option<Forwarder>,
    summary_at: Instant,
    losses_at: Instant,
    /// Events and bytes at the last summary.
    last: (u64, u64),
    /// True while the disk is full.
    is_full: bool,
    /// Rounds of reading.
    round: usize,
    /// Most connections that wait for a place.
    waiting_max: usize,
}

impl<'o> Collector<'o> {
    fn open(options: &'o CollectOptions, observer: &'o mut dyn Observer) -> Result<Self, Error> {
        let caps = &options.caps;
        // Before any thread: the mode of socket files is set through the mask of the entire process.
        let bound: Vec<Bound> =
            options.listen.iter().map(|endpoint| bind(endpoint, options)).collect::<Result<_, _>>()?;
        let gate = Gate::new(&options.access)?;
        let mut shared = Shared::new(&options.store, caps, observer)?;
        let forwarder = helpers::start_forwarder(options, shared.tally.events)?;
        let room = descriptors::room();
        let mut census = Census::new(*caps, room.sources);
        let mut follows = Vec::new();
        for path in &options.follow {
            let follow = Follow::new(path, options.end_of_file, caps, shared.now)?;
            let name = SourceName { number: 0, kind: "file", peer: path.display().to_string() };
            let slot = census.enter(name, None, &mut shared)?;
            follows.push((follow, slot.ok_or_else(|| Error::limit("more files than the limit on sources"))?));
        }
        let (ear, bell) = UnixStream::pair()?;
        ear.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        let queue = Queue::new(caps.memory_bytes / 8, bell);
        let mut listeners = Vec::new();
        for (number, mut bound) in bound.into_iter().enumerate() {
            let receiver = match &mut bound.socket {
                Socket::Datagrams(socket) => {
                    let family = bound.endpoint.family();
                    let socket = socket.take();
                    socket.map(|socket| Receiver::start(socket, number, family, queue.clone())).transpose()?
                }
                _ => None,
            };
            listeners.push(Listener { bound, receiver, rejected: 0, refused: 0, unauthorized: 0, rests_until: None });
        }
        // The losses are there from the start: a collection that is killed early counts as one.
        let (summary_at, losses_at) = (shared.start + options.interval, shared.start);
        // A packet of the greatest length must find room, or its sender would wait for ever.
        let longest = usize::try_from(caps.packet_bytes).unwrap_or(usize::MAX / 2).saturating_add(2 * SCRATCH_BYTES);
        Ok(Self {
            options,
            shared,
            census,
            pool: Pool::new(
                (caps.memory_bytes / 4).max(longest),
                (4 * caps.memory_bytes).max(longest),
                &options.store.folder,
            ),
            scratch: vec![0; SCRATCH_BYTES],
            gate,
            queue,
            ear,
            listeners,
            connections: Vec::new(),
            follows,
            forwarder,
            summary_at,
            losses_at,
            last: (0, 0),
            is_full: false,
            round: 0,
            waiting_max: room.waiting,
        })
    }

    fn run(&mut self, stop: &AtomicBool) -> Result<EndedBy, Error> {
        let listeners: Vec<ListenerReport> = self.listeners.iter().map(Listener::report).collect();
        self.shared.observer.listening(&listeners)?;
        let mut ready = Vec::new();
        let mut tick_at = self.shared.now;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(EndedBy::Request);
            }
            if self.options.duration.is_some_and(|most| self.shared.now.duration_since(self.shared.start) >= most) {
                return Ok(EndedBy::Duration);
            }
            if self.options.events_max.is_some_and(|most| self.shared.tally.events >= most) {
                return Ok(EndedBy::Events);
            }
            self.turn(&mut ready)?;
            if self.is_full != self.shared.store.is_full {
                self.is_full = self.shared.store.is_full;
                self.shared.observer.storage(self.is_full)?;
            }
            if self.shared.now >= tick_at {
                tick_at = self.shared.now + TICK;
                self.on_tick()?;
            }
            if self.listeners.is_empty() && self.follows.is_empty() {
                return Ok(EndedBy::Files);
            }
        }
    }

    /// Waits for something to do and does it.
    fn turn(&mut self, ready: &mut Vec<bool>) -> Result<(), Error> {
        self.wait(ready)?;
        self.shared.tick();
        if !self.is_full {
            self.accept(ready)?;
            self.take_datagrams()?;
            self.read_connections(ready.get(self.listeners.len()..).unwrap_or_default())?;
            self.place_connections()?;
            self.read_files()?;
        }
        self.census.flush(&mut self.shared.store)?;
        if !self.shared.store.is_full {
            self.acknowledge();
        }
        Ok(())
    }

    /// Waits for something to do. `ready` receives one entry per listener and one per connection.
    fn wait(&mut self, ready: &mut Vec<bool>) -> Result<(), Error> {
        let now = self.shared.now;
        let mut wait = TICK;
        if let Some(due) = self.follows.iter().map(|(follow, _)| follow.due).min().filter(|_| !self.is_full) {
            wait = wait.min(due.saturating_duration_since(now));
        }
        if self.connections.iter().any(|connection| connection.may_have_more(now)) {
            wait = Duration::ZERO;
        }
        // Connections over their rate are left out of the poll, so a short wait must look at them again.
        if self.connections.iter().any(|connection| connection.rests(now)) {
            wait = wait.min(Duration::from_millis(10));
        }
        // The bell of datagrams goes on ringing while nobody takes them.
        let bell = if self.is_full { PollFlags::empty() } else { PollFlags::POLLIN };
        let mut wanted = vec![PollFd::new(self.ear.as_fd(), bell)];
        let mut places = Vec::new();
        let listening = self.listeners.iter().map(|listener| match listener.rests_until {
            Some(until) if now < until => None,
            _ if self.is_full => None,
            _ => listener.bound.socket.listener(),
        });
        // Without room on the disk senders wait, or lose what they send, as they do with a collector that is too slow.
        let reads = !self.is_full;
        let wanted_connections = self.connections.iter().map(|connection| connection.wanted(now).filter(|_| reads));
        let all = listening.chain(wanted_connections);
        ready.clear();
        for (place, fd) in all.enumerate() {
            ready.push(false);
            if let Some(fd) = fd {
                wanted.push(PollFd::new(fd, PollFlags::POLLIN));
                places.push(place);
            }
        }
        // Up to a millisecond late is soon enough; zero must stay zero.
        let wait = u16::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(0);
        match poll(&mut wanted, PollTimeout::from(wait)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(Error::io("cannot wait for sockets", error.into())),
        }
        for (fd, place) in wanted.iter().skip(1).zip(places) {
            if let Some(is_ready) = ready.get_mut(place) {
                *is_ready = fd.any().unwrap_or(true);
            }
        }
        let of_connections = ready.iter_mut().skip(self.listeners.len());
        for (is_ready, connection) in of_connections.zip(&self.connections) {
            *is_ready |= reads && connection.may_have_more(now);
        }
        Ok(())
    }

    fn take_datagrams(&mut self) -> Result<(), Error> {
        let mut rung = [0; 64];
        // The queue is examined whatever was read from the bell.
        while matches!(self.ear.read(&mut rung), Ok(n) if n == rung.len()) {}
        let taken = self.queue.take();
        for ((listener, sender), dropped) in taken.dropped {
            self.census.dropped((listener, sender), dropped);
        }
        self.census.dropped_of_others(taken.dropped_of_others);
        for (number, batch) in taken.batches {
            let Some(listener) = self.listeners.get_mut(number) else { continue };
            self.census.take(number, listener, &batch, &self.gate, &mut self.shared)?;
        }
        Ok(())
    }

    fn accept(&mut self, ready: &[bool]) -> Result<(), Error> {
        let now = self.shared.now;
        for (number, (listener, _)) in
            self.listeners.iter_mut().zip(ready).enumerate().filter(|(_, (_, ready))| **ready)
        {
            let is_tls = matches!(listener.bound.endpoint, Endpoint::Tls(_));
            let tls = self.gate.tls.as_ref().filter(|_| is_tls);
            let is_net = matches!(listener.bound.endpoint, Endpoint::Tcp(_) | Endpoint::Tls(_));
            let is_strict = is_net && self.gate.wants_token();
            for _ in 0..ACCEPT_AT_ONCE {
                if !make_way(&mut self.connections, self.waiting_max, now) {
                    // The system keeps them until then.
                    listener.rests_until = Some(now + BREATH);
                    break;
                }
                let (stream, peer, address) = match Stream::accept(&listener.bound.socket, tls) {
                    Ok(Some(accepted)) => accepted,
                    Ok(None) => break,
                    Err(_) => {
                        // Out of descriptors, or a peer that was gone before it was accepted.
                        listener.rests_until = Some(now + TICK);
                        break;
                    }
                };
                if matches!(address, Address::Net(ip) if !self.gate.allows(ip)) {
                    listener.unauthorized += 1;
                    self.shared.unauthorized(&peer, NOT_ALLOWED)?;
                    continue;
                }
                let kind = listener.bound.endpoint.scheme();
                let name = SourceName { number: 0, kind, peer };
                let slot = self.census.wait(name, self.options.caps.rate_bytes, &mut self.shared);
                let most = self.options.caps.packet_bytes;
                self.connections.push(Connection::new(stream, (address, number), slot, is_strict, most, now));
            }
        }
        if self.connections.iter().any(|connection| connection.has_ended) { self.bury_connections() } else { Ok(()) }
    }

    fn read_connections(&mut self, ready: &[bool]) -> Result<(), Error> {
        let mut has_ended = false;
        let ready: Vec<usize> = (0..self.connections.len()).filter(|at| ready.get(*at) == Some(&true)).collect();
        let addresses: Vec<Address> =
            ready.iter().filter_map(|at| self.connections.get(*at)).map(|connection| connection.address).collect();
        self.round = self.round.wrapping_add(1);
        // Those with nothing more to read are not asked again.
        let mut is_empty = vec![false; ready.len()];
        for turn in turns(&addresses, self.round) {
            let (Some(at), Some(is_empty)) = (ready.get(turn), is_empty.get_mut(turn)) else { continue };
            let Some(connection) = self.connections.get_mut(*at).filter(|_| !*is_empty) else { continue };
            let Some(mut intake) = self.census.intake(connection.slot, &mut self.shared) else { continue };
            let got = connection.read(&mut self.scratch, &mut self.pool, &mut self.gate, &mut intake)?;
            *is_empty = !matches!(got, Got::Bytes(_));
            has_ended |= connection.has_ended;
        }
        if has_ended { self.bury_connections() } else { Ok(()) }
    }

    /// Gives places to connections that have sent a packet, in the order in which they came; refuses those that have waited
    /// for long.
    fn place_connections(&mut self) -> Result<(), Error> {
        let now = self.shared.now;
        let is_placed = |one: &&Connection| one.standing == Standing::Placed && !one.has_ended;
        let mut placed = self.connections.iter().filter(is_placed).count();
        for at in 0..self.connections.len() {
            let Some(connection) = self.connections.get(at).filter(|connection| !connection.has_ended) else {
                continue;
            };
            let Standing::Knocks(since) = connection.standing else { continue };
            let (slot, address) = (connection.slot, connection.address);
            let (caps, connections) = (&self.options.caps, &mut self.connections);
            let is_free = placed < caps.connections;
            let has_place = is_free
                || make_room(connections, address, caps.idle, &mut self.census, &mut self.shared, &mut self.pool)?;
            let has_place = has_place && self.census.place(slot, &mut self.shared)?;
            let Some(connection) = self.connections.get_mut(at) else { continue };
            if has_place {
                placed += usize::from(is_free);
                if let Some(mut intake) = self.census.intake(slot, &mut self.shared) {
                    connection.place(&mut intake)?;
                }
            } else if now.duration_since(since) >= PATIENCE.min(caps.idle / 2) {
                connection.has_ended = true;
                connection.is_refused = true;
            }
        }
        if self.connections.iter().any(|connection| connection.has_ended) { self.bury_connections() } else { Ok(()) }
    }

    /// Everything taken is in the files now. Whoever sends by OTLP always waits for that.
    fn acknowledge(&mut self) {
        for connection in &mut self.connections {
            let acknowledges = || {
                let listener = self.listeners.get(connection.listener);
                listener.is_some_and(|listener| matches!(listener.bound.socket, Socket::Front(_)))
            };
            if self.census.wants_acks(connection.slot) && (self.options.acknowledges || acknowledges()) {
                connection.acknowledge();
            }
        }
    }

    /// Ends the sources of connections that are over.
    fn bury_connections(&mut self) -> Result<(), Error> {
        for connection in self.connections.iter_mut().filter(|connection| connection.has_ended) {
            // Whatever ended it: what it holds is of use to others.
            connection.release(&mut self.pool);
            if let Some(listener) = self.listeners.get_mut(connection.listener) {
                listener.unauthorized += u64::from(connection.is_unauthorized);
                listener.refused += u64::from(connection.is_refused);
            }
            self.census.leave(connection.slot, &mut self.shared)?;
        }
        // After their sources have left, because the slots are known by the connections only.
        self.connections.retain(|connection| !connection.has_ended);
        Ok(())
    }

    fn read_files(&mut self) -> Result<(), Error> {
        let now = self.shared.now;
        for (follow, slot) in self.follows.iter_mut().filter(|(follow, _)| follow.due <= now) {
            let Some(mut intake) = self.census.intake(*slot, &mut self.shared) else { continue };
            let mut left = READS_AT_ONCE;
            while left > 0 && follow.read(&mut self.scratch, &mut self.pool, &mut intake)? {
                left -= 1;
            }
        }
        for (follow, slot) in &self.follows {
            if follow.has_ended {
                self.census.leave(*slot, &mut self.shared)?;
            }
        }
        self.follows.retain(|(follow, _)| !follow.has_ended);
        Ok(())
    }

    fn on_tick(&mut self) -> Result<(), Error> {
        // Also while the disk is full, or their reports would pile up.
        self.hear_helpers()?;
        if self.is_full {
            // What is too old makes room.
            self.shared.store.expire();
            return self.summarize_if_due();
        }
        let idle = self.options.caps.idle;
        let is_short = self.pool.was_short();
        for connection in &mut self.connections {
            if let Some(mut intake) = self.census.intake(connection.slot, &mut self.shared) {
                connection.tick(idle, is_short, &mut self.pool, &mut intake)?;
            }
        }
        self.bury_connections()?;
        self.census.tick(&mut self.shared)?;
        self.shared.store.failure()?;
        if self.shared.now >= self.losses_at {
            self.losses_at = self.shared.now + LOSSES_EVERY;
            let report = self.report(EndedBy::Running);
            self.shared.store.write_losses(report.to_json().to_string().into_bytes());
        }
        self.summarize_if_due()
    }

    fn summarize_if_due(&mut self) -> Result<(), Error> {
        if self.shared.now >= self.summary_at { self.summarize() } else { Ok(()) }
    }

    fn summarize(&mut self) -> Result<(), Error> {
        let late = self.shared.now.duration_since(self.summary_at);
        // Rates are computed from the time that really passed.
        let interval = self.options.interval + late;
        self.summary_at = self.shared.now + self.options.interval;
        let total = self.report(EndedBy::Running);
        let (events, bytes) = (total.events - self.last.0, total.bytes - self.last.1);
        self.last = (total.events, total.bytes);
        self.shared.observer.summary(&Summary { interval, events, bytes, total })
    }

    fn report(&self, ended_by: EndedBy) -> Report {
        let mut report = self.census.report(&self.shared, ended_by);
        report.listeners = self.listeners.iter().map(Listener::report).collect();
        report.forwarded = self.forwarder.as_ref().map(|forwarder| forwarder.report.clone());
        report
    }

    /// Takes the bytes still waiting, closes everything and returns the report.
    fn finish(mut self, ended_by: EndedBy) -> Result<Report, Error> {
        self.end_fronts()?;
        let deadline = Instant::now() + LAST_READ;
        let receivers = || self.listeners.iter().filter_map(|listener| listener.receiver.as_ref());
        receivers().for_each(Receiver::stop);
        while self.listeners.iter().filter_map(|listener| listener.receiver.as_ref()).any(|r| !r.has_ended()) {
            self.shared.tick();
            self.take_datagrams()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        self.shared.tick();
        self.take_datagrams()?;
        // A limit on events excludes those of another second.
        let is_full = self.is_full;
        if !is_full && ended_by != EndedBy::Events {
            // Those that came but now.
            self.read_connections(&vec![true; self.connections.len()])?;
            self.place_connections()?;
        }
        self.read_remaining(if is_full || ended_by == EndedBy::Events { Instant::now() } else { deadline })?;
        for listener in &self.listeners {
            if let Some(receiver) = &listener.receiver {
                receiver.look_up_drops();
            }
        }
        self.census.flush(&mut self.shared.store)?;
        if !self.shared.store.is_full {
            self.acknowledge();
        }
        self.census.leave_all(&mut self.shared)?;
        if let Some(forwarder) = &mut self.forwarder {
            // The files are written as far as they ever will be.
            forwarder.finish(self.shared.tally.events.saturating_sub(self.shared.store.unwritten_events));
        }
        let report = self.report(ended_by);
        self.shared.store.write_losses(report.to_json().to_string().into_bytes());
        self.shared.store.finish()?;
        Ok(report)
    }

    /// Reads the bytes available now from connections and files.
    fn read_remaining(&mut self, deadline: Instant) -> Result<(), Error> {
        for connection in self.connections.iter_mut().filter(|connection| !connection.has_ended) {
            let Some(mut intake) = self.census.intake(connection.slot, &mut self.shared) else { continue };
            while Instant::now() < deadline && !connection.has_ended {
                if !matches!(
                    connection.read(&mut self.scratch, &mut self.pool, &mut self.gate, &mut intake)?,
                    Got::Bytes(_)
                ) {
                    break;
                }
            }
            connection.leave(&mut self.pool, &mut intake);
        }
        for (follow, slot) in &mut self.follows {
            let Some(mut intake) = self.census.intake(*slot, &mut self.shared) else { continue };
            while Instant::now() < deadline && follow.read(&mut self.scratch, &mut self.pool, &mut intake)? {}
            follow.leave(&mut self.pool, &mut intake);
        }
        debug_assert!(GLANCE < TICK, "files are looked at more often than time passes");
        Ok(())
    }
}
