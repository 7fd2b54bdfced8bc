use super::*;

fn describe(memory: &mut Memory, address: u64, size: u64) -> String {
    let pieces = memory.pieces(word_range(address, size));
    let shown = pieces.iter().map(|piece| match *piece {
        Piece::Page { from, to, .. } => format!("page {from}..{to}"),
        Piece::Filled { first, end, value } => format!("filled {first}..{end}={value}"),
        Piece::Unknown { first_word, end_word } => format!("unknown {first_word}..{end_word}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_long_range_costs_no_pages_until_it_is_used() {
    let mut memory = Memory::default();
    let (first, end) = word_range(0x1008, 1 << 50);
    memory.initialise_unknown(first, end);
    assert_eq!(memory.pages.len(), 2);
    assert_eq!(memory.peek_value(1 << 40), Some(0));
    assert_eq!(memory.peek_value(0x1000), None);
    memory.find(1 << 40).unwrap();
    assert_eq!(memory.pages.len(), 3);
    let number = (1_u64 << 40) / PAGE_BYTES;
    let shown = describe(&mut memory, (number - 1) * PAGE_BYTES, 3 * PAGE_BYTES);
    let around = (number - 1, number, number + 1, number + 2);
    assert_eq!(shown, format!("filled {}..{}=0, page 0..512, filled {}..{}=0", around.0, around.1, around.2, around.3));
    memory.fill(number - 1, number, 7);
    assert_eq!(memory.peek_value((number - 1) * PAGE_BYTES), Some(7));
    assert_eq!(memory.page_count(), (1 << 38) + 1);
    memory.forget(number + 1, number + 2);
    assert_eq!(memory.page_count(), 1 << 38);
    assert_eq!(memory.peek_value((number + 1) * PAGE_BYTES), None);
    assert_eq!(memory.peek_value((number + 2) * PAGE_BYTES), Some(0));
}

#[test]
fn released_pages_are_used_again() {
    let mut memory = Memory::default();
    let (one, two) = (memory.make(0x1000).unwrap(), memory.make(0x2000).unwrap());
    memory.release(one);
    assert_eq!((memory.find(0x1000), memory.find(0x2000), memory.page_count()), (None, Some(two), 1));
    memory.release(one);
    assert_eq!(memory.make(0x5008), Some(one));
    assert_eq!((memory.find(0x5ff8), memory.pages.len(), memory.page_count()), (Some(one), 2, 2));
    memory.make(0x1000);
    assert_eq!(memory.pages.len(), 3);
}

#[test]
fn a_long_range_has_no_part_in_a_place_that_was_released() {
    let mut memory = Memory::default();
    let (one, two) = (memory.make(0x1000).unwrap(), memory.make(0x2000).unwrap());
    memory.release(one);
    memory.release(two);
    assert_eq!(memory.make(0x1000), Some(two));
    assert_eq!(describe(&mut memory, 0x1008, 1 << 30), "page 1..512, unknown 1024..134218241");
    assert_eq!(
        describe(&mut memory, 1 << 63, (1 << 63) - 8),
        format!("unknown {}..{}", 1_u64 << 60, (1_u64 << 61) - 1)
    );
    assert_eq!(memory.part_of_page(word_range(0x1008, 0x10)), Some((two, 1, 3)));
    assert_eq!(memory.part_of_page(word_range(0x1008, 0x1000)), None);
    assert_eq!(memory.part_of_page(word_range(0x2000, 0x1000)), None);
    assert_eq!(memory.part_of_page(word_range(0x1000, 0)), None);
}

#[test]
fn the_page_above_is_the_one_of_the_address() {
    let mut memory = Memory::default();
    let (root, table) = (memory.make(0x1000).unwrap(), memory.make(0x2000).unwrap());
    assert_eq!((memory.page_above(table, 0x1008), memory.page_above(table, 0x1010)), (Some(root), Some(root)));
    assert_eq!(memory.page_above(table, 0x9000), None);
    memory.release(root);
    assert_eq!(memory.page_above(table, 0x1008), None);
    assert_eq!(memory.make(0x5000), Some(root));
    assert_eq!((memory.page_above(table, 0x1008), memory.page_above(table, 0x5008)), (None, Some(root)));
}

#[test]
fn pieces_come_in_order_and_cover_the_range() {
    let mut memory = Memory::default();
    memory.make(0x3000);
    memory.make(0x1000);
    assert_eq!(describe(&mut memory, 0x1ff8, 0x1010), "page 511..512, unknown 1024..1536, page 0..1");
    assert_eq!(describe(&mut memory, 0x9000, 0), "");
    assert_eq!(describe(&mut memory, u64::MAX - 7, 16), "");
}

#[test]
fn neighbors_of_the_same_value_are_one_range() {
    let mut memory = Memory::default();
    for page in [5, 3, 4, 9] {
        memory.initialise_unknown(512 * page, 512 * (page + 1));
    }
    assert_eq!(memory.spans().collect::<Vec<_>>(), [(3, 6, 0), (9, 10, 0)]);
    memory.fill(4, 5, 1);
    assert_eq!(memory.spans().collect::<Vec<_>>(), [(3, 4, 0), (4, 5, 1), (5, 6, 0), (9, 10, 0)]);
    assert_eq!((memory.page_count(), memory.pages.len()), (4, 0));
}

#[test]
fn unaligned_ranges_cover_the_words_the_model_steps_over() {
    assert_eq!(word_range(0x1004, 8), (0x200, 0x201));
    assert_eq!(word_range(0x1004, 9), (0x200, 0x202));
}
