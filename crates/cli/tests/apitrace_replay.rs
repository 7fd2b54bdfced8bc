//! `anytrace apitrace replay` and `dump-images` as their users meet them: pictures, crashes, other programs' names.
//!
//! `cargo xtask test` installs EGL with Mesa's software driver; without it the tests report that they are skipped.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod replaying;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anytrace_core::testing::{has_program, shared_corpus};
use anytrace_replay::Part;
use replaying::{
    Display, ENABLE, ENDLESS, POINTER, WILD, WILD_INDICES, anytrace, corpus, has_egl, imm, lines, offscreen, replay,
    said, with_calls,
};
use serde_json::Value;

#[test]
fn a_crash_of_the_driver_is_reported_with_its_call() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = with_calls(folder.path(), &[&[ENABLE, POINTER], &WILD_INDICES[..]].concat());
    let prefix = folder.path().join("f.");
    let output = replay(&["-s", prefix.to_str().unwrap()], &trace);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("call 41 glDrawElements: the driver crashed (SIG"), "{}", said(&output));
    // No picture was finished, and nothing else is left.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn draws_behind_the_end_of_arrays_do_not_reach_the_driver() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let lists = r#"["first",[0,500000000]],["count",[3,3]]"#;
    let pieces = |count: u32| {
        format!(
            r#"{{"thread":0,"name":"glMultiDrawArrays","args":[["mode",4],{lists},["drawcount",{count}]],"flags":0}}"#
        )
    };
    let (wild_list, long_list) = (pieces(2), pieces(3));
    let indices = |index: &str| {
        let blob = format!(r#"{{"blob":12,"base64":"AAAAAAEAAAA{index}"}}"#);
        format!(
            r#"{{"thread":0,"name":"glDrawElements","args":[["mode",4],["count",3],["type",5125],["indices",{blob}]],"flags":0}}"#
        )
    };
    let plain = lines(&replay(&["-s", "-", "--snapshot-format=md5"], &imm()));
    for (call, reason) in [
        (WILD, "it draws more vertices than its arrays have"),
        (&wild_list, "it draws more vertices than its arrays have"),
        (&indices("DAAAA"), "it draws more vertices than its arrays have"),
        (&long_list, "its arrays are shorter than declared"),
        // The last vertex of the array.
        (&indices("CAAAA"), ""),
    ] {
        let trace = with_calls(folder.path(), &[ENABLE, POINTER, call]);
        let output = replay(&["-s", "-", "--snapshot-format=md5"], &trace);
        assert_eq!(output.status.code(), Some(0), "{call}: {}", said(&output));
        assert!(said(&output).contains(reason) && said(&output).is_empty() == reason.is_empty(), "{}", said(&output));
        assert_eq!(lines(&output).len(), plain.len());
    }
    // Nobody knows what is at an address of the program; an offset needs a buffer.
    let pointer = |address: &str| {
        let about = r#"["size",2],["type",5126],["stride",0]"#;
        format!(r#"{{"thread":0,"name":"glVertexPointer","args":[{about},["pointer",{address}]],"flags":0}}"#)
    };
    let draw = r#"{"thread":0,"name":"glDrawArrays","args":[["mode",4],["first",0],["count",3]],"flags":0}"#;
    for address in [r#"{"ptr":"0x7f0000001000"}"#, r#"{"ptr":"0x8"}"#] {
        let output = replay(&[], &with_calls(folder.path(), &[ENABLE, &pointer(address), draw]));
        let text = said(&output);
        assert_eq!(output.status.code(), Some(0), "{text}");
        for name in ["glVertexPointer: 1 call left out: what its pointer points to is not", "glDrawArrays: 1 call left"]
        {
            assert!(text.contains(name), "{text}");
        }
    }
    let target = |call: &str| call.replace("34963", "34962");
    let [make, bind, fill, _] = WILD_INDICES.map(target);
    let calls = [ENABLE, &make, &bind, &fill, &pointer(r#"{"ptr":"0x4"}"#), draw];
    let output = replay(&[], &with_calls(folder.path(), &calls));
    assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
    // An array that is not enabled is not read.
    let output = replay(&[], &with_calls(folder.path(), &[POINTER, WILD]));
    assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
}

#[test]
fn a_call_that_takes_too_long_and_a_killed_process_are_reported() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = replay(&["--watchdog=1"], &with_calls(folder.path(), &[ENABLE, POINTER, ENDLESS]));
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("call 38 glDrawArraysInstanced: the driver took more than 1 s"),
        "{}",
        said(&output)
    );
    // What is waited for on purpose is not the driver's time.
    let output = replay(&["--min-frame-duration=600000", "--per-frame-delay=600000", "--watchdog=1"], &imm());
    assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
    let slow = ["--min-frame-duration", "30000000"];

    let mut parent = anytrace(&["apitrace", "replay"]);
    let parent = parent.args(slow).arg(imm()).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let list = format!("/proc/{0}/task/{0}/children", parent.id());
    let started = Instant::now();
    let child = loop {
        let text = std::fs::read_to_string(&list).unwrap_or_default();
        if let Some(child) = text.split_whitespace().next() {
            break child.to_owned();
        }
        assert!(started.elapsed() < Duration::from_secs(30), "no process was started");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(Command::new("kill").args(["-KILL", &child]).status().unwrap().success());
    let output = parent.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("the replaying process was killed (SIGKILL)"), "{}", said(&output));
}

/// What the program was told in the trace, and what the driver says here.
#[test]
fn answers_are_compared_and_errors_and_messages_told() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let call = |name: &str, arguments: &str, ret: &str| {
        format!(r#"{{"thread":0,"name":"{name}","args":[{arguments}],"ret":{ret},"flags":0}}"#)
    };
    let compiled = |source: &str, answer: u32| {
        vec![
            call("glCreateShader", r#"["type",35633]"#, "1"),
            call(
                "glShaderSource",
                &format!(r#"["shader",1],["count",1],["string",["{source}"]],["length",null]"#),
                "null",
            ),
            call("glCompileShader", r#"["shader",1]"#, "null"),
            call("glGetShaderiv", &format!(r#"["shader",1],["pname",35713],["params",[{answer}]]"#), "null"),
        ]
    };
    let (wrong, error) =
        (call("glEnable", r#"["cap",65535]"#, "null"), |code: u32| call("glGetError", "", &code.to_string()));
    let status = |code: u32| call("glCheckFramebufferStatus", r#"["target",36160]"#, &code.to_string());
    let vertex = "void main(){gl_Position=vec4(0);}";
    for (calls, differs, noted) in [
        (vec![error(0), status(36053)], "", ""),
        // The program made an error, and knew of it.
        (vec![wrong.clone(), error(1280)], "", "call 36 glEnable: GL_INVALID_ENUM"),
        (vec![wrong.clone(), error(0)], "call 37 glGetError: GL_INVALID_ENUM here, no error in the trace", "glEnable"),
        (vec![error(1281)], "call 36 glGetError: no error here, GL_INVALID_VALUE in the trace", ""),
        (
            vec![status(36054)],
            "call 36 glCheckFramebufferStatus: GL_FRAMEBUFFER_COMPLETE here, GL_FRAMEBUFFER_INCOMPLETE_ATTACHMENT in the trace",
            "",
        ),
        (compiled(vertex, 1), "", ""),
        (compiled("what is this", 1), "call 39 glGetShaderiv: 0 here, 1 in the trace", "glCompileShader: "),
        (compiled("what is this", 0), "", "glCompileShader: "),
    ] {
        let trace = with_calls(folder.path(), &calls.iter().map(String::as_str).collect::<Vec<_>>());
        let output = replay(&["--check"], &trace);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(i32::from(!differs.is_empty())), "{calls:?}: {text}");
        assert!(text.contains(differs) && text.contains(noted), "{calls:?}: {text}");
        assert_eq!(text.contains("in the trace"), !differs.is_empty(), "{text}");
        assert_eq!(text.is_empty(), differs.is_empty() && noted.is_empty(), "{text}");
        // Nothing of it is looked at without being asked for.
        let plain = replay(&[], &trace);
        assert_eq!((plain.status.code(), said(&plain)), (Some(0), String::new()));
    }
}

#[test]
fn sums_are_compared_and_the_first_difference_is_named() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (sums, pictures) = (place("sums.json"), place("pictures."));
    let output = replay(&["--sums", &sums, "-s", &pictures], &imm());
    assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
    assert!(folder.path().join("pictures.0000000036.png").exists());
    for before in [&sums, &folder.path().display().to_string()] {
        let output = replay(&["--against", before], &imm());
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert!(lines(&output).contains(&"All 4 pictures are equal".to_owned()));
    }
    // Nothing is replaced, and nothing is replayed in vain.
    for words in [["--sums", &sums], ["-s", &pictures]] {
        let output = replay(&words, &imm());
        assert_eq!((output.status.code(), said(&output).contains("--force")), (Some(2), true), "{words:?}");
    }
    let trace = with_calls(folder.path(), &[r#"{"thread":0,"name":"glClear","args":[["mask",16384]],"flags":0}"#]);
    let output = replay(&["--against", &sums], &trace);
    assert_eq!(output.status.code(), Some(1));
    // The call that ends the frame has another number: it has a picture that the other has not, and the other way round.
    assert!(lines(&output).iter().any(|line| line == "call 36, frame 0: no picture"), "{:?}", lines(&output));
    // Without the last clear, the pictures of a frame differ, and one shows where.
    let (shown, taken) = (place("difference.png"), folder.path().display().to_string());
    let output = replay(&["--against", &taken, "--difference", &shown, "--ignore-calls", "33"], &imm());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        lines(&output).iter().any(|line| line.starts_with("call 36, frame 0: other pixels: ")),
        "{:?}",
        lines(&output)
    );
    let mut decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&shown).unwrap()));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::ALPHA);
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    let red = pixels.chunks(4).filter(|pixel| pixel[0] > 190 && pixel[1] < 52).count();
    assert!((1..64 * 48).contains(&red), "{red}");
    let output = replay(&["--against", &sums, "--difference", &shown], &imm());
    assert_eq!((output.status.code(), said(&output).contains("give --against a folder")), (Some(2), true));
}

#[test]
fn the_first_draw_that_differs_is_found() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let imm = imm().display().to_string();
    let bisect = |words: &[&str]| {
        let output = anytrace(&["apitrace", "replay", "--bisect"]).args(words).output().unwrap();
        (output.status.code(), lines(&output), said(&output))
    };
    let equal = (Some(0), vec!["All 4 frames are equal".to_owned()], String::new());
    assert_eq!(bisect(&["size=right", "size=peer", "--size=peer", "--core", &imm]), equal);
    assert_eq!(bisect(&["LP_NUM_THREADS=1", "LP_NUM_THREADS=2", &imm]), equal);
    assert_eq!(bisect(&[&imm, &imm]), equal);
    // One draw more in the first frame, before its end.
    let trace = with_calls(folder.path(), &[r#"{"thread":0,"name":"glClear","args":[["mask",16384]],"flags":0}"#]);
    let (trace, shown) = (trace.display().to_string(), folder.path().join("d.png"));
    let (code, printed, said) = bisect(&[&imm, &trace, "--difference", shown.to_str().unwrap()]);
    assert_eq!((code, said.as_str()), (Some(1), ""), "{printed:?}");
    assert_eq!(printed[0], "Frame 0 is the first that differs, calls 36 and 37");
    let expected = [
        "The first draw in it with other pixels is call 36:",
        &format!("{imm} has no more draws in it"),
        "36 glClear(mask = 16384)",
        "The draw before it is equal: call 33",
    ];
    assert_eq!(printed[1..], expected);
    assert!(!shown.exists(), "one side has no picture");
    // Other pixels in the last frame: by a trace without its last clear.
    let trimmed = folder.path().join("part.trace");
    let mut command =
        anytrace(&["apitrace", "sed", "-e", "s/GL_COLOR_BUFFER_BIT/GL_DEPTH_BUFFER_BIT/", "--calls", "63-"]);
    let edited = command.arg(&imm).arg("-o").arg(&trimmed).output().unwrap();
    assert!(edited.status.success());
    let (code, printed, _) = bisect(&[&imm, trimmed.to_str().unwrap(), "--difference", shown.to_str().unwrap()]);
    assert_eq!((code, shown.is_file()), (Some(1), true), "{printed:?}");
    assert!(printed.iter().any(|line| line.starts_with("Wrote ")), "{printed:?}");
    // A side that crashes is not taken for the other.
    let crash = with_calls(folder.path(), &[&[ENABLE, POINTER], &WILD_INDICES[..]].concat()).display().to_string();
    for sides in [[&imm, &crash], [&crash, &imm]] {
        let (code, printed, said) = bisect(&sides.map(String::as_str));
        assert_eq!((code, printed), (Some(1), Vec::new()), "{said}");
        assert!(said.contains("the driver crashed") && said.contains("not replayed to its end"), "{said}");
    }
    for (words, expected) in [
        (vec!["size=right", "what", &imm], "expected a trace, device=N"),
        (vec!["size=right", "colour=2", &imm], "expected a trace, device=N"),
        (vec!["size=right", "size=peer"], "which trace?"),
        (vec![&imm, &imm, &imm], "no other is needed"),
        (vec!["device=0", "device=999", &imm], "it cannot be replayed"),
    ] {
        let (code, _, said) = bisect(&words);
        assert_eq!((code, said.contains(expected)), (Some(2), true), "{said}");
    }
}

#[test]
fn pictures_come_in_each_form_and_of_each_class() {
    if !has_egl() {
        return;
    }
    let trace = corpus("peer/fbo.trace");
    let frames = lines(&replay(&["-s", "-", "--snapshot-format", "MD5"], &trace));
    assert!(frames.len() >= 3 && frames.iter().all(|line| line.len() == 32), "{frames:?}");
    let draws = lines(&replay(&["-s", "-", "--snapshot-format", "md5", "-S", "*/draw,*/frame"], &trace));
    assert!(draws.len() > frames.len());
    let pnm = replay(&["-s", "-"], &imm()).stdout;
    assert!(pnm.starts_with(b"P6\n#36\n64 48\n255\n"));
    assert_eq!(pnm.len(), 4 * ("P6\n#36\n64 48\n255\n".len() + 64 * 48 * 3));
    assert_eq!(replay(&["-s", "-", "--snapshot-format=RGB", "--snapshot-alpha"], &imm()).stdout.len(), 4 * 64 * 48 * 4);
    assert_eq!(lines(&replay(&["-s", "-", "--snapshot-format=MD5", "--snapshot-interval=2"], &imm())).len(), 2);
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("imm.trace");
    std::fs::copy(imm(), &trace).unwrap();
    let output =
        anytrace(&["apitrace", "dump-images", "--call-nos=no", "imm.trace"]).current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let names = (0..4).map(|number| folder.path().join(format!("imm.{number:010}.png")));
    assert!(names.into_iter().all(|path| path.is_file()));
}

#[test]
fn a_framebuffer_that_cannot_be_read_gives_no_picture_and_says_so() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let storage = |function: &str, samples: &str, format: u32| {
        let arguments = format!(r#"["target",36161],{samples}["internalformat",{format}],["width",16],["height",16]"#);
        format!(r#"{{"thread":0,"name":"{function}","args":[{arguments}],"flags":0}}"#)
    };
    let taken = |storage: &str| {
        let calls = offscreen(storage);
        let trace = with_calls(folder.path(), &calls.iter().map(String::as_str).collect::<Vec<_>>());
        replay(&["-s", "-", "-S", "42"], &trace)
    };
    let plain = taken(&storage("glRenderbufferStorage", "", 0x8058));
    assert!(plain.stdout.starts_with(b"P6\n#42\n16 16\n255\n"));
    // Of several samples the picture has the mean.
    let sampled = taken(&storage("glRenderbufferStorageMultisample", r#"["samples",4],"#, 0x8058));
    assert_eq!((said(&sampled), sampled.stdout), (String::new(), plain.stdout));
    // GL_RGBA8UI: integers are no colors.
    let output = taken(&storage("glRenderbufferStorage", "", 0x8d7c));
    assert!(output.stdout.is_empty());
    let why = "call 42: no picture: the framebuffer cannot be read: GL_INVALID_OPERATION";
    assert!(said(&output).contains(why), "{}", said(&output));
}

#[test]
fn what_does_not_fit_is_refused() {
    for (words, expected) in [
        (vec!["--device", "999"], "--list-devices"),
        (vec!["-S", "1"], "say where they go"),
        (vec!["--against", "/nonexistent"], "cannot read /nonexistent"),
        (vec!["-s", "x.", "-S", "1-x"], "expected"),
        (vec!["-s", "-", "--pcpu"], "--snapshot-prefix=- and a measure both write to standard output"),
        (vec!["-D", "30", "--pframe-times"], "--dump-state and a measure both write to standard output"),
        (vec!["--sums", "-", "-s", "-"], "--snapshot-prefix=- and --sums=- both write to standard output"),
        (vec!["--against", ".", "--difference", "-"], "--difference=- and --against both write"),
    ] {
        if words.first() == Some(&"--device") && !has_egl() {
            continue;
        }
        let output = replay(&words, &imm());
        assert_eq!((output.status.code(), said(&output).contains(expected)), (Some(2), true), "{}", said(&output));
    }
    let output = anytrace(&["apitrace", "replay", "-"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), said(&output).contains("twice")), (Some(2), true));
}

#[test]
fn cut_and_damaged_traces_end_with_a_verdict() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(corpus("peer/vbo.trace")).unwrap();
    let path = folder.path().join("cut.trace");
    for part in 0..12 {
        std::fs::write(&path, &bytes[..bytes.len() * part / 12]).unwrap();
        let output = replay(&[], &path);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{part}: {:?} {}", output.status, said(&output));
        assert!(!said(&output).contains("panicked"), "{}", said(&output));
    }
    let mut flipped = bytes;
    for at in (200..flipped.len()).step_by(flipped.len() / 12) {
        flipped[at] ^= 0x55;
        std::fs::write(&path, &flipped).unwrap();
        let output = replay(&["--watchdog=20"], &path);
        assert!(matches!(output.status.code(), Some(0..=2)), "{at}: {:?} {}", output.status, said(&output));
        assert!(!said(&output).contains("panicked"), "{}", said(&output));
        flipped[at] ^= 0x55;
    }
}

/// The steps of piglit's replayer: the last frame by `apitrace dump`, its picture by a player, the pixels' sum.
#[test]
fn scripts_that_call_apitrace_work_unchanged() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = imm();
    let called = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
        command.arg0(name).env("LIBGL_ALWAYS_SOFTWARE", "1");
        command
    };
    let dumped = called("/usr/bin/apitrace").args(["dump", "--calls=frame"]).arg(&trace).output().unwrap();
    let text = String::from_utf8(dumped.stdout).unwrap();
    let last = text.lines().rev().find_map(|line| line.split(' ').next()?.parse::<u64>().ok()).unwrap();
    let prefix = folder.path().join("imm.trace-");
    let words =
        ["--headless".to_owned(), format!("--snapshot={last}"), format!("--snapshot-prefix={}", prefix.display())];
    let picture = folder.path().join(format!("imm.trace-{last:010}.png"));
    // Twice: what a run before left is replaced.
    for _ in 0..2 {
        let played = called("eglretrace").args(&words).arg(&trace).output().unwrap();
        assert!(played.status.success(), "{}", said(&played));
        assert!(picture.exists());
    }
    let sums = lines(&called("glretrace").args(["-s", "-", "--snapshot-format=MD5"]).arg(&trace).output().unwrap());
    let against = replay(&["--against", folder.path().to_str().unwrap(), "-S", &last.to_string()], &trace);
    assert_eq!((against.status.code(), sums.len()), (Some(0), 4), "{}", said(&against));
}

/// Where a frame is the first of its drawable, apitrace's players show a window that is not yet as large as it will be.
#[test]
fn frames_are_those_of_apitrace() {
    let Some(corpus) = shared_corpus("apitrace") else { return };
    if !has_egl() {
        return;
    }
    let mut compared = 0;
    for entry in std::fs::read_dir(&corpus).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(expected) = std::fs::read_to_string(folder.join("snapshot-md5.txt")) else { continue };
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let output = replay(&["-s", "-", "--snapshot-format=MD5"], &folder.join(format!("{name}.trace")));
        let (found, expected) = (lines(&output), expected.lines().collect::<Vec<_>>());
        assert_eq!(found.len(), expected.len(), "{name}: {}", said(&output));
        let drawables = if name.contains("threads") { 2 } else { 1 };
        for (at, (found, expected)) in found.iter().zip(expected).enumerate().skip(drawables) {
            assert_eq!(found, expected, "{name}: picture {at}");
            compared += 1;
        }
    }
    assert!(compared >= 50, "{compared}");
}

/// Late frames, replayed without what they do not depend on, have the pixels that they have in the whole.
fn assert_late_frames_are_found(folder: &Path, trace: &Path) {
    let sums_of = |words: &[&str]| -> Vec<Value> {
        let file = folder.join("sums.json");
        let output = replay(&[&["--force", "--sums", file.to_str().unwrap()], words].concat(), trace);
        assert!(output.status.success(), "{}", said(&output));
        let sums: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        sums["pictures"].as_array().unwrap().clone()
    };
    let whole = sums_of(&[]);
    for part in 1..6 {
        let expected = &whole[whole.len() * part / 6 + part];
        let frame = expected["frame"].to_string();
        assert_eq!(sums_of(&["--frames", &frame]), std::slice::from_ref(expected), "{}", trace.display());
    }
    // And so does a picture by the number of its call.
    let (last, prefix) = (&whole[whole.len() - 2], folder.join("late."));
    let call = last["call"].to_string();
    let mut command = anytrace(&["apitrace", "dump-images", "--force", "--calls", &call, "-o"]);
    let output = command.arg(&prefix).arg(trace).output().unwrap();
    let repeated = lines(&output).into_iter().find(|line| line.starts_with("Repeated ")).unwrap();
    let numbers: Vec<u64> = repeated.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(numbers[0] * 2 < numbers[1], "{repeated}");
    let path = folder.join(format!("late.{:010}.png", last["call"].as_u64().unwrap()));
    let sum = anytrace_replay::of_png(0, Part::Drawn, &std::fs::read(path).unwrap()).unwrap();
    assert_eq!(Value::from(sum.md5), last["md5"]);
}

/// The frames of real programs.
#[test]
fn recorded_programs_have_the_frames_of_apitrace() {
    let programs = ["Xvfb", "timeout", "glretrace", "apitrace", "glmark2", "glmark2-es2"];
    if !programs.into_iter().all(has_program) || !has_egl() {
        return;
    }
    let (folder, display) = (tempfile::tempdir().unwrap(), Display::open());
    let scenes = |names: &[&str]| -> Vec<String> {
        let size = ["-s", "96x64", "-b", ":nframes=12"].map(str::to_owned);
        size.into_iter().chain(names.iter().flat_map(|name| ["-b".to_owned(), (*name).to_owned()])).collect()
    };
    for (api, program, player, names) in [
        ("gl", "glmark2", "glretrace", &["build", "texture", "effect2d", "desktop", "buffer", "ideas"][..]),
        ("egl", "glmark2-es2", "eglretrace", &["shading", "bump", "jellyfish", "shadow"][..]),
    ] {
        let trace = folder.path().join(format!("{program}.trace"));
        let path = trace.to_str().unwrap();
        let scenes = scenes(names);
        let words: Vec<&str> = ["timeout", "120", "apitrace", "trace", "-a", api, "-o", path, program]
            .into_iter()
            .chain(scenes.iter().map(String::as_str))
            .collect();
        let recorded = display.output(&words);
        assert!(trace.exists(), "{}", said(&recorded));
        let theirs = lines(&display.output(&[player, "-b", "--headless", "-s", "-", "--snapshot-format=MD5", path]));
        let ours = lines(&replay(&["--size=peer", "-s", "-", "--snapshot-format=MD5"], &trace));
        assert_eq!(ours.len(), theirs.len(), "{program}");
        assert!(ours.len() > 20, "{program}: {} frames", ours.len());
        let differ: Vec<usize> = (1..ours.len()).filter(|at| ours[*at] != theirs[*at]).collect();
        assert!(differ.is_empty(), "{program}: {differ:?} of {}", ours.len());
        assert_late_frames_are_found(folder.path(), &trace);
    }
}
