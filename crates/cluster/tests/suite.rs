//! One suite of SQL over all formats: a cluster's answers are those of one process, to the row, with every number of
//! partitions, and each part of a trace is read once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod common;

use std::path::PathBuf;

use common::{Cluster, EXAMPLES, Traces, client, local, text};

/// Statements for every trace: `{table}` is one of its tables.
const EVERYWHERE: [&str; 4] = [
    "SELECT count(*), sum(seq), min(seq), max(seq) FROM events",
    "SELECT kind, count(*) AS rows, max(seq) AS last FROM events GROUP BY kind ORDER BY rows DESC, kind",
    "SELECT * FROM events WHERE seq BETWEEN 5 AND 40",
    "SELECT a.kind, count(*) FROM events a JOIN events b ON a.seq = b.seq + 1 GROUP BY a.kind ORDER BY 1",
];

/// Statements for one format.
const OWN: [(&str, &str); 13] = [
    ("threads4.xray", "SELECT name, count(*), sum(duration), sum(self) FROM calls GROUP BY name ORDER BY 1"),
    (
        "threads4.xray",
        "SELECT seq, name, depth, row_number() OVER (PARTITION BY thread ORDER BY seq) FROM calls ORDER BY 1",
    ),
    ("threads4.xray", "SELECT stack_path(stack), count(*) FROM spans GROUP BY 1 ORDER BY 1"),
    // Spans come in the order of the chunks in which they end: another one with parts than without.
    ("threads4.xray", "SELECT count(*) FROM (SELECT name FROM spans LIMIT 7)"),
    ("threads4.xray", "SELECT seq, kind FROM events LIMIT 7"),
    (
        "boxes.cacheray",
        "SELECT kind, size, count(*), hex(min(address)) FROM accesses GROUP BY kind, size ORDER BY 1, 2",
    ),
    ("boxes.cacheray", "SELECT type, sum(elements) FROM regions GROUP BY type ORDER BY 1"),
    ("relay.heph", "SELECT stream, count(*), max(counter) FROM packets GROUP BY stream ORDER BY 1"),
    ("relay.heph", "SELECT key, count(*), count(int), count(text) FROM attributes GROUP BY key ORDER BY 1"),
    ("imm.trace", "SELECT function, count(*) FROM calls GROUP BY function ORDER BY 2 DESC, 1"),
    ("imm.trace", "SELECT name, type, count(*) FROM args GROUP BY name, type ORDER BY 1, 2"),
    ("free_tree.casemate", "SELECT kind, count(*) FROM transitions GROUP BY kind ORDER BY 1"),
    ("rows.lackey", "SELECT kind, percentile(address, 0.5) FROM accesses GROUP BY kind ORDER BY 1"),
];

fn statements(name: &str) -> Vec<&'static str> {
    let own = OWN.iter().filter(|(of, _)| *of == name).map(|(_, sql)| *sql);
    EVERYWHERE.iter().copied().chain(own).collect()
}

#[test]
fn a_cluster_answers_as_one_process_does() {
    let traces = Traces::new();
    let files: Vec<PathBuf> = EXAMPLES.iter().map(|name| traces.example(name, Some(512))).collect();
    let cluster = Cluster::start(2, traces.folder.path(), &[]);
    let mut wrong = Vec::new();
    for (name, file) in EXAMPLES.iter().zip(&files) {
        for sql in statements(name) {
            let files = std::slice::from_ref(file);
            let (expected, _) = local(sql, files, 1);
            for threads in [1, 2, 4, 7] {
                let output = cluster.query(sql, files, threads);
                let found = text(&output.stdout);
                if output.status.code() != Some(0) || found != expected {
                    let said = text(&output.stderr);
                    wrong.push(format!("{name} with {threads}: {sql}\n{said}\nfound:\n{found}\nexpected:\n{expected}"));
                }
            }
        }
    }
    // All traces at once: every table is a union.
    let sql = "SELECT file, kind, count(*) FROM events GROUP BY file, kind ORDER BY 1, 2";
    let (expected, _) = local(sql, &files, 2);
    let output = cluster.query(sql, &files, 4);
    assert_eq!((text(&output.stdout), output.status.code()), (expected, Some(0)), "{}", text(&output.stderr));
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn each_part_is_read_once_by_one_executor() {
    let traces = Traces::new();
    let file = traces.example("threads4.xray", Some(512));
    let cluster = Cluster::start(2, traces.folder.path(), &[]);
    let output = cluster.query("SELECT count(*) FROM events", std::slice::from_ref(&file), 4);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut parts: Vec<(u64, Option<u64>)> = cluster.parts().iter().map(|line| range(line)).collect();
    parts.sort_unstable();
    assert!(parts.len() > 4, "{parts:?}");
    assert_eq!(parts[0].0, 0);
    assert!(parts.windows(2).all(|pair| pair[0].1 == Some(pair[1].0)), "{parts:?}");
    assert_eq!(parts.last().unwrap().1, None);
    assert!(cluster.executors.iter().all(|one| one.log().contains(": reading ")), "one executor had nothing to do");
    let counted: u64 = cluster.status_ports.iter().map(|port| counter(&common::get(*port, "/metrics"))).sum();
    assert_eq!(counted, parts.len() as u64);
}

#[test]
fn without_an_index_executors_make_one_once_and_keep_it() {
    let traces = Traces::new();
    let file = traces.example("rows.lackey", None);
    let mut cluster = Cluster::start(1, traces.folder.path(), &[]);
    let sql = "SELECT kind, count(*) FROM accesses GROUP BY kind ORDER BY 1";
    let (expected, _) = local(sql, std::slice::from_ref(&file), 2);
    for _ in 0..2 {
        let mut client = cluster.client(sql, std::slice::from_ref(&file), 2);
        let output = client.env("ANYTRACE_CLUSTER_PART_BYTES", "100").output().unwrap();
        assert_eq!(
            (text(&output.stdout), output.status.code()),
            (expected.clone(), Some(0)),
            "{}",
            text(&output.stderr)
        );
    }
    assert_eq!(cluster.executors[0].log().matches("making an index").count(), 1);
    // At its end an executor removes rows, and nothing else.
    assert_eq!(cluster.executors[0].terminate().0, Some(0));
    let stored = |folder: &str| std::fs::read_dir(cluster.work.path().join("executor0").join(folder)).unwrap().count();
    assert_eq!((stored("indexes"), stored("rows")), (1, 0));
}

#[test]
fn a_cluster_in_one_process_answers_the_same() {
    let traces = Traces::new();
    let mut wrong = Vec::new();
    for name in EXAMPLES {
        let file = traces.example(name, Some(512));
        for sql in statements(name) {
            let files = std::slice::from_ref(&file);
            let (expected, _) = local(sql, files, 1);
            let output = client("local", sql, files, 4).output().unwrap();
            if (text(&output.stdout), output.status.code()) != (expected, Some(0)) {
                wrong.push(format!("{name}: {sql}\n{}", text(&output.stderr)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn patterns_name_several_traces() {
    let traces = Traces::new();
    for name in ["a.xray", "b.xray"] {
        let bytes = std::fs::read(traces.example("threads4.xray", None)).unwrap();
        traces.bytes(name, &bytes, Some(512));
    }
    std::fs::remove_file(traces.folder.path().join("threads4.xray")).unwrap();
    let cluster = Cluster::start(1, traces.folder.path(), &[]);
    let files = ["a.xray", "b.xray"].map(|name| traces.folder.path().join(name));
    let sql = "SELECT file, count(*) FROM events GROUP BY file ORDER BY 1";
    let (expected, _) = local(sql, &files, 2);
    let output = cluster.query(sql, &[traces.folder.path().join("*.xray")], 2);
    assert_eq!((text(&output.stdout), output.status.code()), (expected, Some(0)), "{}", text(&output.stderr));
}

/// `PATH from FROM to UNTIL`, or `to its end`.
fn range(line: &str) -> (u64, Option<u64>) {
    let (from, until) = line.rsplit_once(" from ").unwrap().1.split_once(" to ").unwrap();
    (from.parse().unwrap(), until.parse().ok())
}

fn counter(metrics: &str) -> u64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix("anytrace_parts_total "));
    line.map_or(0, |value| value.trim().parse().unwrap())
}
