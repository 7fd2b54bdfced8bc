//! Tests of `minimise`.

use anytrace_core::Collect;

use super::*;

/// More than it takes: a search that is cut short gives another result.
const WORK: u64 = 1 << 32;

fn found(smallest: Smallest) -> Option<Minimised> {
    match smallest {
        Smallest::Found(small) => Some(small),
        _ => None,
    }
}

fn run(log: &str) -> Option<Minimised> {
    let input = Input::from_bytes("t.log", log.as_bytes().to_vec());
    found(minimise(input, &OpenOptions::default(), Options::ARCHITECTURE, WORK, &mut Collect::default()).unwrap())
}

/// A tree of four tables under VMID 1, and `rounds` correct rounds of page changes on it.
fn log(rounds: u64) -> String {
    let mut log = String::from(
        "(mem-init 1 0 1000 4000)(hint 2 0 set_root_lock 1000 90000)(mem-write 3 0 plain 1000 2003)\
         (mem-write 4 0 plain 2000 3003)(mem-write 5 0 plain 3000 4003)(sysreg-write 6 0 vttbr_el2 1000000001000)",
    );
    for n in 0..rounds {
        let cell = 0x4000 + 8 * (n % 500);
        log.push_str(&format!(
            "(lock 7 0 90000)(mem-write 8 0 release {cell:x} 0)(barrier 9 0 dsb ish)(tlbi 10 0 vmalls12e1is)\
             (barrier 11 0 dsb ish)(mem-write 12 0 release {cell:x} {:x})(unlock 13 0 90000)",
            (0x100_0000 + n * 0x1000) | 0x7c3
        ));
    }
    log
}

#[test]
fn a_long_failing_trace_becomes_short_and_fails_alike() {
    let bad = "(lock 90 0 90000)(mem-write 91 0 release 4008 0)(mem-write 92 0 release 4008 5007c3)";
    let small = run(&format!("{}{bad}", log(1700))).unwrap();
    assert!(small.is_minimal && small.records <= 12, "{}: {}", small.records, String::from_utf8_lossy(&small.bytes));
    assert_eq!((small.message, small.location), ("BBM invalid unclean->valid", Some(0x4008)));
    assert_eq!(small.records_before, 6 + 1700 * 7 + 3);
    let again = run(&String::from_utf8(small.bytes.clone()).unwrap()).unwrap();
    assert_eq!((again.bytes, again.location), (small.bytes, small.location));
}

#[test]
fn damage_behind_the_violation_is_reported_and_changes_nothing_else() {
    let bad = "(lock 90 0 90000)(mem-write 91 0 release 4008 0)(mem-write 92 0 release 4008 5007c3)";
    let complete = format!("{}{bad}", log(2));
    let damaged = format!("{complete}\n(barrier 93 0 nonsense)\n(barrier 94 0 dsb ish)\n");
    let mut sink = Collect::default();
    let input = Input::from_bytes("t.log", damaged.into_bytes());
    let small = found(minimise(input, &OpenOptions::default(), Options::ARCHITECTURE, WORK, &mut sink).unwrap());
    assert_eq!(small, run(&complete));
    let codes: Vec<_> = sink.0.iter().map(anytrace_core::Diagnostic::code).collect();
    assert_eq!(codes, ["casemate/unknown-barrier"]);
}

#[test]
fn a_trace_without_violation_has_nothing_to_minimise() {
    assert_eq!(run(&log(3)), None);
}
