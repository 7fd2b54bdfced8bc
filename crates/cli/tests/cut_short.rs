//! Files that become shorter while a verb reads them: exit 1, the lost byte named, no signal, nothing left behind.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Long enough that a verb whose output nobody reads cannot have read all of it.
const BYTES: usize = 24 << 20;

/// Where the files are cut, while the verb is in the first megabytes.
const CUT: u64 = 12 << 20;

fn repeated(sample: &str, from: usize) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(sample);
    let sample = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = sample[..from].to_vec();
    while bytes.len() < BYTES {
        bytes.extend_from_slice(&sample[from..]);
    }
    bytes
}

/// Accesses of one thread.
fn accesses() -> Vec<u8> {
    let record = |n: u64| {
        let mut bytes = vec![(n % 2) as u8];
        bytes.extend((0x5555_5555_8000 + n % 5000 * 8).to_le_bytes());
        bytes.push(8);
        bytes.extend(1_u64.to_le_bytes());
        bytes
    };
    (0..BYTES as u64 / 18).flat_map(record).collect()
}

fn locks() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BYTES + 100);
    for n in 0.. {
        let word = if n % 2 == 0 { "lock" } else { "unlock" };
        writeln!(bytes, "({word} (id {n}) (tid 0) (address 0x9000) (src \"p.c:{n}\"))").unwrap();
        if bytes.len() >= BYTES {
            return bytes;
        }
    }
    bytes
}

/// A format's file of many megabytes.
fn trace(folder: &Path, format: &str) -> PathBuf {
    let bytes = match format {
        "cacheray" => accesses(),
        "casemate" => locks(),
        "heph" => repeated("heph/corpus/real/relay_new.bin.log", 0),
        "xray" => repeated("xray/corpus/fib12-thr5.xray", 32),
        other => panic!("{other}"),
    };
    let path = folder.join(format!("long.{format}"));
    std::fs::write(&path, bytes).unwrap();
    path
}

fn start(folder: &Path, words: &str, file: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.args(words.split_ascii_whitespace()).arg(file).current_dir(folder).env("TMPDIR", folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_verb_that_prints_names_the_byte_at_which_its_file_ends() {
    for (format, words) in [
        ("cacheray", "dump"),
        ("cacheray", "dump --format jsonl"),
        ("casemate", "dump"),
        ("heph", "dump"),
        ("heph", "dump --format jsonl"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = trace(folder.path(), format);
        let mut child = start(folder.path(), words, &path);
        // The pipe is full soon, and the verb waits with most of the file unread.
        let mut out = child.stdout.take().unwrap();
        let mut first = [0; 1000];
        out.read_exact(&mut first).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(CUT).unwrap();
        let rest = std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()).unwrap());
        let output = child.wait_with_output().unwrap();
        rest.join().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), None, "{words}: {said}");
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        let place = format!("byte {CUT:#x}");
        assert!(said.contains(&place) && said.contains("was truncated"), "{format}, {words}: {said}");
        assert_eq!(names(folder.path()), [format!("long.{format}")], "{words}");
    }
}

/// A verb that writes a file is cut at some moment: it ends before, or it says so and leaves nothing.
#[test]
fn a_verb_that_writes_a_file_leaves_nothing_behind() {
    let mut cut_in_time = 0;
    for (format, words) in [
        ("cacheray", "convert -o out.jsonl --to jsonl"),
        ("casemate", "convert -o out.jsonl --to jsonl"),
        ("heph", "convert -o out.json --to chrome"),
        ("heph", "convert -o out.otlp.json --to otlp"),
        // Mapped: what is lost reads as zeros.
        ("xray", "convert -o out.json --to chrome"),
        ("xray", "xray account -o out.txt"),
        ("cacheray", "info --threads 2"),
        ("heph", "check"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = trace(folder.path(), format);
        let child = start(folder.path(), words, &path);
        if words.contains("-o ") {
            // The temporary file is there as soon as reading begins.
            while names(folder.path()).len() < 2 {
                std::thread::yield_now();
            }
        }
        File::options().write(true).open(&path).unwrap().set_len(CUT).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.signal(), None, "{words}: {said}");
        let left = names(folder.path());
        if said.contains("was truncated") {
            cut_in_time += 1;
            assert_eq!((output.status.code(), left), (Some(1), vec![format!("long.{format}")]), "{words}: {said}");
        } else {
            assert!(left.iter().all(|name| !name.starts_with(".anytrace")), "{words}: {left:?}");
        }
    }
    assert!(cut_in_time > 0, "no verb was cut while it read");
}

#[test]
fn an_interrupted_verb_leaves_no_temporary_file() {
    let sample = repeated("xray/corpus/fib12-thr5.xray", 32);
    for (signal, words) in [
        ("TERM", "convert -o out.json --to chrome -"),
        ("INT", "convert -o out.json --to chrome -"),
        ("HUP", "convert -o out.json --to chrome -"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
        command.args(words.split_ascii_whitespace()).current_dir(folder.path()).env("TMPDIR", folder.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // More follows and never comes: the verb is in the middle of its work.
        input.write_all(&sample[..1 << 20]).unwrap();
        while names(folder.path()).is_empty() {
            std::thread::yield_now();
            assert!(child.try_wait().unwrap().is_none(), "{words}: it ended by itself");
        }
        // The handler is installed right after the file is made.
        std::thread::sleep(std::time::Duration::from_millis(200));
        let killed = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let status = child.wait().unwrap();
        drop(input);
        assert!(!status.success(), "{words}: {status}");
        assert_eq!(names(folder.path()), Vec::<String>::new(), "{words} and SIG{signal}");
    }
}
