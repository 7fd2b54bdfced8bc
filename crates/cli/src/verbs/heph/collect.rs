//! `anytrace heph collect`.

mod arguments;
mod beside;
mod metrics;
mod page;
mod screen;
mod shown;

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

use anytrace_core::Error;
use anytrace_live::{
    Access, Caps, CollectOptions, Earlier, EndOfFile, Endpoint, ForwardOptions, Reach, StoreOptions, Tls, collect,
    raise_descriptors,
};

use crate::arguments::ResultForm;
use crate::failure::Failure;
use crate::interrupt::stop_on_signal;
use crate::programs::Program;
use crate::{Verdict, paint, terminal};
use arguments::SummaryForm;
use metrics::Metrics;
use screen::Screen;
use shown::{Shown, complain};

pub(crate) use arguments::CollectArguments;

pub(crate) fn run(options: &CollectArguments) -> Result<Verdict, Failure> {
    let how = to_library(options)?;
    let is_private = |endpoint: &Endpoint| match endpoint {
        Endpoint::Tls(_) => true,
        Endpoint::Otlp(_) => how.access.tls.is_some(),
        _ => false,
    };
    for endpoint in how.listen.iter().filter(|endpoint| !is_private(endpoint) && !endpoint.is_local()) {
        let message = format!("{endpoint} can be reached by other machines; anyone who can reach it can send");
        paint::complain("warning", message);
    }
    raise_descriptors();
    let stop = stop_on_signal();
    let (metrics, metrics_at) = options.metrics.map(|address| serve_metrics(address, options)).transpose()?.unzip();
    let (viewer, view_at) = options.view.then(|| Viewer::open(&options.output)).transpose()?.unzip();
    let form = options.ends.summary;
    let wants_screen = form == SummaryForm::Auto && terminal::stdout_is_terminal();
    let screen = if wants_screen { Screen::open().ok() } else { None };
    let mut shown = Shown::new(form == SummaryForm::Json, screen, metrics)?;
    (shown.metrics_at, shown.view_at) = (metrics_at, view_at);
    let collected = collect(&how, &stop, &mut shown);
    // The terminal is as it was before anything else is printed.
    shown.end();
    drop(viewer);
    for line in &shown.unprinted {
        complain(line);
    }
    let report = collected.map_err(|error| failure(&error, options))?;
    if let Some(lines) = &mut shown.lines {
        lines.show(report.to_json())?;
        lines.end()?;
        return Ok(Verdict::Fine);
    }
    let mut out = terminal::stdout().json(options.ends.format == ResultForm::Json);
    match options.ends.format {
        ResultForm::Json => writeln!(out, "{}", report.to_json())?,
        ResultForm::Text => out.write_all(page::page(&report, &options.output).as_bytes())?,
    }
    out.flush()?;
    Ok(Verdict::Fine)
}

/// Answers Prometheus, at an address that other machines can reach only where that is allowed.
fn serve_metrics(address: SocketAddr, options: &CollectArguments) -> Result<(Metrics, String), Failure> {
    if !address.ip().is_loopback() && !options.access.insecure {
        return Err(Failure::usage(format!(
            "--metrics {address} can be reached by other machines; use --insecure to allow it"
        )));
    }
    let (metrics, address) = Metrics::serve(address).map_err(|error| Failure::bare(&error))?;
    paint::complain("note", format_args!("metrics are at http://{address}/metrics"));
    Ok((metrics, format!("http://{address}/metrics")))
}

/// The viewer of what is collected; it ends with this value.
struct Viewer(anytrace_view::End);

impl Viewer {
    /// Serves the traces in the folder as they appear, says where, and opens a browser where one can be seen.
    fn open(folder: &Path) -> Result<(Self, String), Failure> {
        let options = anytrace_view::Options {
            follow: true,
            collection: Some(folder.to_owned()),
            query: crate::verbs::query::engine_path(),
            ..anytrace_view::Options::default()
        };
        let server = anytrace_view::Server::bind(options).map_err(|error| Failure::bare(&error))?;
        let (url, end) = (server.url(), server.end());
        std::thread::spawn(move || {
            if let Err(error) = server.run() {
                paint::complain("warning", format_args!("the viewer has ended: {error}"));
            }
        });
        paint::complain("note", format_args!("the traces are shown at {url}"));
        crate::verbs::view::show_where_seen(&url);
        Ok((Self(end), url))
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.0.now();
    }
}

/// What the library says, with the option that helps.
fn failure(error: &Error, options: &CollectArguments) -> Failure {
    if error.io_kind() == Some(std::io::ErrorKind::BrokenPipe) {
        // Whoever read the summaries is gone.
        return Failure::bare(error);
    }
    let message = error.to_string();
    let help = if message.contains("can be reached by other machines") {
        "; use tls:// or otlp:// with --tls-cert, --tls-key and --token-file or --tls-client-ca, or --insecure"
    } else if message.contains("needs a certificate") {
        "; use --tls-cert and --tls-key"
    } else if message.contains("holds an earlier collection") && !options.append {
        "; use --append to add files to it"
    } else {
        ""
    };
    Failure::usage(format!("{message}{help}"))
}

fn to_library(options: &CollectArguments) -> Result<CollectOptions, Failure> {
    let CollectArguments { ends, access, files, caps, .. } = options;
    let parse = |word: &String| word.parse::<Endpoint>().map_err(|error| Failure::bare(&error));
    let listen = options.listen.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    if listen.is_empty() && options.follow.is_empty() {
        return Err(Failure::usage("nothing to collect from: use --listen or --follow"));
    }
    let has_otlp = listen.iter().any(|endpoint| matches!(endpoint, Endpoint::Otlp(_)));
    let otlp = (has_otlp || options.forward.is_some()).then(|| Program::Otlp.find()).transpose()?;
    let forward = options.forward.clone().zip(otlp.clone()).map(|(to, program)| ForwardOptions { to, program });
    let memory_bytes = usize::try_from(caps.memory).unwrap_or(usize::MAX);
    if memory_bytes < 4 << 20 {
        return Err(Failure::usage("--memory: expected at least 4M"));
    }
    Ok(CollectOptions {
        listen,
        otlp,
        forward,
        follow: options.follow.clone(),
        end_of_file: if options.no_follow { EndOfFile::Ends } else { EndOfFile::Waits },
        reach: if access.insecure { Reach::Anyone } else { Reach::Known },
        access: Access {
            tls: access.tls_cert.clone().zip(access.tls_key.clone()).map(|(certificate, key)| Tls {
                certificate,
                key,
                client_authorities: access.tls_client_ca.clone(),
            }),
            tokens: access.token_file.clone(),
            allowed: access.allow.clone(),
        },
        acknowledges: options.ack,
        store: StoreOptions {
            folder: options.output.clone(),
            earlier: if options.append { Earlier::Continues } else { Earlier::Refuses },
            rotate_bytes: files.rotate_bytes,
            rotate_events: files.rotate_events,
            rotate_after: files.rotate_time,
            keep: files.keep,
            bytes_max: files.max_bytes,
            age_max: files.max_age,
            fsync: files.fsync,
        },
        caps: Caps {
            packet_bytes: caps.max_packet,
            connections: caps.max_connections,
            sources: caps.max_sources,
            streams: caps.max_streams,
            idle: caps.idle_timeout,
            rate_bytes: Some(caps.rate_limit).filter(|rate| *rate > 0),
            memory_bytes,
        },
        interval: ends.interval,
        duration: ends.duration,
        events_max: ends.max_events,
    })
}
