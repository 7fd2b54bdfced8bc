//! Compressed records: split records, both kinds, damage, streams that grow without bound.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::path::Path;
use std::time::Instant;

use anytrace_core::testing::{Exam, assert_repairs, examine, rewrite};
use anytrace_core::{
    Collect, Format, Input, InputOptions, MemoryTarget, OpenOptions, Plan, Selection, Step, TargetOptions, TimeBound,
};
use anytrace_perf::{Perf, Reader};

const PACKED: &[u8] = include_bytes!("../corpus/compressed.data");
const STREAM: &[u8] = include_bytes!("../corpus/compressed-stream.data");
/// `perf script -F comm,tid,time,period,event,ip --show-task-events` of the first.
const SCRIPT: &str = include_str!("../corpus/compressed.txt");

fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + body.len()).unwrap();
    [&kind.to_le_bytes()[..], &[0, 0], &length.to_le_bytes(), body].concat()
}

/// A stream with one event, whose samples have thread and time.
fn start() -> Vec<u8> {
    let mut attr: Vec<u8> = [(128_u64 << 32) | 1, 0, 1, 6, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    attr.resize(128, 0);
    [&b"PERFILE2\x10\0\0\0\0\0\0\0"[..], &record(64, &attr)].concat()
}

fn sample(time: u64) -> Vec<u8> {
    record(9, &[&7_u32.to_le_bytes()[..], &7_u32.to_le_bytes(), &time.to_le_bytes()].concat())
}

/// Compresses as `perf` does: one stream, flushed after each piece.
struct Packer(zstd::stream::write::Encoder<'static, Vec<u8>>);

impl Packer {
    fn new() -> Self {
        Self(zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap())
    }

    fn pack(&mut self, bytes: &[u8]) -> Vec<u8> {
        use std::io::Write;
        self.0.write_all(bytes).unwrap();
        self.0.flush().unwrap();
        std::mem::take(self.0.get_mut())
    }

    fn old(&mut self, bytes: &[u8]) -> Vec<u8> {
        record(81, &self.pack(bytes))
    }

    /// With the length of the data, and padded to 8 bytes.
    fn new_kind(&mut self, bytes: &[u8]) -> Vec<u8> {
        let packed = self.pack(bytes);
        let mut body = [&(packed.len() as u64).to_le_bytes()[..], &packed].concat();
        body.resize(body.len().next_multiple_of(8), 0);
        record(83, &body)
    }
}

fn times(exam: &Exam) -> Vec<u64> {
    let text = String::from_utf8_lossy(&exam.text);
    let samples = text.lines().filter(|line| line.contains(" sample "));
    samples.map(|line| line.split("time_ns=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn samples_are_those_that_perf_script_prints() {
    let (mut wanted, mut found) = (Vec::new(), Vec::new());
    for line in SCRIPT.lines().filter(|line| line.contains("cpu-clock:")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (seconds, micros) = words[2].trim_end_matches(':').split_once('.').unwrap();
        wanted.push((words[1].to_owned(), seconds.to_owned() + micros, words[3].to_owned(), 0));
    }
    let mut depths: Vec<usize> = Vec::new();
    for line in SCRIPT.lines() {
        if line.contains("cpu-clock:") {
            depths.push(0);
        } else if let (true, Some(depth)) = (line.starts_with('\t'), depths.last_mut()) {
            *depth += 1;
        }
    }
    wanted.iter_mut().zip(&depths).for_each(|(sample, depth)| sample.3 = *depth);
    let text = String::from_utf8(examine(&Perf, PACKED).text).unwrap();
    for line in text.lines().filter(|line| line.contains(" sample ")) {
        let field = |name: &str| line.split(&format!(" {name}=")).nth(1).unwrap().split(' ').next().unwrap().to_owned();
        let nanoseconds: u64 = field("time_ns").parse().unwrap();
        let frames = field("stack").split(',').filter(|one| !one.starts_with("0xfffffffffffff")).count();
        found.push((field("thread"), (nanoseconds / 1000).to_string(), field("period"), frames));
    }
    found.sort_by(|a, b| (&a.1, &a.0).cmp(&(&b.1, &b.0)));
    wanted.sort_by(|a, b| (&a.1, &a.0).cmp(&(&b.1, &b.0)));
    assert!(wanted.len() == 116 && found == wanted, "{found:?} {wanted:?}");
}

#[test]
fn a_record_across_compressed_ones_is_read_once() {
    let all: Vec<u8> = (0..40).flat_map(sample).collect();
    for is_new in [false, true] {
        for step in [1, 5, 24, 100, 1000] {
            let mut packer = Packer::new();
            let mut file = start();
            for piece in all.chunks(step) {
                file.extend(if is_new { packer.new_kind(piece) } else { packer.old(piece) });
            }
            let exam = examine(&Perf, &file);
            assert!(exam.check.is_empty(), "{step}: {:?}", exam.check);
            assert_eq!(times(&exam), (0..40).collect::<Vec<u64>>(), "{step}");
            assert!(assert_repairs(&Perf, &file, "split") == file, "all can be copied");
            let trim = Plan::Trim(Selection::default(), TargetOptions::default());
            let (plain, ..) = rewrite(&Perf, &file, &trim).unwrap();
            assert!(plain == [start(), all.clone()].concat(), "a trim has what was compressed");
        }
    }
}

#[test]
fn a_place_is_the_compressed_record_and_the_byte_in_it() {
    let mut packer = Packer::new();
    let bytes = [sample(1), vec![0; 16], sample(2)].concat();
    let file = [start(), packer.old(&sample(0)), packer.old(&bytes), packer.old(&sample(3))].concat();
    let exam = examine(&Perf, &file);
    assert_eq!(times(&exam), [0, 1, 2, 3], "{:?}", exam.check);
    let damage = &exam.check[0];
    assert_eq!((damage.code(), damage.offset, damage.skipped_bytes), ("perf/bad-record", 24, 16));
    let place = damage.within.as_deref().unwrap();
    assert!(place.starts_with("compressed record at byte 0x"), "{place}");
    let fixed = assert_repairs(&Perf, &file, "zeros inside");
    assert_eq!(times(&examine(&Perf, &fixed)), [0, 1, 2, 3]);
}

#[test]
fn what_follows_damage_in_the_stream_is_reported_and_the_rest_of_the_file_is_read() {
    let mut packer = Packer::new();
    let mut parts: Vec<Vec<u8>> = (0..5).map(|n| packer.old(&sample(n))).collect();
    parts.insert(2, sample(100));
    parts.push(sample(101));
    let at = start().len() + parts[..3].concat().len();
    let mut file = [start(), parts.concat()].concat();
    // A block of the kind that does not exist.
    file[at + 8] |= 6;
    let exam = examine(&Perf, &file);
    let found: Vec<_> = exam.check.iter().map(|one| (one.code(), one.offset, one.within.is_some())).collect();
    let next = at + parts[3].len();
    let code = "perf/bad-compression";
    assert!(found.len() == 2 && found[0].0 == code && found[1] == (code, next as u64, false), "{found:?}");
    assert_eq!(times(&exam), [0, 1, 100, 101]);
    let fixed = assert_repairs(&Perf, &file, "a block");
    assert_eq!(times(&examine(&Perf, &fixed)), [0, 1, 100, 101]);
    // The same without one of them: what follows would be read with the wrong history.
    let file = [start(), parts[..3].concat(), parts[4..].concat()].concat();
    assert_eq!(times(&examine(&Perf, &file))[..3], [0, 1, 100]);
    let file = [start(), parts[..3].concat(), vec![0; 24], parts[4..].concat()].concat();
    assert_eq!(times(&examine(&Perf, &file)), [0, 1, 100, 101], "a part is missing");
    // The start of the stream is in another file.
    let exam = examine(&Perf, &[start(), parts[1..].concat()].concat());
    assert!(exam.check[0].help.as_deref().unwrap().contains("--switch-output"));
    assert_eq!(times(&exam), [100, 101]);
}

#[test]
fn a_length_beyond_the_record_is_damage() {
    let mut packer = Packer::new();
    let mut own = packer.new_kind(&sample(0));
    own[8] = 0xff;
    let exam = examine(&Perf, &[start(), own, sample(1)].concat());
    assert_eq!((exam.error_codes(), times(&exam)), (vec!["perf/bad-compression"], vec![1]));
    assert_eq!(exam.check[0].field.as_deref(), Some("data_size"));
}

/// Blocks that repeat a byte have 4 bytes, and are up to 128 KiB (RFC 8878, 3.1.1.2).
fn repeated(byte: u8, blocks: usize) -> Vec<u8> {
    let block = [((1_u32 << 17 << 3) | 2).to_le_bytes()[..3].to_vec(), vec![byte]].concat();
    block.repeat(blocks)
}

#[test]
fn streams_that_grow_without_bound_end() {
    let began = Instant::now();
    for byte in [0, 9, 0xff] {
        let mut file = start();
        file.extend(record(81, &[&[0x28, 0xb5, 0x2f, 0xfd, 0, 56][..], &repeated(byte, 12_000)].concat()));
        for _ in 0..20 {
            file.extend(record(81, &repeated(byte, 12_000)));
        }
        file.extend(sample(5));
        let mut reader = Reader::new(Input::from_bytes("x", file), &OpenOptions::default()).unwrap();
        let (mut inside, mut codes) = (0, Vec::new());
        reader
            .for_each(|step| {
                match step {
                    Step::Record(_, record) if record.is_inside() => inside += record.bytes().len(),
                    Step::Record(..) => {}
                    Step::Damage(damage) => codes.push(damage.code()),
                }
                Ok(())
            })
            .unwrap();
        // 48 KB may become 48 MB and 64 MiB more.
        assert!(codes.contains(&"perf/bad-compression") && inside < 130 << 20, "{byte}: {inside} {codes:?}");
    }
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

#[test]
fn a_copy_of_the_records_is_the_same_file() {
    for bytes in [PACKED, STREAM] {
        let mut reader = Reader::new(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap();
        let mut writer = anytrace_perf::Writer::with_layout(Vec::new(), reader.layout());
        let mut inside = 0;
        while let Some(step) = reader.next().unwrap() {
            let Step::Record(_, record) = step else { panic!("the sample is not damaged") };
            inside += usize::from(record.is_inside());
            writer.write(&record).unwrap();
        }
        assert!(inside > 50 && writer.finish().unwrap() == bytes);
    }
}

#[test]
fn a_killed_recording_is_written_without_compression() {
    let mut killed = PACKED.to_vec();
    killed[48..56].fill(0);
    let end =
        u64::from_le_bytes(PACKED[40..48].try_into().unwrap()) + u64::from_le_bytes(PACKED[48..56].try_into().unwrap());
    killed.truncate(usize::try_from(end).unwrap());
    let fixed = assert_repairs(&Perf, &killed, "killed");
    let (own, found) = (examine(&Perf, PACKED), examine(&Perf, &fixed));
    assert_eq!(times(&own), times(&found));
    assert!(found.info.0.kinds.iter().all(|(kind, _)| kind != "compressed"));
}

#[test]
fn a_file_is_read_twice_for_times_from_its_start_and_for_repairs() {
    let folder = tempfile::tempdir().unwrap();
    let mut packer = Packer::new();
    let plain: Vec<Vec<u8>> = (0..40_000).map(|n| sample(1000 + n)).collect();
    let packed: Vec<Vec<u8>> = plain.chunks(500).map(|some| packer.old(&some.concat())).collect();
    for (name, records) in [("plain", plain), ("packed", packed)] {
        let bytes = [start(), records.concat()].concat();
        let path = folder.path().join(name);
        std::fs::write(&path, &bytes).unwrap();
        let write = |plan: &Plan| {
            let input = Input::open(&path, InputOptions::default()).unwrap();
            let trace = Perf.open(input, &OpenOptions::default()).unwrap();
            let mut out = MemoryTarget::default();
            trace.rewrite(plan, &mut out, &mut Collect::default()).unwrap();
            out.0
        };
        assert!(write(&Plan::Repair(TargetOptions::default())) == bytes, "{name}");
        let time = Some((TimeBound::Nanoseconds(10), TimeBound::Nanoseconds(30)));
        let trim = write(&Plan::Trim(Selection { time, ..Selection::default() }, TargetOptions::default()));
        assert_eq!(times(&examine(&Perf, &trim)), (1010..1030).collect::<Vec<u64>>(), "{name}");
    }
}

#[test]
fn a_folder_is_one_recording() {
    let folder = tempfile::tempdir().unwrap();
    // As `perf record --threads` writes it: nothing that is compressed in `data`.
    let mut main = PACKED.to_vec();
    let inside = {
        let mut packer = Packer::new();
        [packer.old(&sample_of_corpus(1)), packer.old(&sample_of_corpus(2))].concat()
    };
    std::fs::write(folder.path().join("data"), &main).unwrap();
    std::fs::write(folder.path().join("data.0"), &inside).unwrap();
    std::fs::write(folder.path().join("data.1"), sample_of_corpus(3)).unwrap();
    let open = |path: &Path| {
        let input = Input::open(path, InputOptions::default()).unwrap();
        let (input, note) = Perf.completed(path, input).unwrap();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut input.into_read(), &mut bytes).unwrap();
        (bytes, note)
    };
    let (bytes, note) = open(folder.path());
    assert!(note.unwrap().contains("2 files") && open(&folder.path().join("data")).0 == bytes);
    let (exam, own) = (examine(&Perf, &bytes), examine(&Perf, PACKED));
    assert!(exam.check.is_empty(), "{:?}", exam.check);
    assert_eq!(times(&exam).len(), times(&own).len() + 3);
    let details = |exam: &Exam| exam.info.0.details.iter().find(|(key, _)| *key == "compressed").unwrap().1.clone();
    assert_eq!(
        (&details(&exam)["level"], &details(&exam)["records"]),
        (&1.into(), &13.into()),
        "the tables were moved"
    );
    // perf reads one stream in a file, so the second one is written without compression.
    let fixed = assert_repairs(&Perf, &bytes, "folder");
    assert_eq!(times(&examine(&Perf, &fixed)).len(), times(&exam).len());
    assert_eq!(details(&examine(&Perf, &fixed))["records"], 11);
    // A recording that was killed has no tables.
    main[48..56].fill(0);
    std::fs::write(folder.path().join("data"), &main).unwrap();
    assert_eq!(examine(&Perf, &open(folder.path()).0).error_codes()[0], "perf/unfinished");
    std::fs::remove_file(folder.path().join("data.0")).unwrap();
    assert!(open(folder.path()).1.is_none(), "nothing beside it");
}

/// A sample with the fields of the corpus' samples: address, thread, time, period, and a call chain without addresses.
fn sample_of_corpus(time: u64) -> Vec<u8> {
    record(
        9,
        &[0, (7 << 32) | 7, time, 666_666, 0].iter().flat_map(|word: &u64| word.to_le_bytes()).collect::<Vec<u8>>(),
    )
}
