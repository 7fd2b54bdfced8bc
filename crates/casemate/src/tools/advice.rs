//! What is missing when a rule is broken, and what a correct sequence would have been.

use super::check::Found;
use crate::model::{Cell, CellState, LiveChange, Obstacle, Progress, TreeKind};

/// What is missing, and a correct sequence of steps.
pub(crate) fn of(found: &Found, cell: Option<&Cell>) -> (String, Vec<String>) {
    match (found.breach.name(), cell) {
        ("bbm-valid-valid", cell) => {
            let mut steps = vec!["write an invalid value".to_owned()];
            steps.extend(cell.map_or_else(Vec::new, |cell| cleaning(cell, Progress::Unguarded)));
            steps.push("write the new value".to_owned());
            (missing_break(found.change.as_ref()), steps)
        }
        ("bbm-unclean-valid", Some(cell)) => {
            let progress = match cell.state {
                CellState::Unclean { progress, .. } => progress,
                _ => Progress::Unguarded,
            };
            let rest = cleaning(cell, progress);
            let missing = format!("{} before this write", rest.join(", then "));
            let mut steps = vec!["write an invalid value".to_owned()];
            steps.extend(cleaning(cell, Progress::Unguarded));
            steps.push("write the new value".to_owned());
            (missing, steps)
        }
        ("stale-permissions", cell) => {
            let progress = found.stale.map_or(Progress::Unguarded, |stale| stale.progress);
            let is_above = found.stale.is_some_and(|stale| stale.above.is_some());
            let rest = |from| cell.map_or_else(Vec::new, |cell| remaining(cell, from, is_above));
            let missing = format!("{} before the memory gets another owner", rest(progress).join(", then "));
            let what = if is_above { "change the table in place" } else { "change the permissions in place" };
            let mut steps = vec![what.to_owned()];
            steps.extend(rest(Progress::Unguarded));
            steps.push("hand the memory over".to_owned());
            (missing, steps)
        }
        ("contiguous-kept", Some(cell)) => {
            let progress = match cell.state {
                CellState::Unclean { progress, .. } => progress,
                _ => Progress::Unguarded,
            };
            let missing =
                format!("{} before another entry of the group changes", cleaning(cell, progress).join(", then "));
            let mut steps = vec!["write invalid values to all entries of the group".to_owned(), "dsb ish".to_owned()];
            steps.extend(["a TLBI of each, or of all of them".to_owned(), "dsb ish".to_owned()]);
            steps.push("write the new values".to_owned());
            (missing, steps)
        }
        (name @ ("id-reused" | "global-entries-kept"), _) => reused(name, found),
        ("bbm-unclean-children", _) => (
            "the cleaning of the entries below: they were made invalid and must be clean before the table goes"
                .to_owned(),
            vec!["clean every entry of the table".to_owned(), "then remove the table's entry".to_owned()],
        ),
        (name, _) => plain(name),
    }
}

/// What is missing when a tree is used while TLBs may contain entries of another one.
fn reused(name: &str, found: &Found) -> (String, Vec<String>) {
    let Some(reuse) = found.reuse else { return plain(name) };
    let (kind, is_global) = (reuse.kind, name == "global-entries-kept");
    let tlbi = match (kind, kind.is_el1()) {
        (TreeKind::StageTwo, _) => "tlbi alle1is",
        (_, true) if is_global => "tlbi vmalle1is (or alle1is)",
        (_, true) => "tlbi aside1is of the ASID (vmalle1is if it has global entries)",
        _ if is_global => "tlbi alle2is",
        _ => "tlbi alle2is (or aside1is of the ASID, for a host)",
    };
    let leave = format!("stop using the tree at {:#x}", reuse.other);
    let first = if reuse.is_direct { format!("{leave}, then ") } else { String::new() };
    let missing = format!("{first}{tlbi}, then dsb ish before the new tree is used");
    let register = kind.base().name();
    let correct = vec![
        format!("write {register} with tables that map nothing, or with an unused identifier"),
        "isb".to_owned(),
        tlbi.to_owned(),
        "dsb ish".to_owned(),
        format!("write {register} with the new tree"),
    ];
    (missing, correct)
}

/// What is missing when a live entry is changed.
fn missing_break(change: Option<&LiveChange>) -> String {
    let break_needed = "the break: the entry is live and must be made invalid and cleaned before";
    let Some(change) = change else { return format!("{break_needed} it may change") };
    if change.deciding_architecture == 0 {
        return "nothing by the architecture, which allows this change in place; the rule set in use requires a break"
            .to_owned();
    }
    let fields = change.fields();
    let names: Vec<&str> = fields.iter().filter(|field| field.needs_break).map(|field| field.name).collect();
    let what =
        if names.is_empty() { "it is written".to_owned() } else { format!("its {} may change", names.join(" and ")) };
    let mut missing = format!("{break_needed} {what}");
    if let Some(other) = change.obstacle.and_then(without_break) {
        missing.push_str(other);
    }
    if names == ["output address"] && change.is_read_only() {
        missing.push_str(" (both values are read-only: none is needed if the memory behind them is equal, which a trace does not show)");
    }
    missing
}

/// What would permit a change of size without a break.
fn without_break(obstacle: Obstacle) -> Option<&'static str> {
    match obstacle {
        Obstacle::Level => None,
        Obstacle::NotMarked => Some(
            "; or set nT of the block, clean TLBs, and change the size then (a new block needs nT when it is written)",
        ),
        Obstacle::Pending => Some("; or complete the TLB maintenance of the last change of size: dsb, tlbi, dsb"),
        Obstacle::Differs { .. } | Obstacle::Unmapped { .. } => {
            Some("; no break is needed for a table that maps every address as the block does")
        }
        Obstacle::Unclean { .. } => Some("; no break is needed once the entries of the table are clean"),
    }
}

/// The steps that remain from a state.
fn cleaning(cell: &Cell, from: Progress) -> Vec<String> {
    remaining(cell, from, false)
}

/// The same. `is_above`: what TLBs have of the tables above goes too, which no operation of the last level drops.
fn remaining(cell: &Cell, from: Progress, is_above: bool) -> Vec<String> {
    let page = cell.place.input >> 12;
    let is_table = cell.descriptor().is_table();
    let full = match (cell.place.stage, is_table) {
        _ if cell.place.kind.is_el1() && is_table => "tlbi vmalle1is".to_owned(),
        _ if cell.place.kind.is_el1() => {
            format!("tlbi vae1is (or vaae1is) with page number {:#x}, or vmalle1is", page & ((1 << 44) - 1))
        }
        (1, true) => "tlbi alle2is".to_owned(),
        (1, false) if cell.place.level == 3 && !is_above => {
            format!("tlbi vae2is (or vale2is) with page number {page:#x}, or alle2is")
        }
        (1, false) => format!("tlbi vae2is with page number {page:#x}, or alle2is"),
        (_, true) => "tlbi vmalls12e1is or alle1is".to_owned(),
        (..) => format!(
            "tlbi vmalls12e1is or alle1is (or ipas2e1is with page number {page:#x}, dsb ish, vmalle1is; entry of {:#x} bytes)",
            cell.bytes()
        ),
    };
    let dsb = || "dsb ish".to_owned();
    match from {
        Progress::Unguarded => vec![dsb(), full, dsb()],
        Progress::Dsbed => vec![full, dsb()],
        Progress::TlbiIpa => vec![dsb(), "tlbi vmalle1is".to_owned(), dsb()],
        Progress::TlbiIpaDsbed => vec!["tlbi vmalle1is (stage 1)".to_owned(), dsb()],
        Progress::Tlbied => vec![dsb()],
    }
}

/// Rules whose advice does not depend on the entry.
const PLAIN: &[(&str, &str, &[&str])] = &[
    (
        "write-below-unclean-parent",
        "the cleaning of the entry above, which was made invalid",
        &["clean the entry above", "then write to the page, which is no longer a table"],
    ),
    ("write-uninitialised", "an initialization of this memory (mem-init)", &["mem-init of the page", "write"]),
    (
        "write-other-thread",
        "a write by the owner: the entry belongs to another thread",
        &["write by the thread that owns the entry"],
    ),
    (
        "write-without-lock-association",
        "a hint set_root_lock for the entry's root",
        &["hint set_root_lock root lock", "lock", "write", "unlock"],
    ),
    ("write-unlocked", "the lock of the entry's root, held by the writing thread", &["lock", "write", "unlock"]),
    ("write-plain-unauthorised", "a DSB between two plain writes (or a release write)", &["write", "dsb ish", "write"]),
    (
        "freeze-thread-owned",
        "giving back the entries below that belong to a thread",
        &["hint set_pte_thread_owner entry -1", "remove the table"],
    ),
    ("init-used", "a mem-free before the memory is initialized again", &["mem-free", "mem-init"]),
    (
        "free-entry",
        "removing the table from its tree before its memory is freed",
        &["make the entry that points at it invalid", "clean that entry", "mem-free"],
    ),
    ("invalid-descriptor", "a descriptor that its level allows (bits 1:0 = 01 at level 0 or 3 is reserved)", &[]),
    (
        "walk-uninitialised",
        "an initialization of the table's page before it is linked",
        &["mem-init of the page", "write the entry that points at it"],
    ),
    (
        "double-use",
        "another page: this one is part of a tree already",
        &["remove it from its first place and clean that", "then link it again"],
    ),
    ("dsb-nsh", "a DSB that reaches other cores (ISH)", &["dsb ish"]),
    ("tlbi-local", "a TLBI that reaches other cores (the IS form)", &["the same TLBI with IS"]),
    (
        "contiguous-differs",
        "the other entries of the group broken and cleaned, or a value that continues their range",
        &[
            "write invalid values to all entries of the group",
            "dsb ish",
            "tlbi of each",
            "dsb ish",
            "write the new values",
        ],
    ),
    ("asid-reserved", "an ASID of 0: bits 63:48 of TTBR0_EL2 are reserved", &[]),
    (
        "root-other-id",
        "the identifier under which the root was registered",
        &["release_table of the root", "write the register with the new identifier"],
    ),
    ("duplicate-root-id", "an unused identifier", &["release_table of the other root, or another identifier"]),
    (
        "release-unclean",
        "the cleaning of unclean entries in the tree",
        &["dsb ish", "tlbi", "dsb ish", "release_table"],
    ),
    (
        "release-in-use",
        "switching every thread to another root first",
        &["write VTTBR_EL2 or TTBR0_EL2 of each user", "release_table"],
    ),
    ("release-no-root", "a registered root at this address", &[]),
    ("lock-held", "an unlock by the holder", &["unlock by the holder", "lock"]),
    ("trylock-other-thread", "an unlock by the holder", &["unlock by the holder", "trylock"]),
    ("unlock-not-held", "a lock before the unlock", &["lock", "unlock"]),
    ("unlock-other-thread", "an unlock by the holder", &["unlock by the holder"]),
    (
        "owner-root-of-entry",
        "the hint before the page becomes part of a tree",
        &["hint set_owner_root", "link the page"],
    ),
    (
        "thread-owner-uninitialised",
        "an initialization of the memory",
        &["mem-init", "link the page", "hint set_pte_thread_owner"],
    ),
    ("thread-owner-non-entry", "linking the page into a tree first", &["link the page", "hint set_pte_thread_owner"]),
    ("thread-owner-non-leaf", "an entry of level 3: only such may belong to a thread", &[]),
    (
        "no-base-register",
        "a write of the stage's base register before the stage is enabled",
        &["write VTTBR_EL2 or TTBR0_EL2", "write HCR_EL2 or SCTLR_EL2"],
    ),
];

fn plain(name: &str) -> (String, Vec<String>) {
    let row = PLAIN.iter().find(|row| row.0 == name);
    row.map_or(("nothing: the configuration is not supported".to_owned(), Vec::new()), |(_, missing, steps)| {
        ((*missing).to_owned(), steps.iter().map(|step| (*step).to_owned()).collect())
    })
}
