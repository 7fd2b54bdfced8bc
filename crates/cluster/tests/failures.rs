//! What goes wrong on a cluster: processes that die, files that are damaged, missing or not allowed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod common;

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use common::{Cluster, Traces, local, text, wait_for};

/// Sorts much, and joins: it takes seconds in the scan and in the stage after it.
const LONG: &str = "SELECT a.kind, a.size, count(*) AS pairs FROM accesses a JOIN accesses b ON a.address = b.address AND \
                    a.size < b.size GROUP BY a.kind, a.size ORDER BY 1, 2";

/// Parts of the long trace.
const LONG_PART_BYTES: &str = "500000";

/// Lines of the long trace.
const LONG_LINES: u32 = 400_000;

fn long(cluster: &Cluster, file: &Path) -> Child {
    let mut client = cluster.client(LONG, &[file.to_owned()], 4);
    client.env("ANYTRACE_CLUSTER_PART_BYTES", LONG_PART_BYTES).spawn().unwrap()
}

#[test]
fn an_executor_killed_in_the_scan_changes_no_row() {
    let traces = Traces::new();
    let file = traces.long(LONG_LINES, Some(100_000));
    let (expected, _) = local(LONG, std::slice::from_ref(&file), 2);
    let mut cluster = Cluster::start(2, traces.folder.path(), &[]);
    let client = long(&cluster, &file);
    let victim = &mut cluster.executors[0];
    wait_for("the scan", || victim.log().contains(": reading ").then_some(()), || victim.log());
    victim.kill();
    let output = client.wait_with_output().unwrap();
    assert_eq!((text(&output.stdout), output.status.code()), (expected, Some(0)), "{}", text(&output.stderr));
}

#[test]
fn an_executor_killed_after_the_map_stage_changes_no_row() {
    let traces = Traces::new();
    let file = traces.long(LONG_LINES, Some(100_000));
    let (expected, _) = local(LONG, std::slice::from_ref(&file), 2);
    let mut cluster = Cluster::start(2, traces.folder.path(), &[]);
    let client = long(&cluster, &file);
    // Scans of both sides are over when a task of the stage that joins them begins.
    let log = || cluster.scheduler.log();
    wait_for("the stage after the scan", || has_stage(cluster.work.path(), 3).then_some(()), log);
    cluster.executors[1].kill();
    let output = client.wait_with_output().unwrap();
    assert_eq!((text(&output.stdout), output.status.code()), (expected, Some(0)), "{}", text(&output.stderr));
}

/// Whether some executor stored something of a stage.
fn has_stage(work: &Path, stage: u32) -> bool {
    let folders = |of: &Path| -> Vec<std::path::PathBuf> {
        std::fs::read_dir(of).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    let jobs = folders(work).into_iter().flat_map(|executor| folders(&executor.join("rows")));
    jobs.into_iter().any(|job| job.join(stage.to_string()).is_dir())
}

fn signal(id: u32, name: &str) {
    assert!(Command::new("kill").args([name, &id.to_string()]).status().unwrap().success());
}

#[test]
fn a_slow_executor_changes_no_row() {
    let traces = Traces::new();
    let file = traces.long(LONG_LINES, Some(100_000));
    let (expected, _) = local(LONG, std::slice::from_ref(&file), 2);
    let cluster = Cluster::start(2, traces.folder.path(), &[]);
    let mut client = long(&cluster, &file);
    let slow = cluster.executors[0].child.id();
    // It runs a fifth of the time.
    while client.try_wait().unwrap().is_none() {
        signal(slow, "-STOP");
        std::thread::sleep(Duration::from_millis(200));
        signal(slow, "-CONT");
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = client.wait_with_output().unwrap();
    assert_eq!((text(&output.stdout), output.status.code()), (expected, Some(0)), "{}", text(&output.stderr));
}

#[test]
fn an_executor_that_hangs_changes_no_row() {
    let traces = Traces::new();
    let file = traces.long(LONG_LINES, Some(100_000));
    let (expected, _) = local(LONG, std::slice::from_ref(&file), 2);
    let cluster = Cluster::start(2, traces.folder.path(), &[]);
    let client = long(&cluster, &file);
    let victim = &cluster.executors[0];
    wait_for("the scan", || victim.log().contains(": reading ").then_some(()), || victim.log());
    signal(victim.child.id(), "-STOP");
    let output = client.wait_with_output().unwrap();
    assert_eq!((text(&output.stdout), output.status.code()), (expected, Some(0)), "{}", text(&output.stderr));
}

#[test]
fn without_executors_a_query_ends_within_a_minute() {
    let traces = Traces::new();
    let file = traces.long(LONG_LINES, Some(100_000));
    let mut cluster = Cluster::start(2, traces.folder.path(), &[]);
    let client = long(&cluster, &file);
    let first = &cluster.executors[0];
    wait_for("the scan", || first.log().contains(": reading ").then_some(()), || first.log());
    cluster.executors.iter_mut().for_each(|executor| executor.kill());
    let start = Instant::now();
    let output = client.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert!(said.contains("executor"), "{said}");
    // And so does one that is asked when there are none.
    let start = Instant::now();
    let output = cluster.query("SELECT count(*) FROM events", &[file], 2);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(start.elapsed() < Duration::from_secs(60) && said.contains("no executor"), "{said}");
}

#[test]
fn a_scheduler_that_is_started_anew_gets_its_executors_back() {
    let traces = Traces::new();
    let file = traces.long(LONG_LINES, Some(100_000));
    let mut cluster = Cluster::start(1, traces.folder.path(), &[]);
    let client = long(&cluster, &file);
    let first = &cluster.executors[0];
    wait_for("the scan", || first.log().contains(": reading ").then_some(()), || first.log());
    cluster.restart_scheduler();
    let output = client.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the scheduler at df://"), "{said}");
    let sql = "SELECT count(*) FROM accesses";
    let (expected, _) = local(sql, std::slice::from_ref(&file), 1);
    let output = cluster.query(sql, &[file], 2);
    assert_eq!((text(&output.stdout), output.status.code()), (expected, Some(0)), "{}", text(&output.stderr));
}

#[test]
fn damage_is_reported_as_by_one_process() {
    let traces = Traces::new();
    let mut bytes = std::fs::read(traces.example("threads4.xray", None)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xee);
    let file = traces.bytes("damaged.xray", &bytes, Some(512));
    let sql = "SELECT kind, count(*) FROM events GROUP BY kind ORDER BY 1";
    let (expected, mut lines) = local(sql, std::slice::from_ref(&file), 2);
    assert!(!lines.is_empty());
    let cluster = Cluster::start(2, traces.folder.path(), &[]);
    let output = cluster.query(sql, &[file], 4);
    assert_eq!((text(&output.stdout), output.status.code()), (expected, Some(1)), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    let mut found: Vec<&str> = said.lines().collect();
    let mut expected: Vec<&str> = lines.iter_mut().flat_map(|line| line.lines()).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn a_missing_file_names_itself_and_one_outside_the_root_is_refused() {
    let traces = Traces::new();
    let file = traces.example("rows.lackey", None);
    let root = traces.folder.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let cluster = Cluster::start(1, &root, &[]);
    let output = cluster.query("SELECT count(*) FROM events", std::slice::from_ref(&file), 2);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("rows.lackey") && said.contains("not below a --root"), "{said}");
    assert!(said.lines().count() <= 5, "{said}");
    let output = cluster.query("SELECT count(*) FROM events", &[root.join("absent.xray")], 2);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("absent.xray"), "{said}");
    let there = traces.bytes("root/there.lackey", &std::fs::read(&file).unwrap(), None);
    let output = cluster.query("SELECT count(*) FROM nothing", &[there], 2);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("nothing") && said.contains("tables: "), "{said}");
}

#[test]
fn a_file_that_goes_away_names_itself() {
    let traces = Traces::new();
    let file = traces.long(LONG_LINES, Some(100_000));
    let cluster = Cluster::start(1, traces.folder.path(), &[]);
    let client = long(&cluster, &file);
    let first = &cluster.executors[0];
    wait_for("the scan", || first.log().contains(": reading ").then_some(()), || first.log());
    std::fs::remove_file(&file).unwrap();
    let output = client.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("long.lackey") && said.contains("cannot open"), "{said}");
    assert!(said.lines().count() <= 5, "{said}");
}

#[test]
fn statements_cannot_write() {
    let traces = Traces::new();
    let file = traces.example("rows.lackey", None);
    let cluster = Cluster::start(1, traces.folder.path(), &[]);
    let target = traces.folder.path().join("out.csv");
    let sql = format!("COPY events TO '{}' STORED AS CSV", target.display());
    let output = cluster.query(&sql, &[file], 2);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(!target.exists());
}

#[test]
fn sigterm_ends_every_process_in_ten_seconds() {
    let traces = Traces::new();
    let file = traces.long(LONG_LINES, Some(100_000));
    let mut cluster = Cluster::start(2, traces.folder.path(), &[]);
    let (expected, _) = local(LONG, std::slice::from_ref(&file), 2);
    let client = long(&cluster, &file);
    let first = &cluster.executors[0];
    wait_for("the scan", || first.log().contains(": reading ").then_some(()), || first.log());
    // Its tasks end or are done again by the other.
    let (code, time) = cluster.executors[0].terminate();
    assert!(code == Some(0) && time < Duration::from_secs(10), "{code:?} after {time:?}");
    let output = client.wait_with_output().unwrap();
    assert_eq!((text(&output.stdout), output.status.code()), (expected, Some(0)), "{}", text(&output.stderr));
    for process in [&mut cluster.executors[1], &mut cluster.scheduler] {
        let (code, time) = process.terminate();
        assert!(code == Some(0) && time < Duration::from_secs(10), "{code:?} after {time:?}");
    }
}

#[test]
fn an_interrupted_client_cancels_its_job() {
    let traces = Traces::new();
    let file = traces.long(LONG_LINES, Some(100_000));
    let cluster = Cluster::start(1, traces.folder.path(), &[]);
    let client = long(&cluster, &file);
    let first = &cluster.executors[0];
    wait_for("the scan", || first.log().contains(": reading ").then_some(()), || first.log());
    signal(client.id(), "-INT");
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let log = || cluster.scheduler.log();
    wait_for("the cancellation", || log().contains("Received cancellation request").then_some(()), log);
}

#[test]
fn no_scheduler_is_a_clear_error() {
    let traces = Traces::new();
    let file = traces.example("rows.lackey", None);
    let port = common::free_port();
    let output = common::client(&format!("df://127.0.0.1:{port}"), "SELECT 1", &[file], 1).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("cannot reach the scheduler at df://127.0.0.1:{port}")), "{said}");
}

#[test]
fn an_address_that_is_not_loopback_needs_a_decision() {
    for command in ["scheduler", "executor"] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_anytrace-cluster"));
        let output = program.args([command, "--bind-host", "0.0.0.0"]).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--insecure") && said.contains("--tls-cert"), "{said}");
    }
}
