//! Receiving datagrams: one thread a socket, because a socket's buffer holds but milliseconds of a busy sender.

use std::fs;
use std::io::IoSliceMut;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anytrace_core::Error;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::{PassCred, RcvBuf, RcvBufForce, RxqOvfl};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, UnixCredentials, getsockopt, recvmmsg, setsockopt,
};
use nix::sys::stat::fstat;

use crate::queue::{Batch, Queue, Sender};

/// Room for one datagram; a UDP datagram has at most 65,507 bytes.
const DATAGRAM_BYTES: usize = 1 << 16;

/// Datagrams taken by one call.
const AT_ONCE: usize = 32;

/// Receive buffer asked for.
const RECEIVE_BYTES: usize = 8 << 20;

/// How often a thread looks whether it should end.
const GLANCE: u16 = 50;

/// How long what already waits in the socket is still taken when the collection ends.
const LAST_READ: Duration = Duration::from_secs(1);

/// Numbers of a socket that its thread writes and others read.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Datagrams that the kernel dropped because the socket's buffer was full.
    pub(crate) kernel_dropped: AtomicU64,
    /// Datagrams longer than any that may be taken.
    pub(crate) cut: AtomicU64,
    stop: AtomicBool,
}

/// What kind of addresses a socket has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Ip4,
    Ip6,
    Unix,
}

/// A socket and its thread.
pub(crate) struct Receiver {
    pub(crate) shared: Arc<Shared>,
    /// Receive buffer granted, in bytes.
    pub(crate) granted_bytes: u64,
    inode: u64,
    family: Family,
    /// Keeps the socket open for the final reading of the kernel's drop count.
    _socket: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Starts to receive. `socket` is a bound datagram socket.
    pub(crate) fn start(socket: OwnedFd, listener: usize, family: Family, queue: Queue) -> Result<Self, Error> {
        let failed = |error: Errno| Error::io("cannot prepare a socket", error.into());
        // More than the system's limit needs a privilege; without it the system grants its limit.
        if setsockopt(&socket, RcvBufForce, &RECEIVE_BYTES).is_err() {
            setsockopt(&socket, RcvBuf, &RECEIVE_BYTES).map_err(failed)?;
        }
        // The kernel doubles what was asked for and counts its own bookkeeping in it.
        let granted_bytes = getsockopt(&socket, RcvBuf).map_err(failed)? as u64;
        // Sockets of the file system know neither.
        let _ = setsockopt(&socket, RxqOvfl, &1);
        let _ = setsockopt(&socket, PassCred, &true);
        let inode = fstat(&socket).map_err(failed)?.st_ino;
        let shared = Arc::new(Shared::default());
        let (of_thread, its_shared) = (socket.try_clone()?, Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name(format!("receive {listener}"))
            .spawn(move || receive((&of_thread, family), listener, &queue, &its_shared))
            .map_err(|error| Error::io("cannot start a thread", error))?;
        Ok(Self { shared, granted_bytes, inode, family, _socket: socket, thread: Some(thread) })
    }

    /// Asks the thread to take the waiting datagrams and to end.
    pub(crate) fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
    }

    /// True when the thread has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Reads the kernel's own count, which includes drops that no later datagram reported.
    pub(crate) fn look_up_drops(&self) {
        let table = match self.family {
            Family::Ip4 => "/proc/net/udp",
            Family::Ip6 => "/proc/net/udp6",
            // Its senders wait instead.
            Family::Unix => return,
        };
        if let Some(drops) = fs::read_to_string(table).ok().and_then(|table| drops_of(&table, self.inode)) {
            // The greater of the two counts: this one includes drops that no later datagram reported.
            self.shared.kernel_dropped.fetch_max(drops, Ordering::Relaxed);
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // It never panics on its own.
            let _ = thread.join();
        }
    }
}

/// The column `drops` of the row with that inode.
fn drops_of(table: &str, inode: u64) -> Option<u64> {
    let inode = inode.to_string();
    let row = table.lines().find(|line| line.split_ascii_whitespace().nth(9) == Some(&inode))?;
    row.split_ascii_whitespace().next_back()?.parse().ok()
}

fn receive((socket, family): (&OwnedFd, Family), listener: usize, queue: &Queue, shared: &Shared) {
    let mut room = vec![0; DATAGRAM_BYTES * AT_ONCE];
    let mut deadline = None;
    let mut last_drops = 0;
    loop {
        if deadline.is_none() && shared.stop.load(Ordering::Acquire) {
            deadline = Some(Instant::now() + LAST_READ);
        }
        match take((socket, family), &mut room, shared, &mut last_drops) {
            Ok(batch) => queue.push(listener, batch),
            // The socket is empty and nothing more is wanted.
            Err(Errno::EAGAIN) if deadline.is_some() => return,
            Err(Errno::EAGAIN | Errno::EINTR) => {
                let mut wanted = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
                // A wait that is interrupted is only shorter.
                let _ = poll(&mut wanted, PollTimeout::from(GLANCE));
            }
            // Errors of single datagrams, such as a refusal that came back, are reported once and then cleared.
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return;
        }
    }
}

/// Takes the datagrams that wait.
fn take(
    (socket, family): (&OwnedFd, Family),
    room: &mut [u8],
    shared: &Shared,
    last_drops: &mut u32,
) -> Result<Batch, Errno> {
    let mut batch = Batch::default();
    let mut lengths = [0; AT_ONCE];
    {
        let mut slices: Vec<[IoSliceMut<'_>; 1]> =
            room.chunks_mut(DATAGRAM_BYTES).map(|room| [IoSliceMut::new(room)]).collect();
        // Rebuilt each time: the kernel writes the lengths it used into the headers.
        let space = cmsg_space!(u32, UnixCredentials);
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(AT_ONCE, Some(space));
        let got = recvmmsg(socket.as_raw_fd(), &mut headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None)?;
        for (message, length) in got.zip(&mut lengths) {
            let mut process = 0;
            for control in message.cmsgs().into_iter().flatten() {
                match control {
                    ControlMessageOwned::RxqOvfl(drops) => {
                        // The kernel's number counts from the socket's creation in 32 bits and may wrap.
                        let more = drops.wrapping_sub(std::mem::replace(last_drops, drops));
                        shared.kernel_dropped.fetch_add(u64::from(more), Ordering::Relaxed);
                    }
                    ControlMessageOwned::ScmCredentials(credentials) => process = credentials.pid(),
                    _ => {}
                }
            }
            *length = message.bytes;
            if message.flags.contains(MsgFlags::MSG_TRUNC) {
                shared.cut.fetch_add(1, Ordering::Relaxed);
            }
            // The kernel writes no address for a sender without a name: what is in its place then is of another datagram.
            let address = message.address.as_ref().filter(|_| !matches!(family, Family::Unix));
            batch.items.push((sender(address, process), 0));
        }
    }
    // Exactly as long as needed: the queue counts the capacity.
    batch.bytes.reserve_exact(lengths.iter().sum());
    for (((_, end), length), datagram) in batch.items.iter_mut().zip(lengths).zip(room.chunks(DATAGRAM_BYTES)) {
        batch.bytes.extend_from_slice(datagram.get(..length).unwrap_or(datagram));
        *end = batch.bytes.len();
    }
    Ok(batch)
}

/// The sender of a datagram. On Unix sockets that is the process: most senders have no name there, and a program that
/// starts again is another one.
fn sender(address: Option<&SockaddrStorage>, process: i32) -> Sender {
    if let Some(v4) = address.and_then(SockaddrStorage::as_sockaddr_in) {
        return Sender::Net(SocketAddr::V4(SocketAddrV4::from(*v4)));
    }
    match address.and_then(SockaddrStorage::as_sockaddr_in6) {
        Some(v6) => Sender::Net(SocketAddr::V6(SocketAddrV6::from(*v6))),
        None => Sender::Process(process),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_kernels_table_is_read_by_inode() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  101: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000   101        0 4711 2 0000000000000000 12
  102: 0100007F:0036 00000000:0000 07 00000000:00000000 00:00000000 00000000   101        0 4712 2 0000000000000000 7";
        assert_eq!((drops_of(table, 4712), drops_of(table, 4711), drops_of(table, 1)), (Some(7), Some(12), None));
    }

    #[test]
    fn drops_of_the_kernel_are_counted_to_the_datagram() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let (_ear, bell) = UnixStream::pair().unwrap();
        let queue = Queue::new(64 << 20, bell);
        // Nobody receives while these are sent, so they overrun any buffer.
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        setsockopt(&socket, RcvBuf, &4096).unwrap();
        let sent = 3000;
        (0..sent).for_each(|_| assert_eq!(from.send_to(&[7; 500], to).unwrap(), 500));
        let receiver = Receiver::start(socket.into(), 3, Family::Ip4, queue.clone()).unwrap();
        receiver.stop();
        while !receiver.has_ended() {
            std::thread::yield_now();
        }
        receiver.look_up_drops();
        let taken: usize = queue.take().batches.iter().map(|(_, batch)| batch.items.len()).sum();
        assert!(taken > 0 && taken < sent, "{taken}");
        assert_eq!(taken as u64 + receiver.shared.kernel_dropped.load(Ordering::Relaxed), sent as u64);
    }
}
