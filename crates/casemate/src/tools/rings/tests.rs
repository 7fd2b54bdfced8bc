//! Rings made by hand, from the layout that the header documents.

use std::cell::{Cell, RefCell};

use anytrace_core::Collect;

use super::*;

/// Memory in the making; every store is labelled by the field that it is.
struct Image {
    bytes: RefCell<Vec<u8>>,
    is_big: bool,
    ring_bytes: usize,
}

impl Memory for &Image {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(offset).unwrap();
        let all = self.bytes.borrow();
        let part = all.get(from..).and_then(|rest| rest.get(..bytes.len())).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(part);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let from = usize::try_from(offset).unwrap();
        self.bytes.borrow_mut()[from..from + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn length_bytes(&self) -> io::Result<Option<u64>> {
        Ok(Some(self.bytes.borrow().len() as u64))
    }
}

impl Image {
    fn new(is_big: bool, rings: usize, ring_bytes: usize) -> Self {
        let bytes = RefCell::new(vec![0; 192 + rings * (128 + ring_bytes)]);
        let image = Self { bytes, is_big, ring_bytes };
        image.put(0, 0x3145_4341_5254_4d43);
        image.put4(8, rings as u32);
        image.put4(12, ring_bytes as u32);
        image
    }

    fn put(&self, at: usize, number: u64) {
        let bytes = if self.is_big { number.to_be_bytes() } else { number.to_le_bytes() };
        self.bytes.borrow_mut()[at..at + 8].copy_from_slice(&bytes);
    }

    fn put4(&self, at: usize, number: u32) {
        let bytes = if self.is_big { number.to_be_bytes() } else { number.to_le_bytes() };
        self.bytes.borrow_mut()[at..at + 4].copy_from_slice(&bytes);
    }

    fn get(&self, at: usize) -> u64 {
        let bytes: [u8; 8] = self.bytes.borrow()[at..at + 8].try_into().unwrap();
        if self.is_big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
    }

    fn ring(&self, ring: usize) -> usize {
        192 + ring * (128 + self.ring_bytes)
    }

    /// What a CPU does: takes a number, stores the record, and then the head.
    fn make(&self, ring: usize, text: &str) -> u64 {
        let number = self.get(64);
        self.put(64, number + 1);
        self.store(ring, number, text);
        number
    }

    fn store(&self, ring: usize, number: u64, text: &str) {
        let head = self.get(self.ring(ring));
        let mut words = text.as_bytes().to_vec();
        words.resize(text.len().div_ceil(16) * 16, 0);
        let mut sum = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(head ^ (text.len() as u64) << 48);
        for word in words.chunks(8) {
            let word: [u8; 8] = word.try_into().unwrap();
            sum ^= if self.is_big { u64::from_be_bytes(word) } else { u64::from_le_bytes(word) };
            sum = sum.wrapping_mul(0xff51_afd7_ed55_8ccd);
            sum ^= sum >> 32;
        }
        let data = self.ring(ring) + 128;
        let at = |position: u64| data + position as usize % self.ring_bytes;
        self.put(at(head), number);
        self.put4(at(head) + 8, text.len() as u32);
        self.put4(at(head) + 12, (sum >> 32) as u32);
        for (each, byte) in words.iter().enumerate() {
            self.bytes.borrow_mut()[at(head + 16 + each as u64)] = *byte;
        }
        self.put(self.ring(ring), head + 16 + words.len() as u64);
    }

    fn rings(&self) -> Rings<&Self> {
        Rings::open(self).unwrap().unwrap()
    }
}

const LOST: &str = "; anytrace: records were lost here\n";

fn read(rings: &mut Rings<&Image>, end: End) -> (String, Vec<String>) {
    let (mut text, mut sink) = (Vec::new(), Collect::default());
    rings.read(end, &mut text, &mut sink).unwrap();
    rings.release().unwrap();
    (String::from_utf8(text).unwrap(), sink.0.iter().map(|one| one.code().to_owned()).collect())
}

fn line(number: u64) -> String {
    format!("(lock {number} 0 0x10 \"a.c:{number}\")\n")
}

#[test]
fn records_of_all_rings_come_in_the_order_of_their_numbers_around_the_end_of_the_rings() {
    for is_big in [false, true] {
        let image = Image::new(is_big, 3, 4096);
        let mut rings = image.rings();
        let mut expected = 0;
        // Each ring is filled many times over.
        for round in 0..400_u64 {
            let mut made = String::new();
            for each in 0..=round % 40 {
                made += &line(expected);
                image.make((round * 7 + each) as usize % 3, &line(expected));
                expected += 1;
            }
            assert_eq!(read(&mut rings, End::Open), (made, vec![]), "{round}");
        }
        assert!(image.get(image.ring(1)) > 20_000);
        for ring in 0..3 {
            let at = image.ring(ring);
            let head = image.get(at);
            assert_eq!((image.get(at + 64), image.get(at + 72)), (head, head), "the room is given back");
        }
        assert_eq!((rings.counts().records, image.get(128)), (expected, expected));
        image.put4(20, 1);
        assert_eq!(rings.state().unwrap(), State::Closed);
        assert_eq!(read(&mut rings, End::Final), (String::new(), vec![]));
    }
}

#[test]
fn records_wait_for_one_that_a_cpu_began_until_nobody_writes_any_more() {
    let image = Image::new(false, 2, 4096);
    let mut rings = image.rings();
    image.make(0, &line(0));
    image.put(64, 2);
    image.make(1, &line(2));
    assert_eq!(read(&mut rings, End::Open).0, line(0));
    assert_eq!((rings.waits_for(), read(&mut rings, End::Open).0.as_str()), (Some(1), ""));
    // It is completed after all.
    image.store(0, 1, &line(1));
    assert_eq!(read(&mut rings, End::Open).0, line(1) + &line(2));
    // And another one is not.
    image.put(64, 4);
    image.make(1, &line(4));
    image.put(64, 7);
    let gap = |count| format!("; {count} records were begun and not finished, or damaged\n{LOST}");
    assert_eq!(read(&mut rings, End::Final).0, gap(1) + &line(4) + &gap(2));
    assert_eq!((rings.counts().records, rings.counts().missing), (4, 3));
}

#[test]
fn drops_are_written_before_any_record_that_follows_them() {
    let image = Image::new(false, 2, 4096);
    let mut rings = image.rings();
    image.make(0, &line(0));
    assert_eq!(read(&mut rings, End::Open).0, line(0));
    image.put(image.ring(1) + 8, 5);
    image.make(0, &line(1));
    let expected = format!("; a full ring dropped 5 records\n{LOST}{}", line(1));
    assert_eq!(read(&mut rings, End::Open).0, expected);
    image.put(image.ring(1) + 8, 7);
    assert_eq!(read(&mut rings, End::Final).0, format!("; a full ring dropped 2 records\n{LOST}"));
    assert_eq!(rings.counts().dropped, 7);
    // Whoever reads next does not report them again.
    let mut next = image.rings();
    assert_eq!(read(&mut next, End::Final).0, format!("; 2 records were taken out before\n{LOST}"));
    assert_eq!((next.counts().dropped, next.counts().earlier), (0, 2));
}

#[test]
fn an_overwritten_record_costs_only_itself() {
    let image = Image::new(false, 1, 4096);
    let mut places = Vec::new();
    for number in 0..5 {
        places.push(image.get(image.ring(0)));
        image.make(0, &line(number));
    }
    for byte in [0, 8, 12, 16, 20, 47] {
        let damaged = Image { bytes: image.bytes.clone(), ..image };
        let at = damaged.ring(0) + 128 + places[2] as usize + byte;
        damaged.bytes.borrow_mut()[at] ^= 0x55;
        for end in [End::Final, End::Open] {
            let (text, codes) = read(&mut damaged.rings(), end);
            let gap = format!("; 1 records were begun and not finished, or damaged\n{LOST}");
            assert_eq!(codes, ["casemate/torn-record"], "{byte}");
            assert_eq!(text, line(0) + &line(1) + &gap + &line(3) + &line(4), "{byte}");
            // Again, for a reader that follows.
            damaged.put(128, 0);
            damaged.put(damaged.ring(0) + 64, 0);
        }
    }
}

#[test]
fn a_record_that_another_one_of_an_earlier_round_overwrote_is_not_taken_for_valid() {
    let image = Image::new(false, 1, 4096);
    let mut rings = image.rings();
    // Records of the same length in every round of the ring.
    let text = |number: u64| format!("(lock {number:04} 0 0x10)\n{}", " ".repeat(9));
    for number in 0..90 {
        image.make(0, &text(number));
        read(&mut rings, End::Open);
    }
    // The head says that one more is there, but its bytes are those of the round before.
    let head = image.get(image.ring(0));
    image.put(image.ring(0), head + 48);
    image.put(64, 91);
    let (found, codes) = read(&mut rings, End::Final);
    assert_eq!(codes, ["casemate/torn-record"]);
    assert_eq!(found, format!("; 1 records were begun and not finished, or damaged\n{LOST}"));
}

#[test]
fn impossible_headers_are_refused_with_their_place() {
    let complaint = |image: &Image| Rings::open(image).err().unwrap().to_string();
    let image = |at: usize, value: u32| {
        let image = Image::new(false, 2, 4096);
        image.put4(at, value);
        complaint(&image)
    };
    assert!(image(8, 0).contains("byte 0x8: number of rings: expected 1 to 4096, found 0"), "{}", image(8, 0));
    assert!(image(8, u32::MAX).contains("found 4294967295"));
    assert!(image(8, 3).contains("length of the memory: expected"), "{}", image(8, 3));
    assert!(image(12, 4095).contains("byte 0xc: bytes of a ring: expected a power of two from 4096 to 1073741824"));
    assert!(image(12, 1 << 31).contains("found 2147483648"));
    assert!(image(12, 1 << 30).contains("length of the memory"));
    let none = Image::new(false, 1, 4096);
    none.put(0, 0);
    assert!(Rings::open(&none).unwrap().is_none());
}

#[test]
fn a_damaged_header_of_a_ring_costs_only_that_ring() {
    for (at, value) in [(0, 1), (0, 1 << 40), (64, 1 << 20), (64, u64::MAX), (64, 8)] {
        let image = Image::new(false, 2, 4096);
        image.make(0, &line(0));
        image.make(1, &line(1));
        image.make(0, &line(2));
        image.put(image.ring(1) + at, value);
        for end in [End::Open, End::Final] {
            image.put(128, 0);
            image.put(image.ring(0) + 64, 0);
            let (text, codes) = read(&mut image.rings(), end);
            let gap = format!("; 1 records were begun and not finished, or damaged\n{LOST}");
            assert_eq!(
                (text, codes),
                (line(0) + &gap + &line(2), vec!["casemate/bad-ring".to_owned()]),
                "{at} {value}"
            );
        }
    }
    let image = Image::new(false, 1, 4096);
    image.make(0, &line(0));
    image.put(128, u64::MAX);
    let (text, codes) = read(&mut image.rings(), End::Open);
    assert_eq!((text, codes), (line(0), vec!["casemate/bad-ring".to_owned()]));
}

#[test]
fn memory_that_is_prepared_again_ends_the_trace() {
    let image = Image::new(false, 1, 4096);
    image.make(0, &line(0));
    let mut rings = image.rings();
    assert_eq!(read(&mut rings, End::Open).0, line(0));
    image.put(24, 1);
    image.put(image.ring(0), 0);
    image.put(image.ring(0) + 64, 0);
    image.put(128, 0);
    assert_eq!(read(&mut rings, End::Open), (String::new(), vec![]));
    assert_eq!(rings.state().unwrap(), State::Replaced);
    image.put(0, 0);
    assert_eq!(rings.state().unwrap(), State::Replaced);
    assert_eq!(read(&mut rings, End::Final).0, "");
    assert_eq!(image.get(128), 0, "the new trace is not touched");
}

/// An image that counts what is read of it.
struct Counted<'a> {
    image: &'a Image,
    read_bytes: Cell<u64>,
}

impl Memory for &Counted<'_> {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.read_bytes.set(self.read_bytes.get() + bytes.len() as u64);
        (&self.image).read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        (&self.image).write_at(offset, bytes)
    }

    fn length_bytes(&self) -> io::Result<Option<u64>> {
        (&self.image).length_bytes()
    }
}

#[test]
fn a_ring_in_which_every_second_record_is_torn_costs_about_its_length() {
    let image = Image::new(false, 1, 1 << 20);
    let mut number = 0;
    while image.get(image.ring(0)) + 64 < 1 << 20 {
        let at = image.get(image.ring(0));
        image.make(0, &line(number));
        if number % 2 == 1 {
            image.bytes.borrow_mut()[image.ring(0) + 128 + at as usize + 12] ^= 1;
        }
        number += 1;
    }
    let counted = Counted { image: &image, read_bytes: Cell::new(0) };
    let mut rings = Rings::open(&counted).unwrap().unwrap();
    let (mut records, mut sink) = (0, Collect::default());
    loop {
        let mut text = Vec::new();
        records += rings.read(End::Final, &mut text, &mut sink).unwrap();
        if text.is_empty() {
            break;
        }
    }
    assert_eq!((records, sink.0.len() as u64), (number.div_ceil(2), number / 2));
    let ring_bytes = image.bytes.borrow().len() as u64;
    assert!(counted.read_bytes.get() < 100 * ring_bytes, "{}", counted.read_bytes.get());
}

/// Any byte, changed or cut: no panic, no hang, and no more text than the memory has.
#[test]
fn damage_anywhere_gives_located_complaints() {
    let sound = Image::new(false, 2, 4096);
    for number in 0..20 {
        sound.make(number as usize % 2, &line(number));
    }
    sound.put4(20, 1);
    let length = sound.bytes.borrow().len();
    let mut seen = 0;
    for at in (0..length).filter(|at| *at < 400 || at % 7 == 0) {
        for flip in [1, 0x80, 0xff] {
            let image = Image { bytes: sound.bytes.clone(), ..sound };
            image.bytes.borrow_mut()[at] ^= flip;
            let Ok(Some(mut rings)) = Rings::open(&image) else { continue };
            let (text, codes) = read(&mut rings, End::Final);
            assert!(text.len() < 4 * length, "{at}");
            let records = text.lines().filter(|line| line.starts_with("(lock")).count();
            let is_lossy = text.contains(LOST) || !codes.is_empty();
            assert!(records == 20 || is_lossy, "{at} {flip}: {text}");
            seen += 1;
        }
    }
    assert!(seen > 1000);
    for cut in 0..length {
        let image = Image { bytes: RefCell::new(sound.bytes.borrow()[..cut].to_vec()), ..sound };
        assert!(!matches!(Rings::open(&image), Ok(Some(_))), "{cut}");
    }
}
