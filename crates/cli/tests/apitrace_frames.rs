//! What `anytrace apitrace replay` shows besides pictures of frames: all parts of a framebuffer, what calls cost, the
//! driver's state, the last frame again; and the page of `anytrace apitrace frames`.
//!
//! `cargo xtask test` installs EGL with Mesa's software driver; without it the tests report that they are skipped.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod replaying;

use std::process::Stdio;
use std::time::{Duration, Instant};

use anytrace_core::testing::has_program;
use replaying::{Display, anytrace, corpus, has_egl, imm, lines, replay, said};
use serde_json::Value;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ClientMessageEvent, ConnectionExt, EventMask, ImageFormat};
use x11rb::rust_connection::RustConnection;

#[test]
fn the_last_frame_is_repeated() {
    if !has_egl() {
        return;
    }
    let sums = ["-s", "-", "--snapshot-format=MD5"];
    let once = lines(&replay(&sums, &imm()));
    let more = lines(&replay(&[&sums[..], &["--loop=3"]].concat(), &imm()));
    let last = once.last().unwrap();
    assert_eq!((once.len(), more.len(), &more[..once.len()]), (4, 7, &once[..]));
    assert!(more[once.len()..].iter().all(|sum| sum == last), "{more:?}");
    assert!(lines(&replay(&["--loop=2"], &imm()))[0].starts_with("Rendered 6 frames"));
}

/// Three contexts, each current in a thread of its own: pictures, measures and the state are those of one thread.
#[test]
fn each_recorded_thread_is_replayed_in_one_of_its_own() {
    if !has_egl() {
        return;
    }
    let trace = corpus("threads.trace");
    let printed = lines(&replay(&["--recorded-threads"], &trace));
    assert!(printed.iter().any(|line| line == "Replayed in 3 threads"), "{printed:?}");
    assert!(!lines(&replay(&["--recorded-threads"], &imm())).iter().any(|line| line.starts_with("Replayed in ")));
    for trace in [trace, corpus("interleave.trace"), corpus("many_open.trace"), imm()] {
        let sums = ["-s", "-", "--snapshot-format=MD5", "-S", "*/frame", "-S", "*/draw"];
        let (one, many) = (replay(&sums, &trace), replay(&[&sums[..], &["--recorded-threads"]].concat(), &trace));
        assert_eq!((lines(&many), many.status.code()), (lines(&one), one.status.code()), "{}", trace.display());
    }
    // Queries belong to a context, and are read where it is current.
    let drawn = |words: &[&str]| -> Vec<(String, String)> {
        let calls = lines(&replay(words, &corpus("threads.trace")));
        let calls = calls.iter().map(|line| line.split(' ').collect::<Vec<_>>()).filter(|row| row[0] == "call");
        calls.map(|row| (row[1].to_owned(), row[10].to_owned())).collect()
    };
    let one = drawn(&["--ppd", "--pgpu"]);
    assert!(one.iter().any(|(_, pixels)| pixels.parse::<i64>().unwrap() > 0), "{one:?}");
    assert_eq!(drawn(&["--ppd", "--pgpu", "--recorded-threads"]), one);
    let state = |words: &[&str]| replay(&[&["-D", "77"], words].concat(), &corpus("threads.trace")).stdout;
    assert!(!state(&[]).is_empty() && state(&[]) == state(&["--recorded-threads"]));
}

#[test]
fn all_parts_of_a_framebuffer_are_those_of_apitrace() {
    if !has_egl() {
        return;
    }
    let trace = corpus("peer/fbo.trace");
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let prefix = |folder: &tempfile::TempDir| format!("{}/", folder.path().display());
    // The first frame of apitrace's players is that of a window which is too small.
    let calls = "83-200/draw,83-200/frame";
    let words = ["-m", "--size=peer", "-S", calls, "-s", &prefix(&ours)];
    let output = replay(&words, &trace);
    assert!(output.status.success(), "{}", said(&output));
    let mut names: Vec<String> =
        ours.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let of = |end: &str| names.iter().filter(|name| name.ends_with(end)).count();
    assert!(of("-mrt0.png") == of("-z.png") && of("-z.png") == of("-s.png") && of("-mrt1.png") > 0, "{names:?}");
    // Sums know the parts, and a folder of pictures is compared by them.
    let against = ["-m", "--size=peer", "-S", calls, "--against", &prefix(&ours)];
    let output = replay(&against, &trace);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(lines(&output).contains(&format!("All {} pictures are equal", names.len())), "{:?}", lines(&output));
    if !["Xvfb", "glretrace"].into_iter().all(has_program) {
        return;
    }
    let trace = trace.to_str().unwrap();
    Display::open().output(&["glretrace", "-b", "--headless", "-m", "-S", calls, "-s", &prefix(&theirs), trace]);
    for name in names {
        let sum = |folder: &tempfile::TempDir| {
            let bytes = std::fs::read(folder.path().join(&name)).unwrap();
            anytrace_replay::of_png(0, anytrace_replay::Part::Drawn, &bytes).unwrap().md5
        };
        assert_eq!(sum(&ours), sum(&theirs), "{name}");
    }
}

#[test]
fn what_calls_cost_is_told_in_the_lines_of_apitrace() {
    if !has_egl() {
        return;
    }
    let printed = lines(&replay(&["--pcpu", "--pgpu", "--ppd", "--pmem", "--pframe-times"], &imm()));
    assert!(printed[0].starts_with("# call no gpu_start gpu_dura cpu_start cpu_dura vsize_start"), "{printed:?}");
    let frames: Vec<_> = printed.iter().filter(|line| line.starts_with("frame_end ")).collect();
    assert_eq!(frames.len(), 4);
    assert!(printed.iter().any(|line| line.starts_with("rendering_finished ")));
    let calls = |lines: &[String]| -> Vec<Vec<String>> {
        let rows = lines.iter().filter(|line| line.starts_with("call "));
        rows.map(|line| line.split(' ').map(str::to_owned).collect()).collect()
    };
    let ours = calls(&printed);
    assert!(ours.len() > 40 && ours.iter().all(|row| row.len() == 13), "{printed:?}");
    // Time goes on, and memory is there.
    let starts: Vec<u64> = ours.iter().map(|row| row[4].parse().unwrap()).collect();
    assert!(starts.is_sorted());
    assert!(ours.iter().all(|row| row[6].parse::<u64>().unwrap() > 1 << 20), "{printed:?}");
    // Only draws have pixels; one of them drew some.
    let pixels = |row: &[String]| row[10].parse::<i64>().unwrap();
    assert!(ours.iter().any(|row| pixels(row) > 0) && ours.iter().any(|row| pixels(row) == -1));
    // Alone, times of frames need no lines of calls.
    let alone = lines(&replay(&["--pframe-times"], &imm()));
    assert_eq!(alone.iter().filter(|line| line.starts_with("call ")).count(), 0);
    if !["Xvfb", "glretrace"].into_iter().all(has_program) {
        return;
    }
    let words = ["glretrace", "--headless", "--ppd", imm().to_str().unwrap()].map(str::to_owned);
    let theirs = Display::open().output(&words.each_ref().map(String::as_str));
    let what = |row: &Vec<String>| (row[1].clone(), row[12].clone(), row[10] == "-1");
    let theirs: Vec<_> = calls(&lines(&theirs)).iter().map(what).collect();
    assert_eq!(ours.iter().map(what).collect::<Vec<_>>(), theirs);
}

#[test]
fn tables_and_spans_of_one_replay_have_the_same_samples() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.json");
    let words = ["--ppd", "-o", file.to_str().unwrap(), "--pdrawcalls", "Pixels Drawn"];
    let found = tables(&replay(&words, &imm()));
    // One query counts for both.
    let of_table =
        |row: &&Vec<String>| row.len() == 5 && row[0] == "call" && row[4].parse::<i64>().is_ok_and(|n| n > 0);
    let drawn: Vec<(i64, i64)> =
        found[0].iter().filter(of_table).map(|row| (row[1].parse().unwrap(), row[4].parse().unwrap())).collect();
    let text = std::fs::read_to_string(file).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let arguments = events.iter().filter(|event| event["args"]["samples"].as_i64().is_some_and(|samples| samples > 0));
    let spans: Vec<(i64, i64)> = arguments
        .map(|event| (event["args"]["call"].as_i64().unwrap(), event["args"]["samples"].as_i64().unwrap()))
        .collect();
    assert!(!drawn.is_empty());
    assert_eq!(spans, drawn);
}

/// The rows of the tables of metrics: what begins each line, and its columns.
fn tables(output: &std::process::Output) -> Vec<Vec<Vec<String>>> {
    let (mut tables, mut table) = (Vec::new(), Vec::new());
    for line in lines(output) {
        match line.as_str() {
            "" => tables.push(std::mem::take(&mut table)),
            _ => table.push(line.split('\t').map(str::to_owned).collect()),
        }
    }
    tables
}

#[test]
fn metrics_are_tables_of_frames_calls_and_draws() {
    let listed = replay(&["--list-metrics"], std::path::Path::new("none.trace"));
    assert!(lines(&listed).iter().any(|line| line.starts_with("    Metric #1: GPU Duration (type: CNT_TYPE_DURATION")));
    assert_eq!(lines(&replay(&["--gen-passes", "--pframes", "CPU Start"], &imm())), ["1"]);
    let unknown = replay(&["--pcalls", "opengl: Cycles"], &imm());
    assert_eq!((unknown.status.code(), said(&unknown).contains("no metric Cycles")), (Some(2), true));
    if !has_egl() {
        return;
    }
    let asked =
        ["--pframes", "opengl: CPU Start, Pixels Drawn", "--pcalls", "opengl: [0, 1]", "--pdrawcalls", "Pixels Drawn"];
    let output = replay(&asked, &imm());
    let found = tables(&output);
    let [frames, calls, draws] = &found[..] else { panic!("{found:?}") };
    assert_eq!(frames[0], ["#", "CPU Start", "Pixels Drawn"]);
    assert_eq!(calls[0], ["#", "call no", "program", "name", "CPU Duration"]);
    let ends = |table: &[Vec<String>]| table.iter().filter(|row| row[0] == "frame_end").count();
    assert_eq!((ends(calls), ends(draws)), (4, 4));
    let number = |text: &String| text.parse::<i64>().unwrap();
    assert!(frames[1..].windows(2).all(|pair| number(&pair[0][1]) < number(&pair[1][1])), "{frames:?}");
    assert!(calls[1..].iter().filter(|row| row.len() > 1).all(|row| row[0] == "call" && number(&row[4]) >= 0));
    // A frame has the samples of its draws.
    let mut sums = vec![0];
    for row in &draws[1..] {
        match row[0].as_str() {
            "frame_end" => sums.push(0),
            _ => *sums.last_mut().unwrap() += number(&row[4]),
        }
    }
    let by_frame: Vec<i64> = frames[1..].iter().map(|row| number(&row[2])).collect();
    assert_eq!(by_frame, sums[..by_frame.len()]);
    assert!(by_frame[0] > 0);
    if !["Xvfb", "glretrace"].into_iter().all(has_program) {
        return;
    }
    let words =
        ["glretrace", "--headless", "--pdrawcalls=opengl: Pixels Drawn", imm().to_str().unwrap()].map(str::to_owned);
    let theirs = tables(&Display::open().output(&words.each_ref().map(String::as_str)));
    // Its first frame is drawn into a window of 32 pixels.
    let from_second = |table: &[Vec<String>]| {
        let first = table.iter().position(|row| row[0] == "frame_end").unwrap();
        table[first..].to_vec()
    };
    let theirs = theirs.iter().find(|table| table.iter().any(|row| row[0] == "call")).unwrap();
    assert_eq!(from_second(draws), from_second(theirs));
}

#[test]
fn what_calls_cost_is_a_trace_that_all_verbs_read() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.heph");
    let output = replay(&["-o", file.to_str().unwrap(), "--pcpu"], &imm());
    assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
    let checked = anytrace(&["check"]).arg(&file).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{}", said(&checked));
    let stats = anytrace(&["stats"]).arg(&file).output().unwrap();
    let stats = lines(&stats);
    let count = |name: &str| {
        let row = stats.iter().find(|line| line.split_whitespace().last() == Some(name));
        row.and_then(|row| row.split_whitespace().next()?.parse::<u64>().ok())
    };
    // As in the trace itself, but for the calls that the replay does not repeat.
    assert_eq!((count("glClear"), count("frame")), (Some(8), Some(5)), "{stats:?}");
}

/// The window with this name, and its pixels: blue, green, red and nothing.
fn window_of(connection: &RustConnection, name: &str) -> Option<(u32, Vec<u8>)> {
    let root = connection.setup().roots[0].root;
    let windows = connection.query_tree(root).unwrap().reply().unwrap().children;
    let called = |window: u32| {
        let property = connection.get_property(false, window, AtomEnum::WM_NAME, AtomEnum::STRING, 0, 1024).ok()?;
        property.reply().ok().map(|property| property.value)
    };
    let window = windows.into_iter().find(|window| called(*window).is_some_and(|text| text == name.as_bytes()))?;
    let size = connection.get_geometry(window).unwrap().reply().ok()?;
    let all = connection.get_image(ImageFormat::Z_PIXMAP, window, 0, 0, size.width, size.height, !0).unwrap();
    Some((window, all.reply().ok()?.data))
}

fn close(connection: &RustConnection, window: u32) {
    let atom = |name: &[u8]| connection.intern_atom(false, name).unwrap().reply().unwrap().atom;
    let message = ClientMessageEvent::new(32, window, atom(b"WM_PROTOCOLS"), [atom(b"WM_DELETE_WINDOW"), 0, 0, 0, 0]);
    connection.send_event(false, window, EventMask::NO_EVENT, message).unwrap();
    connection.flush().unwrap();
}

#[test]
fn frames_are_shown_in_a_window_until_it_is_closed() {
    if !has_egl() || !has_program("Xvfb") {
        return;
    }
    let expected = replay(&["-s", "-", "--snapshot-format=RGB", "--frames", "3"], &imm()).stdout;
    let display = Display::open();
    let (connection, _) = RustConnection::connect(Some(&display.1)).unwrap();
    let name = imm().display().to_string();
    for words in [&["-w"][..], &["--loop", "--watchdog=5"]] {
        let mut command = anytrace(&["apitrace", "replay", "--window"]);
        let command = command.args(words).arg(imm()).env("DISPLAY", &display.1);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let started = Instant::now();
        let window = loop {
            let found = window_of(&connection, &name);
            let shows = |pixels: &[u8]| {
                let shown: Vec<u8> = pixels.chunks(4).flat_map(|pixel| [pixel[2], pixel[1], pixel[0]]).collect();
                shown == expected
            };
            if let Some((window, pixels)) = found
                && shows(&pixels)
            {
                break window;
            }
            assert!(started.elapsed() < Duration::from_secs(30), "{words:?}");
            std::thread::sleep(Duration::from_millis(20));
        };
        close(&connection, window);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
        assert!(lines(&output)[0].starts_with("Rendered "), "{:?}", lines(&output));
    }
    let mut command = anytrace(&["apitrace", "replay", "--window"]);
    let output = command.arg(imm()).env("DISPLAY", ":4242").output().unwrap();
    assert_eq!((output.status.code(), said(&output).contains("the X server (DISPLAY)")), (Some(2), true));
}

/// Frames with the calls in them, and the device's draws.
#[test]
fn what_calls_cost_is_a_timeline() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.json");
    let path = file.to_str().unwrap();
    let output = replay(&["-o", path, "--pcpu", "--pgpu", "--ppd"], &imm());
    assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
    let timeline: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let events = timeline["traceEvents"].as_array().unwrap();
    let mut open: std::collections::BTreeMap<u64, Vec<&Value>> = std::collections::BTreeMap::new();
    let (mut frames, mut calls, mut draws, mut last) = (0, 0, 0, 0.0);
    let processes = events.iter().filter(|event| event["name"] == "process_name");
    assert!(processes.clone().count() == 1 && processes.clone().all(|event| event["args"]["name"] == "replay"));
    let calls_of = events.iter().find(|event| event["args"]["name"] == "calls").unwrap()["tid"].as_u64().unwrap();
    for event in events {
        let row = event["tid"].as_u64().unwrap();
        let around = open.entry(row).or_default();
        match event["ph"].as_str().unwrap() {
            "B" if event["name"] == "frame" => {
                assert!(around.is_empty());
                assert_eq!(event["args"]["frame"], frames);
                frames += 1;
                around.push(event);
            }
            "B" => {
                // On the processor calls are in frames; the device has only draws.
                assert_eq!(around.len(), usize::from(row == calls_of), "{event}");
                if row == calls_of {
                    calls += 1
                } else {
                    draws += 1
                }
                assert!(event["args"]["call"].is_u64());
                around.push(event);
            }
            "E" => {
                let begun = around.pop().unwrap();
                assert_eq!(begun["name"], event["name"]);
                if row == calls_of {
                    assert!(event["ts"].as_f64().unwrap() >= last);
                    last = event["ts"].as_f64().unwrap();
                }
            }
            _ => {}
        }
    }
    assert!(open.values().all(Vec::is_empty));
    // The last one does not end.
    let unfinished = events.iter().filter(|event| event["args"].to_string().contains("unfinished")).count();
    assert_eq!(unfinished, 1, "{:?}", events.last());
    assert!(frames == 5 && calls >= 8 && draws >= 4, "{frames} {calls} {draws}");
    // A late frame alone has its own number.
    let late = replay(&["-o", "-", "--frames", "2"], &imm()).stdout;
    let late: Value = serde_json::from_slice(&late).unwrap();
    let begun = late["traceEvents"].as_array().unwrap().iter().filter(|event| event["name"] == "frame");
    assert!(begun.clone().any(|event| event["ph"] == "B" && event["args"]["frame"] == 2), "{late}");
    let output = replay(&["-o", path], &imm());
    assert_eq!((output.status.code(), said(&output).contains("--force")), (Some(2), true));
    let output = replay(&["-o", "x.png"], &imm());
    assert_eq!((output.status.code(), said(&output).contains("no form has this extension")), (Some(2), true));
    // Without a name that asks for another form, and alone on standard output.
    let printed = replay(&["-o", "-"], &imm()).stdout;
    assert!(serde_json::from_slice::<Value>(&printed).unwrap()["traceEvents"].is_array());
}

/// Call 111 of this trace returns after call 123, which another thread made.
#[test]
fn a_state_is_found_whatever_other_threads_do() {
    if !has_egl() {
        return;
    }
    for call in ["23", "111"] {
        let output = replay(&["-D", call], &corpus("threads.trace"));
        assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()), "{call}");
        assert!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["parameters"].is_object());
    }
}

/// The same state by the driver, and without one.
#[test]
fn the_state_of_the_driver_is_that_of_the_calls() {
    if !has_egl() {
        return;
    }
    let trace = corpus("peer/fbo.trace");
    let output = replay(&["-D", "77"], &trace);
    assert!(output.status.success(), "{}", said(&output));
    let driver: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut command = anytrace(&["apitrace", "state", "--at", "77", "--format", "json"]);
    let followed: Value = serde_json::from_slice(&command.arg(&trace).output().unwrap().stdout).unwrap();
    let mut compared = 0;
    for (name, parameter) in followed["contexts"][0]["parameters"].as_object().unwrap() {
        let theirs = &driver["parameters"][name];
        if theirs.is_null() {
            continue;
        }
        let numbers = |value: &Value| -> Vec<f64> {
            let all = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
            all.iter().filter_map(Value::as_f64).collect()
        };
        let is_alike = if numbers(theirs).is_empty() {
            &parameter["value"] == theirs
        } else {
            let (ours, theirs) = (numbers(&parameter["value"]), numbers(theirs));
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() < 1e-5)
        };
        // GL_SAMPLE_COVERAGE and its like are numbers there, as in apitrace's dumps.
        assert!(is_alike || name.starts_with("GL_SAMPLE_"), "{name}: {parameter} {theirs}");
        compared += 1;
    }
    assert!(compared > 40, "{compared}");
    let theirs: Value = serde_json::from_slice(&std::fs::read(corpus("peer/fbo.parameters-81.json")).unwrap()).unwrap();
    let of_apitrace = theirs["parameters"].as_object().unwrap();
    let missing = of_apitrace.keys().filter(|name| driver["parameters"].get(name).is_none()).count();
    assert!(missing * 3 < of_apitrace.len(), "{missing} of {}", of_apitrace.len());
    assert!(driver["shaders"]["GL_VERTEX_SHADER"].as_str().unwrap().starts_with("#version 330 core"));
    assert_eq!(driver["uniforms"]["mvp"][3], serde_json::json!([0, 0, 0, 1]));
    // It is in a block.
    assert_eq!(driver["uniforms"]["tint"], serde_json::json!([1, 1, 1, 1]));
    assert_eq!(driver["framebuffer"]["GL_DEPTH_COMPONENT"]["__width__"], 64);
    let texture = &driver["textures"]["GL_TEXTURE0, GL_TEXTURE_2D, level = 0"];
    assert_eq!((&texture["__format__"], &texture["__height__"]), (&"GL_RGBA8".into(), &32.into()));
    let vertices = driver["buffers"]["vertices"].as_array().unwrap();
    assert_eq!((vertices.len(), &vertices[0]["pos"]), (6, &serde_json::json!([-0.8, -0.8])), "{vertices:?}");
    // The same with pictures as bytes: each is of a few hundred.
    let binary = replay(&["-D", "77", "--dump-format", "ubjson"], &trace).stdout;
    assert!(binary.starts_with(b"{U\x07buffers{") && binary.windows(13).any(|bytes| bytes == b"U\x0aparameters{"));
    let pictures = binary.windows(11).filter(|bytes| bytes.starts_with(b"[$U#") && bytes.ends_with(b"PNG")).count();
    assert!(pictures > 2 && binary.len() < output.stdout.len(), "{pictures} pictures, {} bytes", binary.len());
    // A call that is not there, and what does not go together.
    let output = replay(&["-D", "99999"], &trace);
    assert_eq!((output.status.code(), said(&output).contains("no state at call 99999")), (Some(1), true));
    assert_eq!(replay(&["-D", "77", "-s", "x."], &trace).status.code(), Some(2));
}

#[test]
fn a_page_has_all_frames() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str], output: &str| {
        let mut command = anytrace(&["apitrace", "frames"]);
        command.args(words).arg(imm()).arg("-o").arg(folder.path().join(output)).output().unwrap()
    };
    let output = run(&[], "page.html");
    assert!(output.status.success(), "{}", said(&output));
    assert!(lines(&output)[0].ends_with("page.html: 4 frames"), "{:?}", lines(&output));
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert_eq!((page.matches("<figure ").count(), page.matches("src=\"data:image/png;base64,").count()), (4, 4));
    // The first frame has the calls from the first one on.
    assert!(page.contains("calls 0–36 (37)"), "{page}");
    assert_eq!(page.matches(" width=\"64\" height=\"48\"").count(), 4);
    // Nothing is replaced.
    assert_eq!(run(&[], "page.html").status.code(), Some(2));
    let output = run(&["--side", "32", "--pictures", "2"], "pages");
    assert!(output.status.success(), "{}", said(&output));
    let page = std::fs::read_to_string(folder.path().join("pages/index.html")).unwrap();
    assert!(
        page.contains("2 of 4 are shown") && page.contains("src=\"frame-0000000002.png\" width=\"32\" height=\"24\"")
    );
    assert_eq!(std::fs::read_dir(folder.path().join("pages")).unwrap().count(), 3);
    // A trace without frames has no page.
    let cut = folder.path().join("cut.trace");
    let mut command = anytrace(&["apitrace", "trim", "--calls", "0-30", "-o"]);
    assert!(command.arg(&cut).arg(imm()).output().unwrap().status.success());
    let mut command = anytrace(&["apitrace", "frames", "-o"]);
    let output = command.arg(folder.path().join("none.html")).arg(&cut).output().unwrap();
    assert_eq!((output.status.code(), said(&output).contains("no frame ended")), (Some(1), true), "{}", said(&output));
    assert!(!folder.path().join("none.html").exists());
}
