//! The reference's own output, compared with dumps of it. Skipped if the shared corpus is not available.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use anytrace_casemate::model::Options;
use anytrace_casemate::tools::reference::{ReferenceOptions, reference};
use anytrace_casemate::tools::{CheckOptions, Verdict};
use anytrace_core::testing::shared_corpus;
use anytrace_core::{Collect, Input, OpenOptions};

#[test]
fn every_dump_of_the_reference_is_reproduced() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    for name in ["bad_bbm_missing_tlbi", "bad_no_bbm_stage1", "good_bbm", "good_bbm_by_VMID"] {
        // The dump of the trace contains the records.
        let dump =
            |form: &str| std::fs::read_to_string(corpus.join(format!("reference-dumps/{name}.{form}.txt"))).unwrap();
        let log: String = dump("trace")
            .lines()
            .filter(|line| line.starts_with('('))
            .fold(String::new(), |all, line| all + line + "\n");
        let forms = [
            ("trace", ReferenceOptions::default()),
            ("print", ReferenceOptions { prints: true, ..Default::default() }),
            ("diff", ReferenceOptions { diffs: true, ..Default::default() }),
            ("color", ReferenceOptions { is_colored: true, ..Default::default() }),
            ("condensed", ReferenceOptions { is_condensed: true, ..Default::default() }),
        ];
        for (form, options) in forms {
            let options = ReferenceOptions { traces: true, ..options };
            let check = CheckOptions { model: Options::COMPAT, ..Default::default() };
            let mut out = Vec::new();
            let input = Input::from_bytes("t", log.as_bytes().to_vec());
            let end =
                reference(input, &OpenOptions::default(), &check, &options, &mut out, &mut Collect::default()).unwrap();
            let mut text = String::from_utf8(out).unwrap();
            // The dumps end with the text on standard error and the exit code.
            match end.message {
                Some(message) => text.push_str(&format!("[stderr] {message}\n[exit] 0\n")),
                None => text.push_str("[stderr] [exit] 1\n"),
            }
            let expected = dump(form);
            for (at, (ours, theirs)) in text.lines().zip(expected.lines()).enumerate() {
                assert_eq!(ours, theirs, "{name}.{form} line {}", at + 1);
            }
            assert_eq!(text.lines().count(), expected.lines().count(), "{name}.{form}");
            assert_eq!(end.verdict == Verdict::Ok, name.starts_with("good"));
        }
    }
}
