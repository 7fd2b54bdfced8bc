//! Walks over entire trees (2.2), and the actions on the way (2.3, 2.5, 2.8).

use super::descriptor::{Descriptor, Layout, PAGE, Shape, Stage, WORDS, is_valid};
use super::memory::Automaton;
use super::model::{Act, Model};
use super::registers::Geometry;
use super::verdict::{ASSERT_FALSE, ASSERT_TABLE, DOUBLE_USE, FREEZE_OWNED, Fault, UNINIT_PTE, UNMARK};

/// The action for each entry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Visit {
    /// It becomes an entry of the tree.
    Mark,
    /// It is no longer an entry.
    Unmark,
    /// A table above it became unclean.
    Freeze,
    /// Is it unclean?
    FindUnclean,
    /// Is it the entry at this address?
    Find(u64),
}

/// The tree that is walked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tree {
    /// Its root.
    pub(crate) root: u64,
    /// Its stage.
    pub(crate) stage: Stage,
    /// The layout of its descriptors.
    pub(crate) layout: &'static Layout,
}

impl Model {
    /// Decodes a descriptor; a mapping of stage 1 needs MAIR_EL2.
    pub(crate) fn explode(&self, act: Act, place: &Descriptor, value: u64) -> Result<Descriptor, Fault> {
        let desc = place.with(value)?;
        if desc.shape == Shape::Map && desc.stage.is_one() {
            self.read_mair(act, desc.stage)?;
        }
        Ok(desc)
    }

    /// Walks a table and all below it; true when the visit found its target.
    pub(crate) fn traverse(
        &mut self,
        act: Act,
        tree: Tree,
        (table, input, level): (u64, u64, i64),
        visit: Visit,
    ) -> Result<bool, Fault> {
        self.traverse_words(act, tree, (table, input, level), tree.layout.entries(), visit)
    }

    /// The same for some entries from the first one on.
    fn traverse_words(
        &mut self,
        act: Act,
        tree: Tree,
        (table, input, level): (u64, u64, i64),
        count: u64,
        visit: Visit,
    ) -> Result<bool, Fault> {
        let mut found = false;
        // Another thread's entry ends the walk of its page of 4 KiB.
        let mut left = None;
        for i in 0..count {
            let address = table + 8 * i;
            if i % WORDS == 0 {
                if !address.is_multiple_of(PAGE) {
                    return Err(Fault::Assert(ASSERT_TABLE));
                }
                if self.memory.get(address).is_some() {
                    if tree.stage.is_guest() && !self.visit_nested(tree, address, visit) {
                        left = Some(i / WORDS);
                        continue;
                    }
                    match visit {
                        Visit::Mark => self.hand_table(act, tree, address, level),
                        Visit::Unmark => self.settle_page(act, address)?,
                        _ => {}
                    }
                }
            }
            let ends_page = i % WORDS == WORDS - 1 && matches!(visit, Visit::Mark);
            if left == Some(i / WORDS) {
                if ends_page {
                    self.check_groups_of_page(act, address & !(PAGE - 1))?;
                }
                continue;
            }
            let Some(cell) = self.memory.initialised(address) else { return Err(Fault::Fire(UNINIT_PTE)) };
            if cell.thread().is_some_and(|owner| owner != act.thread) {
                if self.options.quirks.thread_owned_stops_table {
                    left = Some(i / WORDS);
                }
                if ends_page {
                    self.check_groups_of_page(act, address & !(PAGE - 1))?;
                }
                continue;
            }
            let value = match act.writing {
                Some((at, value)) if at == address => value,
                _ => cell.value,
            };
            let input = input.wrapping_add(i.wrapping_mul(tree.layout.entry_bytes(level)));
            let place = Descriptor { shape: Shape::Invalid, level, stage: tree.stage, input, layout: tree.layout };
            let desc = self.explode(act, &place, value)?;
            found |= self.visit(tree, address, (desc, value), visit)?;
            if let Shape::Table(next) = desc.shape {
                found |= self.traverse(act, tree, (next, input, level + 1), visit)?;
            }
            if ends_page {
                self.check_groups_of_page(act, address & !(PAGE - 1))?;
            }
        }
        Ok(found)
    }

    /// A page becomes a table, with everything that it maps.
    fn hand_table(&mut self, act: Act, tree: Tree, table: u64, level: i64) {
        self.hand(table, PAGE, None);
        for i in 0..WORDS {
            let address = table + 8 * i;
            let value = self.memory.initialised(address).map_or(0, |cell| cell.value);
            let value = act.writing.filter(|(at, _)| *at == address).map_or(value, |(_, value)| value);
            let Tree { stage, layout, .. } = tree;
            let place = Descriptor { shape: Shape::Invalid, level, stage, input: 0, layout };
            self.hand_mapped(tree.root, &place, value);
        }
    }

    fn visit(
        &mut self,
        tree: Tree,
        address: u64,
        (desc, value): (Descriptor, u64),
        visit: Visit,
    ) -> Result<bool, Fault> {
        let Some(cell) = self.memory.get_mut(address) else { return Ok(false) };
        match visit {
            Visit::Mark if cell.is_pte => return Err(Fault::Fire(DOUBLE_USE)),
            Visit::Mark => {
                cell.is_pte = true;
                cell.frozen = false;
                cell.was_accessed = false;
                cell.owner = tree.root;
                cell.desc = Some(desc);
                cell.automaton = match is_valid(value) {
                    true => Automaton::Valid,
                    false => Automaton::Clean { was_table: false },
                };
            }
            Visit::Unmark if !cell.is_pte => return Err(Fault::Fire(UNMARK)),
            Visit::Unmark => cell.is_pte = false,
            Visit::Freeze if cell.thread().is_some() => return Err(Fault::Fire(FREEZE_OWNED)),
            Visit::Freeze => cell.frozen = true,
            Visit::FindUnclean => return Ok(cell.is_pte && matches!(cell.automaton, Automaton::Unclean { .. })),
            Visit::Find(wanted) => return Ok(address == wanted),
        }
        Ok(false)
    }

    /// Walks a root by the shape its registers give it.
    pub(crate) fn walk_root(&mut self, act: Act, base: u64, stage: Stage, visit: Visit) -> Result<bool, Fault> {
        let kept = self.root_slot(stage, |root| root.base == base).and_then(|slot| self.roots[slot].geometry);
        let geometry = match kept {
            Some(geometry) if !self.options.quirks.acting_geometry => geometry,
            _ => match self.acting_geometry(act, stage)? {
                Some(geometry) => geometry,
                None => return Ok(true),
            },
        };
        self.walk_tables(act, Tree { root: base, stage, layout: geometry.layout }, geometry, visit)
    }

    /// Walks the tables at a tree's top, which are adjacent.
    pub(crate) fn walk_tables(
        &mut self,
        act: Act,
        tree: Tree,
        geometry: Geometry,
        visit: Visit,
    ) -> Result<bool, Fault> {
        self.traverse_words(act, tree, (tree.root, geometry.first, geometry.level), geometry.pages * WORDS, visit)
    }

    /// Walks what an entry's cached descriptor points to, if it is a table.
    pub(crate) fn walk_children(&mut self, act: Act, address: u64, visit: Visit) -> Result<bool, Fault> {
        let Some(cell) = self.memory.get(address).copied() else { return Ok(false) };
        let Some(desc) = cell.desc else { return Ok(false) };
        let Shape::Table(next) = desc.shape else { return Ok(false) };
        let tree = Tree { root: cell.owner, stage: desc.stage, layout: desc.layout };
        self.traverse(act, tree, (next, desc.input, desc.level + 1), visit)
    }

    /// True when no entry under the cached descriptor is unclean.
    pub(crate) fn children_clean(&mut self, act: Act, address: u64) -> Result<bool, Fault> {
        let Some(cell) = self.memory.get(address).copied() else { return Ok(true) };
        let Some(desc) = cell.desc else { return Ok(true) };
        if cell.thread().is_none() && !self.walk_root(act, cell.owner, desc.stage, Visit::Find(address))? {
            return Err(Fault::Assert(ASSERT_FALSE));
        }
        Ok(!self.walk_children(act, address, Visit::FindUnclean)?)
    }
}
