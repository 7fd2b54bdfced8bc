//! Threads: right ids, complete records, the program's own order.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panicking")]

mod common;

use std::collections::BTreeSet;
use std::process::Command;

use anytrace_cacheray::{Body, Kind, Reader};
use anytrace_core::{Endian, Input, InputOptions, OpenOptions, Step};
use common::{Bench, compilers};

#[test]
fn ids_are_dense_and_each_thread_has_its_own() {
    for compiler in compilers() {
        let bench = Bench::new();
        let program = bench.build(compiler, "threads.c", &["-O1"]);
        let run = bench.run(&program, &["counts", "8"], "malloc=0");
        let slots = run.inside("slots");
        assert_eq!(slots.len(), 16 * 10_000, "{compiler}");
        // Main is 0, since its annotation comes first; sixteen threads follow, no number is used twice.
        let ids: BTreeSet<_> = run.records.iter().map(|record| record.thread).collect();
        assert_eq!(ids, (0..17).collect(), "{compiler}");
        let base = run.add("slots").address;
        assert!(slots.iter().all(|record| (record.address - base) / 128 == (record.thread - 1) % 8), "{compiler}");
    }
}

#[test]
fn ids_follow_the_order_of_creation_whichever_thread_is_faster() {
    for options in ["malloc=0", ""] {
        let bench = Bench::new();
        let program = bench.build("gcc", "threads.c", &["-O1"]);
        let run = bench.run(&program, &["waits", "8"], options);
        let base = run.add("slots").address;
        let found: Vec<_> =
            run.inside("slots").iter().map(|record| (record.thread, (record.address - base) / 128)).collect();
        assert_eq!(found, (1..=8).rev().map(|id| (id, id - 1)).collect::<Vec<_>>());
    }
}

#[test]
fn two_threads_hammering_for_seconds_tear_no_record() {
    let bench = Bench::new();
    let program = bench.build("gcc", "threads.c", &["-O1"]);
    // Through a FIFO: tens of millions of records need no room on the disk.
    let pipe = bench.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let options = format!("tracefile={}", pipe.display());
    let mut child =
        Command::new(&program).args(["hammers", "2", "2"]).env("CACHERAY_OPTIONS", options).spawn().unwrap();
    let input = Input::open(&pipe, InputOptions::default()).unwrap();
    let open = OpenOptions {
        endian: Some(Endian::Little),
        own: anytrace_core::Settings::default().with("pointer-width", "8"),
        ..OpenOptions::default()
    };
    let mut base = 0;
    let mut counts = [0_u64; 3];
    let mut reader = Reader::new(input, &open).unwrap();
    while let Some(step) = reader.next().unwrap() {
        let Step::Record(_, record) = step else { panic!("{step:?}") };
        match record.body {
            Body::Add { name: b"slots", .. } => base = record.address,
            Body::Access { size } if record.address.wrapping_sub(base) < 256 => {
                let slot = (record.address - base) / 128;
                assert_eq!((record.kind(), size, (record.address - base) % 128), (Kind::Write, 8, 0));
                assert_eq!(record.thread, slot + 1);
                counts[record.thread as usize] += 1;
            }
            // The first thread looks at its arguments by `strcmp`.
            Body::Access { size } => {
                assert!(matches!(size, 4 | 8) || (record.thread == 0 && matches!(size, 1 | 2 | 16)), "{record:?}");
            }
            _ => {}
        }
    }
    assert!(child.wait().unwrap().success());
    assert!(counts[1] > 100_000 && counts[2] > 100_000, "{counts:?}");
    assert!(counts[1] % 1000 == 0 && counts[2] % 1000 == 0, "each round is complete: {counts:?}");
}

#[test]
fn what_threads_keep_is_in_the_trace_however_the_process_ends() {
    for compiler in compilers() {
        let bench = Bench::new();
        let program = bench.build(compiler, "threads.c", &["-O1"]);
        for how in ["exit", "_exit", "exec", "term", "abort", "fork"] {
            let run = bench.run(&program, &["idles", "5", how], "malloc=0");
            let of_threads = run.inside("slots").iter().filter(|record| record.thread > 0).count();
            assert_eq!(of_threads, 500, "{compiler} {how}: {}", run.complaint());
        }
        let [other] = &bench.others()[..] else { panic!("{:?}", bench.others()) };
        let writes: Vec<_> = common::read(other).into_iter().filter(|record| record.is(Kind::Write)).collect();
        assert!(writes.iter().all(|write| write.thread == 0), "what threads kept is their process's: {writes:?}");
        // What is killed loses what is not written, and nothing else is wrong with it.
        assert!(bench.run(&program, &["idles", "5", "kill"], "malloc=0").records.is_empty());
    }
}

#[test]
fn a_killed_program_of_many_threads_has_complete_records() {
    let bench = Bench::new();
    let program = bench.build("gcc", "threads.c", &["-O1"]);
    let trace = bench.path("t.trace");
    for _ in 0..3 {
        let mut child = Command::new(&program)
            .args(["hammers", "8", "60"])
            .env("CACHERAY_OPTIONS", format!("tracefile={}", trace.display()))
            .spawn()
            .unwrap();
        while std::fs::metadata(&trace).map_or(0, |meta| meta.len()) < 20 << 20 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let input = Input::open(&trace, InputOptions::default()).unwrap();
        let open = OpenOptions {
            endian: Some(Endian::Little),
            own: anytrace_core::Settings::default().with("pointer-width", "8"),
            ..OpenOptions::default()
        };
        let mut reader = Reader::new(input, &open).unwrap();
        let (mut base, mut wrong, mut last) = (0, 0, false);
        while let Some(step) = reader.next().unwrap() {
            // Only the last record may be cut: the kernel may stop in a write.
            assert!(!last);
            let Step::Record(_, record) = step else {
                last = true;
                continue;
            };
            match record.body {
                Body::Add { name: b"slots", .. } => base = record.address,
                Body::Access { .. } if record.address.wrapping_sub(base) < 16 * 128 => {
                    wrong += u64::from(record.thread != (record.address - base) / 128 + 1);
                }
                _ => {}
            }
        }
        assert_eq!(wrong, 0);
    }
}

#[test]
fn forks_while_another_thread_records_leave_complete_traces() {
    let bench = Bench::new();
    let program = bench.build("gcc", "threads.c", &["-O1"]);
    let run = bench.run(&program, &["forks", "40"], "malloc=0");
    assert!(run.output.status.success(), "{}", run.complaint());
    assert!(run.inside("slots").iter().all(|record| record.thread == 1), "only the other thread writes there");
    let others = bench.others();
    assert_eq!(others.len(), 40);
    for other in others {
        let written = common::read(&other).iter().filter(|record| record.is(Kind::Write)).count();
        assert_eq!(written, 100, "{}", other.display());
    }
}

#[test]
fn records_of_values_passed_by_atomics_are_in_the_order_of_passing() {
    for compiler in compilers() {
        let bench = Bench::new();
        let program = bench.build(compiler, "threads.c", &["-O1"]);
        let run = bench.run(&program, &["passes"], "malloc=0");
        let turns: Vec<_> = run.inside("together").iter().map(|record| record.thread).collect();
        assert_eq!(turns.len(), 1000, "{compiler}");
        assert!(turns.windows(2).all(|pair| pair[0] != pair[1]), "{compiler}: strict turns");
    }
}

#[test]
fn allocations_of_several_threads_are_each_recorded_once() {
    let bench = Bench::new();
    let program = bench.build("gcc", "threads.c", &["-O1"]);
    for options in ["", "malloc=0"] {
        let run = bench.run(&program, &["allocates", "4"], options);
        let typed: Vec<_> = run.adds().into_iter().filter(|add| add.name == "long").collect();
        assert_eq!(typed.len(), 12_000, "{options}");
        assert!(typed.iter().all(|add| (add.element_bytes, add.elements) == (8, 3)), "{options}");
        let others = run.adds().len() - typed.len();
        // The thread library allocates a little for itself.
        assert!(others < 30, "{options}: {others}");
    }
}

#[test]
fn a_pipe_that_nobody_reads_ends_the_recording_and_not_the_program() {
    let bench = Bench::new();
    let program = bench.build("gcc", "threads.c", &["-O1"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    // The descriptor stays open over exec only as a standard one.
    let output = Command::new(&program)
        .args(["counts", "2"])
        .env("CACHERAY_OPTIONS", "fd=1:flush=1")
        .stdout(writer)
        .output()
        .unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write the trace"));
}

#[test]
fn a_descriptor_a_socket_and_a_port_take_the_trace_too() {
    use std::io::Read;
    let bench = Bench::new();
    let program = bench.build("gcc", "threads.c", &["-O1"]);
    let expected = bench.run(&program, &["counts", "2"], "malloc=0").records.len();
    let run = |options: &str| {
        let mut command = Command::new(&program);
        command.args(["counts", "2"]).env("CACHERAY_OPTIONS", format!("malloc=0:{options}"));
        command
    };
    let check = |bytes: &[u8]| {
        let trace = bench.path("copy.trace");
        std::fs::write(&trace, bytes).unwrap();
        assert_eq!(common::read(&trace).len(), expected);
    };
    check(&run("fd=1").output().unwrap().stdout);

    let path = bench.path("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let mut bytes = Vec::new();
    for key in ["unix", "tracefile"] {
        let mut child = run(&format!("{key}={}", path.display())).spawn().unwrap();
        listener.set_nonblocking(true).unwrap();
        // A program that does not connect must not keep the test waiting.
        let mut stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(_) => assert!(child.try_wait().unwrap().is_none(), "{key}: nobody came"),
            }
        };
        stream.set_nonblocking(false).unwrap();
        bytes.clear();
        stream.read_to_end(&mut bytes).unwrap();
        assert!(child.wait().unwrap().success());
        check(&bytes);
    }

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut child = run(&format!("tcp=127.0.0.1,{port}:flush=100")).spawn().unwrap();
    bytes.clear();
    listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
    assert!(child.wait().unwrap().success());
    check(&bytes);
}
