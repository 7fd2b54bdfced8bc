//! Networks that lose, repeat and delay datagrams, and connections that break.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// xorshift64 (Marsaglia 2003).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// Something between a recorder and a collector.
pub(super) struct Between {
    pub(super) address: SocketAddr,
    /// Connections broken, datagrams lost.
    pub(super) done: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Between {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

/// Passes connections on and breaks the first so many, each after some bytes; what it had not passed on is lost.
pub(super) fn breaking(to: SocketAddr, breaks: u64) -> Result<Between, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.set_nonblocking(true).map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let (done, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
    let (its_done, its_stop) = (done.clone(), stop.clone());
    let thread = std::thread::spawn(move || {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        while !its_stop.load(Ordering::SeqCst) {
            let Ok((near, _)) = listener.accept() else {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            };
            let bytes = if its_done.load(Ordering::SeqCst) < breaks { random.below(40_000) } else { u64::MAX };
            pass(near, to, bytes, &its_stop);
            its_done.fetch_add(1, Ordering::SeqCst);
        }
    });
    Ok(Between { address, done, stop, thread: Some(thread) })
}

/// Passes on so many bytes, and acknowledgements back.
fn pass(mut near: TcpStream, to: SocketAddr, mut bytes: u64, stop: &AtomicBool) {
    let wait = Some(Duration::from_millis(20));
    let Ok(mut far) = TcpStream::connect(to) else { return };
    if near.set_nonblocking(false).and_then(|()| near.set_read_timeout(wait)).is_err() {
        return;
    }
    let back = (far.try_clone(), near.try_clone());
    let backwards = std::thread::spawn(move || {
        if let (Ok(mut far), Ok(mut near)) = back {
            // It ends with either of the connections.
            let _ = std::io::copy(&mut far, &mut near);
        }
    });
    let mut buffer = [0; 4096];
    while bytes > 0 && !stop.load(Ordering::SeqCst) {
        match near.read(&mut buffer) {
            Ok(0) => break,
            Ok(got) => {
                let passed = got.min(usize::try_from(bytes).unwrap_or(usize::MAX));
                if far.write_all(&buffer[..passed]).is_err() {
                    break;
                }
                bytes -= passed as u64;
            }
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    let _ = far.shutdown(std::net::Shutdown::Both);
    let _ = near.shutdown(std::net::Shutdown::Both);
    let _ = backwards.join();
}

/// Passes datagrams on: loses some, sends some twice, and some later than those that follow.
pub(super) fn lossy(to: SocketAddr) -> Result<Between, String> {
    let failed = |error: std::io::Error| error.to_string();
    let near = UdpSocket::bind("127.0.0.1:0").map_err(failed)?;
    near.set_read_timeout(Some(Duration::from_millis(20))).map_err(failed)?;
    let far = UdpSocket::bind("127.0.0.1:0").map_err(failed)?;
    far.connect(to).map_err(failed)?;
    let address = near.local_addr().map_err(failed)?;
    let (done, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
    let (its_done, its_stop) = (done.clone(), stop.clone());
    let thread = std::thread::spawn(move || {
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        let mut late: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut buffer = vec![0; 65_536];
        let mut number = 0;
        while !its_stop.load(Ordering::SeqCst) {
            let Ok(got) = near.recv(&mut buffer) else { continue };
            number += 1;
            let datagram = &buffer[..got];
            match random.below(20) {
                0 => {
                    its_done.fetch_add(1, Ordering::SeqCst);
                }
                1 => late.push((number + 1 + random.below(8), datagram.to_vec())),
                2 => (0..2).for_each(|_| drop(far.send(datagram))),
                _ => drop(far.send(datagram)),
            }
            let (due, wait) = late.into_iter().partition(|(at, _)| *at <= number);
            let due: Vec<(u64, Vec<u8>)> = due;
            late = wait;
            due.iter().for_each(|(_, datagram)| drop(far.send(datagram)));
            // As fast as a collector takes them, so that only the losses above are ones.
            std::thread::sleep(Duration::from_micros(30));
        }
    });
    Ok(Between { address, done, stop, thread: Some(thread) })
}
