//! The outputs of accesses, by hand and against readers that are written from the forms' descriptions.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use anytrace_core::access::{Access, AccessFlags, AccessKind, RegionAdded, RegionRemoved};
use anytrace_export::accesses::{AccessWriter, OUTPUTS, by_name};

fn access(seq: u64, kind: AccessKind, address: u64, bytes: u16) -> Access {
    Access { address, seq, thread: 0, bytes, kind, flags: AccessFlags::NONE }
}

/// What an output makes of accesses in batches of some length, and its notes.
fn written(name: &str, accesses: &[Access], batch: usize) -> (String, Vec<String>) {
    let mut out = Vec::new();
    let mut writer = (by_name(name).unwrap().open)(&mut out);
    accesses.chunks(batch).for_each(|batch| writer.accesses(batch).unwrap());
    let notes = writer.finish().unwrap();
    drop(writer);
    (String::from_utf8(out).unwrap(), notes)
}

const FEW: [(u64, AccessKind, u64, u16); 7] = [
    (0, AccessKind::Fetch, 0x40_1000, 10),
    (1, AccessKind::Read, 0x1f_ff00_0698, 8),
    (2, AccessKind::Write, 0, 4),
    (3, AccessKind::Read, 0x10, 16),
    (3, AccessKind::Write, 0x10, 16),
    (4, AccessKind::Read, u64::MAX, 512),
    (5, AccessKind::Write, u64::MAX, 512),
];

fn few() -> Vec<Access> {
    FEW.map(|(seq, kind, address, bytes)| access(seq, kind, address, bytes)).to_vec()
}

#[test]
fn each_form_is_as_its_readers_have_it() {
    let forms = [
        ("din", "2 401000\n0 1fff000698\n1 0\n0 10\n1 10\n0 ffffffffffffffff\n1 ffffffffffffffff\n"),
        (
            "lackey",
            "I  00401000,10\n L 1fff000698,8\n S 00000000,4\n M 00000010,16\n L ffffffffffffffff,512\n \
             S ffffffffffffffff,512\n",
        ),
        (
            "xdin",
            "i 401000 a\nr 1fff000698 8\nw 0 4\nr 10 10\nw 10 10\nr ffffffffffffffff 200\nw ffffffffffffffff 200\n",
        ),
    ];
    for (name, wanted) in forms {
        for batch in [1, 2, 3, 100] {
            assert_eq!(written(name, &few(), batch).0, wanted, "{name}");
        }
    }
}

#[test]
fn a_read_and_a_write_are_a_modify_only_where_they_are_one_record_and_the_same_bytes() {
    let pairs = [
        ((0, 0x10, 4), (0, 0x10, 4), " M 00000010,4\n"),
        ((0, 0x10, 4), (1, 0x10, 4), " L 00000010,4\n S 00000010,4\n"),
        ((0, 0x10, 4), (0, 0x14, 4), " L 00000010,4\n S 00000014,4\n"),
        ((0, 0x10, 4), (0, 0x10, 8), " L 00000010,4\n S 00000010,8\n"),
    ];
    for (read, write, wanted) in pairs {
        let both =
            [access(read.0, AccessKind::Read, read.1, read.2), access(write.0, AccessKind::Write, write.1, write.2)];
        assert_eq!(written("lackey", &both, 2).0, wanted);
        assert_eq!(written("lackey", &both, 1).0, wanted, "in two batches");
    }
    let alone = [access(0, AccessKind::Read, 0x10, 4)];
    assert_eq!(written("lackey", &alone, 1).0, " L 00000010,4\n");
}

#[test]
fn features_that_a_form_cannot_express_are_reported() {
    let written = |name: &str| {
        let mut out = Vec::new();
        let mut writer = (by_name(name).unwrap().open)(&mut out);
        writer.thread(0, Some(7)).unwrap();
        writer.thread(1, None).unwrap();
        writer.type_name(0, Some(b"struct.A")).unwrap();
        let added = RegionAdded { seq: 0, address: 16, element_bytes: 8, elements: 2, type_number: 0, thread: 0 };
        writer.region_added(&added).unwrap();
        let atomic = Access { flags: AccessFlags::ATOMIC, ..access(1, AccessKind::Write, 16, 4) };
        writer.accesses(&[atomic, access(2, AccessKind::Read, 1 << 32, 4), access(3, AccessKind::Read, 2, 0)]).unwrap();
        writer.region_removed(&RegionRemoved { seq: 4, address: 16, thread: 1 }).unwrap();
        let notes = writer.finish().unwrap();
        drop(writer);
        (String::from_utf8(out).unwrap(), notes)
    };
    let shared = [
        "the accesses of 2 threads are combined: this form does not name threads",
        "left out: 1 starts and 1 ends of regions, of 1 types",
        "left out: atomic and unaligned flags of 1 accesses",
    ];
    let (text, notes) = written("lackey");
    assert_eq!(
        (text.as_str(), notes),
        (" S 00000010,4\n L 100000000,4\n L 00000002,0\n", shared.map(str::to_owned).into())
    );
    let (text, notes) = written("din");
    assert_eq!(text, "1 10\n0 100000000\n0 2\n");
    assert!(notes.starts_with(&shared.map(str::to_owned)) && notes.len() == 5, "{notes:?}");
    assert!(
        notes[3].starts_with("1 accesses are not 4 aligned bytes") && notes[4].starts_with("1 accesses lie past 4 GiB")
    );
    let (text, notes) = written("xdin");
    assert_eq!(text, "w 10 4\nr 100000000 4\n");
    assert_eq!(notes[3..], ["1 accesses of 0 bytes were left out: Dinero IV does not support them"]);
}

/// Reads a form back: the label or letter, the address, and the size if there is one; all numbers in base 16.
fn read_din(text: &str) -> Vec<(AccessKind, u64, Option<u64>)> {
    let number = |word: &str| u64::from_str_radix(word, 16).unwrap();
    let line = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let kind = match words[0] {
            "0" | "r" => AccessKind::Read,
            "1" | "w" => AccessKind::Write,
            "2" | "i" => AccessKind::Fetch,
            other => panic!("{other}"),
        };
        (kind, number(words[1]), words.get(2).map(|word| number(word)))
    };
    text.lines().map(line).collect()
}

#[test]
fn many_accesses_are_read_back_from_dineros_forms() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let kinds = [AccessKind::Read, AccessKind::Write, AccessKind::Fetch];
    let accesses: Vec<_> = (0..20_000)
        .map(|seq| {
            let kind = kinds[(random() % 3) as usize];
            access(seq, kind, random() >> (random() % 64), 1 + (random() % 512) as u16)
        })
        .collect();
    for (name, has_size) in [("din", false), ("xdin", true)] {
        let back = read_din(&written(name, &accesses, 1024).0);
        let wanted: Vec<_> =
            accesses.iter().map(|a| (a.kind, a.address, has_size.then_some(u64::from(a.bytes)))).collect();
        assert!(back == wanted, "{name}");
    }
}

#[test]
fn a_writer_that_fails_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    for output in &OUTPUTS {
        let mut full = Full;
        let mut writer: Box<dyn AccessWriter> = (output.open)(&mut full);
        writer.accesses(&few()).unwrap();
        assert_eq!(writer.finish().unwrap_err().io_kind(), Some(std::io::ErrorKind::StorageFull), "{}", output.name);
    }
}
