//! A program for OTLP that ends is started again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{Collector, packets, request, span};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use tonic::Code;

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_was_killed_is_started_again_at_its_address() {
    let collector = Collector::start(|_| {});
    let to = format!("http://{}", collector.address());
    TraceServiceClient::connect(to.clone())
        .await
        .unwrap()
        .export(request("a", vec![span(1, 0, "before")]))
        .await
        .unwrap();
    let child = child_of_this_process();
    assert!(std::process::Command::new("kill").args(["-9", &child]).status().unwrap().success());
    assert!(collector.hears("it was started again"));
    let deadline = Instant::now() + Duration::from_secs(20);
    let sent = loop {
        // The sender repeats what was not taken, as all of them do.
        let Ok(mut client) = TraceServiceClient::connect(to.clone()).await else { continue };
        match client.export(request("a", vec![span(2, 0, "after")])).await {
            Ok(_) => break true,
            Err(status) if status.code() == Code::Unavailable && Instant::now() < deadline => {}
            Err(status) => panic!("{status}"),
        }
    };
    assert!(sent);
    let (report, folder) = collector.stop();
    assert_eq!((report.events, report.sessions.len()), (2, 2));
    assert_eq!(packets(&folder.path().join("traces")).iter().filter(|one| one.contains(" after ")).count(), 1);
}

/// The only program that this process has started: this file has no other test.
fn child_of_this_process() -> String {
    common::children(std::process::id()).remove(0)
}
