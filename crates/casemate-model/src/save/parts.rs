//! Each part of the state.

use alloc::vec::Vec;

use super::{In, Out, sorted};
use crate::descriptor::{Format, Granule};
use crate::locks::{HeldLock, Locks};
use crate::memory::{Memory, Page, Table, WORDS};
use crate::rights::Rights;
use crate::roots::{Root, Roots};
use crate::stale::{Request, Stale, StaleEntries};
use crate::tags::{Held, Key, Tags};
use crate::threads::Threads;
use crate::tree::TreeKind;
use crate::unclean::{List, Owner, Progress, Unclean, UncleanEntries};

fn save_format(format: Format, out: &mut Out) {
    out.number(format.granule as u64);
    out.flag(format.has_wide_addresses);
}

fn restore_format(input: &mut In<'_>) -> Option<Format> {
    let granule = [Granule::K4, Granule::K16, Granule::K64].get(input.small::<usize>()?).copied()?;
    Some(Format { granule, has_wide_addresses: input.flag()? })
}

fn kind(input: &mut In<'_>) -> Option<TreeKind> {
    let number = input.small::<u8>()?;
    TreeKind::ALL.into_iter().find(|kind| *kind as u8 == number)
}

fn save_level(level: i8) -> u64 {
    u64::from((level + 1).unsigned_abs())
}

fn level(input: &mut In<'_>) -> Option<i8> {
    input.small::<i8>().filter(|number| (0..5).contains(number)).map(|number| number - 1)
}

/// A kind of tree as part of a key; 0 where stages are not distinguished.
fn key(input: &mut In<'_>) -> Option<u8> {
    input.small::<u8>().filter(|key| usize::from(*key) <= TreeKind::ALL.len())
}

fn progress(input: &mut In<'_>) -> Option<Progress> {
    use Progress::{Dsbed, TlbiIpa, TlbiIpaDsbed, Tlbied, Unguarded};
    [Unguarded, Dsbed, TlbiIpa, TlbiIpaDsbed, Tlbied].get(input.small::<usize>()?).copied()
}

impl Table {
    fn save(&self, out: &mut Out) {
        for number in [self.root, self.input, self.parent, self.thread.into(), save_level(self.level), self.kind as u64]
        {
            out.number(number);
        }
        save_format(self.format, out);
    }

    fn restore(input: &mut In<'_>) -> Option<Self> {
        Some(Self {
            root: input.number()?,
            input: input.number()?,
            parent: input.number()?,
            thread: input.small()?,
            level: level(input)?,
            kind: kind(input)?,
            format: restore_format(input)?,
        })
    }
}

impl Page {
    fn save(&self, out: &mut Out) {
        out.number(self.base);
        self.values.iter().for_each(|value| out.number(*value));
        let flags = [&self.initialised, &self.entry, &self.unclean, &self.frozen, &self.was_table, &self.aged];
        flags.into_iter().for_each(|bits| out.bits(bits));
        self.table.save(out);
        out.list(self.mixed.iter(), |out, table| {
            table.save(out);
        });
        out.list(self.owners.iter(), |out, owner| {
            out.number(u64::from(owner.cast_unsigned()));
        });
        out.list(self.cleaners.iter(), |out, cleaner| {
            out.number(u64::from(*cleaner));
        });
        out.flag(self.has_contiguous);
        out.number(self.unclean_below.into());
    }

    fn restore(input: &mut In<'_>) -> Option<Self> {
        let mut page = Self::new(input.number()?, 0);
        for at in 0..WORDS {
            let value = input.number()?;
            page.store(at, value);
        }
        page.initialised = input.bits()?;
        page.entry = input.bits()?;
        page.unclean = input.bits()?;
        page.frozen = input.bits()?;
        page.was_table = input.bits()?;
        page.aged = input.bits()?;
        page.table = Table::restore(input)?;
        page.mixed = words(input.list(Table::restore)?)?;
        page.owners = words(input.list(|input| Some(input.small::<u32>()?.cast_signed()))?)?;
        page.cleaners = words(input.list(In::small)?)?;
        page.has_contiguous = input.flag()?;
        page.unclean_below = input.small()?;
        Some(page)
    }
}

/// What each word of a page has: all of them or none.
fn words<T>(list: Vec<T>) -> Option<Vec<T>> {
    matches!(list.len(), 0 | WORDS).then_some(list)
}

impl Memory {
    pub(super) fn save(&self, out: &mut Out) {
        out.list(self.used().into_iter(), |out, page| page.save(out));
        out.list(self.spans().collect::<Vec<_>>().into_iter(), |out, (first, end, value)| {
            [first, end, value].into_iter().for_each(|number| out.number(number));
        });
    }

    pub(super) fn restore(&mut self, input: &mut In<'_>) -> Option<()> {
        for page in input.list(Page::restore)? {
            self.add(page);
        }
        let mut before = 0;
        for (first, end, value) in input.list(|input| Some((input.number()?, input.number()?, input.number()?)))? {
            if first < before || end <= first {
                return None;
            }
            before = end;
            self.insert_span(first, end, value);
        }
        Some(())
    }
}

impl UncleanEntries {
    pub(super) fn save(&self, out: &mut Out) {
        out.list(sorted(&self.cells).into_iter(), |out, (cell, unclean)| {
            for number in [cell, unclean.number, unclean.thread.into(), unclean.old, unclean.progress as u64] {
                out.number(number);
            }
            out.flag(unclean.is_plain);
        });
        out.list(self.lists.iter(), |out, list| {
            let (is_thread, owner) = match list.owner {
                Owner::Root(root) => (false, root),
                Owner::Thread(thread) => (true, u64::from(thread.cast_unsigned())),
            };
            out.flag(is_thread);
            out.number(owner);
            out.list(list.entries.iter(), |out, (cell, number)| {
                out.number(*cell);
                out.number(*number);
            });
        });
        out.number(self.next);
    }

    pub(super) fn restore(&mut self, input: &mut In<'_>) -> Option<()> {
        let cells = input.list(|input| {
            let cell = input.number()?;
            let (number, thread, old) = (input.number()?, input.small()?, input.number()?);
            let progress = progress(input)?;
            Some((cell, Unclean { number, thread, old, progress, is_plain: input.flag()? }))
        })?;
        for (cell, unclean) in cells {
            self.cells.insert(cell, unclean);
        }
        self.lists = input.list(|input| {
            let owner = match input.flag()? {
                true => Owner::Thread(input.small::<u32>()?.cast_signed()),
                false => Owner::Root(input.number()?),
            };
            Some(List { owner, entries: input.list(|input| Some((input.number()?, input.number()?)))? })
        })?;
        self.next = input.number()?;
        Some(())
    }
}

impl Stale {
    fn save(&self, out: &mut Out) {
        for number in [self.number, self.thread.into(), self.old, self.granted.bits().into(), self.lost.bits().into()] {
            out.number(number);
        }
        out.flag(self.is_resized);
        out.number(self.levels.into());
        out.option(self.above);
        out.flag(self.is_written);
        out.flag(self.is_stage_two_done);
        out.list(self.requests.iter(), |out, request| {
            out.number(request.thread.into());
            out.flag(request.is_full);
            out.flag(request.is_plain);
        });
    }

    fn restore(input: &mut In<'_>) -> Option<Self> {
        Some(Self {
            number: input.number()?,
            thread: input.small()?,
            old: input.number()?,
            granted: Rights::from_bits(input.small()?),
            lost: Rights::from_bits(input.small()?),
            is_resized: input.flag()?,
            levels: input.small()?,
            above: input.option()?,
            is_written: input.flag()?,
            is_stage_two_done: input.flag()?,
            requests: input.list(|input| {
                Some(Request { thread: input.small()?, is_full: input.flag()?, is_plain: input.flag()? })
            })?,
        })
    }
}

impl StaleEntries {
    pub(super) fn save(&self, out: &mut Out) {
        out.list(self.cells.iter().collect::<Vec<_>>().into_iter(), |out, (cell, stale)| {
            out.number(cell);
            stale.save(out);
        });
        out.list(sorted(&self.listed).into_iter(), |out, (cell, (shift, first))| {
            [cell, u64::from(*shift), *first].into_iter().for_each(|number| out.number(number));
        });
        out.list(self.waiting.keys().collect::<Vec<_>>().into_iter(), Out::number);
        out.number(self.next);
    }

    pub(super) fn restore(&mut self, input: &mut In<'_>) -> Option<()> {
        for (cell, stale) in input.list(|input| Some((input.number()?, Stale::restore(input)?)))? {
            self.cells.insert(cell, stale);
        }
        for (cell, shift, first) in input.list(|input| Some((input.number()?, input.small()?, input.number()?)))? {
            self.listed.insert(cell, (shift, first));
            self.outputs.insert((shift, first, cell), ());
        }
        for cell in input.list(In::number)? {
            self.waiting.insert(cell, ());
        }
        self.next = input.number()?;
        Some(())
    }
}

impl Locks {
    pub(super) fn save(&self, out: &mut Out) {
        out.list(sorted(&self.held).into_iter(), |out, (lock, held)| {
            [lock, held.thread.into(), held.count, held.written_in].into_iter().for_each(|number| out.number(number));
        });
        out.list(self.associations.iter(), |out, (root, lock)| {
            out.number(*root);
            out.number(*lock);
        });
    }

    pub(super) fn restore(&mut self, input: &mut In<'_>) -> Option<()> {
        let held = input.list(|input| {
            let lock = input.number()?;
            let (thread, count, written_in) = (input.small()?, input.number()?, input.number()?);
            Some((lock, HeldLock { thread, count, written_in }))
        })?;
        for (lock, held) in held {
            self.held.insert(lock, held);
        }
        self.associations = input.list(|input| Some((input.number()?, input.number()?)))?;
        for (at, (root, _)) in self.associations.iter().enumerate() {
            self.index.insert(*root, at);
        }
        Some(())
    }
}

impl Roots {
    pub(super) fn save(&self, out: &mut Out) {
        out.list(self.slots.iter(), |out, slot| {
            out.flag(slot.is_some());
            let Some(root) = slot else { return };
            let numbers = [root.base, root.id, root.vmid, root.users, root.input, root.kind as u64];
            numbers.into_iter().for_each(|number| out.number(number));
            out.number(save_level(root.level));
            out.number(root.tables.into());
            save_format(root.format, out);
            out.number(root.pages.into());
            out.number(root.serial);
            out.flag(root.has_other_ids);
            out.flag(root.has_other_vmids);
            out.option(root.stage_two);
        });
        for index in [&self.by_base, &self.by_id] {
            out.list(sorted(index).into_iter(), |out, ((number, stage), slot)| {
                [number, stage.into(), *slot as u64].into_iter().for_each(|number| out.number(number));
            });
        }
    }

    pub(super) fn restore(&mut self, input: &mut In<'_>) -> Option<()> {
        self.slots = input.list(|input| {
            if !input.flag()? {
                return Some(None);
            }
            let (base, id, vmid) = (input.number()?, input.number()?, input.number()?);
            let (users, first, kind) = (input.number()?, input.number()?, kind(input)?);
            Some(Some(Root {
                stage: kind.stage(),
                kind,
                base,
                id,
                vmid,
                users,
                input: first,
                level: level(input)?,
                tables: input.small()?,
                format: restore_format(input)?,
                pages: input.small()?,
                serial: input.number()?,
                has_other_ids: input.flag()?,
                has_other_vmids: input.flag()?,
                stage_two: input.option()?,
            }))
        })?;
        for (at, _) in self.slots.iter().enumerate().filter(|(_, slot)| slot.is_none()) {
            self.free.insert(at, ());
        }
        for index in [&mut self.by_base, &mut self.by_id] {
            for (key, slot) in input.list(|input| Some(((input.number()?, key(input)?), input.small()?)))? {
                index.insert(key, slot);
            }
        }
        Some(())
    }
}

fn save_key((number, kind): Key, out: &mut Out) {
    out.number(number);
    out.number(kind.into());
}

fn restore_key(input: &mut In<'_>) -> Option<Key> {
    Some((input.number()?, input.small()?))
}

impl Held {
    fn save(&self, out: &mut Out) {
        [self.slot as u64, self.base, self.serial, self.left].into_iter().for_each(|number| out.number(number));
    }

    fn restore(input: &mut In<'_>) -> Option<Self> {
        let (slot, base) = (input.small()?, input.number()?);
        Some(Self { slot, base, serial: input.number()?, left: input.number()? })
    }
}

impl Tags {
    pub(super) fn save(&self, out: &mut Out) {
        out.list(sorted(&self.held).into_iter(), |out, (key, held)| {
            save_key(key, out);
            held.save(out);
        });
        out.list(sorted(&self.last).into_iter(), |out, (key, held)| {
            save_key(key, out);
            held.save(out);
        });
        out.list(sorted(&self.done).into_iter(), |out, (key, time)| {
            save_key(key, out);
            out.number(*time);
        });
        out.list(self.sent.iter().collect::<Vec<_>>().into_iter(), |out, ((thread, key), time)| {
            out.number(thread.into());
            save_key(key, out);
            out.number(*time);
        });
        out.list(sorted(&self.ghosts).into_iter(), |out, (serial, is_global)| {
            out.number(serial);
            out.flag(*is_global);
        });
        [self.clock, self.serial].into_iter().for_each(|number| out.number(number));
        out.flag(self.has_left);
    }

    pub(super) fn restore(&mut self, input: &mut In<'_>) -> Option<()> {
        for (key, held) in input.list(|input| Some((restore_key(input)?, Held::restore(input)?)))? {
            self.held.insert(key, held);
        }
        for (key, last) in input.list(|input| Some((restore_key(input)?, Held::restore(input)?)))? {
            self.last.insert(key, last);
        }
        for (key, time) in input.list(|input| Some((restore_key(input)?, input.number()?)))? {
            self.done.insert(key, time);
        }
        for (key, time) in input.list(|input| Some(((input.small()?, restore_key(input)?), input.number()?)))? {
            self.sent.insert(key, time);
        }
        for (serial, is_global) in input.list(|input| Some((input.number()?, input.flag()?)))? {
            self.ghosts.insert(serial, is_global);
        }
        (self.clock, self.serial) = (input.number()?, input.number()?);
        self.has_left = input.flag()?;
        Some(())
    }
}

impl Threads {
    pub(super) fn save(&self, out: &mut Out) {
        out.list(self.in_order().iter(), |out, (number, thread)| {
            out.number(u64::from(*number));
            out.list(thread.registers.iter(), |out, value| out.option(*value));
            thread.current.iter().for_each(|slot| out.option(slot.map(|slot| slot as u64)));
            thread.tags.iter().for_each(|tag| out.option(*tag));
            out.number(thread.dsbs);
        });
    }

    pub(super) fn restore(&mut self, input: &mut In<'_>) -> Option<()> {
        input.list(|input| {
            let thread = self.make(input.small()?)?;
            thread.registers = input.list(In::option)?.try_into().ok()?;
            for slot in &mut thread.current {
                *slot = input.option()?.map(usize::try_from).transpose().ok()?;
            }
            for tag in &mut thread.tags {
                *tag = input.option()?;
            }
            thread.dsbs = input.number()?;
            Some(())
        })?;
        Some(())
    }
}
