//! Bytes to records: pure, without I/O or allocation.

use anytrace_core::Endian;
use anytrace_core::bytes::array_at;

use crate::wire::record::{Body, Kind, Layout, Record, Tag, Width};

/// Why there is no record at the start of a window: more bytes are needed, or its first byte is not a known tag.
pub type Need = anytrace_core::Need<Fault>;

/// What is wrong with bytes that are not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The first byte: its base tag is not known.
    pub tag: Tag,
}

/// Parses the record at the start of a window; returns it and its length in bytes.
///
/// ```
/// use anytrace_cacheray::{Body, Fault, Layout, Need, Tag, parse};
///
/// let bytes = [1, 0, 0x10, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0];
/// let (record, used) = parse(&bytes, &Layout::default()).expect("a write of 4 bytes");
/// assert_eq!((record.address, record.body, used), (0x1000, Body::Access { size: 4 }, 18));
/// assert_eq!(parse(&bytes[..9], &Layout::default()), Err(Need::More(18)));
/// assert_eq!(parse(&[0x74], &Layout::default()), Err(Need::Bad(Fault { tag: Tag(0x74) })));
/// ```
///
/// # Errors
/// [`anytrace_core::Need::More`] with an empty or short window, [`anytrace_core::Need::Bad`] for an unknown base tag.
pub fn parse<'a>(window: &'a [u8], layout: &Layout) -> Result<(Record<'a>, usize), Need> {
    parse_record(window, *layout)
}

/// [`parse`], for the loops of this crate.
pub(crate) fn parse_record(window: &[u8], layout: Layout) -> Result<(Record<'_>, usize), Need> {
    let Some(&first) = window.first() else { return Err(Need::More(1)) };
    let tag = Tag(first);
    match tag.kind() {
        Some(Kind::Read | Kind::Write) => parse_access(window, layout, tag).ok_or(more(layout.access_bytes())),
        Some(Kind::RttaRemove) => parse_remove(window, layout, tag).ok_or(more(layout.remove_bytes())),
        Some(Kind::RttaAdd) => parse_add(window, layout, tag),
        None => Err(Need::Bad(Fault { tag })),
    }
}

/// Reads the record at the start of a window as one of `kind`, whatever its tag.
pub(crate) fn parse_as(window: &[u8], layout: Layout, kind: Kind) -> Option<(Record<'_>, usize)> {
    let tag = Tag(kind.base());
    match kind {
        Kind::Read | Kind::Write => parse_access(window, layout, tag),
        Kind::RttaRemove => parse_remove(window, layout, tag),
        Kind::RttaAdd => parse_add(window, layout, tag).ok(),
    }
}

fn more(bytes: usize) -> Need {
    Need::More(bytes as u64)
}

fn address_at(window: &[u8], layout: Layout) -> Option<u64> {
    match layout.width {
        Width::Eight => array_at::<8>(window, 1).map(|bytes| layout.endian.u64(bytes)),
        Width::Four => array_at::<4>(window, 1).map(|bytes| u64::from(layout.endian.u32(bytes))),
    }
}

fn u32_at(window: &[u8], at: usize, endian: Endian) -> Option<u32> {
    array_at::<4>(window, at).map(|bytes| endian.u32(bytes))
}

fn u64_at(window: &[u8], at: usize, endian: Endian) -> Option<u64> {
    array_at::<8>(window, at).map(|bytes| endian.u64(bytes))
}

fn parse_access(window: &[u8], layout: Layout, tag: Tag) -> Option<(Record<'_>, usize)> {
    let width = layout.width.bytes();
    let address = address_at(window, layout)?;
    let size = *window.get(1 + width)?;
    let thread = u64_at(window, 2 + width, layout.endian)?;
    Some((Record { tag, address, thread, body: Body::Access { size } }, layout.access_bytes()))
}

fn parse_remove(window: &[u8], layout: Layout, tag: Tag) -> Option<(Record<'_>, usize)> {
    let address = address_at(window, layout)?;
    let thread = u64_at(window, 1 + layout.width.bytes(), layout.endian)?;
    Some((Record { tag, address, thread, body: Body::Remove }, layout.remove_bytes()))
}

fn parse_add(window: &[u8], layout: Layout, tag: Tag) -> Result<(Record<'_>, usize), Need> {
    let header = layout.add_bytes();
    let (record, name_bytes) = parse_add_header(window, layout, tag).ok_or(more(header))?;
    let total = header as u64 + u64::from(name_bytes);
    let end = usize::try_from(total).map_err(|_| Need::More(total))?;
    let name = window.get(header..end).ok_or(Need::More(total))?;
    let Body::Add { elemsize, elemcount, .. } = record.body else { return Err(Need::More(total)) };
    Ok((Record { body: Body::Add { elemsize, elemcount, name }, ..record }, end))
}

/// An add without its name, and the name's length.
fn parse_add_header(window: &[u8], layout: Layout, tag: Tag) -> Option<(Record<'static>, u32)> {
    let after = 1 + layout.width.bytes();
    let address = address_at(window, layout)?;
    let thread = u64_at(window, after, layout.endian)?;
    let elemsize = u32_at(window, after + 8, layout.endian)?;
    let elemcount = u32_at(window, after + 12, layout.endian)?;
    let name_bytes = u32_at(window, after + 16, layout.endian)?;
    Some((Record { tag, address, thread, body: Body::Add { elemsize, elemcount, name: &[] } }, name_bytes))
}

/// How many tags [`access_run`] tests at once.
const TAGS_AT_ONCE: usize = 16;

/// Bits that no tag of an access has.
pub(crate) const NOT_ACCESS: u8 = !(Tag::FLAGS | 1);

/// The length of the run of complete accesses at the start of a window.
///
/// Several tags are tested at once: all other bits than flags and the lowest must be clear.
#[inline]
pub(crate) fn access_run<const STRIDE: usize>(window: &[u8]) -> usize {
    let (records, _) = window.as_chunks::<STRIDE>();
    let mut tested = 0;
    for block in records.as_chunks::<TAGS_AT_ONCE>().0 {
        if block.iter().fold(0, |tags, record| tags | record[0]) & NOT_ACCESS != 0 {
            break;
        }
        tested += TAGS_AT_ONCE;
    }
    let rest = records.get(tested..).unwrap_or_default();
    let more = rest.iter().take_while(|record| record[0] & NOT_ACCESS == 0).count();
    (tested + more) * STRIDE
}

/// The fields of the access in `bytes`, which holds exactly one: the hot loops' decoder.
#[inline(always)]
pub(crate) fn access<const STRIDE: usize, const BIG: bool>(bytes: &[u8; STRIDE]) -> (u8, u64, u8, u64) {
    let endian = if BIG { Endian::Big } else { Endian::Little };
    let width = STRIDE - 10;
    let address = if STRIDE == 18 {
        array_at::<8>(bytes, 1).map_or(0, |b| endian.u64(b))
    } else {
        array_at::<4>(bytes, 1).map_or(0, |b| u64::from(endian.u32(b)))
    };
    let thread = array_at::<8>(bytes, 2 + width).map_or(0, |b| endian.u64(b));
    (bytes[0], address, bytes[1 + width], thread)
}

/// Calls `$function::<STRIDE, BIG>` for the layout.
macro_rules! with_layout {
    ($layout:expr, $function:ident, $($argument:expr),* $(,)?) => {
        match ($layout.width, $layout.endian) {
            ($crate::wire::record::Width::Eight, anytrace_core::Endian::Little) => $function::<18, false>($($argument),*),
            ($crate::wire::record::Width::Eight, anytrace_core::Endian::Big) => $function::<18, true>($($argument),*),
            ($crate::wire::record::Width::Four, anytrace_core::Endian::Little) => $function::<14, false>($($argument),*),
            ($crate::wire::record::Width::Four, anytrace_core::Endian::Big) => $function::<14, true>($($argument),*),
        }
    };
}
pub(crate) use with_layout;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_says_how_much_it_needs_and_reads_when_it_is_there() {
        for layout in Layout::ALL {
            for (tag, length) in [(0_u8, layout.access_bytes()), (3, layout.remove_bytes()), (2, layout.add_bytes())] {
                let mut bytes = vec![0; length];
                bytes[0] = tag;
                assert_eq!(parse_record(&bytes, layout).unwrap().1, length);
                assert_eq!(parse_record(&bytes[..length - 1], layout), Err(more(length)));
            }
        }
        assert_eq!(parse_record(&[], Layout::default()), Err(Need::More(1)));
        assert_eq!(parse_record(&[0x74], Layout::default()), Err(Need::Bad(Fault { tag: Tag(0x74) })));
    }

    #[test]
    fn a_name_of_4_gib_asks_for_more_and_allocates_nothing() {
        let mut bytes = vec![2; 40];
        bytes[25..29].fill(0xff);
        assert_eq!(parse_record(&bytes, Layout::default()), Err(Need::More(29 + u64::from(u32::MAX))));
    }

    #[test]
    fn a_run_ends_at_the_first_record_that_is_no_access() {
        for accesses in 0..20 {
            let mut bytes = vec![0; accesses * 18];
            assert_eq!(access_run::<18>(&bytes), accesses * 18);
            bytes.extend([3; 30]);
            assert_eq!(access_run::<18>(&bytes), accesses * 18);
        }
    }

    #[test]
    fn the_fast_decoder_and_the_parser_agree() {
        let bytes: Vec<u8> = (1..=18).map(|n| if n == 1 { 0xc1 } else { n * 13 }).collect();
        let wide: [u8; 18] = bytes.clone().try_into().unwrap();
        let narrow: [u8; 14] = bytes[..14].try_into().unwrap();
        for (layout, got) in [
            (Layout::ALL[0], access::<18, false>(&wide)),
            (Layout::ALL[1], access::<18, true>(&wide)),
            (Layout::ALL[2], access::<14, false>(&narrow)),
            (Layout::ALL[3], access::<14, true>(&narrow)),
        ] {
            let (record, _) = parse_record(&bytes, layout).unwrap();
            let Body::Access { size } = record.body else { panic!("an access") };
            assert_eq!((record.tag.0, record.address, size, record.thread), got);
        }
    }
}
