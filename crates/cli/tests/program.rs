//! The program as its users meet it: exit codes, pipes, files that are written completely or not at all.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(name)
}

const EXAMPLES: [(&str, &str); 6] = [
    ("imm.trace", "apitrace"),
    ("boxes.cacheray", "cacheray"),
    ("free_tree.casemate", "casemate"),
    ("relay.heph", "heph"),
    ("rows.lackey", "lackey"),
    ("threads4.xray", "xray"),
];

fn anytrace() -> Command {
    Command::new(env!("CARGO_BIN_EXE_anytrace"))
}

fn run(arguments: &[&str]) -> Output {
    anytrace().args(arguments).output().unwrap()
}

fn piped(arguments: &[&str], bytes: &[u8]) -> Output {
    let mut child =
        anytrace().args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    // The program may stop reading early; that is its business.
    let _ = writer.join().unwrap();
    output
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn each_example_is_recognized_and_has_no_damage() {
    for (name, format) in EXAMPLES {
        let output = run(&["info", "--format", "json", path(&example(name))]);
        let info = json(&output);
        assert_eq!((output.status.code(), &info["format"]), (Some(0), &Value::from(format)), "{name}");
        let records = info["records"].as_u64().unwrap();
        let kinds: u64 = info["kinds"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        let threads: u64 = info["threads"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        assert!(records > 10 && kinds == records && threads <= records, "{name}: {info:#}");
    }
}

#[test]
fn a_pipe_and_a_compressed_file_say_what_the_file_says() {
    for (name, _) in EXAMPLES {
        let bytes = std::fs::read(example(name)).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&bytes).unwrap();
        let forms = [bytes.clone(), gzip.finish().unwrap(), zstd::encode_all(&bytes[..], 3).unwrap()];
        let plain = json(&run(&["info", "--format", "json", path(&example(name))]));
        for form in forms {
            let other = json(&piped(&["info", "--format", "json", "-"], &form));
            for key in ["format", "format_version", "records", "kinds", "threads", "time", "byte_order"] {
                assert_eq!(other[key], plain[key], "{name}: {key}");
            }
        }
    }
}

#[test]
fn convert_to_the_same_format_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for (name, _) in EXAMPLES {
        let out = folder.path().join(name);
        let output = run(&["convert", path(&example(name)), "-o", path(&out)]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
        let same = if name == "imm.trace" {
            // A container may be cut into other chunks; the records are what counts.
            run(&["diff", path(&example(name)), path(&out)]).status.code() == Some(0)
        } else {
            std::fs::read(example(name)).unwrap() == std::fs::read(&out).unwrap()
        };
        assert!(same, "{name}");
    }
}

#[test]
fn json_lines_lead_back_to_the_same_records() {
    let folder = tempfile::tempdir().unwrap();
    for (name, format) in EXAMPLES {
        let (lines, back) = (folder.path().join("x.jsonl"), folder.path().join(name));
        assert!(
            run(&["convert", path(&example(name)), "-o", path(&lines), "--to", "jsonl", "--force"]).status.success()
        );
        let output = run(&["convert", path(&lines), "-o", path(&back), "--to", format]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
        let diff = run(&["diff", path(&example(name)), path(&back)]);
        assert_eq!(diff.status.code(), Some(0), "{name}: {}", text(&diff.stdout));
        // Only `convert` takes JSON lines; other verbs say what to do.
        let info = run(&["info", path(&lines)]);
        assert_eq!(info.status.code(), Some(2));
        assert!(text(&info.stderr).contains("convert"), "{}", text(&info.stderr));
    }
}

#[test]
fn a_damaged_trace_exits_1_and_its_repair_exits_0() {
    let folder = tempfile::tempdir().unwrap();
    for (name, format) in EXAMPLES {
        let mut bytes = std::fs::read(example(name)).unwrap();
        bytes.truncate(bytes.len() - 3);
        let (cut, saved) = (folder.path().join(name), folder.path().join(format!("saved-{name}")));
        std::fs::write(&cut, bytes).unwrap();
        for verb in ["info", "check", "dump"] {
            let output = run(&[verb, path(&cut)]);
            assert_eq!(output.status.code(), Some(1), "{verb} {name}: {}", text(&output.stderr));
        }
        let check = json(&run(&["check", "--format", "json", path(&cut)]));
        assert_eq!(check["format"], format);
        assert!(check["errors"].as_u64().unwrap() > 0 && check["diagnostics"][0]["offset"].is_u64());
        let repair = run(&["repair", path(&cut), "-o", path(&saved)]);
        assert_eq!(repair.status.code(), Some(0), "{name}: {}", text(&repair.stderr));
        let again = run(&["check", path(&saved)]);
        assert_eq!(again.status.code(), Some(0), "{name}: {}", text(&again.stdout));
    }
}

#[test]
fn compressed_data_damaged_before_their_first_byte_are_no_empty_file() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(example("relay.heph")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&bytes).unwrap();
    let complete = [gzip.finish().unwrap(), zstd::encode_all(&bytes[..], 3).unwrap()];
    for (form, code) in complete.iter().zip(["container/gzip-truncated", "container/zstd-truncated"]) {
        for cut in [12, 20] {
            let file = folder.path().join("cut");
            std::fs::write(&file, &form[..cut]).unwrap();
            let check = run(&["check", "--format", "json", path(&file)]);
            let report = json(&check);
            assert_eq!((check.status.code(), &report["diagnostics"][0]["code"]), (Some(1), &Value::from(code)));
            for verb in ["info", "dump"] {
                assert_eq!(run(&[verb, path(&file)]).status.code(), Some(1), "{verb}");
            }
            for verb in ["repair", "convert"] {
                let out = folder.path().join("out");
                let output = run(&[verb, path(&file), "-o", path(&out)]);
                assert_eq!((output.status.code(), out.exists()), (Some(1), false), "{verb}");
            }
        }
    }
}

#[test]
fn every_verb_of_casemate_refuses_what_is_clearly_of_another_format() {
    let (heph, lines) = (example("relay.heph"), example("relay.heph"));
    let verbs = ["check", "explain", "timeline", "state", "stats", "walk", "minimise", "rewrite", "diff"];
    for verb in verbs {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out.log");
        let mut arguments = vec!["casemate", verb, path(&heph)];
        match verb {
            "minimise" | "rewrite" => arguments.extend(["-o", path(&out)]),
            "diff" => arguments.push(path(&lines)),
            "walk" => arguments.extend(["--root", "0x1000"]),
            "timeline" => arguments.extend(["--location", "0x1000"]),
            _ => {}
        }
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{verb}: {}", text(&output.stderr));
        assert!(
            text(&output.stderr).contains("expected a Casemate offline trace, found a Heph trace; "),
            "{verb}: {}",
            text(&output.stderr)
        );
        assert!(!out.exists());
    }
}

#[test]
fn a_damaged_header_is_reported_with_its_place_by_every_verb_of_xray() {
    let mut bytes = std::fs::read(example("threads4.xray")).unwrap();
    bytes[2] = 0xee;
    for verb in [&["account"][..], &["stack"], &["graph"], &["fdr-dump"], &["convert", "-f", "yaml"]] {
        let arguments: Vec<&str> = ["xray"].iter().chain(verb).copied().chain(["-"]).collect();
        let output = piped(&arguments, &bytes);
        assert_eq!(output.status.code(), Some(1), "{verb:?}");
        assert!(text(&output.stderr).contains("byte 0x2: type: expected 0 (Basic) or 1 (FDR)"), "{verb:?}");
        // What is clearly of another format is not read.
        let other = example("relay.heph");
        let arguments: Vec<&str> = ["xray"].iter().chain(verb).copied().chain([path(&other)]).collect();
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{verb:?}");
        assert!(text(&output.stderr).contains("expected an LLVM XRay trace, found a Heph trace; "), "{verb:?}");
    }
}

#[test]
fn json_lines_are_known_whatever_their_spacing() {
    let folder = tempfile::tempdir().unwrap();
    let (lines, back) = (folder.path().join("x.jsonl"), folder.path().join("x.xray"));
    let source = example("threads4.xray");
    let dump = text(&run(&["dump", "--format", "jsonl", path(&source)]).stdout);
    std::fs::write(&lines, dump.replace("\":", "\" : ").replace(",\"", ", \"")).unwrap();
    let output = run(&["convert", path(&lines), "-o", path(&back), "--to", "xray"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(std::fs::read(&back).unwrap(), std::fs::read(&source).unwrap());
}

#[test]
fn several_files_are_all_done_and_the_worst_exit_code_is_returned() {
    let (good, other) = (example("relay.heph"), example("threads4.xray"));
    let output = run(&["info", "--format", "json", path(&good), "no/such/file", path(&other)]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(json(&output).as_array().map(Vec::len), Some(2));
    assert!(text(&output.stderr).contains("no/such/file"));
}

#[test]
fn an_empty_file_is_no_error_and_a_foreign_one_says_what_was_tried() {
    let folder = tempfile::tempdir().unwrap();
    let (empty, foreign) = (folder.path().join("empty"), folder.path().join("foreign"));
    std::fs::write(&empty, b"").unwrap();
    std::fs::write(&foreign, b"hello, this is no trace").unwrap();
    let output = run(&["info", "--format", "json", path(&empty)]);
    let info = json(&output);
    assert_eq!(
        (output.status.code(), &info["format"], &info["records"]),
        (Some(0), &Value::from("unknown"), &Value::from(0))
    );
    for verb in ["check", "dump"] {
        assert_eq!(run(&[verb, path(&empty)]).status.code(), Some(0), "{verb}");
    }
    let output = run(&["check", path(&foreign)]);
    assert_eq!(output.status.code(), Some(2));
    let all: Vec<_> = anytrace_formats::all().iter().map(|format| format.name()).collect();
    assert!(text(&output.stderr).contains(&format!("tried {}", all.join(", "))));
}

#[test]
fn nothing_is_overwritten_without_force_and_a_failure_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    std::fs::write(&out, b"precious").unwrap();
    let input = example("threads4.xray");
    let output = run(&["convert", path(&input), "-o", path(&out)]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read(&out).unwrap(), b"precious");
    assert_eq!(run(&["convert", path(&input), "-o", path(&out), "--version", "99", "--force"]).status.code(), Some(2));
    assert_eq!(std::fs::read(&out).unwrap(), b"precious");
    assert_eq!(run(&["convert", path(&input), "-o", path(&out), "--force"]).status.code(), Some(0));
    assert_eq!(std::fs::read(&out).unwrap(), std::fs::read(&input).unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn output_to_standard_output_is_the_trace_and_nothing_else() {
    let input = example("relay.heph");
    let output = run(&["convert", path(&input), "-o", "-"]);
    assert_eq!(output.stdout, std::fs::read(&input).unwrap());
    let output = run(&["trim", path(&input), "-o", "-", "--records", "0..5"]);
    assert_eq!(json(&piped(&["info", "--format", "json", "-"], &output.stdout))["format"], "heph");
}

#[test]
fn a_trimmed_trace_passes_check_and_differs() {
    let folder = tempfile::tempdir().unwrap();
    for (name, _) in EXAMPLES {
        let out = folder.path().join(name);
        let output = run(&["trim", path(&example(name)), "-o", path(&out), "--records", "5..12"]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
        let check = run(&["check", path(&out)]);
        assert_eq!(check.status.code(), Some(0), "{name}: {}", text(&check.stdout));
        let diff = run(&["diff", "--format", "json", path(&example(name)), path(&out)]);
        assert_eq!(diff.status.code(), Some(1), "{name}");
        assert_eq!(json(&diff)["equal"], false);
    }
}

#[test]
fn a_selection_of_nothing_and_a_trace_of_nothing_write_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    std::fs::write(&out, b"precious").unwrap();
    // A part of a Heph trace always holds its metadata, so it is never nothing.
    for (name, _) in EXAMPLES.into_iter().filter(|(_, format)| *format != "heph") {
        let output = run(&["trim", path(&example(name)), "-o", path(&out), "--force", "--records", "900000..900001"]);
        assert_eq!(output.status.code(), Some(2), "{name}");
    }
    let relay = example("relay.heph");
    for verb in ["convert", "repair"] {
        let output = run(&[verb, path(&relay), "-o", path(&out), "--force", "--input-format", "xray"]);
        assert_eq!(output.status.code(), Some(1), "{verb}");
        assert!(text(&output.stderr).contains("nothing was written"), "{}", text(&output.stderr));
    }
    assert_eq!(std::fs::read(&out).unwrap(), b"precious");
}

#[test]
fn byte_order_and_container_are_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let forms: [(&str, &[&str]); 3] = [
        ("threads4.xray", &["--to-endian", "big"]),
        ("boxes.cacheray", &["--to-endian", "big"]),
        ("imm.trace", &["--container", "zstd-seekable"]),
    ];
    for (name, options) in forms {
        let out = folder.path().join(name);
        let convert = run(&[&["convert", path(&example(name)), "-o", path(&out)], options].concat());
        assert_eq!(convert.status.code(), Some(0), "{name}: {}", text(&convert.stderr));
        assert_ne!(std::fs::read(&out).unwrap(), std::fs::read(example(name)).unwrap());
        let diff = run(&["diff", path(&example(name)), path(&out)]);
        assert_eq!(diff.status.code(), Some(0), "{name}: {}", text(&diff.stdout));
    }
}

#[test]
fn standard_input_can_be_named_only_once() {
    for verb in ["info", "check", "diff"] {
        let output = piped(&[verb, "-", "-"], b"");
        assert_eq!(output.status.code(), Some(2), "{verb}");
        assert!(text(&output.stderr).contains("only once"));
    }
}

#[test]
fn an_option_a_format_does_not_have_is_refused_by_its_own_name() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let cases: [(&[&str], &str); 3] = [
        (&["convert", "--to-endian", "big", "-o"], "--to-endian does not apply to heph"),
        (&["convert", "--recover", "--radix", "dec", "-o"], "--radix does not apply to heph"),
        (&["trim", "--frames", "1..2", "-o"], "--frames does not apply to heph"),
    ];
    for (options, message) in cases {
        let output = run(&[options, &[path(&out), path(&example("relay.heph"))]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
    }
}

#[test]
fn a_file_name_cannot_move_the_terminal() {
    let output = run(&["info", "no\u{1b}[2Jsuch"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!output.stderr.contains(&0x1b), "{}", text(&output.stderr));
}

#[cfg(unix)]
#[test]
fn a_replaced_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    std::fs::write(&out, b"old").unwrap();
    std::fs::set_permissions(&out, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(run(&["convert", path(&example("relay.heph")), "-o", path(&out), "--force"]).status.success());
    assert_eq!(std::fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
}

/// Whether a program has a handler for interrupts, as Linux reports it; elsewhere after a while.
#[cfg(unix)]
fn catches_interrupts(id: u32) -> bool {
    const SIGINT_BIT: u64 = 1 << 1;
    let Ok(status) = std::fs::read_to_string(format!("/proc/{id}/status")) else {
        std::thread::sleep(std::time::Duration::from_secs(1));
        return true;
    };
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & SIGINT_BIT != 0
}

#[cfg(unix)]
#[test]
fn an_interrupted_program_leaves_no_temporary_file() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // Standard input stays open, so the program waits for more after its output file was begun.
    let mut child = anytrace().args(["convert", "-", "-o", path(&out)]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&[0; 10]).unwrap();
    while std::fs::read_dir(folder.path()).unwrap().count() == 0 {
        std::thread::yield_now();
    }
    // The handler is set right after the file is made; until then the signal would end the program its own way.
    while !catches_interrupts(child.id()) {
        assert!(child.try_wait().unwrap().is_none(), "it ended too early");
        std::thread::yield_now();
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn traces_of_different_formats_cannot_be_compared() {
    let output = run(&["diff", path(&example("relay.heph")), path(&example("threads4.xray"))]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("different formats"));
}

#[test]
fn an_ignored_field_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let (lines, other) = (folder.path().join("x.jsonl"), folder.path().join("y.heph"));
    let input = example("relay.heph");
    assert!(run(&["convert", path(&input), "-o", path(&lines), "--to", "jsonl"]).status.success());
    let edited = std::fs::read_to_string(&lines).unwrap().replacen("\"stream\":0", "\"stream\":77", 1).replacen(
        "\"stream\": 0",
        "\"stream\": 77",
        1,
    );
    std::fs::write(&lines, edited).unwrap();
    assert!(run(&["convert", path(&lines), "-o", path(&other), "--to", "heph"]).status.success());
    let diff = run(&["diff", "--format", "json", path(&input), path(&other)]);
    assert_eq!((diff.status.code(), json(&diff)["changed"].as_u64()), (Some(1), Some(1)));
    assert_eq!(run(&["diff", "--ignore", "stream", path(&input), path(&other)]).status.code(), Some(0));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = anytrace()
        .args(["dump", path(&example("imm.trace"))])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
fn reports_are_valid_and_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.heph");
    let bytes = std::fs::read(example("relay.heph")).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() - 5]).unwrap();
    let sarif = json(&run(&["check", "--format", "sarif", path(&cut), path(&example("threads4.xray"))]));
    assert_eq!(sarif["version"], "2.1.0");
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert!(results.iter().any(|r| r["level"] == "error" && r["ruleId"].as_str().unwrap().starts_with("heph/")));
    let junit = text(&run(&["check", "--format", "junit", path(&cut)]).stdout);
    assert!(
        junit.starts_with("<?xml") && junit.contains("<failure type=\"heph/") && junit.ends_with("</testsuites>\n")
    );
}

#[test]
fn no_color_code_reaches_a_pipe() {
    for arguments in [&["info"][..], &["check"], &["dump"], &["rules"], &["formats"]] {
        let mut command = anytrace();
        command.args(arguments);
        if !matches!(arguments[0], "rules" | "formats") {
            command.arg(example("relay.heph"));
        }
        let output = command.output().unwrap();
        assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{arguments:?}");
    }
}

#[test]
fn every_verb_has_help_with_an_example_and_every_shell_its_completions() {
    for verb in ["info", "dump", "check", "repair", "convert", "trim", "diff", "completions", "man"] {
        let help = text(&run(&[verb, "--help"]).stdout);
        assert!(help.contains("Example:\n  anytrace "), "{verb}: {help}");
    }
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = text(&run(&["completions", shell]).stdout);
        assert!(script.contains("anytrace") && script.contains("repair"), "{shell}");
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(run(&["man", "--dir", path(folder.path())]).status.success());
    let page = std::fs::read_to_string(folder.path().join("anytrace-trim.1")).unwrap();
    assert!(page.starts_with(".ie") || page.starts_with(".TH"), "{page}");
    assert!(page.contains("frames"));
}

#[test]
fn the_limit_bounds_what_is_printed_and_not_what_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.heph");
    // Packets with a wrong description length: one error each.
    let mut bytes = Vec::new();
    for counter in 0..50_u32 {
        bytes.extend([0xc1, 0xfc, 0x1f, 0xb7, 0, 0, 0, 43, 0, 0, 0, 1]);
        bytes.extend(counter.to_be_bytes());
        bytes.extend([0; 24]);
        bytes.extend([0, 9, b'x']);
    }
    std::fs::write(&bad, bytes).unwrap();
    let report = json(&run(&["check", "--format", "json", "--limit", "3", path(&bad)]));
    assert_eq!(report["errors"], 50, "{report:#}");
    assert!(report["diagnostics"].as_array().unwrap().len() <= 3 + report["counts"].as_object().unwrap().len());
    let text = text(&run(&["check", "--limit", "3", path(&bad)]).stdout);
    assert!(text.contains("more not shown"), "{text}");
}
