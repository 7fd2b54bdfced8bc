//! `anytrace apitrace trim | sed | repack`: names, messages, exit codes, and that nothing is lost by accident.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn example() -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/imm.trace")).unwrap()
}

/// Runs a verb in a folder: exit code, standard output, standard error.
fn run(folder: &Path, arguments: &[&str], input: &[u8]) -> (i32, Vec<u8>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_anytrace"))
        .arg("apitrace")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A verb that does not read it may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn names_are_made_up_and_nothing_is_replaced_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("game.trace"), example()).unwrap();
    let (code, out, err) = run(at, &["trim", "--frames=1", "game.trace"], b"");
    assert_eq!((code, out.as_slice(), err.as_str()), (0, &b"Trimmed trace is available as game-trim.trace\n"[..], ""));
    let (code, out, err) = run(at, &["sed", "-e", "s/GL_TRIANGLES/GL_LINES/", "game.trace"], b"");
    assert_eq!((code, out.as_slice(), err.as_str()), (0, &b"Edited trace is available as game-sed.trace\n"[..], ""));
    assert_eq!(run(at, &["repack", "-z", "game.trace", "game.gz"], b"").0, 0);
    let before = std::fs::read(at.join("game-trim.trace")).unwrap();
    for arguments in [
        &["trim", "--frames=2", "game.trace"][..],
        &["sed", "game.trace"],
        &["repack", "game.trace", "game.gz"],
        &["repack", "game.trace", "game.trace"],
    ] {
        let (code, _, err) = run(at, arguments, b"");
        assert!(code == 2 && err.contains("exists; use --force to replace it"), "{arguments:?}: {err}");
    }
    assert_eq!(std::fs::read(at.join("game-trim.trace")).unwrap(), before);
    assert_eq!(run(at, &["trim", "--frames=2", "game.trace", "--force"], b"").0, 0);
    assert_ne!(std::fs::read(at.join("game-trim.trace")).unwrap(), before);
    assert_eq!(names(at), ["game-sed.trace", "game-trim.trace", "game.gz", "game.trace"]);
}

#[test]
fn what_makes_no_sense_ends_with_2_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("a.trace"), example()).unwrap();
    for arguments in [
        &["trim", "--calls=3-x", "a.trace"][..],
        &["trim", "--frames=frames", "a.trace"],
        &["trim", "--thread=x", "a.trace"],
        &["trim", "--container=snappy", "--level=3", "a.trace"],
        &["trim", "a.trace", "a.trace"],
        &["trim", "none.trace"],
        &["trim", "-"],
        &["sed", "-e", "s/a/b", "a.trace"],
        &["sed", "-e", "s/@file(none)/b/", "a.trace"],
        &["sed", "--property=x", "a.trace"],
        &["repack", "a.trace"],
        &["repack", "--brotli=12", "a.trace", "b.trace"],
        &["repack", "--zstd=x", "a.trace", "b.trace"],
        &["repack", "--container=zip", "a.trace", "b.trace"],
    ] {
        let (code, out, err) = run(at, arguments, &example());
        assert!(code == 2 && out.is_empty() && !err.is_empty(), "{arguments:?}: {code} {err}");
    }
    assert_eq!(names(at), ["a.trace"]);
}

#[test]
fn standard_input_and_output_are_traces() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (code, raw, _) = run(at, &["repack", "--container=raw", "-", "-"], &example());
    assert_eq!(code, 0);
    // All of it, through every container and verb, is the same.
    let (_, packed, _) = run(at, &["repack", "--zstd=5", "-", "-"], &raw);
    let (_, trimmed, _) = run(at, &["trim", "--calls=*", "-", "-o", "-"], &packed);
    let (_, edited, _) = run(at, &["sed", "-e", "s/nothing/x/", "-", "-o-", "--container=brotli"], &trimmed);
    let (_, again, _) = run(at, &["repack", "--container=raw", "-", "-"], &edited);
    assert!(again == raw);
    assert!(names(at).is_empty());
}

#[test]
fn damage_is_reported_with_1_and_the_rest_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let complete = example();
    std::fs::write(at.join("cut.trace"), &complete[..complete.len() - 9]).unwrap();
    std::fs::write(at.join("stub.trace"), &complete[..3]).unwrap();
    for arguments in [
        &["trim", "--calls=*", "cut.trace", "-o", "out"][..],
        &["sed", "-e", "s/GL_TRIANGLES/GL_LINES/", "cut.trace", "-o", "out"],
        &["repack", "cut.trace", "out"],
    ] {
        let (code, _, err) = run(at, arguments, b"");
        assert!(code == 1 && err.contains("[apitrace/container-truncated]"), "{arguments:?}: {code} {err}");
        assert!(std::fs::metadata(at.join("out")).unwrap().len() > 1000);
        std::fs::remove_file(at.join("out")).unwrap();
    }
    for arguments in [
        &["trim", "--calls=*", "stub.trace", "-o", "out"][..],
        &["sed", "stub.trace", "-o", "out"],
        &["repack", "stub.trace", "out"],
    ] {
        let (code, _, err) = run(at, arguments, b"");
        // Without a header there is nothing to repack; the others may have lost all calls.
        let expected = if arguments.contains(&"repack") { 2 } else { 1 };
        assert!(code == expected && err.contains("nothing was written"), "{arguments:?}: {code} {err}");
        assert!(!at.join("out").exists());
    }
}

#[test]
fn the_last_container_counts_and_z_is_gzip() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (options, magic) in [
        (&[][..], &b"at"[..]),
        (&["-z"], &[0x1f, 0x8b]),
        (&["-g"], &[0x1f, 0x8b]),
        (&["--zlib=9"], &[0x1f, 0x8b]),
        (&["-z", "-s"], b"at"),
        (&["-s", "-b", "--zstd"], &[0x28, 0xb5, 0x2f, 0xfd]),
        (&["--container=snappy", "-z"], &[0x1f, 0x8b]),
    ] {
        let arguments: Vec<&str> = ["repack"].iter().chain(options).chain(&["-", "-"]).copied().collect();
        let (code, out, err) = run(at, &arguments, &example());
        assert!(code == 0 && out.starts_with(magic), "{options:?}: {err}");
    }
}

#[test]
fn files_that_options_name_are_small() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("game.trace"), example()).unwrap();
    std::fs::File::create(at.join("large")).unwrap().set_len(1 << 40).unwrap();
    for arguments in [
        &["dump", "--calls=@large", "game.trace"][..],
        &["sed", "-e", "s,@file(large),b,", "game.trace"],
        &["trim", "--frames=@large", "game.trace"],
    ] {
        let (code, _, err) = run(at, arguments, b"");
        assert!(code == 2 && err.contains("more than 16777216 bytes"), "{arguments:?}: {err}");
    }
}
