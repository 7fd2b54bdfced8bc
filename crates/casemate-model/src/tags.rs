//! Under which VMIDs and ASIDs the TLBs of each thread may contain entries of which tree, and the TLBIs that drop all
//! of them.

use crate::sorted::Sorted;
use crate::table::Map;
use crate::tree::TreeKind;

/// The thread still uses the tree: no TLBI ends that.
pub(crate) const IN_USE: u64 = u64::MAX;

/// A VMID and an ASID, or what a TLBI names of them, of a thread or of all.
pub(crate) type Key = (u64, u8);

/// A tree whose entries a thread's TLBs may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    /// The slot of its root.
    pub(crate) slot: usize,
    /// The address of its first table.
    pub(crate) base: u64,
    /// Which registration of that slot.
    pub(crate) serial: u64,
    /// When the thread stopped using it, or [`IN_USE`].
    pub(crate) left: u64,
}

/// What a TLBI drops of all that has an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drop {
    /// Both stages of EL1&0, under all identifiers.
    Both = 6,
    /// Both stages, of a VMID.
    BothOfVmid = 7,
    /// Stage 1 of EL1&0, of all VMIDs.
    One = 8,
    /// Stage 1, of a VMID.
    OneOfVmid = 9,
    /// Stage 1, of a VMID and an ASID: what is not global.
    OneOfAsid = 10,
    /// EL2, under all identifiers.
    El2 = 11,
    /// EL2&0, of an ASID: what is not global.
    El2OfAsid = 12,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Tags {
    /// By thread, identifiers and kind.
    pub(super) held: Map<Key, Held>,
    /// The tree that each thread left last, by thread, VMID and kind.
    pub(super) last: Map<Key, Held>,
    /// When the last TLBI was sent that is complete, by what it drops and where.
    pub(super) done: Map<Key, u64>,
    /// TLBIs that no DSB of their thread completed.
    pub(super) sent: Sorted<(u32, Key), u64>,
    /// Roots that were released with entries, by serial: whether some of them were global.
    pub(super) ghosts: Map<u64, bool>,
    /// The time: it passes with each TLBI and with each end of a tree's use.
    pub(super) clock: u64,
    /// The next registration of a root.
    pub(super) serial: u64,
    /// Some thread left a tree: TLBIs count from now on.
    pub(super) has_left: bool,
}

/// In the second part of a key: the TLBI reaches all threads.
const FOR_ALL: u8 = 0x80;

impl Tags {
    /// The key of a tree that a thread uses.
    pub(crate) fn key(thread: u32, kind: TreeKind, vmid: u64, id: u64) -> Key {
        (u64::from(thread) << 32 | (vmid & 0xffff) << 16 | id & 0xffff, kind as u8)
    }

    /// The key of what a TLBI drops: for a thread, or for all.
    fn drop_key(thread: Option<u32>, what: Drop, vmid: u64, id: u64) -> Key {
        let identifiers = (vmid & 0xffff) << 16 | id & 0xffff;
        let (thread, all) = thread.map_or((0, FOR_ALL), |thread| (thread, 0));
        (u64::from(thread) << 32 | identifiers, what as u8 | all)
    }

    pub(crate) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// A TLBI is sent by a thread, for itself or for all.
    pub(crate) fn send(&mut self, thread: u32, is_broadcast: bool, what: Drop, vmid: u64, id: u64) {
        let time = self.tick();
        self.sent.insert((thread, Self::drop_key((!is_broadcast).then_some(thread), what, vmid, id)), time);
    }

    /// A DSB of a thread completes its TLBIs: those for itself, or all.
    pub(crate) fn complete(&mut self, thread: u32, is_for_all: bool) {
        let first = (thread, (0, 0));
        loop {
            let of_thread = self.sent.from(&first).take_while(|((of, _), _)| *of == thread);
            let is_local = |key: &Key| key.1 & FOR_ALL == 0;
            let next = of_thread.map(|(key, time)| (key, *time)).find(|((_, key), _)| is_for_all || is_local(key));
            let Some((key, time)) = next else { return };
            self.sent.remove(&key);
            // One that was sent later may be complete already.
            if self.done.get(&key.1).is_none_or(|known| *known < time) {
                self.done.insert(key.1, time);
            }
        }
    }

    /// True when a complete TLBI of a kind reached the thread after a time.
    pub(crate) fn is_dropped(&self, thread: u32, since: u64, what: Drop, vmid: u64, id: u64) -> bool {
        let after = |place| self.done.get(&Self::drop_key(place, what, vmid, id)).is_some_and(|time| *time > since);
        since != IN_USE && (after(None) || after(Some(thread)))
    }
}
