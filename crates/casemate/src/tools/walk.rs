//! `casemate walk`: what an address maps to, and the page table as a tree.

use std::fmt::Write;

use anytrace_core::Error;
use serde_json::{Value, json};

use super::render::hex;
use crate::model::{CellState, Checker, Descriptor, Format, Root, Sysreg};

/// Most entries of a tree that are printed.
const ENTRIES_MAX: usize = 1 << 20;

/// An entry found on a walk, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its level.
    pub level: i8,
    /// The layout of its descriptor.
    pub format: Format,
    /// Its address.
    pub address: u64,
    /// Its value; `None` if memory was not initialized.
    pub value: Option<u64>,
    /// First input address it covers.
    pub input: u64,
    /// Its kind.
    pub descriptor: Descriptor,
    /// Attributes of a block or page: `rw-`, memory type, access flag and so on.
    pub attributes: String,
    /// `V`, `VS n`, `IU n`, … its state in the checker; `None` for words that are not entries.
    pub state: Option<String>,
}

/// Memory attributes of a block or page.
fn attributes(stage: u8, value: u64, mair: u64) -> String {
    let bit = |at: u32| value >> at & 1 != 0;
    let flag = |is_set: bool, letter: char| if is_set { letter } else { '-' };
    let (permissions, memory) = if stage == 1 {
        let permissions = format!("r{}{}", flag(!bit(7), 'w'), flag(!bit(54), 'x'));
        let index = value >> 2 & 7;
        let kind = mair >> (8 * index) & 0xff;
        let name = match kind {
            0x00 => "device nGnRnE".to_owned(),
            0x04 => "device nGnRE".to_owned(),
            0x44 => "normal non-cacheable".to_owned(),
            0xff => "normal".to_owned(),
            other => format!("memory {other:#04x}"),
        };
        (permissions, format!("{name} (AttrIndx {index})"))
    } else {
        let execute = match value >> 53 & 3 {
            0 => 'x',
            2 => '-',
            _ => '?',
        };
        let name = match value >> 2 & 0xf {
            0b0010 => "device nGnRE".to_owned(),
            0b1111 => "normal".to_owned(),
            other => format!("memory {other:#06b}"),
        };
        (format!("{}{}{execute}", flag(bit(6), 'r'), flag(bit(7), 'w')), name)
    };
    let shareability = ["non-shareable", "reserved shareability", "outer shareable", "inner shareable"];
    let shareability = shareability[usize::try_from(value >> 8 & 3).unwrap_or(0)];
    let access = if bit(10) { "AF" } else { "no AF" };
    let contiguous = if bit(52) { ", contiguous" } else { "" };
    let software = value >> 55 & 0xf;
    let software = if software == 0 { String::new() } else { format!(", software {software:#x}") };
    format!("{permissions}, {memory}, {shareability}, {access}{contiguous}{software}")
}

/// A view of one root's tree.
pub struct Tree<'a> {
    checker: &'a Checker,
    root: Root,
    mair: u64,
}

impl<'a> Tree<'a> {
    /// The tree of the root at a base.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Usage`] when no root has the base.
    pub fn new(checker: &'a Checker, base: u64) -> Result<Self, Error> {
        let root = checker.registered_roots().find(|root| root.base == base).copied().ok_or_else(|| {
            let known: Vec<_> = checker.registered_roots().map(|root| format!("{:#x}", root.base)).collect();
            Error::usage(format!("no root at {base:#x}; roots: {}", known.join(", ")))
        })?;
        let types = if root.kind.is_el1() { Sysreg::MairEl1 } else { Sysreg::MairEl2 };
        let mair = checker
            .thread_views()
            .iter()
            .find_map(|thread| thread.registers.iter().find(|(register, _)| *register == types).map(|r| r.1));
        Ok(Self { checker, root, mair: mair.unwrap_or(0) })
    }

    /// The root.
    pub fn root(&self) -> &Root {
        &self.root
    }

    fn entry(&self, table: u64, at: u64, level: i8, input: u64) -> Entry {
        let address = table.wrapping_add(8 * at);
        let value = self.checker.value(address);
        let format = self.root.format;
        let descriptor = Descriptor::decode(format, level, value.unwrap_or(0));
        let is_map = matches!(descriptor, Descriptor::Map(_));
        let state = self.checker.cell(address).map(|cell| match cell.state {
            CellState::Valid => stale_state(self.checker, address),
            CellState::Unclean { thread, progress, .. } => format!("IU {} by thread {thread}", progress.letters()),
            CellState::Clean { .. } => "I".to_owned(),
        });
        let attributes =
            if is_map { attributes(self.root.stage, value.unwrap_or(0), self.mair) } else { String::new() };
        Entry { level, format, address, value, input, descriptor, attributes, state }
    }

    /// The entries that translate an input address, from the root down; none for an address beyond the root's range.
    pub fn walk(&self, address: u64) -> Vec<Entry> {
        let mut entries = Vec::new();
        let (mut level, mut table) = (self.root.level, self.root.base);
        let format = self.root.format;
        let Some(offset) = address.checked_sub(self.root.input) else { return entries };
        let top = offset >> format.shift(level);
        let mut at = top;
        if at >= 512 * u64::from(self.root.pages) {
            return entries;
        }
        loop {
            let input = address & !(format.entry_bytes(level) - 1);
            let entry = self.entry(table, at, level, input);
            let next = entry.descriptor;
            entries.push(entry);
            let Descriptor::Table(base) = next else { return entries };
            (level, table) = (level + 1, base);
            at = (address >> format.shift(level)) % format.entries();
        }
    }

    /// The output address of an input address.
    pub fn translate(&self, address: u64) -> Option<u64> {
        let last = self.walk(address).pop()?;
        match last.descriptor {
            Descriptor::Map(output) => Some(output + (address - last.input)),
            _ => None,
        }
    }

    /// Visits the entries that are valid or unclean, each before those below it; stops after about a million.
    pub fn entries(&self) -> Vec<Entry> {
        let mut found = Vec::new();
        let Root { base, level, pages, input, .. } = self.root;
        self.below(base, level, (input, 512 * u64::from(pages)), &mut found);
        found
    }

    fn below(&self, table: u64, level: i8, (input, entries): (u64, u64), found: &mut Vec<Entry>) {
        let bytes = self.root.format.entry_bytes(level);
        for at in 0..entries {
            if found.len() >= ENTRIES_MAX {
                return;
            }
            let entry = self.entry(table, at, level, input.wrapping_add(at.wrapping_mul(bytes)));
            let is_unclean = entry.state.as_ref().is_some_and(|state| state.starts_with("IU"));
            if entry.descriptor == Descriptor::Invalid && !is_unclean {
                continue;
            }
            let (next, input) = (entry.descriptor, entry.input);
            found.push(entry);
            if let Descriptor::Table(base) = next {
                self.below(base, level + 1, (input, self.root.format.entries()), found);
            }
        }
    }
}

/// One entry for people, indented by level.
pub fn entry_text(entry: &Entry, top: i8, out: &mut String) {
    let indent = "  ".repeat(usize::try_from(entry.level.saturating_sub(top)).unwrap_or(0));
    let last = entry.input.wrapping_add(entry.format.entry_bytes(entry.level) - 1);
    let value = entry.value.map_or("not initialized".to_owned(), |value| format!("{value:#x}"));
    let what = super::explain::descriptor_words(entry.descriptor);
    let state = entry.state.as_ref().map_or("no entry", String::as_str);
    // Writing to a String cannot fail.
    let _ =
        write!(out, "{indent}L{} {:#x}..{last:#x} [{:#x}] = {value}: {what}", entry.level, entry.input, entry.address);
    if !entry.attributes.is_empty() {
        let _ = write!(out, " ({})", entry.attributes);
    }
    let _ = writeln!(out, "; {state}");
}

/// `V`, or the progress of the maintenance of an entry that was changed in place: `VS d`.
fn stale_state(checker: &Checker, address: u64) -> String {
    let stale = checker.stale_entry(address);
    stale.map_or_else(|| "V".to_owned(), |stale| format!("VS {}", stale.progress.letters()))
}

/// One entry for programs.
pub fn entry_json(entry: &Entry) -> Value {
    let (kind, target) = match entry.descriptor {
        Descriptor::Invalid => ("invalid", None),
        Descriptor::Table(base) => ("table", Some(base)),
        Descriptor::Map(output) => ("map", Some(output)),
        Descriptor::Bad => ("bad", None),
    };
    json!({
        "level": entry.level,
        "location": hex(entry.address),
        "value": entry.value.map(hex),
        "input_start": hex(entry.input),
        "input_bytes": entry.format.entry_bytes(entry.level),
        "kind": kind,
        "target": target.map(hex),
        "attributes": entry.attributes,
        "state": entry.state,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Options;
    use crate::wire::record::{MemoryOrder, Sysreg, Transition};

    #[test]
    fn an_address_is_translated_and_a_tree_listed() {
        let mut checker = Checker::new(Options::ARCHITECTURE);
        let write = |address, value| Transition::MemWrite { order: MemoryOrder::Plain, address, value };
        for step in [
            Transition::MemInit { address: 0x1000, size: 0x4000 },
            write(0x1000, 0x2003),
            write(0x2000, 0x3003),
            write(0x3008, 0x4003),
            write(0x3010, 0x8000_04fd),
            write(0x4010, 0x7_77c3),
            Transition::SysregWrite { register: Sysreg::VttbrEl2, value: 0x1000 },
        ] {
            assert!(checker.step(0, &step).is_empty());
        }
        let tree = Tree::new(&checker, 0x1000).unwrap();
        assert_eq!(tree.translate(0x20_2abc), Some(0x77abc));
        assert_eq!(tree.translate(0x41_2345), Some(0x8001_2345));
        assert_eq!(tree.translate(0x60_0000), None);
        assert_eq!(tree.walk(0x20_2abc).len(), 4);
        let shown: Vec<_> = tree.entries().iter().map(|entry| (entry.level, entry.input)).collect();
        assert_eq!(shown, [(0, 0), (1, 0), (2, 0x20_0000), (3, 0x20_2000), (2, 0x40_0000)]);
        let mut text = String::new();
        tree.entries().iter().for_each(|entry| entry_text(entry, 0, &mut text));
        assert!(
            text.contains(
                "L2 0x400000..0x5fffff [0x3010] = 0x800004fd: maps to 0x80000000 (rwx, normal, non-shareable, AF); V"
            ),
            "{text}"
        );
        assert!(Tree::new(&checker, 0x2000).is_err());
    }

    #[test]
    fn tables_of_16_kib_are_walked_in_all_their_pages() {
        let mut checker = Checker::new(Options::ARCHITECTURE);
        let write = |address, value| Transition::MemWrite { order: MemoryOrder::Plain, address, value };
        // 36 bits start at level 2; entry 2000 of level 2 maps from 2000 * 32 MiB on, entry 1999 of level 3 its page.
        for step in [
            Transition::SysregWrite { register: Sysreg::TcrEl2, value: 28 | 2 << 14 },
            Transition::MemInit { address: 0x1_0000, size: 0x8000 },
            write(0x1_0000 + 8 * 2000, 0x1_4003),
            write(0x1_0000 + 8 * 2001, 0x8200_0401),
            write(0x1_4000 + 8 * 1999, 0x7_8403),
            Transition::SysregWrite { register: Sysreg::Ttbr0El2, value: 0x1_0000 },
        ] {
            assert!(checker.step(0, &step).is_empty());
        }
        let tree = Tree::new(&checker, 0x1_0000).unwrap();
        let first = 2000 << 25;
        assert_eq!(tree.translate(first + (1999 << 14) + 0x123), Some(0x7_8123));
        assert_eq!(tree.translate((2001 << 25) + 0x1_2345), Some(0x8201_2345));
        let shown: Vec<_> = tree.entries().iter().map(|entry| (entry.level, entry.input)).collect();
        assert_eq!(shown, [(2, first), (3, first + (1999 << 14)), (2, 2001 << 25)]);
        assert_eq!(tree.root().format.words(), "16 KiB granule");
    }
}
