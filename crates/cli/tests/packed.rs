//! Outputs for other programs under a name that ends in `.gz`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flate2::read::MultiGzDecoder;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(name)
}

fn convert(trace: &Path, out: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.arg("convert").arg(trace).arg("-o").arg(out).args(more).output().unwrap()
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn what_is_packed_is_what_it_would_be_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let spans = ["chrome", "csv", "folded", "otlp", "perfetto", "speedscope", "svg", "callgrind", "perf-script"];
    let accesses = ["din", "xdin", "cacheray"];
    let spans = spans.map(|to| ("threads4.xray", to));
    for (trace, to) in spans.into_iter().chain(accesses.map(|to| ("rows.lackey", to))) {
        let trace = example(trace);
        // Some forms contain the name of what they are made from, none that of the output.
        let (plain, packed) = (folder.path().join(format!("{to}.x")), folder.path().join(format!("{to}.x.gz")));
        let outputs = [&plain, &packed].map(|out| convert(&trace, out, &["--to", to]));
        for output in &outputs {
            assert_eq!(output.status.code(), Some(0), "{to}: {}", String::from_utf8_lossy(&output.stderr));
        }
        assert_eq!(outputs[0].stderr, outputs[1].stderr, "{to}");
        let wanted = fs::read(&plain).unwrap();
        assert!(!wanted.is_empty() && unpacked(&packed) == wanted, "{to}");
        assert!(fs::metadata(&packed).unwrap().len() < wanted.len() as u64 / 2, "{to}");
    }
    // Code addresses are beside the trace, which is read packed as it is.
    let annotate = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
        command
            .args(["memory", "annotate", "--by", "instruction"])
            .arg(folder.path().join(name))
            .output()
            .unwrap()
            .stdout
    };
    let [plain, packed] = ["cacheray.x", "cacheray.x.gz"].map(|name| String::from_utf8(annotate(name)).unwrap());
    assert_eq!(packed.replace("cacheray.x.gz", "cacheray.x"), plain);
}

#[test]
fn the_name_says_both() {
    let folder = tempfile::tempdir().unwrap();
    let trace = example("threads4.xray");
    let bytes = fs::metadata(&trace).unwrap().len();
    for (name, most) in [("a.json.gz", 12.0), ("a.pftrace.gz", 2.5), ("A.PFTRACE.GZ", 2.5)] {
        let out = folder.path().join(name);
        assert_eq!(convert(&trace, &out, &[]).status.code(), Some(0), "{name}");
        let times = fs::metadata(&out).unwrap().len() as f64 / bytes as f64;
        assert!(times < most, "{name}: {times}");
    }
    assert!(unpacked(&folder.path().join("a.json.gz")).starts_with(b"{"));
    // Its own form is packed already.
    let out = folder.path().join("a.pb.gz");
    assert_eq!(convert(&trace, &out, &[]).status.code(), Some(0));
    assert_ne!(unpacked(&out).get(..2), Some(&[0x1f, 0x8b][..]));
    // A trace is not packed by its name alone: its writers go back to what they wrote.
    let out = folder.path().join("a.xray.gz");
    let output = convert(&trace, &out, &[]);
    assert_eq!((output.status.code(), out.exists()), (Some(2), false), "{}", String::from_utf8_lossy(&output.stderr));
}
