//! Bytes to records: no I/O, no allocation.

use crate::wire::record::{ADDRESS_DIGITS_MAX, Kind, Layout, Record};

/// Why [`parse`] returned no record.
pub type Need = anytrace_core::Need<Fault>;

/// Why a line is not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is something else: one of Valgrind's messages, text, or nothing.
    Other,
    /// It begins like a record but is not one.
    Damaged(FieldFault),
}

/// What is wrong with a line that begins like a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldFault {
    /// `kind`, `address`, `size` or `line end`.
    pub field: &'static str,
    /// What was expected.
    pub expected: &'static str,
    /// Its place, in bytes from the start of the line.
    pub at: usize,
}

/// Parses the record on the line with which the window begins; returns it and the length of its line in bytes,
/// including the line end.
///
/// ```
/// use anytrace_lackey::{Fault, Kind, Layout, Need, parse};
///
/// let layout = Layout::default();
/// let (record, used) = parse(b" S 1fff000690,8\nI  04", &layout).expect("it is a record");
/// assert_eq!((record.kind, record.address, record.size, used), (Kind::Write, 0x1f_ff00_0690, 8, 16));
/// assert_eq!(parse(b"I  04", &layout), Err(Need::More(6)));
/// assert_eq!(parse(b"==42== Lackey\n", &layout), Err(Need::Bad(Fault::Other)));
/// ```
///
/// # Errors
/// [`anytrace_core::Need::More`] when the window has no line end; [`anytrace_core::Need::Bad`] when the line is not a
/// record.
pub fn parse<'a>(window: &'a [u8], _layout: &Layout) -> Result<(Record<'a>, usize), Need> {
    if let Some(found) = canonical(window) {
        return Ok(found);
    }
    let end = memchr::memchr(b'\n', window).ok_or(Need::More(window.len() as u64 + 1))?;
    let text = &window[..=end];
    read_line(&window[..end]).map(|fields| (fields.record(text), text.len())).map_err(Need::Bad)
}

/// The record whose line, with or without a line end, is `text`.
pub(crate) fn record_of(text: &[u8]) -> Option<Record<'_>> {
    read_line(text.strip_suffix(b"\n").unwrap_or(text)).ok().map(|fields| fields.record(text))
}

/// The contents of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) kind: Kind,
    pub(crate) address: u64,
    pub(crate) size: u16,
    /// True when Valgrind would spell it the same.
    pub(crate) is_usual: bool,
}

impl Fields {
    /// The record, with its line.
    pub(crate) fn record(self, text: &[u8]) -> Record<'_> {
        let Self { kind, address, size, is_usual } = self;
        Record { kind, address, size, text, is_usual }
    }
}

/// Bytes that the fast path examines: a mark, 16 digits, a comma, 5 digits and a line end, rounded up to a power of
/// two.
const LOOK_BYTES: usize = 32;

/// Reads a record as Valgrind spells it, lower-case digits and a plain line end, if enough bytes are available.
#[inline(always)]
pub(crate) fn canonical(window: &[u8]) -> Option<(Record<'_>, usize)> {
    let look = window.first_chunk::<LOOK_BYTES>()?;
    let kind = Kind::from_mark([look[0], look[1], look[2]])?;
    // Valgrind pads addresses to eight digits.
    let mut address = u64::from(eight_digits(look)?);
    let mut at = 11;
    while at < 3 + ADDRESS_DIGITS_MAX {
        let digit = lower_hex(look[at]);
        if digit > 15 {
            break;
        }
        address = address << 4 | u64::from(digit);
        at += 1;
    }
    let mut is_usual = at == 11 || look[3] != b'0';
    let mut size = 0;
    if look[at] == b',' {
        let digit = look[at + 1].wrapping_sub(b'0');
        if digit > 9 || kind as u8 == Kind::Block as u8 {
            return None;
        }
        size = u16::from(digit);
        at += 2;
        // Valgrind only writes sizes of up to three digits.
        for _ in 0..2 {
            let digit = look[at].wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            is_usual &= size != 0;
            size = size * 10 + u16::from(digit);
            at += 1;
        }
    } else if kind as u8 != Kind::Block as u8 {
        return None;
    }
    if look[at] != b'\n' {
        return None;
    }
    let text = window.get(..=at)?;
    Some((Record { kind, address, size, text, is_usual }, at + 1))
}

/// The value of a lower-case hex digit; more than 15 for anything else.
#[inline(always)]
fn lower_hex(byte: u8) -> u8 {
    let digit = byte.wrapping_sub(b'0');
    let letter = byte.wrapping_sub(b'a');
    if digit < 10 {
        digit
    } else if letter < 6 {
        letter + 10
    } else {
        u8::MAX
    }
}

/// The value of the eight lower-case hex digits after the mark, all at once.
#[inline(always)]
fn eight_digits(look: &[u8; LOOK_BYTES]) -> Option<u32> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let digits = u64::from_le_bytes([look[3], look[4], look[5], look[6], look[7], look[8], look[9], look[10]]);
    // 1 in each byte that is a letter: bit 6 distinguishes 0x61 to 0x66 from 0x30 to 0x39.
    let letters = digits >> 6 & ONES;
    let low = digits & (ONES * 15);
    let is_high_right = digits & (ONES * 0xf0) == ONES * 0x30 + letters * 0x30;
    // A digit's low half is at most 9, a letter's 1 to 6: adding 6 or 9 must not carry into bit 4.
    let values = low + letters * 9;
    let carries = (values + (letters ^ ONES) * 6) & (ONES * 16);
    // A letter of low half 0 would be a value of 9.
    let zeros = letters & !(low + ONES * 15) >> 4;
    if !is_high_right || carries != 0 || zeros != 0 {
        return None;
    }
    // The first digit is in the lowest byte: pairs, then fours, then all eight.
    let pairs = (values << 4 | values >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs << 8 | pairs >> 16) & 0x0000_ffff_0000_ffff;
    Some((fours << 16 | fours >> 32) as u32)
}

/// Kind, address and size of a line without its line end, in any spelling: any number of blanks, digits of either case,
/// a carriage return at the end.
pub(crate) fn read_line(text: &[u8]) -> Result<Fields, Fault> {
    let line = text.strip_suffix(b"\r").unwrap_or(text);
    let start = blanks(line, 0);
    let (kind, after) = match line.get(start..) {
        Some([b'S', b'B', ..]) => (Kind::Block, start + 2),
        Some([b'I', ..]) => (Kind::Fetch, start + 1),
        Some([b'L', ..]) => (Kind::Read, start + 1),
        Some([b'S', ..]) => (Kind::Write, start + 1),
        Some([b'M', ..]) => (Kind::Modify, start + 1),
        _ => return Err(unlike(line)),
    };
    let address_at = blanks(line, after);
    let has_mark = line.starts_with(kind.mark());
    let fields = match address_at > after {
        true => fields(line, address_at, kind),
        false => Err(fault("kind", "a blank after it", after)),
    };
    let read = |(address, size)| {
        let is_usual = has_mark && line.len() == text.len() && is_usual(&line[3..]);
        Fields { kind, address, size, is_usual }
    };
    fields.map(read).map_err(|fault| {
        let has_digit = line.get(address_at).is_some_and(u8::is_ascii_hexdigit);
        // "SB " may begin a sentence; the other marks do not.
        if has_mark && (kind != Kind::Block || has_digit) || resembles(line) {
            Fault::Damaged(fault)
        } else {
            Fault::Other
        }
    })
}

/// True for an address, and a size if there is one, as Valgrind writes them.
fn is_usual(text: &[u8]) -> bool {
    let mut parts = text.split(|byte| *byte == b',');
    let (address, size) = (parts.next().unwrap_or_default(), parts.next().unwrap_or(b"0"));
    let is_padded = address.len() == 8 || address.len() > 8 && address.first() != Some(&b'0');
    let has_lower = address.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_padded && has_lower && (size.len() == 1 || size.first() != Some(&b'0'))
}

fn fault(field: &'static str, expected: &'static str, at: usize) -> FieldFault {
    FieldFault { field, expected, at }
}

/// The end of the blanks that begin at `from`.
fn blanks(line: &[u8], from: usize) -> usize {
    let rest = line.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Address and size after the mark.
fn fields(line: &[u8], from: usize, kind: Kind) -> Result<(u64, u16), FieldFault> {
    let rest = line.get(from..).unwrap_or_default();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    if digits == 0 {
        return Err(fault("address", "hex digits", from));
    }
    if digits > ADDRESS_DIGITS_MAX {
        return Err(fault("address", "at most 16 hex digits", from));
    }
    let address = rest.iter().take(digits).fold(0, |value, byte| value << 4 | u64::from(hex_value(*byte)));
    let at = from + digits;
    if kind == Kind::Block {
        return if at == line.len() { Ok((address, 0)) } else { Err(fault("line end", "the end of the line", at)) };
    }
    if line.get(at) != Some(&b',') {
        return Err(fault("address", "a hex digit or a comma", at));
    }
    let size = line.get(at + 1..).unwrap_or_default();
    match size.iter().position(|byte| !byte.is_ascii_digit()) {
        Some(0) => return Err(fault("size", "decimal digits", at + 1)),
        Some(more) => return Err(fault("line end", "the end of the line", at + 1 + more)),
        None => {}
    }
    let size = std::str::from_utf8(size).ok().filter(|digits| digits.len() <= 5).and_then(|digits| digits.parse().ok());
    size.map(|size| (address, size)).ok_or(fault("size", "1 to 65535", at + 1))
}

/// The value of a hex digit of either case; 0 for anything else.
fn hex_value(byte: u8) -> u8 {
    char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok()).unwrap_or(0)
}

/// A line that begins with no mark: a record that lost its beginning, or not a record.
fn unlike(line: &[u8]) -> Fault {
    if resembles(line) { Fault::Damaged(fault("kind", "I, L, S, M or SB", blanks(line, 0))) } else { Fault::Other }
}

/// Longest line that may be a damaged record.
const DAMAGED_BYTES_MAX: usize = 40;

/// True for a line that would be a record except for one byte or for its beginning: six hex digits or more in a row,
/// and all bytes but one occur in records.
fn resembles(line: &[u8]) -> bool {
    if line.len() > DAMAGED_BYTES_MAX {
        return false;
    }
    let is_strange = |byte: &&u8| !byte.is_ascii_hexdigit() && !matches!(byte, b'I' | b'L' | b'S' | b'M' | b',' | b' ');
    let has_digits = line.split(|byte| !byte.is_ascii_hexdigit()).any(|run| run.len() >= 6);
    let is_torn = line.first() == Some(&b',') && line.len() > 1 && line[1..].iter().all(u8::is_ascii_digit);
    is_torn || has_digits && line.contains(&b',') && line.iter().filter(is_strange).count() <= 1
}

/// True for the beginning of a record as Valgrind spells it, cut anywhere before its end.
pub(crate) fn is_cut(line: &[u8]) -> bool {
    let Some(mark) = line.first_chunk::<3>() else {
        return !line.is_empty() && Kind::ALL.iter().any(|kind| kind.mark().starts_with(line));
    };
    let Some(kind) = Kind::from_mark(*mark) else { return false };
    let rest = &line[3..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    digits <= ADDRESS_DIGITS_MAX && (digits == rest.len() || rest[digits..] == *b"," && kind != Kind::Block)
}

/// The start of a record as Valgrind spells it after other text on the same line, which is given without its line end:
/// text that a program wrote without a line end leads to such lines.
pub(crate) fn record_behind_text(line: &[u8]) -> Option<usize> {
    let digits_from = |end: usize, is_digit: fn(&u8) -> bool| {
        let count = line.get(..end).unwrap_or_default().iter().rev().take_while(|byte| is_digit(byte)).count();
        end - count
    };
    let size_at = digits_from(line.len(), u8::is_ascii_digit);
    let (address_end, is_block) = match size_at.checked_sub(1) {
        Some(comma) if line.get(comma) == Some(&b',') && (1..=3).contains(&(line.len() - size_at)) => (comma, false),
        _ => (line.len(), true),
    };
    let address_at = digits_from(address_end, |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let start = address_at.checked_sub(3).filter(|start| *start > 0)?;
    let kind = Kind::from_mark(*line.get(start..)?.first_chunk::<3>()?)?;
    let digits = address_end - address_at;
    (kind == Kind::Block && is_block || kind != Kind::Block && !is_block).then_some(())?;
    (8..=ADDRESS_DIGITS_MAX).contains(&digits).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(Kind, u64, u16, bool), Need> {
        let mut window = line.as_bytes().to_vec();
        window.push(b'\n');
        let short = parse(&window, &Layout::default()).map(|(record, used)| {
            assert_eq!((used, record.text), (window.len(), &window[..]));
            (record.kind, record.address, record.size, record.is_usual)
        });
        // With more bytes after the line the fast path may be taken, and must give the same result.
        let mut long = window.clone();
        long.extend([b'.'; 40]);
        let fast = parse(&long, &Layout::default()).map(|(record, used)| {
            assert_eq!((used, record.text), (window.len(), &window[..]));
            (record.kind, record.address, record.size, record.is_usual)
        });
        assert_eq!(fast, short, "{line:?}");
        short
    }

    fn bad(line: &str) -> (&'static str, usize) {
        match read(line) {
            Err(Need::Bad(Fault::Damaged(fault))) => (fault.field, fault.at),
            other => panic!("{line:?}: {other:?}"),
        }
    }

    #[test]
    fn records_as_valgrind_spells_them() {
        assert_eq!(read("I  0401ab70,3"), Ok((Kind::Fetch, 0x0401_ab70, 3, true)));
        assert_eq!(read(" L 1fff000698,8"), Ok((Kind::Read, 0x1f_ff00_0698, 8, true)));
        assert_eq!(read(" S ffffffffffffffff,512"), Ok((Kind::Write, u64::MAX, 512, true)));
        assert_eq!(read(" M 00000000,0"), Ok((Kind::Modify, 0, 0, true)));
        assert_eq!(read("SB 0401ab70"), Ok((Kind::Block, 0x0401_ab70, 0, true)));
    }

    #[test]
    fn other_spellings_are_read_too() {
        for line in [" S BE80199C,4", "S be80199c,4", "S\tbe80199c,4\r", "   S  be80199c,00004", " S 0be80199C,4"] {
            assert_eq!(read(line), Ok((Kind::Write, 0xbe80_199c, 4, false)), "{line:?}");
        }
        assert_eq!(read(" L 10,1"), Ok((Kind::Read, 16, 1, false)));
        assert_eq!(read(" L 00000010,65535"), Ok((Kind::Read, 16, 65535, true)));
        assert_eq!(read(" L 00000010,08"), Ok((Kind::Read, 16, 8, false)));
        assert_eq!(read(" L 0000000010,8"), Ok((Kind::Read, 16, 8, false)));
    }

    #[test]
    fn a_damaged_record_is_distinguished_from_text() {
        assert_eq!(bad("I  ,3"), ("address", 3));
        assert_eq!(bad("I  0401ab7x,3"), ("address", 10));
        assert_eq!(bad(" L 1fff000698 8"), ("address", 13));
        assert_eq!(bad(" L 1fff000698,"), ("size", 14));
        assert_eq!(bad(" L 1fff000698,8x"), ("line end", 15));
        assert_eq!(bad(" L 1fff000698,65536"), ("size", 14));
        assert_eq!(bad(" L 00000000000000000,8"), ("address", 3));
        assert_eq!(bad("SB 0401ab70,3"), ("line end", 11));
        assert_eq!(bad("H  0401ab70,3"), ("kind", 0));
        assert_eq!(bad("0401ab70,3"), ("kind", 0));
        assert_eq!(bad(",1"), ("kind", 0));
        assert_eq!(bad("I0401ab70,3"), ("kind", 1));
        for line in ["", "I am", "IL", "SB is a block", "Size 3", "10,20", "Mon 12,3", "==1== x", " ", ","] {
            assert_eq!(read(line), Err(Need::Bad(Fault::Other)), "{line:?}");
        }
    }

    #[test]
    fn the_fast_and_the_slow_path_agree_on_every_byte_in_every_place() {
        for line in ["I  0401ab70,3", " L 1fff000698,16", "SB 0401ab70"] {
            for at in 0..line.len() {
                for byte in (0..=u8::MAX).filter(|byte| *byte != b'\n') {
                    let mut changed = line.as_bytes().to_vec();
                    changed[at] = byte;
                    let slow = read_line(&changed).map(|f| (f.kind, f.address, f.size, f.is_usual));
                    changed.push(b'\n');
                    changed.extend([0; 40]);
                    let fast =
                        parse(&changed, &Layout::default()).map(|(r, _)| (r.kind, r.address, r.size, r.is_usual));
                    assert_eq!(fast, slow.map_err(Need::Bad), "{line:?} with {byte:#x} at {at}");
                }
            }
        }
    }

    #[test]
    fn a_cut_record_is_known() {
        for line in ["I  0401ab70,3", " L 1fff000698,8", "SB 0401ab70"] {
            for end in 1..line.len() {
                let is_complete = read_line(&line.as_bytes()[..end]).is_ok();
                assert!(is_cut(&line.as_bytes()[..end]) || is_complete, "{}", &line[..end]);
            }
        }
        for line in ["", "x", "==", "I x", "I  0401x", "I  0401ab70,3x", "SB 0401ab70,"] {
            assert!(!is_cut(line.as_bytes()), "{line:?}");
        }
    }

    #[test]
    fn a_record_behind_text_is_found() {
        assert_eq!(record_behind_text(b"helloI  0401ab70,3"), Some(5));
        assert_eq!(record_behind_text(b"50% L 1fff000698,8"), Some(3));
        assert_eq!(record_behind_text(b".SB 0401ab70"), Some(1));
        for line in
            [&b"I  0401ab70,3"[..], b"xI  0401ab7,3", b"xI  0401ab70", b"xSB 0401ab70,3", b"x", b"", b",3", b"a,3"]
        {
            assert_eq!(record_behind_text(line), None, "{line:?}");
        }
    }
}
