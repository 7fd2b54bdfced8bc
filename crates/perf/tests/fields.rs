//! Records of `perf.data` made word by word, in both byte orders: every field of a sample, every way to find its event.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use anytrace_core::Format;
use anytrace_core::testing::{assert_windows_agree, examine};
use anytrace_perf::Perf;

/// A recording being made.
struct Made {
    is_big: bool,
    bytes: Vec<u8>,
}

/// A part of a record.
enum Part<'a> {
    Word(u64),
    /// Two halves of a word: the first comes first in either byte order.
    Halves(u32, u32),
    Half(u32),
    Bytes(&'a [u8]),
}

use Part::{Bytes, Half, Halves, Word};

impl Made {
    fn new(is_big: bool) -> Self {
        let mut made = Self { is_big, bytes: Vec::new() };
        let magic = u64::from_le_bytes(*b"PERFILE2");
        made.bytes = made.of(&[Word(magic), Word(16)]);
        made
    }

    fn of(&self, parts: &[Part<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        let half = |value: u32| if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        for part in parts {
            match part {
                Word(value) if self.is_big => out.extend(value.to_be_bytes()),
                Word(value) => out.extend(value.to_le_bytes()),
                Halves(a, b) => out.extend([half(*a), half(*b)].concat()),
                Half(a) => out.extend(half(*a)),
                Bytes(bytes) => out.extend_from_slice(bytes),
            }
        }
        out
    }

    fn record(&mut self, kind: u32, misc: u16, parts: &[Part<'_>]) {
        let body = self.of(parts);
        let length = u16::try_from(body.len() + 8).unwrap();
        let short = |value: u16| if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        let head = [self.of(&[Half(kind)]), short(misc).to_vec(), short(length).to_vec()].concat();
        self.bytes.extend(head);
        self.bytes.extend(body);
    }

    /// The description of an event with the number `id`; every record ends with what samples begin with.
    fn attr(&mut self, config: u64, sample_type: u64, read_format: u64, id: u64) {
        let flags = 1 << 18;
        let mut parts = vec![Halves(1, 128), Word(config), Word(77), Word(sample_type), Word(read_format), Word(flags)];
        // Bits of branch_sample_type, regs_user and regs_intr at 72, 80 and 96.
        parts.extend([
            Word(0),
            Word(0),
            Word(0),
            Word(1 << 17),
            Word(0b1011),
            Word(0),
            Word(0b1),
            Word(0),
            Word(0),
            Word(0),
        ]);
        parts.push(Word(id));
        self.record(64, 0, &parts);
    }
}

const ALL: u64 = (1 << 25) - 1 - (1 << 14);

fn lines(bytes: &[u8]) -> (Vec<String>, Vec<&'static str>) {
    let exam = examine(&Perf, bytes);
    let text = String::from_utf8(exam.text).unwrap();
    let codes = exam.check.iter().map(|diagnostic| diagnostic.code()).collect();
    (text.lines().map(|line| line.split_once(' ').unwrap().1.split_once(' ').unwrap().1.to_owned()).collect(), codes)
}

/// A sample with every field, of which the last ones are cut by `cut` words.
fn full(is_big: bool, cut: usize) -> Made {
    let mut made = Made::new(is_big);
    // Times, number, lost, for a group of two.
    made.attr(0, ALL, 0b1_1111, 5);
    let mut parts =
        vec![Word(5), Word(0x4_1000), Halves(7, 8), Word(9_000), Word(0xadd), Word(5), Word(6), Halves(3, 0), Word(11)];
    parts.extend([Word(2), Word(1), Word(1), Word(21), Word(22), Word(23), Word(31), Word(32), Word(33)]);
    parts.extend([Word(3), Word(512_u64.wrapping_neg()), Word(0x4_1000), Word(0x4_2000)]);
    parts.extend([Half(4), Bytes(b"rawd")]);
    parts.extend([Word(1), Word(0), Word(1), Word(2), Word(3)]);
    parts.extend([Word(2), Word(1), Word(2), Word(3)]);
    parts.extend([Word(16), Bytes(b"0123456789abcdef"), Word(16)]);
    parts.extend([Word(41), Word(42), Word(43), Word(1), Word(44), Word(45), Word(46), Word(47), Word(48)]);
    parts.extend([Word(8), Bytes(b"auxiliar")]);
    parts.truncate(parts.len() - cut);
    made.record(9, 2, &parts);
    made
}

#[test]
fn every_field_of_a_sample_is_passed_in_either_byte_order() {
    for is_big in [false, true] {
        let made = full(is_big, 0);
        let (text, codes) = lines(&made.bytes);
        let expected = "sample process=7 thread=8 cpu=3 time_ns=9000 period=11 event=\"cpu-clock\" ip=0x41000 \
                        stack=0xfffffffffffffe00,0x41000,0x42000";
        assert_eq!(text.last().map(String::as_str), Some(expected), "{is_big}");
        assert_eq!(codes, ["perf/not-unwound"]);
        assert_windows_agree(&Perf, &made.bytes);
        let order = Perf.name();
        assert_eq!(
            examine(&Perf, &made.bytes).info.0.byte_order.map(|order| order.name()),
            Some(if is_big { "big" } else { "little" }),
            "{order}"
        );
        // Whatever of it is missing is found to be.
        for cut in 1..30 {
            let (_, codes) = lines(&full(is_big, cut).bytes);
            assert!(codes.contains(&"perf/bad-field"), "without the last {cut}: {codes:?}");
        }
    }
}

#[test]
fn records_belong_to_events_by_their_numbers() {
    // Time, thread and number; and the number at the front.
    for (sample_type, is_first) in [(1 << 1 | 1 << 2 | 1 << 6, false), (1 << 1 | 1 << 2 | 1 << 16, true)] {
        let mut made = Made::new(false);
        made.attr(0, sample_type, 0, 70);
        made.attr(2, sample_type, 0, 71);
        let mut sample = |id: u64| {
            let parts = if is_first {
                vec![Word(id), Halves(7, 8), Word(100)]
            } else {
                vec![Halves(7, 8), Word(100), Word(id)]
            };
            made.record(9, 2, &parts);
        };
        [71, 70, 99].into_iter().for_each(&mut sample);
        // The name of a thread, with the time and the number at its end.
        made.record(3, 0, &[Halves(7, 8), Bytes(b"app\0\0\0\0\0"), Halves(7, 8), Word(55), Word(71)]);
        made.record(2, 0, &[Word(70), Word(12), Halves(0, 0), Word(56), Word(70)]);
        let (text, codes) = lines(&made.bytes);
        assert!(text[3].contains("event=\"page-faults\"") && text[4].contains("event=\"cpu-clock\""), "{text:?}");
        // Without a period in the sample, it is that of the description.
        assert!(text[3].contains("period=77"), "{text:?}");
        assert_eq!(text[6], "comm process=7 thread=8 time_ns=55 name=\"app\"");
        assert_eq!(text[7], "lost thread=0 time_ns=56 lost=12");
        assert_eq!(codes, ["perf/unknown-event", "perf/lost"]);
    }
}
