//! Traces in an object store, which the PyPI package moto serves.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod common;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anytrace_core::testing::skip;
use common::{Cluster, EXAMPLES, Traces, free_port, is_open, local, text, wait_for};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use serde_json::Value;

const BUCKET: &str = "traces";

/// A store that ends with its handle.
struct Moto {
    child: Child,
    variables: Vec<(String, String)>,
}

impl Moto {
    fn store(&self) -> AmazonS3 {
        let (_, endpoint) = self.variables.iter().find(|(name, _)| name == "AWS_ENDPOINT_URL").unwrap();
        let store = AmazonS3Builder::new().with_bucket_name(BUCKET).with_endpoint(endpoint).with_allow_http(true);
        store.with_access_key_id("test").with_secret_access_key("test").with_region("us-east-1").build().unwrap()
    }

    /// An object's bytes; none where it is not there.
    fn object(&self, key: &str) -> Option<Vec<u8>> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let got = runtime.block_on(async { self.store().get(&Path::from(key)).await?.bytes().await });
        got.ok().map(|bytes| bytes.to_vec())
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn moto() -> Option<Moto> {
    let program = std::env::var_os("ANYTRACE_MOTO_SERVER").filter(|program| !program.is_empty());
    let Some(program) = program else {
        skip("ANYTRACE_MOTO_SERVER does not name a server of an object store: cargo xtask cluster");
        return None;
    };
    let port = free_port();
    let mut command = Command::new(program);
    let command = command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let variables = [
        ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")),
        ("AWS_ACCESS_KEY_ID", "test".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
    ];
    let moto = Moto { child, variables: variables.map(|(name, value)| (name.to_owned(), value)).to_vec() };
    wait_for("the store", || is_open(port).then_some(()), String::new);
    Some(moto)
}

/// Puts files into the bucket, which is made first.
fn put(moto: &Moto, files: &[PathBuf]) {
    let (_, endpoint) = moto.variables.iter().find(|(name, _)| name == "AWS_ENDPOINT_URL").unwrap();
    let address = endpoint.strip_prefix("http://").unwrap();
    let made = http_put(address, &format!("/{BUCKET}"));
    assert!(made.starts_with("HTTP/1.1 200"), "{made}");
    let store = moto.store();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let bytes = std::fs::read(file).unwrap();
        runtime.block_on(store.put(&Path::from(format!("day/{name}")), bytes.into())).unwrap();
    }
    let listed: Vec<_> = runtime.block_on(futures::TryStreamExt::try_collect(store.list(None))).unwrap();
    assert_eq!(listed.len(), files.len());
}

fn http_put(address: &str, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = format!("PUT {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn traces_in_a_store_give_the_rows_of_files() {
    let Some(moto) = moto() else { return };
    let traces = Traces::new();
    let files: Vec<PathBuf> = EXAMPLES.iter().map(|name| traces.example(name, Some(512))).collect();
    let indexes = files.iter().map(|file| PathBuf::from(format!("{}.atx", file.display())));
    put(&moto, &files.iter().cloned().chain(indexes).collect::<Vec<_>>());
    // Processes take the variables from this one.
    let mut cluster = Cluster::start_in(2, traces.folder.path(), &["--bucket", BUCKET], &moto.variables);
    cluster.variables = moto.variables.clone();
    for (name, file) in EXAMPLES.iter().zip(&files) {
        let object = PathBuf::from(format!("s3://{BUCKET}/day/{name}"));
        for sql in [
            "SELECT count(*), sum(seq), max(seq) FROM events",
            "SELECT kind, count(*) FROM events GROUP BY kind ORDER BY 1",
            "SELECT seq, kind FROM events WHERE seq < 30",
        ] {
            let (expected, _) = local(sql, std::slice::from_ref(file), 1);
            for threads in [1, 2, 4, 7] {
                let output = cluster.query(sql, std::slice::from_ref(&object), threads);
                let found = (text(&output.stdout), output.status.code());
                assert_eq!(found, (expected.clone(), Some(0)), "{name} {sql}: {}", text(&output.stderr));
            }
        }
    }
    // Parts were read by their ranges: the index in the store was used.
    let xray = cluster.parts().iter().filter(|line| line.contains("threads4.xray from")).count();
    assert!(xray > 4, "{xray}");
    let sql = "SELECT count(*) FROM events";
    let (expected, _) = local(sql, &files, 1);
    let found = cluster.query(sql, &[PathBuf::from(format!("s3://{BUCKET}/day/*[a-z]"))], 2);
    assert_eq!(found.status.code(), Some(2), "{}", text(&found.stderr));
    let found = cluster.query(sql, &[PathBuf::from(format!("s3://{BUCKET}/day/*.xray"))], 2);
    let (one, _) = local(sql, &[files[5].clone()], 1);
    assert_eq!((text(&found.stdout), found.status.code()), (one, Some(0)), "{}", text(&found.stderr));
    let all: Vec<PathBuf> = EXAMPLES.iter().map(|name| PathBuf::from(format!("s3://{BUCKET}/day/{name}"))).collect();
    let found = cluster.query(sql, &all, 2);
    assert_eq!((text(&found.stdout), found.status.code()), (expected, Some(0)), "{}", text(&found.stderr));
    let object = PathBuf::from(format!("s3://{BUCKET}/day/{}", EXAMPLES[4]));
    results_are_written_to_the_store(&moto, &cluster, &files[4], &object);
    let missing = cluster.query(sql, &[PathBuf::from(format!("s3://{BUCKET}/day/absent.xray"))], 2);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("absent.xray"), "{}", text(&missing.stderr));
    let refused = cluster.query(sql, &[PathBuf::from("s3://other/x.xray")], 2);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}

/// `-o s3://`: the object has what standard output would have, appears completely, and replaces nothing silently.
fn results_are_written_to_the_store(moto: &Moto, cluster: &Cluster, file: &std::path::Path, trace: &PathBuf) {
    const KEY: &str = "results/rows.csv";
    let sql = "SELECT seq, kind, address FROM accesses ORDER BY seq";
    let (expected, _) = local(sql, &[file.to_owned()], 1);
    let target = format!("s3://{BUCKET}/{KEY}");
    let write = |sql: &str, is_forced: bool| {
        let more = [("output", Value::from(target.as_str())), ("force", is_forced.into())];
        let output = cluster.client_with(sql, std::slice::from_ref(trace), 2, &more).output().unwrap();
        assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) = write("SELECT nothing FROM accesses", false);
    assert_eq!((code, moto.object(KEY)), (Some(2), None), "{said}");
    let (code, said) = write(sql, false);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(text(&moto.object(KEY).unwrap()), expected);
    let (code, said) = write("SELECT 1", false);
    assert!(code == Some(2) && said.contains("--force replaces it"), "{code:?} {said}");
    assert_eq!(text(&moto.object(KEY).unwrap()), expected);
    let (code, said) = write("SELECT count(*) AS n FROM accesses WHERE seq < 10", true);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(text(&moto.object(KEY).unwrap()), "n\n10\n");
}
