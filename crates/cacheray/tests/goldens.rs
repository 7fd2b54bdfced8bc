//! The exact output of the verbs for a few samples. `UPDATE_GOLDENS=1` rewrites the files.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panic, as tests do")]

mod common;

use std::fmt::Write as _;

use anytrace_cacheray::Cacheray;
use anytrace_core::testing::examine;
use anytrace_core::{Diagnostic, Format, Info};
use common::{corpus, sample};

fn info_text(info: &Info, damage: &[Diagnostic]) -> String {
    let mut text = String::new();
    let order = info.byte_order.map_or("none", |order| order.name());
    writeln!(text, "{} bytes, {} records, {order}-endian", info.bytes, info.records).unwrap();
    writeln!(text, "kinds {:?}\nthreads {:?}", info.kinds, info.threads).unwrap();
    for (key, value) in &info.details {
        writeln!(text, "{key} {value}").unwrap();
    }
    text + &report_text(damage)
}

fn report_text(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics.iter().take(20) {
        diagnostic.render(Cacheray.noun(), &mut text).unwrap();
        text.push('\n');
    }
    if diagnostics.len() > 20 {
        writeln!(text, "and {} more", diagnostics.len() - 20).unwrap();
    }
    text
}

fn compare(name: &str, extension: &str, text: &str) {
    let path = corpus().join(format!("{name}.{extension}"));
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{} differs; run with UPDATE_GOLDENS=1 and read the change\n{text}", path.display());
}

#[test]
fn samples_read_as_their_goldens_say() {
    for name in [
        "broken/access-straddles-region-end",
        "broken/badtag-04-middle",
        "broken/flags-on-add-42",
        "broken/interleaved-corrupt-real-part",
        "broken/name-nul-newline-escape",
        "broken/overlap-nested",
        "broken/remove-inside-region",
        "broken/strlen-4GiB",
        "broken/trunc-remove-after-8",
        "broken/zero-tail-ragged",
        "traces/packed.up14-O0",
    ] {
        let exam = examine(&Cacheray, &sample(name));
        compare(name, "info", &info_text(&exam.info.0, &exam.info.1));
        compare(name, "check", &report_text(&exam.check));
        let text = String::from_utf8(exam.text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let head: String = lines.iter().take(40).map(|line| format!("{line}\n")).collect();
        compare(name, "dump", &head);
    }
}
