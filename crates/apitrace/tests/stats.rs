//! Statistics: what is counted, and what is reported as redundant.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod calls;
mod machine;
mod traces;

use std::collections::BTreeMap;

use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::dump::{DumpOptions, dump};
use anytrace_apitrace::tools::flags::{CallFlags, call_flags};
use anytrace_apitrace::tools::stats::{
    By, Column, Figures, Label, Printed, Statistics, StatsForm, StatsOptions, stats, write,
};
use anytrace_apitrace::{BytesKind, EventKind, Pairing, Reader, Record, Token};
use anytrace_core::testing::dripping;
use anytrace_core::{Collect, Input, OpenOptions, Step};
use anytrace_export::cells::Cells;
use build::Build;
use calls::trace;
use proptest::prelude::*;

fn input(bytes: &[u8]) -> Input {
    Input::from_bytes("x.trace", bytes.to_vec())
}

fn counted_with(input: Input, options: &StatsOptions) -> (Statistics, Collect) {
    let mut damage = Collect::default();
    let mut reader = Reader::new(input, &OpenOptions::default()).unwrap();
    let found = stats(&mut reader, options, &mut damage).unwrap();
    (found, damage)
}

fn counted(bytes: &[u8]) -> Statistics {
    counted_with(input(bytes), &StatsOptions::default()).0
}

fn name(label: &Label) -> String {
    label.to_string()
}

/// Counts calls of each function the slow way: bytes of all their tokens, sizes of their values.
#[derive(Default)]
struct Slow {
    open: BTreeMap<u64, (String, u64, u64, Figures)>,
    rows: BTreeMap<String, Figures>,
    threads: BTreeMap<u64, Figures>,
    frames: BTreeMap<u64, Figures>,
}

impl Slow {
    fn close(&mut self, (name, thread, frame, figures): (String, u64, u64, Figures)) {
        let figures = Figures { calls: 1, ..figures };
        self.rows.entry(name).or_default().add(&figures);
        self.threads.entry(thread).or_default().add(&figures);
        self.frames.entry(frame).or_default().add(&figures);
    }

    fn take(&mut self, event: &Record<'_>) {
        let mut figures = Figures { raw_bytes: event.bytes().len() as u64, ..Figures::default() };
        for token in event.tokens() {
            match token {
                Token::Bytes(BytesKind::Text, bytes) => figures.string_bytes += bytes.len() as u64,
                Token::Bytes(BytesKind::Blob, bytes) => figures.blob_bytes += bytes.len() as u64,
                Token::Wide(count, _) => figures.string_bytes += count * 4,
                Token::Array(count) => figures.array_values += count,
                _ => {}
            }
        }
        let number = event.call().unwrap();
        match event.kind() {
            EventKind::Enter => {
                let known = event.function().map(|row| row.name().split(|byte| *byte == 0).next().unwrap());
                let name = known.map_or("?".to_owned(), |name| String::from_utf8_lossy(name).into_owned());
                self.open.insert(number, (name, event.thread().unwrap(), event.frame().unwrap(), figures));
            }
            EventKind::Leave if event.pairing() == Some(Pairing::Paired) => {
                let mut call = self.open.remove(&number).unwrap();
                call.3.add(&figures);
                self.close(call);
            }
            EventKind::Leave => {}
        }
    }
}

fn slow(bytes: &[u8]) -> Slow {
    let mut slow = Slow::default();
    let mut reader = Reader::new(input(bytes), &OpenOptions::default()).unwrap();
    while let Some(step) = reader.next().unwrap() {
        if let Step::Record(_, event) = step {
            slow.take(&event);
        }
    }
    for call in std::mem::take(&mut slow.open).into_values() {
        slow.close(call);
    }
    slow
}

/// The figures that both count.
fn plain(figures: &Figures) -> [u64; 5] {
    let Figures { calls, raw_bytes, blob_bytes, string_bytes, array_values, .. } = *figures;
    [calls, raw_bytes, blob_bytes, string_bytes, array_values]
}

fn assert_counted(what: &str, bytes: &[u8]) {
    let found = counted(bytes);
    let slow = slow(bytes);
    let rows = |by: By| found.rows(by).iter().map(|row| (name(&row.label), plain(&row.figures))).collect::<Vec<_>>();
    let sorted = |mut rows: Vec<(String, [u64; 5])>| {
        rows.sort();
        rows
    };
    let wanted: Vec<_> = slow.rows.iter().map(|(name, figures)| (name.clone(), plain(figures))).collect();
    assert_eq!(sorted(rows(By::Function)), wanted, "{what}");
    let by_number = |map: &BTreeMap<u64, Figures>| {
        sorted(map.iter().map(|(number, figures)| (number.to_string(), plain(figures))).collect())
    };
    assert_eq!(sorted(rows(By::Thread)), by_number(&slow.threads), "{what}");
    assert_eq!(sorted(rows(By::Frame)), by_number(&slow.frames), "{what}");
    for by in [By::Function, By::Frame, By::Thread] {
        let mut sum = Figures::default();
        found.rows(by).iter().for_each(|row| sum.add(&row.figures));
        assert_eq!(sum, found.total, "{what}");
    }
    for row in found.rows(By::Function).iter() {
        let Figures { calls, draws, state_changes, redundant, .. } = row.figures;
        let is_draw = call_flags(name(&row.label).as_bytes()).has(CallFlags::RENDER);
        assert_eq!(draws, if is_draw { calls } else { 0 }, "{what}: {row:?}");
        assert!(redundant <= state_changes && state_changes <= calls && row.first <= row.last && row.threads > 0);
    }
    let states: u64 = found.rows(By::State).iter().map(|row| row.figures.redundant).sum();
    assert_eq!(states, found.total.redundant, "{what}");
}

#[test]
fn every_sample_is_counted_as_its_tokens_say() {
    for path in traces::all() {
        assert_counted(&path.display().to_string(), &std::fs::read(&path).unwrap());
    }
}

#[test]
fn functions_have_as_many_calls_as_the_dump_has_lines() {
    for path in traces::all() {
        let bytes = std::fs::read(&path).unwrap();
        let mut text = Vec::new();
        let mut options = DumpOptions::default();
        (options.verbose, options.has_lines, options.has_numbers) = (true, false, false);
        let mut reader = Reader::new(input(&bytes), &OpenOptions::default()).unwrap();
        dump(&mut reader, &options, &mut text, None, &mut Collect::default()).unwrap();
        let mut lines: BTreeMap<String, u64> = BTreeMap::new();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"//")) {
            let name = line.split(|byte| *byte == b'(').next().unwrap();
            *lines.entry(String::from_utf8_lossy(name).into_owned()).or_default() += 1;
        }
        let found = counted(&bytes);
        let rows = found.rows(By::Function).iter().map(|row| (name(&row.label), row.figures.calls));
        assert_eq!(rows.collect::<BTreeMap<_, _>>(), lines, "{}", path.display());
    }
}

#[test]
fn cut_and_spoiled_traces_are_counted_as_far_as_they_go() {
    let bytes = build::rich().snappy(40);
    for at in 0..bytes.len() {
        assert_counted("cut", &bytes[..at]);
        let mut spoiled = bytes.clone();
        spoiled[at] ^= 1 << (at % 8);
        assert_counted("spoiled", &spoiled);
    }
    let entire = counted(&bytes);
    for step in [1, 7, 4096] {
        let (parts, _) = counted_with(dripping("x", &bytes, step), &StatsOptions::default());
        assert_eq!(format!("{parts:?}"), format!("{entire:?}"));
    }
}

#[test]
fn a_blob_that_is_no_data_is_no_upload() {
    let found = counted(&trace(
        "glBufferData 1 1000 blob:1000
         glTexImage2D 1 0 blob:70000
         glGetBufferSubData 1 0 5 blob:5
         memcpy ptr:5 blob:30 30
         glXSwapBuffers
         glBufferData 1 1000 null",
    ));
    assert_eq!((found.total.upload_bytes, found.total.blob_bytes), (71_030, 71_035));
    let frames: Vec<_> = found.rows(By::Frame).iter().map(|row| row.figures.upload_bytes).collect();
    assert_eq!(frames, [71_030, 0]);
}

fn set(text: &str) -> Option<CallSet> {
    Some(CallSet::parse([text], &mut |_| unreachable!()).unwrap())
}

#[test]
fn calls_and_frames_are_chosen_and_state_is_followed_all_the_same() {
    let bytes = trace(
        "glXMakeCurrent ptr:1 2 ptr:7 = 1
         glEnable 3042
         glXSwapBuffers
         glEnable 3042
         glDrawArrays
         glXSwapBuffers
         glClear",
    );
    let counted = |calls: Option<CallSet>, frames: Option<CallSet>| {
        let mut options = StatsOptions::default();
        (options.calls, options.frames) = (calls, frames);
        counted_with(input(&bytes), &options).0
    };
    let found = counted(set("3"), None);
    assert_eq!((found.total.calls, found.total.redundant), (1, 1));
    let found = counted(None, set("1"));
    assert_eq!((found.total.calls, found.total.redundant, found.frames_ended), (3, 1, 1));
    let found = counted(set("0"), set("1/draw"));
    assert_eq!((found.total.calls, found.total.draws), (2, 1));
    assert_eq!(counted(set("*/draw"), None).total.draws, 2);
    assert_eq!(counted(set("9-5"), None).total.calls, 0);
}

#[test]
fn calls_left_after_the_last_selected_one_are_reported() {
    let mut b = Build::version(6);
    b.enter_new(0, 1, "f", &[]).end();
    b.enter_new(0, 2, "g", &["n"]).end().leave(1).end();
    b.calls(2, 2, 50).leave(0).end();
    let mut options = StatsOptions::default();
    options.calls = set("0-1");
    let (found, damage) = counted_with(input(&b.bytes), &options);
    assert_eq!(found.total.calls, 1);
    assert_eq!(damage.0.iter().map(|one| one.code()).collect::<Vec<_>>(), ["apitrace/late-call"]);
}

fn printed(found: &Statistics, by: By, sort: Option<Column>, top: Option<usize>, form: StatsForm) -> String {
    let mut out = Vec::new();
    write(found, &Printed { file: "x,\"y\"", by, sort, top, lost: 0, cells: Cells::Guarded }, form, true, &mut out)
        .unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_three_forms_have_the_same_figures() {
    for path in traces::all() {
        let found = counted(&std::fs::read(&path).unwrap());
        for by in [By::Function, By::Frame, By::Thread, By::State] {
            let rows = found.rows(by).sorted(Column::Calls);
            let json: serde_json::Value =
                serde_json::from_str(&printed(&found, by, Some(Column::Calls), None, StatsForm::Json)).unwrap();
            let csv = printed(&found, by, Some(Column::Calls), None, StatsForm::Csv);
            assert_eq!(json["rows"].as_array().unwrap().len(), rows.len(), "{}", path.display());
            assert_eq!(json["total"]["calls"], found.total.calls);
            for (row, object) in rows.iter().zip(json["rows"].as_array().unwrap()) {
                for column in Column::of(by).iter().filter(|column| **column != Column::Name) {
                    let value = &object[column.word(by)];
                    assert!(value.is_null() || *value == row.get(*column), "{row:?}: {object}");
                }
            }
            let clean = rows.iter().all(|row| !name(&row.label).contains(['\n', ',', '"', '\r']));
            assert!(!clean || csv.lines().count() == rows.len() + 1, "{}: {csv}", path.display());
            assert!(csv.starts_with("file,") && (rows.is_empty() || csv.contains("\n\"x,\"\"y\"\"\",")));
            let text = printed(&found, by, None, Some(1), StatsForm::Text);
            assert!(rows.len() < 2 || text.contains("… and"), "{text}");
            assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
        }
    }
}

#[test]
fn rows_are_sorted_and_equal_ones_by_name() {
    let found = counted(&trace("b\na\nc\nc\na 5"));
    let names = |column| found.rows(By::Function).sorted(column).iter().map(|row| name(&row.label)).collect::<String>();
    assert_eq!([Column::Calls, Column::Name, Column::First, Column::Draws].map(names), ["acb", "abc", "bac", "abc"]);
    assert_eq!(found.rows(By::Function).iter().map(|row| name(&row.label)).collect::<String>(), "bac");
}

#[test]
fn many_functions_and_threads_share_a_row_beyond_the_limit() {
    let mut b = Build::version(6);
    for n in 0..200_u64 {
        b.enter_new(n, n, &format!("f{n}"), &[]).end().leave(n).end();
    }
    let mut options = OpenOptions::default();
    options.limits.distinct_max = 100;
    let mut reader = Reader::new(input(&b.bytes), &options).unwrap();
    let found = stats(&mut reader, &StatsOptions::default(), &mut Collect::default()).unwrap();
    let last = |by: By| found.rows(by).iter().last().map(|row| (name(&row.label), row.figures.calls)).unwrap();
    assert_eq!((found.rows(By::Function).len(), last(By::Function)), (101, ("?".to_owned(), 100)));
    assert_eq!((found.rows(By::Thread).len(), last(By::Thread)), (101, ("others".to_owned(), 100)));
    assert_eq!(found.total.calls, 200);
}

/// For each call whether it is redundant: `=` or `.`; `?` for unknown ones. A context is current.
fn verdicts(lines: &str) -> String {
    let lines: Vec<&str> = lines.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text: String = lines.iter().map(|line| format!("{line}\nglXSwapBuffers\n")).collect();
    let found = counted(&trace(&format!("glXMakeCurrent ptr:1 2 ptr:7 = 1\nglXSwapBuffers\n{text}")));
    let rows: Vec<_> = found.rows(By::Frame).iter().skip(1).map(|row| row.figures.redundant).collect();
    rows.iter().map(|redundant| if *redundant > 0 { '=' } else { '.' }).collect()
}

#[test]
fn setting_the_present_value_is_redundant() {
    for (lines, wanted) in [
        ("glEnable 3042\nglEnable 3042\nglDisable 3042\nglDisable 3042\nglEnable 3042", ".=.=."),
        ("glEnable 3042\nglEnable 2929\nglEnable 3042", "..="),
        // The blend switch of one draw buffer, and that of all.
        ("glEnable 3042\nglEnablei 3042 1\nglEnable 3042\nglEnablei 3042 1", "...."),
        ("glEnablei 3042 1\nglEnablei 3042 1\nglDisablei 3042 2\nglEnablei 3042 1", ".=.="),
        ("glBlendFunc 1 2\nglBlendFuncSeparate 1 2 1 2\nglBlendFuncSeparate 1 2 1 3\nglBlendFunc 1 2", ".=.."),
        ("glBlendFunc 1 2\nglBlendFunci 0 1 2\nglBlendFunc 1 2\nglBlendFunc 1 2", "...="),
        ("glBlendEquation 5\nglBlendEquationSeparate 5 5\nglBlendEquation 5", ".=="),
        ("glViewport 0 0 5 5\nglViewport 0 0 5 5\nglViewport 0 0 5 6", ".=."),
        ("glViewport 0 0 5 5\nglViewportArrayv 0 1 [0.0;0.0;5.0;5.0]\nglViewport 0 0 5 5", "..."),
        ("glClearColor 0.0 0.5 1.0 1.0\nglClearColor 0.0 0.5 1.0 1.0", ".="),
        ("glStencilFunc 519 1 255\nglStencilFuncSeparate 1028 519 1 255\nglStencilFuncSeparate 1029 519 0 255", ".=."),
        ("glStencilFuncSeparate 1032 519 1 255\nglStencilFunc 519 1 255", ".="),
        ("glPixelStorei 3317 1\nglPixelStorei 3314 1\nglPixelStorei 3317 1", "..="),
        // State that becomes unknown.
        ("glDepthFunc 513\nglPopAttrib\nglDepthFunc 513\nglDepthFunc 513", "...="),
        ("glDepthFunc 513\nglCallList 1\nglDepthFunc 513", "..."),
        ("glNewList 1 4864\nglDepthFunc 513\nglDepthFunc 513\nglEndList\nglDepthFunc 513\nglDepthFunc 513", ".....="),
        ("glDepthFunc 513\nglNewList 1 4865\nglDepthFunc 513\nglEndList", "..=."),
        // Calls that the tracer inserted set state and are never counted as redundant.
        ("!glViewport 0 0 5 5\n!glViewport 0 0 5 5\nglViewport 0 0 5 5", "..="),
        // Missing arguments, blobs.
        ("glViewport 0 0 5 5\nglViewport\nglViewport 0 0 5 5", "..."),
        ("glFogfv 1 blob:4\nglFogfv 1 blob:4", ".."),
    ] {
        assert_eq!(verdicts(lines), wanted, "{lines}");
    }
}

#[test]
fn bindings_know_units_targets_and_objects() {
    for (lines, wanted) in [
        ("glBindTexture 3553 1\nglBindTexture 3553 1\nglBindTexture 34067 1\nglBindTexture 3553 2", ".=.."),
        (
            "glActiveTexture 33984\nglBindTexture 3553 1\nglActiveTexture 33985\nglBindTexture 3553 1\nglActiveTexture 33984\nglBindTexture 3553 1",
            ".....=",
        ),
        ("glActiveTexture 33984\nglActiveTexture 33984", ".="),
        ("glBindTexture 3553 1\nglDeleteTextures 1 [1]\nglBindTexture 3553 1", "..."),
        ("glBindTexture 3553 1\nglDeleteTextures 1 [2]\nglBindTexture 3553 1", "..="),
        ("glBindTexture 3553 1\nglBindTextureUnit 0 2\nglBindTexture 3553 1", "..."),
        (
            "glBindFramebuffer 36160 3\nglBindFramebuffer 36009 3\nglBindFramebuffer 36008 4\nglBindFramebuffer 36160 3",
            ".=..",
        ),
        ("glBindFramebufferEXT 36160 3\nglBindFramebuffer 36160 3", ".="),
        // The buffer of indexes belongs to the vertex array.
        (
            "glBindVertexArray 1\nglBindBuffer 34963 5\nglBindVertexArray 2\nglBindBuffer 34963 5\nglBindVertexArray 1\nglBindBuffer 34963 5",
            ".....=",
        ),
        ("glBindVertexArray 1\nglBindBuffer 34962 5\nglBindVertexArray 2\nglBindBuffer 34962 5", "...="),
        (
            "glEnableVertexAttribArray 0\nglBindVertexArray 2\nglEnableVertexAttribArray 0\nglEnableVertexAttribArray 0",
            "...=",
        ),
        (
            "glBindBuffer 34962 5\nglVertexAttribPointer 0 4 5126 0 0 null\nglVertexAttribPointer 0 4 5126 0 0 null\nglBindBuffer 34962 6\nglVertexAttribPointer 0 4 5126 0 0 null",
            "..=..",
        ),
        ("glVertexAttribPointer 0 4 5126 0 0 null\nglVertexAttribPointer 0 4 5126 0 0 null", ".."),
        (
            "glBindBufferBase 35345 1 5\nglBindBufferBase 35345 1 5\nglBindBuffer 35345 6\nglBindBufferBase 35345 1 5",
            ".=..",
        ),
        ("glBindBufferBase 35345 1 5\nglBindBuffer 35345 5", ".="),
        (
            "glBindRenderbuffer 36161 1\nglBindRenderbuffer 36161 1\nglDeleteRenderbuffers 1 [1]\nglBindRenderbuffer 36161 1",
            ".=..",
        ),
        ("glUseProgram 3\nglUseProgram 3\nglUseProgram 0\nglUseProgram 0", ".=.="),
        ("glEnable 3553\nglActiveTexture 33985\nglEnable 3553\nglEnable 3553", "...="),
        ("glTexEnvi 8960 8704 1\nglActiveTexture 33985\nglTexEnvi 8960 8704 1", "..."),
        ("glBindUnheardOfNV 1\nglDepthFunc 513\nglBindUnheardOfNV 1\nglDepthFunc 513", "...."),
    ] {
        assert_eq!(verdicts(lines), wanted, "{lines}");
    }
}

#[test]
fn uniforms_and_parameters_belong_to_objects() {
    for (lines, wanted) in [
        ("glUniform1i 0 5\nglUniform1i 0 5", ".."),
        ("glUseProgram 3\nglUniform1i 0 5\nglUniform1i 0 5\nglUniform1i 1 5", "..=."),
        ("glUseProgram 3\nglUniform1i 0 5\nglUseProgram 4\nglUniform1i 0 5\nglUseProgram 3\nglUniform1i 0 5", ".....="),
        ("glUseProgram 3\nglUniform1i 0 5\nglLinkProgram 3\nglUniform1i 0 5", "...."),
        (
            "glUseProgram 3\nglUniform4f 0 1.0 2.0 3.0 4.0\nglUniform4fv 0 1 [1.0;2.0;3.0;4.0]\nglUniform4fv 0 1 [1.0;2.0;3.0;5.0]",
            "..=.",
        ),
        // An array sets its elements.
        (
            "glUseProgram 3\nglUniform1fv 4 3 [1.0;2.0;3.0]\nglUniform1f 5 2.0\nglUniform1f 6 9.0\nglUniform1fv 4 3 [1.0;2.0;3.0]",
            "..=..",
        ),
        ("glUseProgram 3\nglUniform1fv 4 3 [1.0;2.0;3.0]\nglUniform1fv 4 2 [1.0;2.0]", "..="),
        (
            "glUseProgram 3\nglUniformMatrix2fv 0 1 0 [1.0;0.0;0.0;1.0]\nglUniformMatrix2fv 0 1 0 [1.0;0.0;0.0;1.0]\nglUniformMatrix2fv 0 1 1 [1.0;0.0;0.0;1.0]",
            "..=.",
        ),
        ("glProgramUniform1i 3 0 5\nglUseProgram 3\nglUniform1i 0 5", "..="),
        ("glUseProgram 3\nglUniform1i -1 5\nglUniform1i -1 5", "..."),
        // Sizes that do not match: all uniforms become unknown.
        ("glUseProgram 3\nglUniform1i 0 5\nglUniform2fv 9 2 [1.0;2.0;3.0]\nglUniform1i 0 5", "...."),
        ("glTexParameteri 3553 10241 1\nglTexParameteri 3553 10241 1", ".."),
        (
            "glBindTexture 3553 1\nglTexParameteri 3553 10241 1\nglTexParameteri 3553 10241 1\nglBindTexture 3553 2\nglTexParameteri 3553 10241 1\nglBindTexture 3553 1\nglTexParameteri 3553 10241 1",
            "..=...=",
        ),
        (
            "glBindTexture 3553 1\nglTexParameteri 3553 10241 1\nglTextureParameteri 1 10241 1\nglTextureParameteri 1 10241 2\nglTexParameteri 3553 10241 1",
            "..=..",
        ),
        (
            "glBindTexture 3553 1\nglTexParameteri 3553 10241 1\nglTextureParameteriEXT 1 3553 10241 2\nglBindTexture 3553 1\nglTexParameteri 3553 10241 1",
            ".....",
        ),
        ("glBindTexture 3553 1\nglTexParameterfv 3553 4100 [0.0;1.0]\nglTexParameterfv 3553 4100 [0.0;1.0]", "..="),
        (
            "glSamplerParameteri 4 10241 1\nglSamplerParameteri 4 10241 1\nglDeleteSamplers 1 [4]\nglSamplerParameteri 4 10241 1",
            ".=..",
        ),
    ] {
        assert_eq!(verdicts(lines), wanted, "{lines}");
    }
}

#[test]
fn each_context_has_its_own_state_and_shares_its_objects() {
    for (lines, wanted) in [
        (
            "glDepthFunc 513\nglXMakeCurrent ptr:1 2 ptr:8 = 1\nglDepthFunc 513\nglXMakeCurrent ptr:1 2 ptr:7 = 1\nglDepthFunc 513",
            "....=",
        ),
        // A failed call changed nothing.
        ("glDepthFunc 513\nglXMakeCurrent ptr:1 2 ptr:8 = 0\nglDepthFunc 513", "..="),
        ("glDepthFunc 513\nglXMakeCurrent ptr:1 0 null = 1\nglDepthFunc 513\nglDepthFunc 513", "...."),
        ("glDepthFunc 513\nglXDestroyContext ptr:1 ptr:7\nglXMakeCurrent ptr:1 2 ptr:7 = 1\nglDepthFunc 513", "...."),
        (
            "@1 eglMakeCurrent 1 2 2 ptr:9 = 1\n@1 glDepthFunc 513\nglDepthFunc 513\n@1 glDepthFunc 513\nglDepthFunc 513",
            "...==",
        ),
        (
            "glUseProgram 3\nglUniform1i 0 5\n@1 wglMakeCurrent 1 ptr:9 = 1\n@1 glUseProgram 3\n@1 glUniform1i 0 5\nglUniform1i 0 5\nglUniform1i 0 5",
            "......=",
        ),
        // Contexts may share the unnamed texture.
        (
            "glBindTexture 3553 0\nglTexParameteri 3553 10241 0\nglXMakeCurrent ptr:1 2 ptr:8 = 1\nglBindTexture 3553 0\nglTexParameteri 3553 10241 1\nglXMakeCurrent ptr:1 2 ptr:7 = 1\nglTexParameteri 3553 10241 0\nglTexParameteri 3553 10241 0",
            ".......=",
        ),
        ("@1 glDepthFunc 513\n@1 glDepthFunc 513", ".."),
        ("@1 CGLSetCurrentContext ptr:9 = 0\n@1 glDepthFunc 513\n@1 glDepthFunc 513", "..="),
    ] {
        assert_eq!(verdicts(lines), wanted, "{lines}");
    }
    let bytes = trace("glDepthFunc 513\nglDepthFunc 513\n@1 glDepthFunc 513");
    let found = counted(&bytes);
    assert_eq!((found.total.redundant, found.unknown_states, found.followed_states), (0, 3, 0));
    let mut options = StatsOptions::default();
    options.assumes_contexts = true;
    let (found, _) = counted_with(input(&bytes), &options);
    assert_eq!((found.total.redundant, found.unknown_states, found.followed_states), (1, 0, 3));
}

#[test]
fn direct3d_devices_are_contexts() {
    let set = "IDirect3DDevice9::SetRenderState";
    for (lines, wanted) in [
        (format!("{set} ptr:5 7 1\n{set} ptr:5 7 1\n{set} ptr:6 7 1\n{set} ptr:5 8 1"), ".=.."),
        (format!("{set} ptr:5 7 1\nIDirect3DStateBlock9::Apply ptr:9\n{set} ptr:5 7 1"), "..."),
        (format!("IDirect3DDevice9::BeginStateBlock ptr:5\n{set} ptr:5 7 1\n{set} ptr:5 7 1\nIDirect3DDevice9::EndStateBlock ptr:5\n{set} ptr:5 7 1\n{set} ptr:5 7 1"), ".....="),
        (format!("{set} ptr:5 7 1\nIDirect3DDevice9::Release ptr:5 = 1\n{set} ptr:5 7 1\nIDirect3DDevice9::Release ptr:5 = 0\n{set} ptr:5 7 1"), "..=.."),
        ("ID3D11DeviceContext::RSSetState ptr:5 ptr:6\nID3D11DeviceContext::RSSetState ptr:5 ptr:6\nID3D11DeviceContext::ClearState ptr:5\nID3D11DeviceContext::RSSetState ptr:5 ptr:6".to_owned(), ".=.."),
    ] {
        assert_eq!(verdicts(&lines), wanted, "{lines}");
    }
}

#[test]
fn much_state_is_forgotten_rather_than_kept() {
    let mut text = "glXMakeCurrent ptr:1 2 ptr:7 = 1\nglUseProgram 1\n".to_owned();
    for location in 0..60_000 {
        text.push_str(&format!("glUniform1i {location} 1\n"));
    }
    let found = counted(&trace(&text.repeat(2)));
    assert!(found.forgotten > 0 && found.total.redundant < 120_000, "{}", found.forgotten);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    // Whatever the initial state, calls reported as redundant do not change it.
    #[test]
    fn calls_reported_as_redundant_change_nothing(
        choices in proptest::collection::vec(0..=u16::MAX, 1..160), seed: u64
    ) {
        let calls = machine::calls(&choices);
        let text: String = calls.iter().map(|call| format!("{call}\nglXSwapBuffers\n")).collect();
        let found = counted(&trace(&text));
        let mut machine = machine::Machine::new(seed);
        for (row, call) in found.rows(By::Frame).iter().zip(&calls) {
            let has_changed = machine.run(call);
            prop_assert!(!(has_changed && row.figures.redundant > 0), "{call} of\n{}", calls.join("\n"));
        }
    }
}

#[test]
fn the_machine_finds_much_that_is_redundant() {
    // The property above would hold for an implementation that finds nothing.
    let mut state = 1_u64;
    let choices: Vec<u16> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 48) as u16
    })
    .take(1500)
    .collect();
    let calls = machine::calls(&choices);
    let text: String = calls.iter().map(|call| format!("{call}\nglXSwapBuffers\n")).collect();
    let found = counted(&trace(&text));
    let mut machine = machine::Machine::new(7);
    let (mut idle, mut found_of_them) = (0, 0);
    for (n, (row, call)) in found.rows(By::Frame).iter().zip(&calls).enumerate() {
        let has_changed = machine.run(call);
        assert!(
            !(has_changed && row.figures.redundant > 0),
            "{call} after\n{}",
            calls[n.saturating_sub(300)..n].join("\n")
        );
        idle += u64::from(!has_changed && row.figures.state_changes > 0);
        found_of_them += row.figures.redundant;
    }
    assert!(found_of_them * 5 > idle, "{found_of_them} of {idle}");
}
