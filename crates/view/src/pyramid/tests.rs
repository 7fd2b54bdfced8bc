use proptest::prelude::*;

use super::*;

/// Slices from gaps and lengths.
fn slices(parts: &[(u64, u64, u32)]) -> Vec<Slice> {
    let mut last = 0;
    let slice = |&(gap, length, name): &(u64, u64, u32)| {
        let start = last + gap;
        last = start + length;
        Slice { start, end: last, inner: length / 3, name, flags: u8::try_from(name % 4).unwrap() }
    };
    parts.iter().map(slice).collect()
}

fn row(slices: &[Slice], blobs: &mut Blobs) -> Row {
    let mut row = Row::default();
    slices.iter().for_each(|slice| row.push(*slice, blobs).unwrap());
    row
}

/// The slices as they come back from their bytes.
fn recoded(slices: &[Slice]) -> Vec<Slice> {
    let (mut bytes, mut back, mut last) = (Vec::new(), Vec::new(), 0);
    for slice in slices {
        codec::push(slice, last, &mut bytes);
        last = slice.end;
    }
    codec::decode(&bytes, &mut back);
    back
}

fn parts() -> impl Strategy<Value = Vec<(u64, u64, u32)>> {
    let gap = prop_oneof![4 => 0..3_u64, 2 => 0..200_u64, 1 => 0..100_000_u64];
    let length = prop_oneof![4 => 0..4_u64, 2 => 0..300_u64, 1 => 0..50_000_u64];
    prop::collection::vec((gap, length, 0..9_u32), 0..6_000)
}

/// Compares what is drawn with the slices themselves.
fn assert_items(slices: &[Slice], window: Window, pixel: u64, found: &[Item]) {
    let seen: Vec<&Slice> =
        slices.iter().filter(|slice| slice.end >= window.start && slice.start <= window.end).collect();
    // Every slice of the window is in one item, in order; an entry may go on behind the window.
    let mut rest = slices.iter().skip_while(|slice| slice.end < window.start);
    let mut drawn = 0;
    for item in found {
        let own: Vec<&Slice> = rest.by_ref().take(usize::try_from(item.count).unwrap()).collect();
        let (first, last) = (own.first().unwrap(), own.last().unwrap());
        assert_eq!((item.start, item.end), (first.start, last.end));
        assert_eq!(item.busy, own.iter().map(|slice| slice.length()).sum::<u64>());
        let longest = own.iter().map(|slice| slice.length()).max().unwrap();
        assert_eq!(own.iter().find(|slice| slice.length() == longest).unwrap().name, item.longest_name);
        if item.count == 1 {
            assert_eq!((item.name, item.flags), (first.name, first.flags));
        } else {
            assert_eq!(item.name, NO_NAME);
            assert!(item.end - item.start <= pixel, "a run is no longer than a pixel");
        }
        drawn += own.len();
    }
    assert!(drawn >= seen.len(), "{drawn} of {} slices", seen.len());
    assert!(found.windows(2).all(|pair| pair[1].end - pair[0].start > pixel), "two items are longer than a pixel");
    assert!(found.last().is_none_or(|item| item.start <= window.end));
}

#[test]
fn runs_of_instants_are_instants() {
    let mut blobs = Blobs::default();
    let mut row = Row::default();
    for time in 0..5000 {
        row.push(Slice { start: time, end: time, flags: INSTANT, ..Slice::default() }, &mut blobs).unwrap();
    }
    for pixel in [0, 3, 700] {
        let (mut found, window) = (Vec::new(), Window { start: 0, end: u64::MAX });
        items((&row, INSTANT), &blobs, window, pixel, &mut found).unwrap();
        assert_eq!(found.iter().map(|item| item.count).sum::<u64>(), 5000);
        assert!(found.iter().all(|item| item.flags == INSTANT), "{pixel}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn windows_are_those_of_a_list(
        parts in parts(),
        places in prop::collection::vec((0.0..1.1_f64, 0.0..1.0_f64, 1..3000_u64), 12),
    ) {
        let slices = slices(&parts);
        // Two segments stay in memory, the rest goes to the file.
        let mut blobs = Blobs::with_memory_segments(1);
        let row = row(&slices, &mut blobs);
        prop_assert_eq!(row.len(), slices.len());
        let range = slices.last().map_or(0, |slice| slice.end);
        for (at, width, pixels) in places {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            let (start, width) = ((range as f64 * at) as u64, (range as f64 * width * width * width) as u64);
            let window = Window { start, end: start + width };
            let mut found = Vec::new();
            items((&row, 0), &blobs, window, width / pixels, &mut found).unwrap();
            assert_items(&slices, window, width / pixels, &found);
            let mut reader = Reader::new(&row, &blobs);
            let begins = |time: u64| slices.iter().position(|slice| slice.start >= time).unwrap_or(slices.len());
            prop_assert_eq!(reader.beginning_in(window).unwrap(), begins(start)..begins(window.end));
            let ends = slices.iter().position(|slice| slice.end >= start).unwrap_or(slices.len());
            prop_assert_eq!(reader.first_ending(start).unwrap(), ends);
        }
    }

    #[test]
    fn an_outline_has_every_slice_once(parts in parts()) {
        let slices = slices(&parts);
        let row = row(&slices, &mut Blobs::default());
        let (mut bytes, names) = (Bytes::default(), [10, 11, 12, 13, 14, 15, 16, 17, 18]);
        row.outline(&mut bytes);
        let mut from = Outline(&bytes.0);
        let back = Row::of_outline(&mut from, &names).unwrap();
        prop_assert!(from.0.is_empty());
        prop_assert_eq!((back.len(), &back.last_end), (row.len(), &row.last_end));
        for pixel in [0, 100, u64::MAX] {
            let (mut found, window) = (Vec::new(), Window { start: 0, end: u64::MAX });
            items((&back, 0), &Blobs::default(), window, pixel, &mut found).unwrap();
            prop_assert_eq!(found.iter().map(|item| item.count).sum::<u64>(), slices.len() as u64);
            prop_assert_eq!(
                found.iter().map(|item| item.busy).sum::<u64>(),
                slices.iter().map(Slice::length).sum::<u64>()
            );
            prop_assert!(found.iter().all(|item| names.contains(&item.longest_name)));
        }
        for length in 0..bytes.0.len().min(40) {
            prop_assert!(Row::of_outline(&mut Outline(&bytes.0[..length]), &names).is_none());
        }
    }

    #[test]
    fn slices_come_back_as_they_were(parts in parts()) {
        let slices = slices(&parts);
        prop_assert_eq!(recoded(&slices), slices);
    }
}

#[test]
fn groups_that_do_not_fit_in_memory_are_read_from_the_file() {
    let parts: Vec<_> = (0..700_000_u64).map(|n| (n % 300, n % 70_000, 7)).collect();
    let slices = slices(&parts);
    let mut blobs = Blobs::with_memory_segments(1);
    let row = row(&slices, &mut blobs);
    let (memory, file) = blobs.size();
    assert!(memory <= 1 << 20 && file >= 2 << 20, "{memory} {file}");
    let mut reader = Reader::new(&row, &blobs);
    for at in (0..slices.len()).step_by(997) {
        assert_eq!(reader.get(at).unwrap(), slices.get(at).copied());
    }
    assert_eq!(reader.get(slices.len()).unwrap(), None);
}

#[test]
fn extreme_values_are_stored() {
    let slices = [
        Slice { start: 0, end: u64::MAX, inner: u64::MAX, name: u32::MAX, flags: INSTANT },
        Slice { start: u64::MAX, end: u64::MAX, inner: 0, name: 0, flags: 0 },
    ];
    assert_eq!(recoded(&slices), slices);
}

#[test]
fn a_slice_that_goes_back_in_time_begins_where_the_last_ended() {
    let back: Vec<_> = [(5, 9), (3, 4), (8, 20)].map(|(start, end)| Slice { start, end, ..Slice::default() }).to_vec();
    let mut blobs = Blobs::default();
    let row = row(&back, &mut blobs);
    let slices = Reader::new(&row, &blobs).from(0).unwrap().to_vec();
    let times: Vec<_> = slices.iter().map(|slice| (slice.start, slice.end)).collect();
    assert_eq!(times, [(5, 9), (9, 9), (9, 20)]);
}
