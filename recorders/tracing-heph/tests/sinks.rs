//! Files that rotate, sockets that reconnect, datagrams of complete packets.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::fs;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use common::{Folder, Trace, codes, read, read_sound, wait_until};
use tracing_heph::{Guard, Recorder};

fn points(recorder: &Recorder, range: std::ops::Range<u64>) {
    for n in range {
        recorder.point("point").u64("n", n).str("text", "some text, so that it is not too short");
    }
}

fn numbers(trace: &Trace) -> Vec<u64> {
    trace.events.iter().filter_map(|event| event.get("n")?.strip_prefix("u64 ")?.parse().ok()).collect()
}

fn stats_after(guard: Guard) -> (u64, u64, u64) {
    let stats = guard.close();
    (stats.written, stats.dropped, stats.lost)
}

#[test]
fn files_rotate_and_each_can_be_read_alone() {
    let folder = Folder::new();
    // A file of an earlier run in the way.
    fs::write(folder.folder().join("trace.2.heph"), "mine").unwrap();
    let (recorder, guard) = Recorder::builder().file(folder.path()).rotate_bytes(10_000).build_recorder().unwrap();
    points(&recorder, 0..1_000);
    let big = "x".repeat(30_000);
    recorder.point("bigger than a file").u64("n", 1_000).str("text", &big);
    points(&recorder, 1_001..1_100);
    let renewals = guard.stats().renewals;
    let stats = guard.close();
    assert!(stats.renewals >= renewals);
    assert_eq!((stats.written, stats.dropped, stats.lost), (1_100, 0, 0));
    assert_eq!(fs::read(folder.folder().join("trace.2.heph")).unwrap(), b"mine");
    let mut all = Vec::new();
    let mut epochs: Vec<u64> = Vec::new();
    let (mut files, mut bytes, mut short) = (0, 0, 0);
    for number in 0..=stats.renewals + 1 {
        let name = if number == 0 { "trace.heph".to_owned() } else { format!("trace.{number}.heph") };
        if number == 2 {
            continue;
        }
        let content = fs::read(folder.folder().join(&name)).unwrap();
        let trace = read(&content);
        assert!(trace.starts_with_epoch && trace.epochs.len() == 1, "{name}");
        assert_eq!(trace.complaints, Vec::<String>::new());
        let is_last = number == stats.renewals + 1;
        let fine = |code: &String| code == "heph/counter-starts-at" || code == "heph/session-not-closed" && !is_last;
        assert!(codes(&content).iter().all(fine), "{:?}", codes(&content));
        assert_eq!(trace.sessions[0].part, number - u64::from(number > 2), "{name}");
        // A later part says what came before it.
        assert!(number == 0 || trace.accounts[0].all.recorded >= all.len() as u64);
        assert_eq!(trace.accounts.last().is_some_and(|account| account.is_closed), is_last);
        let is_big = trace.names() == ["bigger than a file"];
        assert!(is_big || content.len() <= 10_000, "{name}");
        short += usize::from(!is_big && content.len() <= 9_800);
        epochs.extend(&trace.epochs);
        all.extend(numbers(&trace));
        files += 1;
        bytes += content.len() as u64;
    }
    assert!(short <= 2, "only the last file and the one before the big event have room left");
    assert_eq!(fs::read_dir(folder.folder()).unwrap().count(), files + 1);
    assert_eq!(all, (0..1_100).collect::<Vec<_>>());
    assert!(epochs.windows(2).all(|two| two[0] == two[1]));
    assert_eq!(stats.bytes, bytes);
}

#[test]
fn the_newest_files_are_kept() {
    let folder = Folder::new();
    let builder = Recorder::builder().file(folder.path()).rotate_bytes(5_000).keep_files(3);
    let (recorder, guard) = builder.build_recorder().unwrap();
    points(&recorder, 0..1_000);
    let renewals = guard.close().renewals;
    assert!(renewals > 10);
    let mut names: Vec<_> =
        fs::read_dir(folder.folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    assert_eq!(names, (renewals - 2..=renewals).map(|number| format!("trace.{number}.heph")).collect::<Vec<_>>());
    let last = fs::read(folder.folder().join(&names[2])).unwrap();
    assert_eq!(numbers(&read(&last)).last(), Some(&999));
}

#[test]
fn a_file_that_exists_is_kept_unless_overwriting_is_requested() {
    let folder = Folder::new();
    fs::write(folder.path(), "precious").unwrap();
    let error = Recorder::builder().file(folder.path()).build_recorder().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    assert!(error.to_string().contains("trace.heph"), "{error}");
    assert_eq!(fs::read(folder.path()).unwrap(), b"precious");
    let (recorder, guard) = Recorder::builder().file(folder.path()).overwrite(true).build_recorder().unwrap();
    points(&recorder, 0..3);
    assert_eq!(stats_after(guard), (3, 0, 0));
    assert_eq!(numbers(&read_sound(&folder.path())), [0, 1, 2]);
}

#[test]
fn a_failure_to_open_is_reported() {
    let folder = Folder::new();
    let kind = |builder: tracing_heph::Builder| builder.build_recorder().unwrap_err().kind();
    assert_eq!(kind(Recorder::builder()), std::io::ErrorKind::InvalidInput);
    assert_eq!(kind(Recorder::builder().file(folder.folder().join("no/such"))), std::io::ErrorKind::NotFound);
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    assert_eq!(kind(Recorder::builder().tcp(&address)), std::io::ErrorKind::ConnectionRefused);
    let error = Recorder::builder().tcp(&address).build_recorder().unwrap_err();
    assert!(error.to_string().starts_with(&format!("tcp://{address}: ")), "{error}");
    #[cfg(unix)]
    assert_eq!(kind(Recorder::builder().unix(folder.path())), std::io::ErrorKind::NotFound);
}

#[test]
fn tcp_gives_the_epoch_and_then_everything() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let builder = Recorder::builder().tcp(listener.local_addr().unwrap().to_string());
    let (recorder, guard) = builder.build_recorder().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
        bytes
    });
    points(&recorder, 0..20_000);
    assert_eq!(stats_after(guard), (20_000, 0, 0));
    let bytes = reader.join().unwrap();
    assert_eq!(codes(&bytes), Vec::<String>::new());
    let trace = read(&bytes);
    assert!(trace.starts_with_epoch);
    assert_eq!(numbers(&trace), (0..20_000).collect::<Vec<_>>());
}

#[test]
fn a_connection_that_breaks_is_made_again_with_complete_packets() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let builder = Recorder::builder()
        .tcp(listener.local_addr().unwrap().to_string())
        .flush_interval(Duration::from_millis(1))
        .close_timeout(Duration::from_secs(60));
    let (recorder, guard) = builder.build_recorder().unwrap();
    let mut first = listener.accept().unwrap().0;
    let mut head = vec![0; 23 + 1_000];
    std::thread::scope(|scope| {
        scope.spawn(|| points(&recorder, 0..5_000));
        first.read_exact(&mut head).unwrap();
    });
    assert!(guard.flush());
    drop(first);
    // Until the system notices, what is sent is lost.
    let mut n = 5_000;
    wait_until("the second connection", || {
        points(&recorder, n..n + 1);
        n += 1;
        guard.stats().renewals == 1
    });
    let mut second = listener.accept().unwrap().0;
    points(&recorder, n..n + 1_000);
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        second.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let stats = guard.close();
    assert_eq!((stats.dropped, stats.renewals), (0, 1));
    let bytes = reader.join().unwrap();
    let trace = read(&bytes);
    assert_eq!(trace.complaints, Vec::<String>::new());
    assert!(trace.starts_with_epoch);
    assert_eq!(trace.epochs, read(&head).epochs);
    let numbers = numbers(&trace);
    // Once the connection is there nothing is missing. The first events were another thread's.
    assert_eq!(numbers, (numbers[0]..n + 1_000).collect::<Vec<_>>());
    assert!(trace.events.iter().zip(&numbers).all(|(event, n)| u64::from(event.header.counter) + 5_000 == *n));
}

#[test]
fn a_late_peer_gets_the_waiting_packets() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let builder = Recorder::builder().tcp(address.to_string()).connect_later(true);
    let (recorder, guard) = builder.close_timeout(Duration::from_secs(60)).build_recorder().unwrap();
    points(&recorder, 0..500);
    assert_eq!(guard.stats().written, 0);
    let listener = TcpListener::bind(address).unwrap();
    let mut bytes = Vec::new();
    let mut stream = listener.accept().unwrap().0;
    let reader = std::thread::spawn(move || {
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    });
    assert!(guard.flush());
    assert_eq!(stats_after(guard), (500, 0, 0));
    let bytes = reader.join().unwrap();
    assert_eq!(codes(&bytes), Vec::<String>::new());
    assert_eq!(numbers(&read(&bytes)), (0..500).collect::<Vec<_>>());
}

#[cfg(unix)]
#[test]
fn unix_sockets_and_pipes_get_the_trace() {
    let folder = Folder::new();
    let socket = folder.folder().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let (recorder, guard) = Recorder::builder().unix(&socket).build_recorder().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
        bytes
    });
    points(&recorder, 0..2_000);
    assert_eq!(stats_after(guard), (2_000, 0, 0));
    assert_eq!(numbers(&read(&reader.join().unwrap())), (0..2_000).collect::<Vec<_>>());

    let pipe = folder.folder().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    let (recorder, guard) = Recorder::builder().file(&pipe).rotate_bytes(1_000).build_recorder().unwrap();
    points(&recorder, 0..2_000);
    assert_eq!(stats_after(guard), (2_000, 0, 0));
    assert_eq!(numbers(&read(&reader.join().unwrap())), (0..2_000).collect::<Vec<_>>());
}

/// Datagrams until so many events came, or none for a while.
fn datagrams(socket: &UdpSocket, events: usize) -> Vec<Vec<u8>> {
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let (mut datagrams, mut seen) = (Vec::new(), 0);
    let mut buffer = vec![0; 65_536];
    while seen < events {
        let bytes = socket.recv(&mut buffer).unwrap();
        let trace = read(&buffer[..bytes]);
        assert_eq!(trace.complaints, Vec::<String>::new(), "only complete packets");
        seen += trace.events.len();
        datagrams.push(buffer[..bytes].to_vec());
    }
    datagrams
}

#[test]
fn datagrams_contain_complete_packets_up_to_their_size() {
    for size in [100, 1_400, 9_000] {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let (recorder, guard) = Recorder::builder().udp(address).datagram_bytes(size).build_recorder().unwrap();
        points(&recorder, 0..200);
        assert_eq!(stats_after(guard), (200, 0, 0));
        let datagrams = datagrams(&socket, 200);
        assert!(read(&datagrams[0]).starts_with_epoch);
        // A single packet may be longer: it goes alone.
        for datagram in &datagrams {
            assert!(datagram.len() <= size || read(datagram).events.len() <= 1);
        }
        // Each but the last of a batch is filled with as many complete packets as fit.
        let packet = datagrams[2].len() / read(&datagrams[2]).events.len();
        assert!(datagrams.iter().filter(|datagram| datagram.len() + packet <= size).count() <= 3);
        let numbers: Vec<u64> = datagrams.iter().flat_map(|datagram| numbers(&read(datagram))).collect();
        assert_eq!(numbers, (0..200).collect::<Vec<_>>());
    }
}

#[test]
fn an_event_longer_than_a_datagram_is_a_gap() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (recorder, guard) = Recorder::builder().udp(socket.local_addr().unwrap().to_string()).build_recorder().unwrap();
    points(&recorder, 0..1);
    let long = "x".repeat(60_000);
    recorder.point("fits").u64("n", 1).str("text", &long);
    recorder.point("does not").u64("n", 2).str("text", &long).str("more", &long);
    points(&recorder, 3..4);
    let stats = guard.close();
    assert_eq!((stats.written, stats.dropped, stats.lost), (3, 0, 1));
    assert!(stats.last_error.unwrap().contains("too long for a datagram"));
    let datagrams = datagrams(&socket, 3);
    let all = datagrams.concat();
    assert_eq!(numbers(&read(&all)), [0, 1, 3]);
    assert_eq!(codes(&all), ["heph/counter-gap", "heph/session-not-closed"]);
    // The end is sent several times, and says what the socket refused.
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut buffer = vec![0; 65_536];
    for _ in 0..5 {
        let bytes = socket.recv(&mut buffer).unwrap();
        let end = read(&buffer[..bytes]);
        assert!(end.accounts.len() == 1 && end.accounts[0].is_closed, "each in a datagram of its own");
        assert_eq!((end.accounts[0].all.recorded, end.accounts[0].all.lost), (4, 1));
        assert_eq!(codes(&[&all, &buffer[..bytes]].concat()), ["heph/counter-gap"]);
    }
}

#[test]
fn datagrams_nobody_receives_do_no_harm() {
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let builder = Recorder::builder().udp(address.to_string()).flush_interval(Duration::from_millis(1));
    let (recorder, guard) = builder.build_recorder().unwrap();
    points(&recorder, 0..1_000);
    assert!(guard.flush());
    let socket = UdpSocket::bind(address).unwrap();
    points(&recorder, 1_000..1_001);
    let stats = guard.close();
    assert_eq!(stats.written + stats.lost, 1_001);
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut buffer = [0; 2_000];
    let bytes = socket.recv(&mut buffer).unwrap();
    assert_eq!(numbers(&read(&buffer[..bytes])), [1_000]);
}
