//! Plans as bytes: which version made them, what happens to damaged ones, and which parts are read.

#![cfg(feature = "codec")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

#[path = "common/encoded.rs"]
mod encoded;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anytrace_core::{Collect, OpenOptions, index};
use anytrace_query::codec::{LogicalCodec, PhysicalCodec};
use anytrace_query::{Files, OpenWith, Options, Session, TraceFile};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::execution::TaskContext;
use datafusion_proto::logical_plan::{DefaultLogicalExtensionCodec, LogicalExtensionCodec};
use datafusion_proto::physical_plan::{
    DefaultPhysicalExtensionCodec, DefaultPhysicalProtoConverter, PhysicalExtensionCodec,
};
use encoded::Encoded;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(name)
}

fn physical() -> PhysicalCodec {
    PhysicalCodec::new(Arc::new(Files), Arc::new(DefaultPhysicalExtensionCodec {}))
}

fn decode(bytes: &[u8]) -> Result<(), String> {
    let context = TaskContext::default();
    let decoded = physical().try_decode(bytes, &[], &context, &DefaultPhysicalProtoConverter {});
    decoded.map(|_| ()).map_err(|error| error.to_string())
}

/// The counts of a trace's events by an engine, and that engine.
async fn count(path: &Path, part_bytes: u64) -> (i64, Arc<Encoded>) {
    let file = Arc::new(TraceFile::open(path.to_owned(), None, &OpenWith::default()).unwrap());
    let engine = Arc::new(Encoded::default());
    let options = Options { partitions: 2, part_bytes: Some(part_bytes), ..Options::default() };
    let session = Session::with_engine(&options, vec![file], Some(Arc::clone(&engine) as _)).await.unwrap();
    let (_, batches) = session.rows("SELECT count(*) FROM events").await.unwrap();
    (batches[0].column(0).as_primitive::<Int64Type>().value(0), engine)
}

#[test]
fn a_plan_of_another_version_is_refused_and_names_both() {
    let mut bytes = b"anytrace\0".to_vec();
    bytes.extend_from_slice(b"\x050.0.7rest");
    let error = decode(&bytes).unwrap_err();
    assert!(error.contains("version 0.0.7") && error.contains(env!("CARGO_PKG_VERSION")), "{error}");
    assert!(error.contains("must have the same version"), "{error}");
}

#[test]
fn damaged_plans_are_errors() {
    let version = env!("CARGO_PKG_VERSION");
    let mut sound = b"anytrace\0".to_vec();
    sound.push(version.len() as u8);
    sound.extend_from_slice(version.as_bytes());
    for rest in [&b""[..], &b"\x0a"[..], &b"\x0a\x05abc"[..], &[0xff; 64][..]] {
        let bytes = [sound.as_slice(), rest].concat();
        assert!(decode(&bytes).is_err(), "{rest:?}");
    }
    assert!(decode(b"anytrace\0\xff").unwrap_err().contains("a damaged plan"));
    assert!(decode(b"something else").is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_are_read_once_each_and_do_not_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads4.xray");
    std::fs::copy(example("threads4.xray"), &path).unwrap();
    let (all, whole) = count(&path, u64::MAX).await;
    assert_eq!(whole.access.parts.lock().unwrap().len(), 1);

    let format = TraceFile::open(path.clone(), None, &OpenWith::default()).unwrap().format.unwrap();
    let how = OpenOptions::default();
    let made = index::build(format, &path, &how, 512, &mut |_| {}, &mut Collect::default()).unwrap();
    std::fs::write(index::path_of(&path, None), made.encode()).unwrap();
    let (parted, engine) = count(&path, 4096).await;
    assert_eq!(parted, all);
    assert_eq!(engine.access.made.load(Ordering::Relaxed), 0);
    let mut parts = engine.access.parts.lock().unwrap().clone();
    parts.sort();
    assert!(parts.len() > 2, "{parts:?}");
    assert_eq!(parts[0].1, 0);
    assert!(parts.windows(2).all(|pair| pair[0].2 == Some(pair[1].1)), "{parts:?}");
    assert_eq!(parts.last().unwrap().2, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_another_one_elsewhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.xray");
    let bytes = std::fs::read(example("threads4.xray")).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    let open = || Arc::new(TraceFile::open(path.clone(), None, &OpenWith::default()).unwrap());
    let changes: [(&str, Vec<u8>); 2] = [
        ("bytes here and", bytes[..bytes.len() - 8].to_vec()),
        ("other contents here", [&bytes[..100], &[0x55; 8][..], &bytes[108..]].concat()),
    ];
    for (expected, changed) in changes {
        std::fs::write(&path, &bytes).unwrap();
        let options = Options { part_bytes: Some(1 << 20), ..Options::default() };
        let engine: Arc<dyn anytrace_query::Engine> = Arc::new(Encoded::default());
        let session = Session::with_engine(&options, vec![open()], Some(engine)).await.unwrap();
        std::fs::write(&path, changed).unwrap();
        let error = session.rows("SELECT count(*) FROM events").await.unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("a.xray"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_a_logical_plan_comes_back_with_its_columns() {
    let file = Arc::new(TraceFile::open(example("relay.heph"), None, &OpenWith::default()).unwrap());
    let session = Session::new(&Options::default(), vec![file]).await.unwrap();
    let table = session.provider("packets").await.unwrap();
    let codec = LogicalCodec::new(Arc::new(Files), Arc::new(DefaultLogicalExtensionCodec {}));
    let mut bytes = Vec::new();
    codec.try_encode_table_provider(&"packets".into(), Arc::clone(&table), &mut bytes).unwrap();
    let context = TaskContext::default();
    let decode = |bytes: &[u8]| codec.try_decode_table_provider(bytes, &"packets".into(), table.schema(), &context);
    assert_eq!(decode(&bytes).unwrap().schema(), table.schema());
    // The version is in the bytes after the magic and its length.
    bytes[10] ^= 1;
    assert!(decode(&bytes).unwrap_err().to_string().contains("must have the same version"));
}
