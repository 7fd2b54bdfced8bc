//! The engine, compared with the independent slow model on random traces, in each rule set: the same verdict at the
//! same record with the same message, and the same state before it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

#[allow(unused_imports, reason = "the oracle's own tests use what these do not")]
#[path = "oracle/mod.rs"]
mod oracle;

use std::collections::BTreeMap;
use std::fmt::Write;

use anytrace_casemate::Sysreg;
use anytrace_casemate::model::{BbmLevel, Checker, Options, Quirk, Quirks, TreeKind};
use oracle::generate::Kind;
use oracle::{State, Step, Verdict, compare_states, compare_states_of};

/// The slow model's options as the engine's.
fn options(theirs: &oracle::Options) -> Options {
    let quirks = theirs.quirks;
    let switches = [
        (Quirk::AfInverted, quirks.af_inverted),
        (Quirk::IdenticalTableRewrite, quirks.identical_table_rewrite),
        (Quirk::MemSetWord, quirks.mem_set_word),
        (Quirk::MemSetPage, quirks.mem_set_word),
        (Quirk::StageBlindIds, quirks.stage_blind_ids),
        (Quirk::ByIdPromoted, quirks.by_id_promoted),
        (Quirk::IdsAsidZero, quirks.ids_asid_zero),
        (Quirk::NoVttbrIsSlot0, quirks.no_vttbr_is_slot_0),
        (Quirk::TtlIgnored, quirks.ttl_ignored),
        (Quirk::LastLevelIs3, quirks.last_level_is_3),
        (Quirk::ConcatenatedUnsupported, quirks.concatenated_unsupported),
        (Quirk::SetOwnerRootAlignedEmpty, quirks.set_owner_root_aligned_empty),
        // The slow model has no switch for it.
        (Quirk::ReachabilityAssert, true),
        (Quirk::ReadsIgnored, true),
        (Quirk::TableLimits, quirks.limits),
        (Quirk::PageLimit, quirks.limits),
        (Quirk::UnreadBaseAborts, quirks.unread_base_aborts),
        (Quirk::ActingGeometry, quirks.acting_geometry),
        (Quirk::NshFires, quirks.nsh_fires),
        (Quirk::LocalTlbiFires, quirks.local_tlbi_fires),
        (Quirk::ThreadOwnedStopsTable, quirks.thread_owned_stops_table),
        (Quirk::AnyAttribute, quirks.any_attribute),
        (Quirk::StaleIgnored, quirks.stale_ignored),
        (Quirk::GranuleUnsupported, quirks.granule_unsupported),
        (Quirk::IdsAreWide, quirks.ids_are_wide),
        (Quirk::ReuseIgnored, quirks.reuse_ignored),
        (Quirk::ContiguousIgnored, quirks.contiguous_ignored),
        (Quirk::OtherTreesUnknown, quirks.other_trees_unknown),
    ];
    let quirks = switches.iter().fold(Quirks::ARCHITECTURE, |set, (quirk, is_on)| set.with(*quirk, *is_on));
    Options {
        quirks,
        is_racy: theirs.racy,
        ignores_uninitialised: theirs.ignore_uninit,
        no_sysreg: theirs.no_sysreg,
        bbm: [BbmLevel::Zero, BbmLevel::One, BbmLevel::Two][usize::from(theirs.bbm)],
        goes_on: false,
    }
}

fn root_words(root: &anytrace_casemate::model::Root) -> String {
    use anytrace_casemate::model::TreeKind::{El2, StageTwo};
    let (mark, other) = (if root.has_other_ids { "+" } else { "" }, if root.has_other_vmids { "+" } else { "" });
    match root.kind {
        El2 | StageTwo => format!("{:#x}/{}", root.base, root.id),
        kind => format!("{:#x}/{}{mark}/{}{other}/{}", root.base, root.id, root.vmid, kind.base().name()),
    }
}

fn state(checker: &Checker, thread: u32, doubts: &[&str]) -> State {
    let roots: Vec<_> = checker.registered_roots().map(root_words).collect();
    let lock = |view: anytrace_casemate::model::LockView| {
        let mut text = format!("({:#x},{:#x}", view.root, view.lock);
        let held = view.held.filter(|held| held.0 == thread && !checker.options().is_racy);
        if let Some((holder, count, is_authorised)) = held {
            let not = if is_authorised { "" } else { "not " };
            write!(text, ", locked {count} times by thread {holder}, write {not}authorized").unwrap();
        }
        text + ")"
    };
    let unclean = checker.unclean_entries();
    let unclean: Vec<_> =
        unclean.iter().map(|e| format!("{:#x}={}/{}", e.address, e.progress.letters(), e.thread)).collect();
    let locks: Vec<_> = checker.root_locks().into_iter().map(lock).collect();
    let stale: Vec<_> = checker
        .stale_entries()
        .iter()
        .map(|e| format!("{:#x}={}/{} {}", e.address, e.progress.letters(), e.thread, e.lost.words()))
        .collect();
    State {
        roots: roots.join(","),
        locks,
        unclean: unclean.join(" "),
        stale: stale.join("; "),
        doubts: doubts.join(" "),
    }
}

/// The engine's answer. The state before the breach is that of a second run that ends there.
fn engine(_: &[u8], steps: &[Step], theirs: &oracle::Options) -> (Verdict, State) {
    let options = options(theirs);
    let mut checker = Checker::new(options);
    let mut verdict = Verdict::Ok;
    let mut end = steps.len();
    for (index, step) in steps.iter().enumerate() {
        let found = checker.step(step.thread, &step.action).iter().find(|found| found.is_error());
        if let Some(found) = found {
            let message = found.breach.message;
            let message = if message.starts_with("aborted") { "" } else { message }.to_owned();
            verdict = Verdict::Stop { index, id: step.id, is_assertion: found.breach.is_assertion, message };
            end = index;
            break;
        }
    }
    let before = steps.get(..end).unwrap_or_default();
    let mut doubts = Vec::new();
    checker = Checker::new(options);
    for step in before {
        let found = checker.step(step.thread, &step.action).iter().filter(|found| found.breach.is_doubt);
        doubts.extend(found.map(|found| found.breach.name()));
    }
    (verdict, before.last().map_or(State::default(), |last| state(&checker, last.thread, &doubts)))
}

#[test]
fn the_engine_agrees_with_the_slow_model_in_the_reference_rule_set() {
    compare_states(engine, 0..seeds(), oracle::Options::compat());
}

#[test]
fn the_engine_agrees_with_the_slow_model_in_the_sound_rule_set() {
    compare_states(engine, 1_000_000..1_000_000 + seeds(), oracle::Options::sound());
}

#[test]
fn the_engine_agrees_with_the_slow_model_in_the_strict_rule_set() {
    compare_states(engine, 3_000_000..3_000_000 + seeds() / 2, oracle::Options::strict());
}

#[test]
fn shapes_of_the_walking_thread_or_of_registration_agree() {
    let mut base = oracle::Options::sound();
    base.quirks.last_level_is_3 = false;
    base.quirks.acting_geometry = true;
    compare_states(engine, 2_000_000..2_000_000 + seeds() / 4, base);
}

#[test]
fn going_on_begins_with_the_violation_at_which_stopping_stops() {
    for seed in 0..seeds() / 4 {
        let steps = oracle::generate::trace(seed);
        for base in [Options::ARCHITECTURE, Options::STRICT, Options::COMPAT] {
            let first = |options| {
                let mut checker = Checker::new(options);
                let mut first = None;
                for (index, step) in steps.iter().enumerate() {
                    let found = checker.step(step.thread, &step.action).iter().find(|found| found.is_error());
                    let found = found.map(|found| (index, found.breach.rule.code, found.location));
                    first = first.or(found);
                }
                first
            };
            // After the breach, the checker that stops is in another state; only the first breach counts.
            assert_eq!(first(base), first(Options { goes_on: true, ..base }), "seed {seed}");
        }
    }
}

#[test]
fn entries_changed_in_place_agree() {
    compare_states_of(Kind::InPlace, engine, 11_000_000..11_000_000 + seeds() / 2, oracle::Options::sound());
    compare_states_of(Kind::InPlace, engine, 12_000_000..12_000_000 + seeds() / 10, oracle::Options::compat());
}

/// The comparison says something only where the generator reaches what it compares.
#[test]
fn generated_traces_reach_every_state_of_entries_changed_in_place() {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 4_000_000..4_000_000 + seeds() {
        let theirs = oracle::Options { bbm: (seed % 3) as u8, ..oracle::Options::sound() };
        let mut checker = Checker::new(options(&theirs));
        let mut before: Vec<_> = Vec::new();
        let steps = oracle::generate::trace_of(oracle::generate::Kind::InPlace, seed);
        for step in &steps {
            let found = checker.step(step.thread, &step.action).iter().find(|found| found.is_error()).cloned();
            if let Some(found) = found {
                let stale = found.stale.map(|stale| {
                    let above = if stale.above.is_some() { "Limited" } else { "" };
                    format!("{above}{:?} {:?}", stale.handover, stale.progress)
                });
                let obstacle = found.change.and_then(|change| change.obstacle).map(|one| format!("{one:?}"));
                if let Some(what) = stale.or(obstacle) {
                    let what = what.split_once(" {").map_or(what.clone(), |(what, _)| what.to_owned());
                    *counts.entry(what).or_default() += 1;
                }
                break;
            }
            let after = checker.stale_entries();
            if before != after {
                for entry in &after {
                    let is_same = checker.value(entry.address) == Some(entry.old);
                    let what = match entry.lost.is_empty() {
                        true => "resized",
                        false if is_same => "limited",
                        false => "stale",
                    };
                    *counts.entry(format!("{what} {}", entry.progress.letters())).or_default() += 1;
                }
            }
            if before.len() > after.len() {
                *counts.entry("fresh".to_owned()).or_default() += 1;
            }
            before = after;
        }
    }
    for what in REACHED {
        assert!(counts.get(*what).is_some_and(|count| *count >= 10), "{what}: {counts:#?}");
    }
}

/// Handovers with the progress of the maintenance, obstacles to changes of size, and states.
const REACHED: &[&str] = &[
    "Table Unguarded",
    "Initialised Dsbed",
    "OwnerRoot TlbiIpa",
    "Mapped",
    "LimitedMapped",
    "Level",
    "NotMarked",
    "Pending",
    "Differs",
    "Unmapped",
    "Unclean",
    "resized n",
    "resized d",
    "resized ta",
    "stale n",
    "stale d",
    "stale ti",
    "stale td",
    "stale ta",
    "limited n",
    "limited d",
    "limited ta",
    "fresh",
];

/// Number of seeds; `ANYTRACE_SEEDS` sets more.
fn seeds() -> u64 {
    std::env::var("ANYTRACE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000)
}

/// The same for trees of other granules: each of them is cleaned, and breaks rules.
#[test]
fn generated_traces_clean_and_break_trees_of_every_granule() {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 5_000_000..5_000_000 + seeds() / 2 {
        let mut checker = Checker::new(Options::ARCHITECTURE);
        let mut unclean = 0;
        let steps = oracle::generate::trace_of(oracle::generate::Kind::Granules, seed);
        for step in &steps {
            let found = checker.step(step.thread, &step.action).to_vec();
            let root = checker.registered_roots().next();
            let shape = root.map_or("none".to_owned(), |root| format!("{} stage {}", root.format.words(), root.stage));
            for one in &found {
                *counts.entry(format!("{shape}: {}", one.breach.name())).or_default() += 1;
            }
            if found.iter().any(|found| found.is_error()) {
                break;
            }
            let left = checker.unclean_entries().len();
            if left < unclean {
                *counts.entry(format!("{shape}: cleaned")).or_default() += 1;
                if let Some(root) = root.filter(|root| root.level < 0) {
                    *counts.entry(format!("level -1 of stage {}", root.stage)).or_default() += 1;
                }
            }
            unclean = left;
            if root.is_some_and(|root| root.tables > 1) {
                *counts.entry(format!("{shape}: concatenated")).or_default() += 1;
            }
        }
    }
    let groups = counts.iter().filter(|(key, _)| key.ends_with(": contiguous-differs")).map(|(_, count)| count);
    assert!(groups.sum::<u64>() > 20, "{counts:#?}");
    let kept = counts.iter().filter(|(key, _)| key.ends_with(": contiguous-kept")).map(|(_, count)| count);
    assert!(kept.sum::<u64>() > 20, "{counts:#?}");
    for stage in [1, 2] {
        let key = format!("level -1 of stage {stage}");
        assert!(counts.get(&key).is_some_and(|count| *count >= 5), "{key}: {counts:#?}");
    }
    for granule in ["4 KiB", "16 KiB", "64 KiB"] {
        for wide in ["", ", 52-bit addresses"] {
            for stage in [1, 2] {
                let mut wanted = vec!["cleaned", "bbm-unclean-valid", "bbm-valid-valid"];
                wanted.extend((stage == 2).then_some("concatenated"));
                for what in wanted {
                    let key = format!("{granule} granule{wide} stage {stage}: {what}");
                    assert!(counts.get(&key).is_some_and(|count| *count >= 5), "{key}: {counts:#?}");
                }
            }
        }
    }
    assert!(counts.get("none: unmodelled-geometry").is_some_and(|count| *count >= 5), "{counts:#?}");
}

#[test]
fn trees_of_guests_and_of_upper_halves_agree() {
    let seeds = 6_000_000..6_000_000 + seeds();
    compare_states_of(Kind::Guests, engine, seeds.clone(), oracle::Options::sound());
    compare_states_of(Kind::Guests, engine, seeds.start..seeds.start + 1000, oracle::Options::strict());
    compare_states_of(Kind::Guests, engine, seeds.start..seeds.start + 1000, oracle::Options::compat());
}

/// They are followed, with stage 2 and without it, and break rules.
#[test]
fn generated_traces_clean_and_break_trees_of_guests_and_of_upper_halves() {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 6_000_000..6_000_000 + seeds() {
        let mut checker = Checker::new(Options::ARCHITECTURE);
        let mut unclean = 0;
        for step in &oracle::generate::trace_of(Kind::Guests, seed) {
            let found = checker.step(step.thread, &step.action).to_vec();
            let root = checker.registered_roots().find(|root| root.kind.base() != Sysreg::VttbrEl2).copied();
            let kind = root.map_or("none", |root| root.kind.base().name());
            for one in &found {
                *counts.entry(format!("{kind}: {}", one.breach.name())).or_default() += 1;
            }
            if found.iter().any(|found| found.is_error()) {
                break;
            }
            let left = checker.unclean_entries().len();
            let mut count = |what: &str, is_so: bool| {
                *counts.entry(format!("{kind}: {what}")).or_default() += u64::from(is_so);
            };
            count("cleaned", left < unclean);
            count("behind stage 2", root.is_some_and(|root| root.stage_two.is_some()));
            count("several ASIDs", root.is_some_and(|root| root.has_other_ids));
            count("several VMIDs", root.is_some_and(|root| root.has_other_vmids));
            count("left", root.is_some_and(|root| root.users == 0));
            unclean = left;
        }
    }
    for kind in ["ttbr1_el2", "ttbr0_el1", "ttbr1_el1"] {
        let mut wanted = vec!["cleaned", "bbm-unclean-valid", "bbm-valid-valid", "several ASIDs", "left"];
        if kind != "ttbr1_el2" {
            wanted.extend(["behind stage 2", "several VMIDs", "unmodelled-regime"]);
        }
        for what in wanted {
            let key = format!("{kind}: {what}");
            assert!(counts.get(&key).is_some_and(|count| *count >= 10), "{key}: {counts:#?}");
        }
    }
    assert!(counts.get("none: unmodelled-regime").is_some_and(|count| *count >= 10), "{counts:#?}");
}

#[test]
fn identifiers_that_are_used_again_agree() {
    compare_states_of(Kind::Reuse, engine, 7_000_000..7_000_000 + 4 * seeds(), oracle::Options::sound());
    compare_states_of(Kind::Reuse, engine, 8_000_000..8_000_000 + seeds() / 2, oracle::Options::compat());
}

#[test]
fn generated_traces_use_identifiers_again_rightly_and_wrongly() {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 7_000_000..7_000_000 + 4 * seeds() {
        let mut owners: BTreeMap<(TreeKind, u64, u64), u64> = BTreeMap::new();
        let mut checker = Checker::new(Options::ARCHITECTURE);
        for step in &oracle::generate::trace_of(Kind::Reuse, seed) {
            let found = checker.step(step.thread, &step.action).iter().find(|found| found.is_error()).cloned();
            if let Some(found) = found {
                if let Some(reuse) = found.reuse {
                    let direct = if reuse.is_direct { ", directly" } else { "" };
                    *counts.entry(format!("{} {:?}{direct}", found.breach.name(), reuse.kind)).or_default() += 1;
                }
                break;
            }
            for root in checker.registered_roots().filter(|root| root.users > 0) {
                let before = owners.insert((root.kind, root.vmid, root.id), root.serial);
                let is_other = before.is_some_and(|before| before != root.serial);
                *counts.entry(format!("again {:?}", root.kind)).or_default() += u64::from(is_other);
            }
        }
    }
    for what in [
        "again StageTwo",
        "again El2",
        "again El1",
        "again El1Upper",
        "id-reused StageTwo",
        "id-reused El2",
        "id-reused El1",
        "id-reused El1Upper",
        "id-reused El1, directly",
        "global-entries-kept El1",
        "global-entries-kept El1Upper, directly",
        "global-entries-kept El2",
    ] {
        assert!(counts.get(what).is_some_and(|count| *count >= 10), "{what}: {counts:#?}");
    }
}

#[test]
fn trees_of_every_granule_agree() {
    compare_states_of(Kind::Granules, engine, 9_000_000..9_000_000 + seeds(), oracle::Options::sound());
    compare_states_of(Kind::Granules, engine, 10_000_000..10_000_000 + seeds() / 10, oracle::Options::compat());
}
