//! A server in this process, and requests over real connections.

#![allow(dead_code, reason = "each test uses a part")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anytrace_view::{End, Options, Server, Source};
use serde_json::Value;

/// A response.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let is_it = |line: &&str| line.split(':').next().is_some_and(|own| own.eq_ignore_ascii_case(name));
        self.head.lines().find(is_it).and_then(|line| line.split_once(':')).map(|(_, value)| value.trim())
    }
}

/// A running server.
pub(crate) struct Client {
    pub(crate) host: String,
    pub(crate) token: String,
    end: End,
    thread: Option<JoinHandle<()>>,
}

pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(name)
}

impl Client {
    pub(crate) fn new(options: Options) -> Self {
        let server = Server::bind(options).unwrap();
        let url = server.url();
        let (host, rest) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let (host, token, end) = (host.to_owned(), rest.trim_end_matches('/').to_owned(), server.end());
        let thread = Some(std::thread::spawn(move || server.run().unwrap()));
        Self { host, token, end, thread }
    }

    /// A server of these files, when all of them were read.
    pub(crate) fn of(files: &[PathBuf]) -> Self {
        let sources = files.iter().map(|path| Source { path: path.clone(), ..Source::default() });
        let client = Self::new(Options { files: sources.collect(), ..Options::default() });
        client.complete();
        client
    }

    /// What is shown, when all was read.
    pub(crate) fn complete(&self) -> Value {
        let start = Instant::now();
        loop {
            let trace = self.json("api/trace");
            if trace["complete"] == true {
                return trace;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{trace}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends bytes as they are.
    pub(crate) fn raw(&self, request: &[u8]) -> Response {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let at = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let mut body = bytes.get(at + 4..).unwrap_or_default().to_vec();
        if head.to_lowercase().contains("transfer-encoding: chunked") {
            body = unchunked(&body);
        }
        Response { status, head, body }
    }

    pub(crate) fn path(&self, path: &str) -> Response {
        self.raw(format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.host).as_bytes())
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.path(&format!("/{}/{path}", self.token))
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        response.json()
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Response {
        let (token, host, length) = (&self.token, &self.host, body.len());
        self.raw(
            format!(
                "POST /{token}/{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n\
                 {body}"
            )
            .as_bytes(),
        )
    }

    /// Items of a window.
    pub(crate) fn tiles(&self, start: f64, end: f64, pixels: u32) -> Vec<Item> {
        let response = self.get(&format!("api/tiles?start={start}&end={end}&px={pixels}"));
        assert_eq!(response.status, 200, "{}", response.text());
        items(&response.body)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.end.now();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(at) = bytes.windows(2).position(|window| window == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&bytes[..at]).unwrap(), 16).unwrap();
        if length == 0 {
            break;
        }
        out.extend_from_slice(&bytes[at + 2..at + 2 + length]);
        bytes = &bytes[at + 4 + length..];
    }
    out
}

/// An item of a tile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Item {
    pub(crate) track: u32,
    pub(crate) depth: u32,
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) busy: f64,
    pub(crate) count: u32,
    pub(crate) name: u32,
    pub(crate) flags: u32,
    pub(crate) longest_name: u32,
}

pub(crate) fn items(bytes: &[u8]) -> Vec<Item> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let float = |at: usize| f64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!(word(0), 0x3154_5641);
    let count = word(4) as usize;
    assert_eq!(bytes.len(), 16 + 48 * count);
    let item = |number: usize| {
        let at = 16 + 48 * number;
        Item {
            track: word(at),
            depth: word(at + 4),
            start: float(at + 8),
            end: float(at + 16),
            busy: float(at + 24),
            count: word(at + 32),
            name: word(at + 36),
            flags: word(at + 40),
            longest_name: word(at + 44),
        }
    };
    (0..count).map(item).collect()
}
