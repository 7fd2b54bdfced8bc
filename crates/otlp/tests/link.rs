//! What the program for OTLP says to a collector, and what it does when that breaks off or does not answer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use common::{PROGRAM, packets_of, request, span};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use serde_json::json;
use tonic::Code;
use tonic::transport::Channel;

/// The program, with a test as its collector.
struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    listener: UnixListener,
    address: String,
    _folder: tempfile::TempDir,
}

impl Program {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let request = json!({
            "action": "serve", "listen": "127.0.0.1:0", "collector": socket, "recordings": 2, "packet_bytes": 1 << 20,
        });
        let mut command = Command::new(PROGRAM);
        let mut child = command.arg(request.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = said["address"].as_str().unwrap().to_owned();
        Self { stdin: child.stdin.take(), child, listener, address, _folder: folder }
    }

    async fn client(&self) -> TraceServiceClient<Channel> {
        TraceServiceClient::connect(format!("http://{}", self.address)).await.unwrap()
    }

    /// Accepts a connection and reads this many packets of it.
    fn accept(&self, packets: usize) -> (UnixStream, Vec<u8>) {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let bytes = read(&stream, packets);
        (stream, bytes)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads this many packets.
fn read(mut stream: &UnixStream, packets: usize) -> Vec<u8> {
    let mut all = Vec::new();
    for _ in 0..packets {
        let mut frame = [0; 8];
        stream.read_exact(&mut frame).unwrap();
        let mut rest = vec![0; u32::from_be_bytes(frame[4..].try_into().unwrap()) as usize - 8];
        stream.read_exact(&mut rest).unwrap();
        all.extend_from_slice(&frame);
        all.extend_from_slice(&rest);
    }
    all
}

/// Epoch, session, resource.
const HEAD: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_acknowledged_is_sent_again_on_the_next_connection() {
    let mut program = Program::start();
    let mut client = program.client().await;
    let sends = |mut client: TraceServiceClient<Channel>, number| {
        tokio::spawn(async move { client.export(request("a", vec![span(number, 0, "s")])).await })
    };
    let first = sends(client.clone(), 1);
    let (mut stream, bytes) = program.accept(HEAD + 1);
    assert!(!first.is_finished(), "answered before it was stored");
    stream.write_all(&(bytes.len() as u64).to_be_bytes()).unwrap();
    first.await.unwrap().unwrap();
    // The second is not acknowledged; the collector breaks off.
    let second = sends(client.clone(), 2);
    let lost = read(&stream, 1);
    drop(stream);
    let (mut stream, bytes) = program.accept(HEAD + 2);
    let text = packets_of(&bytes);
    assert!(text[1].contains("part=Unsigned(1)"), "{}", text[1]);
    assert!(text[3].starts_with("anytrace.account") && text[3].contains("all_recorded=Unsigned(2)"), "{}", text[3]);
    assert_eq!(text[4], packets_of(&lost)[0], "the same event with the same counter");
    // An acknowledgement of all but its last byte is none.
    stream.write_all(&(bytes.len() as u64 - 1).to_be_bytes()).unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!second.is_finished());
    stream.write_all(&(bytes.len() as u64).to_be_bytes()).unwrap();
    second.await.unwrap().unwrap();
    // The end: a last account, and the program ends when that is acknowledged.
    program.stdin = None;
    let last = read(&stream, 1);
    assert!(packets_of(&last)[0].contains("closed=Unsigned(1)"));
    stream.write_all(&((bytes.len() + last.len()) as u64).to_be_bytes()).unwrap();
    assert!(program.child.wait().unwrap().success());
    assert!(client.export(request("a", Vec::new())).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_does_not_store_makes_senders_come_again() {
    let mut program = Program::start();
    let mut client = program.client().await;
    let begun = Instant::now();
    let status = client.export(request("a", vec![span(1, 0, "s")])).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!((9..15).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    // What it handed over is stored all the same when the collector is there.
    let (_stream, bytes) = program.accept(HEAD + 1);
    assert!(packets_of(&bytes)[3].contains(" s span.id"));
    // It ends without an answer, in time.
    program.stdin = None;
    let begun = Instant::now();
    assert!(program.child.wait().unwrap().success());
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recording_used_least_makes_room_for_another() {
    let program = Program::start();
    let client = program.client().await;
    let mut connections = Vec::new();
    for (service, ended) in [("a", None), ("b", None), ("c", Some(0))] {
        let mut client = client.clone();
        let sent = tokio::spawn(async move { client.export(request(service, vec![span(1, 0, "s")])).await });
        let (mut stream, bytes) = program.accept(HEAD + 1);
        assert!(packets_of(&bytes)[1].contains(&format!("program=Text(\"{service}\")")));
        stream.write_all(&(bytes.len() as u64).to_be_bytes()).unwrap();
        sent.await.unwrap().unwrap();
        connections.push(stream);
        if let Some(ended) = ended {
            let last: &UnixStream = &connections[ended];
            assert!(packets_of(&read(last, 1))[0].contains("closed=Unsigned(1)"));
        }
    }
}
