//! The options of `collect`, and how their values are read.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anytrace_live::Fsync;
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use ipnet::IpNet;

use crate::arguments::{ResultForm, byte_count};
use crate::durations::{duration, some_duration};

/// `heph collect`.
#[derive(Debug, Args)]
pub(crate) struct CollectArguments {
    /// Address to listen on: udp://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT, unix:PATH or unixgram:PATH, and
    /// otlp://HOST:PORT for spans of OpenTelemetry by gRPC and HTTP; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Vec<String>,
    /// Growing file to follow, even if truncated or renamed; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(super) follow: Vec<PathBuf>,
    /// Folder for the files; created if needed
    #[arg(short, long, value_name = "DIR")]
    pub(super) output: PathBuf,
    /// Acknowledge stored data to recorders that ask for it (tracing-heph, `acknowledged`); they send the rest again when
    /// a connection breaks
    #[arg(long)]
    pub(super) ack: bool,
    /// Continue an earlier collection in the folder: what it left unfinished is completed, and the report goes on
    #[arg(long)]
    pub(super) append: bool,
    /// Read followed files to the end and do not wait for more
    #[arg(long)]
    pub(super) no_follow: bool,
    /// Send what is collected on to an OpenTelemetry collector as spans, by gRPC: otlp://HOST:PORT, or otlps://HOST:PORT
    /// over TLS; what it does not take yet waits in the files
    #[arg(long, value_name = "ADDRESS", value_parser = forward)]
    pub(super) forward: Option<String>,
    /// Show the traces in a browser while they are collected; the address is printed
    #[arg(long)]
    pub(super) view: bool,
    /// Answer Prometheus at http://HOST:PORT/metrics; the figures are those of the last summary (--interval)
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) metrics: Option<SocketAddr>,
    #[command(flatten)]
    pub(super) ends: EndArguments,
    #[command(flatten)]
    pub(super) access: AccessArguments,
    #[command(flatten)]
    pub(super) files: FileArguments,
    #[command(flatten)]
    pub(super) caps: CapArguments,
}

/// When it ends and what it shows meanwhile.
#[derive(Debug, Args)]
pub(super) struct EndArguments {
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = some_duration)]
    pub(super) duration: Option<Duration>,
    /// End after storing N events
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub(super) max_events: Option<u64>,
    /// Progress output
    #[arg(long, value_enum, default_value_t = SummaryForm::Auto)]
    pub(super) summary: SummaryForm,
    /// Time between summaries
    #[arg(long, value_name = "TIME", value_parser = some_duration, default_value = "1s")]
    pub(super) interval: Duration,
    /// How to print the report at the end
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    pub(super) format: ResultForm,
}

/// How summaries are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SummaryForm {
    /// A screen if standard output is a terminal, else nothing
    Auto,
    /// One JSON object per line on standard output
    Json,
    /// Nothing
    None,
}

/// Who may send. Addresses that other machines can reach need TLS, and a certificate or a token of who sends.
#[derive(Debug, Args)]
#[command(next_help_heading = "Senders")]
pub(super) struct AccessArguments {
    /// Certificate for tls:// and otlp:// addresses, with those between it and an authority (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(super) tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_key: Option<PathBuf>,
    /// Authorities whose certificates senders must show, or instead a token if --token-file is given (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_client_ca: Option<PathBuf>,
    /// Tokens, one of which connections over TLS and TCP must show: one per line, then if wanted when it expires (RFC
    /// 3339) and a note; read again when it changes
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// Network whose machines may send, such as 10.1.0.0/16; may be repeated
    #[arg(long, value_name = "NETWORK", value_parser = network)]
    pub(super) allow: Vec<IpNet>,
    /// Listen on addresses that other machines can reach without knowing who sends; anyone who can reach them can send
    #[arg(long, alias = "allow-remote")]
    pub(super) insecure: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
pub(super) struct FileArguments {
    /// Start a new file before one exceeds this size; suffixes k, M, G
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    pub(super) rotate_bytes: Option<u64>,
    /// Start a new file after N events
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub(super) rotate_events: Option<u64>,
    /// Start a new file after this time
    #[arg(long, value_name = "TIME", value_parser = some_duration)]
    pub(super) rotate_time: Option<Duration>,
    /// Keep the last N closed files of each recording (of each source, where none is named) and remove older ones
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(super) keep: Option<usize>,
    /// Remove the oldest closed files while all together have more bytes; suffixes k, M, G
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    pub(super) max_bytes: Option<u64>,
    /// Remove files that were closed longer ago than this
    #[arg(long, value_name = "TIME", value_parser = some_duration)]
    pub(super) max_age: Option<Duration>,
    /// Sync files to disk: never, after each batch, or about this often
    #[arg(long, value_name = "never|batch|TIME", value_parser = fsync, default_value = "1s")]
    pub(super) fsync: Fsync,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct CapArguments {
    /// Longest packet, in bytes; suffixes k, M, G
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "16M")]
    pub(super) max_packet: u64,
    /// Maximum number of connections that have sent a packet; idle ones make room for others
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=65_536), default_value_t = 64)]
    pub(super) max_connections: usize,
    /// Maximum number of sources: datagram senders, connections, files
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=65_536), default_value_t = 256)]
    pub(super) max_sources: usize,
    /// Maximum number of streams per source to check for losses
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..), default_value_t = 65_536)]
    pub(super) max_streams: usize,
    /// How long to wait for the rest of a packet, and how long a connection may be idle
    #[arg(long, value_name = "TIME", value_parser = some_duration, default_value = "60s")]
    pub(super) idle_timeout: Duration,
    /// Maximum bytes per second from one sender; 0 is unlimited. Streams are read no faster; excess datagrams are
    /// dropped
    #[arg(long, value_name = "BYTES", value_parser = rate, default_value = "256M")]
    pub(super) rate_limit: u64,
    /// Memory for received data not yet written and for the state of streams
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "64M")]
    pub(super) memory: u64,
}

/// Where spans are sent: `http://HOST:PORT` or `https://HOST:PORT`.
fn forward(text: &str) -> Result<String, String> {
    let (scheme, rest) = match text.split_once("://") {
        Some(("otlp", rest)) => ("http", rest),
        Some(("otlps", rest)) => ("https", rest),
        _ => return Err("expected otlp://HOST:PORT or otlps://HOST:PORT".to_owned()),
    };
    let is_address = |(host, port): (&str, &str)| {
        let is_named = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic() && !b"/?#@".contains(&byte));
        is_named && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    if rest.rsplit_once(':').is_some_and(is_address) {
        Ok(format!("{scheme}://{rest}"))
    } else {
        Err("expected HOST:PORT after the scheme".to_owned())
    }
}

/// A network, or a single machine.
fn network(text: &str) -> Result<IpNet, String> {
    let single = || text.parse().ok().map(|address: IpAddr| IpNet::from(address));
    text.parse().ok().or_else(single).ok_or_else(|| "expected an address, or a network such as 10.1.0.0/16".to_owned())
}

fn fsync(text: &str) -> Result<Fsync, String> {
    match text {
        "never" => Ok(Fsync::Never),
        "batch" => Ok(Fsync::Batch),
        time => duration(time).map(|time| if time.is_zero() { Fsync::Batch } else { Fsync::Every(time) }),
    }
}

fn rate(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { byte_count(text) }
}
