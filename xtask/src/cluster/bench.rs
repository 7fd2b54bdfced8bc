//! `cargo xtask cluster bench`: two executors of one processor each against the engine in one process with two threads,
//! and what decoding costs in each format.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bench::measure::{Usage, measure};
use crate::bench::{input, xray};
use crate::shell::{output, root, run};

/// Traces, and bytes of all of them unless an option says otherwise.
const FILES: u64 = 16;
const MEGABYTES: u64 = 8192;

/// A cluster is at least this fast beside one process with as many threads.
const SPEED_MIN: f64 = 0.8;

/// The best of so many runs counts.
const RUNS: usize = 3;

const QUERIES: [(&str, &str); 3] = [
    (
        "events by kind",
        "SELECT kind, count(*) AS n, min(time_ns), max(time_ns) FROM events GROUP BY kind ORDER BY n, 1",
    ),
    ("calls by name", "SELECT name, count(*) AS n, sum(duration) AS total FROM calls GROUP BY name ORDER BY n, 1"),
    ("a thousandth of the records", "SELECT count(*), max(time_ns) FROM events WHERE seq % 1000 = 1"),
];

/// A statement for each format that reads every record.
const FORMATS: [(&str, &str); 6] = [
    ("xray", "SELECT kind, count(*), max(time_ns) FROM events GROUP BY kind"),
    ("cacheray", "SELECT kind, count(*), max(address) FROM accesses GROUP BY kind"),
    ("heph", "SELECT stream, count(*), max(counter) FROM packets GROUP BY stream"),
    ("lackey", "SELECT kind, count(*), max(address) FROM accesses GROUP BY kind"),
    ("apitrace", "SELECT function, count(*), max(call) FROM calls GROUP BY function"),
    ("casemate", "SELECT kind, count(*), max(seq) FROM transitions GROUP BY kind"),
];
const FORMAT_MEGABYTES: u64 = 200;

/// How long a process may take to be ready.
const READY_TIME: Duration = Duration::from_secs(30);

pub(super) fn run_all(arguments: &[String], programs: &Path) -> Result<(), String> {
    let megabytes = match arguments {
        [] => MEGABYTES,
        [option, number] if option == "--megabytes" => number.parse().map_err(|_| "--megabytes N".to_owned())?,
        _ => return Err("cluster bench takes --megabytes N".to_owned()),
    };
    let alone = programs.join("examples/alone").display().to_string();
    let cluster = programs.join("anytrace-cluster").display().to_string();
    formats(&alone)?;
    let files = traces(megabytes, &alone)?;
    let started = Started::new(&cluster, files.first().and_then(|file| file.parent()).ok_or("no traces")?)?;
    let mut slow = Vec::new();
    println!("| query | | wall s | CPU s | GB read | CPU s/GB |\n|---|---|---|---|---|---|");
    for (name, sql) in QUERIES {
        let local = words(&alone, &request(sql, files.len(), None), &files);
        let remote = words(&cluster, &request(sql, files.len(), Some(started.port)), &files);
        same_rows(&local, &remote)?;
        let gigabytes = megabytes as f64 / 1000.0;
        let one = best(|| Ok((measure(None, &local)?, gigabytes)))?;
        let many = best(|| started.measure(&remote))?;
        row(name, "one process", one);
        row("", "two executors", many);
        let speed = one.0.wall_s / many.0.wall_s;
        println!("| | speed of the cluster | {speed:.2} | | | |");
        if speed < SPEED_MIN {
            slow.push(format!("{name}: {speed:.2} of the speed of one process, at least {SPEED_MIN} is required"));
        }
    }
    if slow.is_empty() { Ok(()) } else { Err(slow.join("; ")) }
}

/// What decoding costs, with one thread.
fn formats(alone: &str) -> Result<(), String> {
    let folder = root().join("target/cluster/bench-formats");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    println!("| format | CPU s | GB | CPU s/GB |\n|---|---|---|---|");
    for (name, sql) in FORMATS {
        let file = input(name, &folder, FORMAT_MEGABYTES)?;
        let bytes = std::fs::metadata(&file).map_err(|error| format!("{}: {error}", file.display()))?.len();
        let gigabytes = bytes as f64 / 1e9;
        let command = words(alone, &request(sql, 1, None), &[file]);
        let (usage, _) = best(|| Ok((measure(None, &command)?, gigabytes)))?;
        println!("| {name} | {:.2} | {gigabytes:.2} | {:.1} |", usage.cpu_s, usage.cpu_s / gigabytes);
    }
    Ok(())
}

/// The traces and their indexes, made once.
fn traces(megabytes: u64, alone: &str) -> Result<Vec<PathBuf>, String> {
    let folder = root().join(format!("target/cluster/bench-{megabytes}"));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let files: Vec<PathBuf> = (0..FILES).map(|number| folder.join(format!("{number:02}.xray"))).collect();
    for file in &files {
        let failed = |error: std::io::Error| format!("{}: {error}", file.display());
        if file.with_extension("xray.atx").exists() {
            continue;
        }
        let mut out = BufWriter::with_capacity(1 << 20, File::create(file).map_err(failed)?);
        xray::generate_blocks(&mut out, megabytes * 1_000_000 / FILES).map_err(failed)?;
        out.flush().map_err(failed)?;
        run(Command::new(alone).arg("index").arg(file))?;
    }
    Ok(files)
}

fn request(sql: &str, files: usize, port: Option<u16>) -> String {
    let cluster = port.map(|port| format!("df://127.0.0.1:{port}"));
    let request = json!({
        "version": env!("CARGO_PKG_VERSION"), "action": "query", "sql": sql, "format": "csv", "threads": 2,
        "schemas": vec![Value::Null; files], "index": {}, "cluster": cluster,
    });
    request.to_string()
}

fn words(program: &str, request: &str, files: &[PathBuf]) -> Vec<String> {
    let files = files.iter().map(|file| file.display().to_string());
    [program.to_owned(), request.to_owned()].into_iter().chain(files).collect()
}

fn same_rows(local: &[String], remote: &[String]) -> Result<(), String> {
    let rows = |words: &[String]| match words {
        [program, rest @ ..] => output(Command::new(program).args(rest).stdin(Stdio::null())),
        [] => Err("no program".to_owned()),
    };
    if rows(local)? == rows(remote)? { Ok(()) } else { Err("the cluster's rows are others".to_owned()) }
}

fn best(mut once: impl FnMut() -> Result<(Usage, f64), String>) -> Result<(Usage, f64), String> {
    let runs = (0..RUNS).map(|_| once()).collect::<Result<Vec<_>, String>>()?;
    runs.into_iter().min_by(|one, other| one.0.wall_s.total_cmp(&other.0.wall_s)).ok_or("no run".to_owned())
}

fn row(name: &str, what: &str, (usage, gigabytes): (Usage, f64)) {
    let each = usage.cpu_s / gigabytes;
    println!("| {name} | {what} | {:.2} | {:.2} | {gigabytes:.2} | {each:.2} |", usage.wall_s, usage.cpu_s);
}

/// A process that ends with its handle.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn start(program: &str, words: &str, root: Option<&Path>) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.args(words.split_whitespace()).args(["--log-level", "warn"]);
        if let Some(root) = root {
            command.arg("--root").arg(root);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        child.map(Self).map_err(|error| format!("{program}: {error}"))
    }

    /// User and system time so far, in seconds. Linux counts hundredths for programs.
    fn cpu_s(&self) -> Result<f64, String> {
        let path = format!("/proc/{}/stat", self.0.id());
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        // After the name in parentheses, which may have spaces: fields 3 to the last; 14 and 15 are the times.
        let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
        let times = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
        let times = times.collect::<Result<Vec<f64>, _>>().map_err(|error| format!("{path}: {error}"))?;
        Ok(times.iter().sum::<f64>() / 100.0)
    }
}

/// A scheduler and two executors of one processor each.
struct Started {
    processes: Vec<Process>,
    port: u16,
    status: Vec<u16>,
}

impl Started {
    fn new(program: &str, root: &Path) -> Result<Self, String> {
        let (port, metrics) = (free_port()?, free_port()?);
        let scheduler = format!("scheduler --bind-port {port} --metrics {metrics}");
        let mut started =
            Self { processes: vec![Process::start(program, &scheduler, None)?], port, status: Vec::new() };
        for _ in 0..2 {
            let (flight, tasks, status) = (free_port()?, free_port()?, free_port()?);
            let words = format!(
                "executor --scheduler-port {port} --bind-port {flight} --bind-grpc-port {tasks} --metrics {status} \
                 --vcores 1"
            );
            started.processes.push(Process::start(program, &words, Some(root))?);
            started.status.push(status);
        }
        let start = Instant::now();
        while !started.status.iter().all(|port| get(*port, "/readyz").starts_with("HTTP/1.1 200")) {
            if start.elapsed() > READY_TIME {
                return Err("the executors did not come in time".to_owned());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(started)
    }

    fn cpu_s(&self) -> Result<f64, String> {
        self.processes.iter().map(Process::cpu_s).sum()
    }

    fn gigabytes(&self) -> f64 {
        let counter = |port: &u16| {
            let text = get(*port, "/metrics");
            let line = text.lines().find_map(|line| line.strip_prefix("anytrace_part_bytes_total "));
            line.and_then(|value| value.trim().parse::<f64>().ok()).unwrap_or(0.0)
        };
        self.status.iter().map(counter).sum::<f64>() / 1e9
    }

    /// What a query uses, of all processes, and the gigabytes that executors read for it.
    fn measure(&self, command: &[String]) -> Result<(Usage, f64), String> {
        let (cpu_s, gigabytes) = (self.cpu_s()?, self.gigabytes());
        let mut usage = measure(None, command)?;
        usage.cpu_s += self.cpu_s()? - cpu_s;
        Ok((usage, self.gigabytes() - gigabytes))
    }
}

/// A port that nobody uses now.
fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| error.to_string())
}

/// The answer to a request over HTTP; empty where nobody answers.
fn get(port: u16, path: &str) -> String {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    ask().unwrap_or_default()
}
