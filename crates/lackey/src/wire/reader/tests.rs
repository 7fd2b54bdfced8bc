//! The reader, compared with a slow obvious one, on random lines: what is a record, where it is, and what is kept of
//! the rest.

use anytrace_core::Collect;
use anytrace_core::testing::{dripping, through_jsonl};
use proptest::prelude::*;

use super::*;
use crate::Lackey;
use crate::wire::parse::parse;
use crate::wire::record::Kind;
use crate::wire::writer::push_record;

/// Everything that the reader visits: the bytes in their order, and the records.
#[derive(Default)]
struct Seen {
    bytes: Vec<u8>,
    records: Vec<(Kind, u64, u16)>,
}

impl Seen {
    fn assert_place(&self, place: LinePlace) {
        let seen = &self.bytes;
        assert_eq!(place.offset, seen.len() as u64);
        let line_start = seen.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        assert_eq!(place.line, 1 + seen.iter().filter(|b| **b == b'\n').count() as u64);
        assert_eq!(place.column, (seen.len() - line_start) as u64 + 1);
        assert_eq!(place.seq, self.records.len() as u64);
    }
}

impl Visit for Seen {
    fn record(&mut self, record: &Record<'_>, at: LinePlace, _: &mut dyn Sink) -> Result<(), Error> {
        self.assert_place(at);
        self.records.push((record.kind, record.address, record.size));
        self.bytes.extend_from_slice(record.text);
        Ok(())
    }

    fn piece(&mut self, piece: Piece<'_>, at: LinePlace, _: &mut dyn Sink) -> Result<(), Error> {
        self.assert_place(at);
        let (Piece::Message(bytes) | Piece::Text(bytes) | Piece::Space(bytes) | Piece::Lost(bytes)) = piece;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

/// A record by the words of the book: blanks, a letter, blanks, hex digits, a comma, decimal digits.
fn slow(line: &str) -> Option<(Kind, u64, u16)> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let line = line.trim_start_matches([' ', '\t']);
    let words: Vec<&str> = line.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
    let [mark, rest] = words[..] else { return None };
    if line.ends_with([' ', '\t']) {
        return None;
    }
    let kind = match mark {
        "I" => Kind::Fetch,
        "L" => Kind::Read,
        "S" => Kind::Write,
        "M" => Kind::Modify,
        "SB" => Kind::Block,
        _ => return None,
    };
    let (address, size) = match rest.split_once(',') {
        Some((address, size)) if kind != Kind::Block => (address, size),
        None if kind == Kind::Block => (rest, "0"),
        _ => return None,
    };
    let is_hex = !address.is_empty() && address.len() <= 16 && address.bytes().all(|b| b.is_ascii_hexdigit());
    let is_decimal = !size.is_empty() && size.len() <= 5 && size.bytes().all(|b| b.is_ascii_digit());
    (is_hex && is_decimal).then_some(())?;
    Some((kind, u64::from_str_radix(address, 16).ok()?, size.parse().ok()?))
}

/// Lines that are records, nearly records, or neither.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0_usize..5, any::<u64>(), 0_u32..64, 0_u16..600).prop_map(|(kind, address, shift, size)| {
            let mut out = Vec::new();
            push_record(&mut out, Kind::ALL[kind], address >> shift, size);
            String::from_utf8(out).unwrap().trim_end().to_owned()
        }),
        3 => "[ \t]{0,2}(I|L|S|M|SB|X)[ \t]{0,2}[0-9a-fA-F]{0,18}[, ]?[0-9]{0,6}\r?",
        1 => "==[0-9]{1,5}== [a-zA-Z: ,0-9]{0,30}",
        1 => "[ -~]{0,40}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_line_is_a_record_if_the_slow_reader_accepts_it(line in line(), tail in "[ -~\n]{0,40}") {
        let window = format!("{line}\n{tail}");
        let fast = parse(window.as_bytes(), &Layout::default()).ok().map(|(record, used)| {
            assert_eq!(used, line.len() + 1);
            (record.kind, record.address, record.size)
        });
        prop_assert_eq!(fast, slow(&line));
    }

    #[test]
    fn records_and_pieces_are_all_bytes_in_their_order(lines in prop::collection::vec(line(), 0..40), has_end in any::<bool>(), at_once in 1_usize..50) {
        let mut text = lines.join("\n");
        if has_end {
            text.push('\n');
        }
        let mut seen = Seen::default();
        let mut sink = Collect::default();
        let reader = Reader::new(dripping("x", text.as_bytes(), at_once), &OpenOptions::default()).unwrap();
        let passed = reader.walk(&mut seen, &mut sink).unwrap();
        let Seen { bytes: seen, records } = seen;
        prop_assert_eq!(std::str::from_utf8(&seen).unwrap(), &text);
        // Every line that the slow reader accepts is found; there are more only if a record follows other text on its
        // line.
        let slow_records: Vec<_> = lines.iter().filter_map(|line| slow(line)).collect();
        let extra = records.len() - slow_records.len();
        let behind = sink.0.iter().filter(|d| matches!(d.code(), "lackey/text-before-record" | "lackey/bad-line")).count();
        prop_assert!(extra <= behind, "{extra} {behind}");
        if extra == 0 {
            prop_assert_eq!(&records, &slow_records);
        }
        prop_assert_eq!((passed.records, passed.bytes), (records.len() as u64, text.len() as u64));
    }

    #[test]
    fn json_lines_convert_back_to_the_bytes_of_undamaged_lines(lines in prop::collection::vec(line(), 1..20)) {
        let text = lines.join("\n") + "\n";
        let mut sink = Collect::default();
        let input = Input::from_bytes("x", text.clone().into_bytes());
        Reader::new(input, &OpenOptions::default()).unwrap().walk(&mut Seen::default(), &mut sink).unwrap();
        if sink.errors() == 0 {
            let back = through_jsonl(&Lackey, &OpenOptions::default(), text.as_bytes()).unwrap();
            prop_assert_eq!(String::from_utf8_lossy(&back), text);
        }
    }
}
