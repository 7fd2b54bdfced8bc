//! `casemate state`: roots, contexts, locks, unclean entries and memory, as text and JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::checkpoints::StateAt;
use super::explain::{descriptor_words, place_words};
use super::render::hex;
use crate::model::{Format, Root, TreeKind};

/// The state as text for people. `with_tables` lists the valid and unclean entries of every table.
pub fn state_text(state: &StateAt, with_tables: bool) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_state(state, with_tables, &mut out);
    out
}

fn write_state(state: &StateAt, with_tables: bool, out: &mut String) -> std::fmt::Result {
    let checker = &state.checker;
    match &state.at {
        Some(at) => writeln!(out, "after {}\n  {}", at.words(), at.text)?,
        None => writeln!(out, "before the first record")?,
    }
    writeln!(out, "roots")?;
    for root in checker.registered_roots() {
        let name = if root.stage == 1 { "ASID" } else { "VMID" };
        let (base, stage, users) = (root.base, root.stage, root.users);
        let (id, format) = (identifier(root), unusual(root));
        writeln!(
            out,
            "  {base:#x}: stage {stage}, {name} {id}, level {}{format}, used by {users} threads",
            root.level
        )?;
    }
    writeln!(out, "threads")?;
    for thread in checker.thread_views() {
        let current = |at: usize| thread.current[at].map_or("-".to_owned(), |base| format!("{base:#x}"));
        write!(out, "  {}: stage 1 {}, stage 2 {}", thread.thread, current(0), current(1))?;
        for (kind, base) in TreeKind::ALL.into_iter().zip(thread.current).skip(2) {
            base.map_or(Ok(()), |base| write!(out, ", tables of {} {base:#x}", kind.base().name()))?;
        }
        for (register, value) in &thread.registers {
            write!(out, ", {} {value:#x}", register.name())?;
        }
        writeln!(out)?;
    }
    writeln!(out, "locks")?;
    for lock in checker.root_locks() {
        write!(out, "  {:#x} guards root {:#x}", lock.lock, lock.root)?;
        match lock.held {
            Some((thread, count, is_authorised)) => {
                let not = if is_authorised { "" } else { "not " };
                writeln!(out, ", held {count} times by thread {thread}, plain writes {not}authorized")?;
            }
            None => writeln!(out, ", free")?,
        }
    }
    for (lock, thread, count) in checker.held_locks() {
        writeln!(out, "  {lock:#x} held {count} times by thread {thread}")?;
    }
    writeln!(out, "unclean entries, newest first")?;
    for entry in checker.unclean_entries() {
        let place = checker.cell(entry.address).map_or(String::new(), |cell| place_words(&cell));
        writeln!(out, "  {:#x}: {}, by thread {}; {place}", entry.address, entry.progress.letters(), entry.thread)?;
    }
    let stale = checker.stale_entries();
    if !stale.is_empty() {
        writeln!(out, "stale entries, newest first")?;
    }
    for entry in stale {
        let place = checker.cell(entry.address).map_or(String::new(), |cell| place_words(&cell));
        let letters = entry.progress.letters();
        write!(out, "  {:#x}: {letters}, by thread {}, was {:#x}", entry.address, entry.thread, entry.old)?;
        match entry.lost.is_empty() {
            true => writeln!(out, ", in another size; {place}")?,
            false => writeln!(out, ", lost {}; {place}", entry.lost.words())?,
        }
    }
    let (pages, words) = checker.initialised_pages();
    let tables = checker.table_pages();
    writeln!(out, "memory: {pages} pages, {words} words initialized, {} pages of tables", tables.len())?;
    if !with_tables {
        return Ok(());
    }
    for table in tables {
        writeln!(out, "table {table:#x}")?;
        for cell in checker.cells_of_page(table) {
            let is_shown = cell.value & 1 != 0 || matches!(cell.state, crate::model::CellState::Unclean { .. });
            if is_shown {
                let words = descriptor_words(cell.descriptor());
                writeln!(out, "  {:#x} = {:#x}: {words}; {}", cell.address, cell.value, place_words(&cell))?;
            }
        }
    }
    Ok(())
}

/// The VMID or ASID of a root, and what else TLBs may contain its entries under.
fn identifier(root: &Root) -> String {
    let mut words = root.id.to_string();
    words.push_str(if root.has_other_ids { " and others" } else { "" });
    if root.kind.is_el1() {
        let others = if root.has_other_vmids { " and others" } else { "" };
        words.push_str(&format!(", VMID {}{others}", root.vmid));
    }
    if !matches!(root.kind, TreeKind::El2 | TreeKind::StageTwo) {
        words.push_str(&format!(", of {}", root.kind.base().name()));
    }
    words
}

/// The layout of a root's descriptors, if it is not the usual one.
pub fn unusual(root: &Root) -> String {
    if root.format == Format::default() { String::new() } else { format!(", {}", root.format.words()) }
}

/// The state as JSON for programs.
pub fn state_json(state: &StateAt) -> Value {
    let checker = &state.checker;
    let roots: Vec<Value> = checker
        .registered_roots()
        .map(|root| {
            json!({"base": hex(root.base), "register": root.kind.base().name(), "stage": root.stage, "id": root.id,
                   "vmid": root.kind.is_el1().then_some(root.vmid), "users": root.users,
                   "level": root.level, "tables": root.tables, "granule_bytes": root.format.entry_bytes(3),
                   "wide_addresses": root.format.has_wide_addresses})
        })
        .collect();
    let threads: Vec<Value> = checker
        .thread_views()
        .into_iter()
        .map(|thread| {
            let registers: serde_json::Map<String, Value> =
                thread.registers.iter().map(|(register, value)| (register.name().to_owned(), hex(*value))).collect();
            let bases = TreeKind::ALL.into_iter().zip(thread.current);
            let bases: serde_json::Map<String, Value> =
                bases.filter_map(|(kind, base)| Some((kind.base().name().to_owned(), hex(base?)))).collect();
            json!({"thread": thread.thread, "stage_1": thread.current[0].map(hex), "stage_2": thread.current[1].map(hex),
                   "current": bases,
                   "registers": registers})
        })
        .collect();
    let locks: Vec<Value> = checker
        .root_locks()
        .into_iter()
        .map(|lock| {
            json!({"root": hex(lock.root), "lock": hex(lock.lock),
                   "held": lock.held.map(|(thread, count, is_authorised)| json!({
                       "thread": thread, "count": count, "plain_write_authorised": is_authorised}))})
        })
        .collect();
    let held: Vec<Value> = checker
        .held_locks()
        .into_iter()
        .map(|(lock, thread, count)| json!({"lock": hex(lock), "thread": thread, "count": count}))
        .collect();
    let unclean: Vec<Value> = checker
        .unclean_entries()
        .into_iter()
        .map(|entry| {
            let cell = checker.cell(entry.address);
            json!({"location": hex(entry.address), "state": entry.progress.letters(), "thread": entry.thread,
                   "root": cell.map(|cell| hex(cell.place.root)), "level": cell.map(|cell| cell.place.level),
                   "input_start": cell.map(|cell| hex(cell.place.input))})
        })
        .collect();
    let stale: Vec<Value> = checker
        .stale_entries()
        .into_iter()
        .map(|entry| {
            json!({"location": hex(entry.address), "state": entry.progress.letters(), "thread": entry.thread,
                   "old": hex(entry.old), "rights": entry.lost.words()})
        })
        .collect();
    let (pages, words) = checker.initialised_pages();
    json!({
        "version": 1,
        "index": state.at.as_ref().map(|at| at.index),
        "record_id": state.at.as_ref().map(|at| at.id),
        "thread": state.at.as_ref().map(|at| at.thread),
        "roots": roots,
        "threads": threads,
        "root_locks": locks,
        "held_locks": held,
        "unclean": unclean,
        "stale": stale,
        "memory": {"pages": pages, "words": words,
                   "tables": checker.table_pages().into_iter().map(hex).collect::<Vec<_>>()},
    })
}
