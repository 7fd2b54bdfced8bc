//! The output of `info`, `dump` and `check` for the small samples, word for word; `UPDATE_GOLDENS=1` rewrites it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;
use std::path::Path;

use anytrace_core::testing::examine;
use anytrace_xray::Xray;

const SAMPLES: [&str; 10] = [
    "v5.xray",
    "v1.xray",
    "be-v5.xray",
    "basic-v3.xray",
    "basic-dso.xray",
    "typed-tinybuf.xray",
    "v5-gap-fake-extent.xray",
    "v5-event-payloads.xray",
    "ring.xray",
    "args.yaml",
];

fn compare(path: &Path, found: &str) {
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(path, found).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert!(expected == found, "{}: differs from the golden:\n{found}", path.display());
}

#[test]
fn output_matches_the_goldens() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for name in SAMPLES {
        let exam = examine(&Xray, &std::fs::read(corpus.join(name)).unwrap());
        let info = &exam.info.0;
        let mut text = String::new();
        writeln!(text, "version {:?}, order {:?}, dialect {:?}", info.format_version, info.byte_order, info.dialect)
            .unwrap();
        writeln!(text, "{} bytes, {} records, {:?}", info.bytes, info.records, info.time).unwrap();
        writeln!(text, "kinds {:?}\nthreads {:?}", info.kinds, info.threads).unwrap();
        for (key, value) in &info.details {
            writeln!(text, "{key}: {value}").unwrap();
        }
        compare(&corpus.join(format!("{name}.info")), &text);
        compare(&corpus.join(format!("{name}.dump")), std::str::from_utf8(&exam.text).unwrap());
        let check: String = exam.check.iter().map(|d| format!("{d}\n")).collect();
        compare(&corpus.join(format!("{name}.check")), &check);
    }
}

#[test]
fn a_dump_has_no_control_characters() {
    for name in ["v5-event-payloads.xray", "customs-tinybuf.xray"] {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        let exam = examine(&Xray, &std::fs::read(corpus.join(name)).unwrap());
        assert!(exam.text.iter().all(|&b| b == b'\n' || (b >= 0x20 && b != 0x7f)), "{name}");
        assert!(exam.jsonl.iter().all(|&b| b == b'\n' || (b >= 0x20 && b != 0x7f)), "{name}");
    }
}
