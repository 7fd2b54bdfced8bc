//! What to collect, how to keep it, and the limits for senders.

use std::path::PathBuf;
use std::time::Duration;

use crate::access::Access;
use crate::address::Endpoint;
use crate::forward::ForwardOptions;

/// The task of [`collect`](crate::collect).
#[derive(Debug, Clone)]
pub struct CollectOptions {
    /// Addresses to listen on.
    pub listen: Vec<Endpoint>,
    /// The program that speaks OpenTelemetry's protocol, `anytrace-otlp`, for addresses of it.
    pub otlp: Option<PathBuf>,
    /// Where to send what is collected.
    pub forward: Option<ForwardOptions>,
    /// Files to follow as they grow.
    pub follow: Vec<PathBuf>,
    /// What the end of a followed file means.
    pub end_of_file: EndOfFile,
    /// Whether addresses that other machines can reach are allowed.
    pub reach: Reach,
    /// Who may send.
    pub access: Access,
    /// Whether stored data is acknowledged to recorders that ask for it.
    pub acknowledges: bool,
    /// Where the files go.
    pub store: StoreOptions,
    /// What no sender may exceed.
    pub caps: Caps,
    /// Time between summaries.
    pub interval: Duration,
    /// Ends the collection after this time.
    pub duration: Option<Duration>,
    /// Ends the collection once this many events are kept.
    pub events_max: Option<u64>,
}

impl CollectOptions {
    /// No address to listen on yet; files go into `folder`.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            listen: Vec::new(),
            otlp: None,
            forward: None,
            follow: Vec::new(),
            end_of_file: EndOfFile::Waits,
            reach: Reach::Known,
            access: Access::default(),
            acknowledges: false,
            store: StoreOptions::new(folder),
            caps: Caps::default(),
            interval: Duration::from_secs(1),
            duration: None,
            events_max: None,
        }
    }
}

/// What the end of a followed file means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOfFile {
    /// More may be written.
    Waits,
    /// The file is complete; without listeners the collection ends when all files are read.
    Ends,
}

/// Who may reach the addresses listened on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Programs of this machine, and over TLS those that show a certificate or a token ([`Access`]); other addresses are
    /// refused.
    Known,
    /// Anyone: senders over TCP and UDP are not authenticated, and what they send can be read on the way.
    Anyone,
}

/// How received packets are kept.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The folder; created if necessary.
    pub folder: PathBuf,
    /// Whether a folder with files of an earlier collection is used.
    pub earlier: Earlier,
    /// Begins a new file before one gets longer than this.
    pub rotate_bytes: Option<u64>,
    /// Begins a new file after this many events.
    pub rotate_events: Option<u64>,
    /// Begins a new file after this time.
    pub rotate_after: Option<Duration>,
    /// Keeps this many closed files of each recording, or of each source without a session, and removes older ones.
    pub keep: Option<usize>,
    /// Removes the oldest closed files while all files together have more bytes than this. Files are begun at an eighth
    /// of it, if not earlier.
    pub bytes_max: Option<u64>,
    /// Removes files that were closed longer ago than this.
    pub age_max: Option<Duration>,
    /// When bytes are forced to the disk.
    pub fsync: Fsync,
}

impl StoreOptions {
    /// One file per source, synced every second.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            earlier: Earlier::Refuses,
            rotate_bytes: None,
            rotate_events: None,
            rotate_after: None,
            keep: None,
            bytes_max: None,
            age_max: None,
            fsync: Fsync::Every(Duration::from_secs(1)),
        }
    }
}

/// What files of an earlier collection in the folder mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earlier {
    /// The folder is not used.
    Refuses,
    /// New files get the following numbers.
    Continues,
}

/// When bytes are forced to the disk. A killed collector loses nothing that it wrote, whatever the setting; this is
/// about machines that stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fsync {
    /// When the system sees fit.
    Never,
    /// About this often.
    Every(Duration),
    /// Before more is received.
    Batch,
}

/// What no sender may exceed.
#[derive(Debug, Clone, Copy)]
pub struct Caps {
    /// Longest packet, in bytes.
    pub packet_bytes: u64,
    /// Most connections at a time.
    pub connections: usize,
    /// Maximum number of sources: datagram senders, connections, files.
    pub sources: usize,
    /// Most streams of a source that are counted separately.
    pub streams: usize,
    /// How long to wait for the rest of a packet, and how long a connection may be idle.
    pub idle: Duration,
    /// Bytes a second that a source may send; a stream is read no faster, datagrams above it are dropped and counted.
    pub rate_bytes: Option<u64>,
    /// Memory for unwritten bytes and for the state of streams, in bytes.
    pub memory_bytes: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            packet_bytes: 16 << 20,
            connections: 64,
            sources: 256,
            streams: 65_536,
            idle: Duration::from_secs(60),
            rate_bytes: Some(256 << 20),
            memory_bytes: 64 << 20,
        }
    }
}
