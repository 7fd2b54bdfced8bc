//! Real processes on loopback: a scheduler, executors, and the client that `anytrace query` starts.

#![allow(dead_code, reason = "each test uses a part")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anytrace_core::{Collect, OpenOptions, index};
use anytrace_query::{Form, How, OpenWith, Options, Session, TraceFile};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The traces of the repository, one of each format.
pub(crate) const EXAMPLES: [&str; 6] =
    ["imm.trace", "boxes.cacheray", "free_tree.casemate", "relay.heph", "rows.lackey", "threads4.xray"];

/// How long a process may take to be ready.
const READY_TIME: Duration = Duration::from_secs(60);

/// A port that nobody uses now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Copies of traces, with indexes beside them where asked for.
pub(crate) struct Traces {
    pub(crate) folder: TempDir,
}

impl Traces {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn example(&self, name: &str, every_bytes: Option<u64>) -> PathBuf {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(name);
        self.bytes(name, &std::fs::read(from).unwrap(), every_bytes)
    }

    pub(crate) fn bytes(&self, name: &str, bytes: &[u8], every_bytes: Option<u64>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        if let Some(every_bytes) = every_bytes {
            let format = TraceFile::open(path.clone(), None, &OpenWith::default()).unwrap().format.unwrap();
            let how = OpenOptions::default();
            let made = index::build(format, &path, &how, every_bytes, &mut |_| {}, &mut Collect::default()).unwrap();
            std::fs::write(index::path_of(&path, None), made.encode()).unwrap();
        }
        path
    }

    /// A trace of so many accesses, which takes a while to read.
    pub(crate) fn long(&self, lines: u32, every_bytes: Option<u64>) -> PathBuf {
        let mut text = String::with_capacity(lines as usize * 16);
        for n in 0..lines {
            let kind = ["I ", " L", " S", " M"][(n % 4) as usize];
            text.push_str(&format!(
                "{kind} {:08x},{}\n",
                0x0400_0000 + n.wrapping_mul(2_654_435_761) % 65_521,
                1 + n % 8
            ));
        }
        self.bytes("long.lackey", text.as_bytes(), every_bytes)
    }
}

/// A process that ends with its handle.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) log: PathBuf,
}

impl Process {
    fn start(arguments: &[String], log: PathBuf, variables: &[(String, String)]) -> Self {
        let file = File::create(&log).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace-cluster"));
        command.envs(variables.iter().cloned());
        let child = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).spawn().unwrap();
        Self { child, log }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends SIGTERM and waits; returns the exit code and how long it took.
    pub(crate) fn terminate(&mut self) -> (Option<i32>, Duration) {
        let start = Instant::now();
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let status = self.child.wait().unwrap();
        (status.code(), start.elapsed())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A scheduler and executors.
pub(crate) struct Cluster {
    pub(crate) scheduler: Process,
    pub(crate) executors: Vec<Process>,
    pub(crate) port: u16,
    pub(crate) status_ports: Vec<u16>,
    pub(crate) work: TempDir,
    pub(crate) scheduler_arguments: Vec<String>,
    pub(crate) variables: Vec<(String, String)>,
}

pub(crate) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

impl Cluster {
    /// Starts so many executors that may read a folder. `more` are options of all processes.
    pub(crate) fn start(executors: usize, root: &Path, more: &[&str]) -> Self {
        Self::start_with(executors, root, more, &[], &[])
    }

    /// As [`Self::start`]; `own` are options of executors, and `variables` are in their environment.
    pub(crate) fn start_in(executors: usize, root: &Path, own: &[&str], variables: &[(String, String)]) -> Self {
        Self::start_with(executors, root, &[], own, variables)
    }

    fn start_with(executors: usize, root: &Path, more: &[&str], own: &[&str], variables: &[(String, String)]) -> Self {
        let work = tempfile::tempdir().unwrap();
        let (port, status) = (free_port(), free_port());
        let more: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
        let mut arguments = words(&format!("scheduler --bind-port {port} --metrics {status}"));
        arguments.extend(more.clone());
        let scheduler = Process::start(&arguments, work.path().join("scheduler.log"), &[]);
        let mut cluster = Self {
            scheduler,
            executors: Vec::new(),
            port,
            status_ports: vec![status],
            work,
            scheduler_arguments: arguments,
            variables: variables.to_vec(),
        };
        wait_for("the scheduler", || is_open(port).then_some(()), || cluster.scheduler.log());
        for _ in 0..executors {
            cluster.add(root, &more, own);
        }
        cluster
    }

    /// Starts one more executor and waits until it is ready.
    pub(crate) fn add(&mut self, root: &Path, more: &[String], own: &[&str]) {
        let number = self.executors.len();
        let work = self.work.path().join(format!("executor{number}"));
        let (flight, tasks, status) = (free_port(), free_port(), free_port());
        let mut arguments = words(&format!(
            "executor --scheduler-port {} --bind-port {flight} --bind-grpc-port {tasks} --metrics {status} --vcores 1 \
             --executor-heartbeat-interval-seconds 1",
            self.port
        ));
        arguments.extend(["--root".to_owned(), root.display().to_string()]);
        arguments.extend(["--work-dir".to_owned(), work.display().to_string()]);
        arguments.extend(more.iter().cloned());
        arguments.extend(own.iter().map(|word| (*word).to_owned()));
        let executor =
            Process::start(&arguments, self.work.path().join(format!("executor{number}.log")), &self.variables);
        wait_for("an executor", || get(status, "/readyz").starts_with("HTTP/1.1 200").then_some(()), || executor.log());
        self.executors.push(executor);
        self.status_ports.push(status);
    }

    pub(crate) fn restart_scheduler(&mut self) {
        self.scheduler.kill();
        self.scheduler = Process::start(&self.scheduler_arguments, self.work.path().join("scheduler2.log"), &[]);
        let port = self.port;
        wait_for("the scheduler", || is_open(port).then_some(()), || self.scheduler.log());
    }

    pub(crate) fn address(&self) -> String {
        format!("df://127.0.0.1:{}", self.port)
    }

    pub(crate) fn query(&self, sql: &str, files: &[PathBuf], threads: usize) -> Output {
        self.client(sql, files, threads).output().unwrap()
    }

    pub(crate) fn client(&self, sql: &str, files: &[PathBuf], threads: usize) -> Command {
        self.client_with(sql, files, threads, &[])
    }

    /// As [`Self::client`]; the request says this too.
    pub(crate) fn client_with(&self, sql: &str, files: &[PathBuf], threads: usize, more: &[(&str, Value)]) -> Command {
        let mut command = client_with(&self.address(), sql, files, threads, more);
        command.envs(self.variables.iter().cloned());
        command
    }

    /// What executors logged of the parts that they began to read.
    pub(crate) fn parts(&self) -> Vec<String> {
        let logs: String = self.executors.iter().map(Process::log).collect();
        let parts = logs.lines().filter_map(|line| Some(line.split_once(": reading ")?.1.to_owned()));
        parts.collect()
    }
}

/// The program that `anytrace query --cluster` starts.
pub(crate) fn client(address: &str, sql: &str, files: &[PathBuf], threads: usize) -> Command {
    client_with(address, sql, files, threads, &[])
}

fn client_with(address: &str, sql: &str, files: &[PathBuf], threads: usize, more: &[(&str, Value)]) -> Command {
    let mut request = json!({
        "version": env!("CARGO_PKG_VERSION"), "action": "query", "sql": sql, "format": "csv", "threads": threads,
        "schemas": vec![Value::Null; files.len()], "index": {}, "cluster": address,
    });
    for (name, value) in more {
        request[*name] = value.clone();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace-cluster"));
    command.arg(request.to_string()).args(files).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).env("ANYTRACE_CLUSTER_PART_BYTES", "1500");
    command
}

/// The rows and the diagnostics of the engine in one process.
pub(crate) fn local(sql: &str, files: &[PathBuf], threads: usize) -> (String, Vec<String>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let open = |path: &PathBuf| Arc::new(TraceFile::open(path.clone(), None, &OpenWith::default()).unwrap());
    let files: Vec<_> = files.iter().map(open).collect();
    let mut out = Vec::new();
    runtime.block_on(async {
        let options = Options { partitions: threads, ..Options::default() };
        let session = Session::new(&options, files.clone()).await.unwrap();
        let how = How { form: Form::Csv, is_raw_csv: false, is_terminal: false };
        session.run(sql, false, how, &mut out).await.unwrap();
    });
    let lines = files.iter().flat_map(|file| file.damage().0).collect();
    (String::from_utf8(out).unwrap(), lines)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn is_open(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// The answer to a request over HTTP; empty where nobody answers.
pub(crate) fn get(port: u16, path: &str) -> String {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    ask().unwrap_or_default()
}

/// Asks again and again until there is an answer.
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>, why: impl Fn() -> String) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < READY_TIME, "{what} did not come in time\n{}", why());
        std::thread::sleep(Duration::from_millis(50));
    }
}
