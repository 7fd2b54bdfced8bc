//! `--metrics`: the figures of a collection for Prometheus, as of the last summary.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anytrace_core::Error;
use anytrace_live::Report;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, prometheus_text};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

/// The type of the answer: text format 0.0.4.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What is shown; a thread answers until the program ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Metrics(Arc<Mutex<Option<Report>>>);

impl Metrics {
    /// Answers `GET /metrics` at an address. Returns it with the port that the system chose.
    pub(super) fn serve(address: SocketAddr) -> Result<(Self, SocketAddr), Error> {
        let metrics = Self::default();
        let shown = metrics.clone();
        let address = anytrace_view::serve_text(address, "/metrics", TEXT, move || shown.text())?;
        Ok((metrics, address))
    }

    /// Shows these figures from now on.
    pub(super) fn show(&self, report: &Report) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(report.clone());
    }

    fn text(&self) -> String {
        let mut registry = Registry::with_prefix("heph_collect");
        registry.register_collector(Box::new(self.clone()));
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = prometheus_text::encode(&mut text, &registry);
        text
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(report) = &*shown else { return Ok(()) };
        let totals = &report.totals;
        let sent = |of: fn(&anytrace_live::SessionLoss) -> u64| report.sessions.iter().map(of).sum::<u64>();
        let counters = [
            ("events", "Events kept", report.events),
            ("metadata", "Metadata packets kept", report.metadata),
            ("kept_bytes", "Bytes of the packets kept", report.bytes),
            ("files", "Files begun", report.files),
            ("received_events", "Events received, also more than once", totals.received),
            ("lost_events", "Events recorded and not received, as far as known", totals.lost),
            (
                "dropped_by_recorders_events",
                "Of those lost, dropped in the recorder's memory",
                sent(|one| one.all.dropped),
            ),
            (
                "refused_by_recorders_events",
                "Of those lost, refused by the recorder's sink",
                sent(|one| one.all.refused),
            ),
            ("doubtful_events", "Events missing before implausible counters", totals.doubtful),
            ("duplicate_events", "Events that had arrived before", totals.duplicates),
            ("out_of_order_events", "Events below the highest counter so far", totals.out_of_order),
            ("unwritten_events", "Events that found no room on the disk", report.unwritten_events),
            ("damaged_places", "Places that are not packets", report.damaged_places),
            ("skipped_bytes", "Bytes that are part of no packet", report.skipped_bytes),
            ("kernel_dropped_datagrams", "Datagrams dropped by the kernel", report.kernel_dropped()),
            ("queue_dropped_events", "Events dropped because the queue was full", report.dropped.events),
            ("over_rate_events", "Events dropped because their sender was over its rate", report.over_rate.events),
            ("refused", "Connections and senders refused", report.refused()),
            ("unauthorized", "Connections and datagrams of those who may not send", report.unauthorized()),
            ("removed_files", "Closed files removed to make room", report.removed_files),
            ("removed_bytes", "Bytes in the files removed", report.removed_bytes),
        ];
        for (name, help, number) in counters {
            let counter = ConstCounter::new(number);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        let sources = report.sources.len() as u64 + report.other_sources;
        let gauges = [
            ("uptime", "Time since the start", Some(Unit::Seconds), report.elapsed.as_secs_f64()),
            ("sources", "Sources so far", None, sources as f64),
            ("waited_for_events", "Events missing that may still arrive", None, totals.open as f64),
            ("event_length_p50", "Half of the events are no longer", Some(Unit::Seconds), ns(report.lengths.p50_ns)),
            ("event_length_p99", "99 of 100 events are no longer", Some(Unit::Seconds), ns(report.lengths.p99_ns)),
        ];
        for (name, help, unit, number) in gauges {
            let gauge = ConstGauge::new(number);
            gauge.encode(encoder.encode_descriptor(name, help, unit.as_ref(), gauge.metric_type())?)?;
        }
        by_listener(encoder, report)
    }
}

/// What was refused, by address.
fn by_listener(mut encoder: DescriptorEncoder<'_>, report: &Report) -> fmt::Result {
    type Of = fn(&anytrace_live::ListenerReport) -> u64;
    let families: [(&str, &str, Of); 2] = [
        ("listener_refused", "Connections and senders above the limits", |listener| listener.refused),
        ("listener_rejected", "Datagrams that do not begin with a packet", |listener| listener.rejected),
    ];
    for (name, help, of) in families {
        let kind = ConstCounter::new(0_u64).metric_type();
        let mut family = encoder.encode_descriptor(name, help, None, kind)?;
        for listener in &report.listeners {
            let labels = [("address", listener.address.as_str())];
            ConstCounter::new(of(listener)).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// Nanoseconds as seconds.
fn ns(ns: u64) -> f64 {
    ns as f64 / 1e9
}
