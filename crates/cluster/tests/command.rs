//! `anytrace query --cluster` as people call it: the command finds the client, passes results on, and cancels.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use anytrace_core::testing::skip;
use common::{Cluster, Traces, free_port, local, text, wait_for};

/// The command, which finds this build of the client.
fn anytrace() -> Option<Command> {
    let Some(program) = std::env::var_os("ANYTRACE_COMMAND").filter(|program| !program.is_empty()) else {
        skip("ANYTRACE_COMMAND does not name the program anytrace: cargo xtask cluster");
        return None;
    };
    let mut command = Command::new(program);
    command.env("PATH", Path::new(env!("CARGO_BIN_EXE_anytrace-cluster")).parent().unwrap());
    command.env("ANYTRACE_CLUSTER_PART_BYTES", "1500").stdin(Stdio::null());
    Some(command)
}

#[test]
fn the_command_prints_what_the_cluster_answers() {
    let Some(mut command) = anytrace() else { return };
    let traces = Traces::new();
    let file = traces.example("threads4.xray", Some(512));
    let cluster = Cluster::start(1, traces.folder.path(), &[]);
    let sql = "SELECT name, count(*) FROM calls GROUP BY name ORDER BY 1";
    let (expected, _) = local(sql, std::slice::from_ref(&file), 1);
    command.args(["query", "--cluster", &cluster.address()]).arg(&file).arg(sql);
    let output = command.output().unwrap();
    assert_eq!((text(&output.stdout), output.status.code()), (expected, Some(0)), "{}", text(&output.stderr));
    assert!(cluster.parts().len() > 1, "the cluster read nothing");
}

#[test]
fn an_interrupted_command_cancels_its_job() {
    let Some(mut command) = anytrace() else { return };
    let traces = Traces::new();
    let file = traces.long(400_000, Some(100_000));
    let cluster = Cluster::start(1, traces.folder.path(), &[]);
    let sql = "SELECT count(*) FROM accesses a JOIN accesses b ON a.address = b.address";
    command.args(["query", "--cluster", &cluster.address()]).arg(&file).arg(sql);
    let mut child = command.env("ANYTRACE_CLUSTER_PART_BYTES", "500000").stdout(Stdio::null()).spawn().unwrap();
    let first = &cluster.executors[0];
    wait_for("the scan", || first.log().contains(": reading ").then_some(()), || first.log());
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert!(!child.wait().unwrap().success());
    let log = || cluster.scheduler.log();
    wait_for("the cancellation", || log().contains("Received cancellation request").then_some(()), log);
}

#[test]
fn the_command_says_that_there_is_no_scheduler() {
    let Some(mut command) = anytrace() else { return };
    let traces = Traces::new();
    let file = traces.example("rows.lackey", None);
    let address = format!("df://127.0.0.1:{}", free_port());
    let output = command.args(["query", "--cluster", &address]).arg(file).arg("SELECT 1 AS one").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot reach the scheduler"), "{}", text(&output.stderr));
}
