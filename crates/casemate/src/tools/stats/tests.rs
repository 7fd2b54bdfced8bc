//! Tests of `stats`.

use anytrace_core::Collect;

use super::*;

fn run(log: &str) -> Stats {
    let input = Input::from_bytes("t.log", log.as_bytes().to_vec());
    stats(input, &OpenOptions::default(), Options::ARCHITECTURE, &mut Collect::default()).unwrap()
}

const TREE: &str = "(mem-init 1 0 1000 4000)(hint 2 0 set_root_lock 1000 90000)(mem-write 3 0 plain 1000 2003)\
                    (mem-write 4 0 plain 2000 3003)(mem-write 5 0 plain 3000 4003)\
                    (sysreg-write 6 0 vttbr_el2 1000000001000)";

#[test]
fn a_tlbi_and_a_barrier_with_nothing_to_do_are_unneeded() {
    let log = format!(
        "{TREE}(lock 7 0 90000)(mem-write 8 0 release 4000 507c3)(mem-write 9 0 release 4000 0)(barrier 10 0 dsb ish)\
         (tlbi 11 0 vmalls12e1is)(tlbi 12 0 vmalls12e1is)(barrier 13 0 dsb ish)(barrier 14 0 dsb ish)\
         (mem-write 15 0 release 4000 517c3)(barrier 16 0 isb)(unlock 17 0 90000)"
    );
    let stats = run(&log);
    assert_eq!(stats.violations, 0);
    let counts = |name: &str| {
        let row = &stats.operations[name];
        (row.records, row.unneeded, row.example.as_ref().map(|at| at.id))
    };
    assert_eq!(counts("tlbi vmalls12e1is"), (2, 1, Some(12)));
    assert_eq!(counts("dsb ish"), (3, 1, Some(14)));
    assert_eq!(counts("isb"), (1, 1, Some(16)));
    assert_eq!(stats.unneeded, [11, 13, 15]);
    let entry = stats.entries[0];
    assert_eq!((entry.location, entry.writes, entry.cycles, entry.first, entry.last), (0x4000, 3, 1, 7, 14));
    let lock = &stats.locks[0];
    assert_eq!((lock.taken, lock.longest), (1, Some(Hold { thread: 0, first: 6, last: 16 })));
    assert!(stats.text(10).contains("records 6 to 16, thread 0"), "{}", stats.text(10));
    assert_eq!(stats.json(1)["maintenance"][2]["operation"], "tlbi vmalls12e1is");
}

#[test]
fn a_barrier_that_authorises_a_plain_write_is_needed() {
    let plain = "(mem-write 8 0 plain 4000 507c3)(barrier 9 0 dsb nsh)(mem-write 10 0 plain 4008 517c3)";
    let needed = run(&format!("{TREE}(lock 7 0 90000){plain}"));
    assert_eq!((needed.violations, needed.operations["dsb nsh"].unneeded), (0, 0));
    let release = plain.replace("(mem-write 10 0 plain", "(mem-write 10 0 release");
    let unneeded = run(&format!("{TREE}(lock 7 0 90000){release}"));
    assert_eq!((unneeded.violations, unneeded.operations["dsb nsh"].unneeded), (0, 1));
    // Either of two can go.
    let twice = plain.replace("(barrier 9 0 dsb nsh)", "(barrier 9 0 dsb nsh)(barrier 9 0 dsb nsh)");
    let either = run(&format!("{TREE}(lock 7 0 90000){twice}"));
    assert_eq!(either.operations["dsb nsh"].unneeded, 2);
}

#[test]
fn nested_holds_count_once_and_open_ones_have_their_beginning() {
    let stats = run("(lock 1 0 10)(trylock 2 0 10)(unlock 3 0 10)(unlock 4 0 10)(lock 5 1 10)(lock 6 2 20)");
    let lock = stats.locks.iter().find(|lock| lock.lock == 0x10).unwrap();
    assert_eq!((lock.taken, lock.events, lock.open_since), (2, 3, Some(4)));
    let other = stats.locks.iter().find(|lock| lock.lock == 0x20).unwrap();
    assert_eq!((other.taken, other.longest, other.open_since), (1, None, Some(5)));
}
