//! Accesses and typed memory, with the ids of threads and the names of types.

use crate::access::{Access, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use crate::{Error, Sink, Summary, Trace};

/// One thing that happens to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessEvent<'a> {
    /// A read, a write or a fetch.
    Access(&'a Access),
    /// Typed memory whose lifetime begins, and the name of its type as the trace has it, possibly not UTF-8. `None` is
    /// the type that represents all types beyond [`crate::Limits::distinct_max`].
    Added(&'a RegionAdded, Option<&'a [u8]>),
    /// The latest live region that starts at an address ends.
    Removed(&'a RegionRemoved),
}

impl AccessEvent<'_> {
    /// Number of its thread, from 0, in order of first appearance.
    pub fn thread(&self) -> ThreadNumber {
        match self {
            Self::Access(access) => access.thread,
            Self::Added(region, _) => region.thread,
            Self::Removed(region) => region.thread,
        }
    }
}

/// Calls a function for each access of a trace, and for each region of typed memory that is added or removed, in the
/// order of records, with the id of the thread. An id of `None` stands for all threads beyond
/// [`crate::Limits::distinct_max`].
///
/// ```
/// use anytrace_core::{AccessEvent, Collect, Error, Trace, each_access};
///
/// fn count_writes(trace: Box<dyn Trace>) -> Result<u64, Error> {
///     let (mut writes, mut damage) = (0, Collect::default());
///     each_access(trace, &mut damage, |_thread, event| {
///         writes += u64::from(matches!(event, AccessEvent::Access(access) if access.is_write()));
///         Ok(())
///     })?;
///     damage.0.iter().for_each(|diagnostic| eprintln!("{diagnostic}"));
///     Ok(writes)
/// }
/// ```
///
/// Memory is bounded by the numbers of threads and types.
///
/// # Errors
/// As [`Trace::accesses`]; what the function returns.
pub fn each_access(
    trace: Box<dyn Trace>,
    damage: &mut dyn Sink,
    visit: impl FnMut(Option<u64>, AccessEvent<'_>) -> Result<(), Error>,
) -> Result<Summary, Error> {
    trace.accesses(&mut Visitor { visit, threads: Vec::new(), types: Vec::new() }, damage)
}

/// Keeps what was announced and calls the function.
struct Visitor<F> {
    visit: F,
    threads: Vec<Option<u64>>,
    types: Vec<Option<Vec<u8>>>,
}

impl<F: FnMut(Option<u64>, AccessEvent<'_>) -> Result<(), Error>> Visitor<F> {
    fn call(&mut self, event: AccessEvent<'_>) -> Result<(), Error> {
        let thread = self.threads.get(event.thread() as usize).copied().flatten();
        (self.visit)(thread, event)
    }
}

impl<F: FnMut(Option<u64>, AccessEvent<'_>) -> Result<(), Error>> AccessSink for Visitor<F> {
    fn thread(&mut self, _: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.threads.push(id);
        Ok(())
    }

    fn type_name(&mut self, _: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.types.push(name.map(<[u8]>::to_vec));
        Ok(())
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        let thread = self.threads.get(region.thread as usize).copied().flatten();
        let name = self.types.get(region.type_number as usize).and_then(Option::as_deref);
        (self.visit)(thread, AccessEvent::Added(region, name))
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.call(AccessEvent::Removed(region))
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        batch.iter().try_for_each(|access| self.call(AccessEvent::Access(access)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{AccessFlags, AccessKind};

    #[test]
    fn events_come_in_order_with_thread_ids_and_type_names() {
        let mut seen = Vec::new();
        let visit = |thread: Option<u64>, event: AccessEvent<'_>| {
            let what = match event {
                AccessEvent::Access(access) => format!("{} {:#x}", access.kind.name(), access.address),
                AccessEvent::Added(region, name) => {
                    format!("{} of {}", region.elements, String::from_utf8_lossy(name.unwrap_or(b"?")))
                }
                AccessEvent::Removed(region) => format!("{:#x} ends", region.address),
            };
            seen.push((event.thread(), thread, what));
            Ok(())
        };
        let mut visitor = Visitor { visit, threads: Vec::new(), types: Vec::new() };
        let kind = AccessKind::Write;
        let access = Access { address: 64, seq: 1, thread: 0, bytes: 8, kind, flags: AccessFlags::NONE };
        let region = RegionAdded { seq: 2, address: 16, element_bytes: 8, elements: 3, type_number: 0, thread: 1 };
        visitor.thread(0, Some(70)).unwrap();
        visitor.accesses(&[access, Access { thread: 9, ..access }]).unwrap();
        visitor.thread(1, None).unwrap();
        visitor.type_name(0, Some(b"int")).unwrap();
        visitor.type_name(1, None).unwrap();
        visitor.region_added(&region).unwrap();
        visitor.region_added(&RegionAdded { type_number: 1, ..region }).unwrap();
        visitor.region_removed(&RegionRemoved { seq: 3, address: 16, thread: 0 }).unwrap();
        let expected = [
            (0, Some(70), "write 0x40"),
            (9, None, "write 0x40"),
            (1, None, "3 of int"),
            (1, None, "3 of ?"),
            (0, Some(70), "0x10 ends"),
        ];
        assert_eq!(seen, expected.map(|(number, thread, what)| (number, thread, what.to_owned())));
    }

    #[test]
    fn the_function_ends_the_pass() {
        let kind = AccessKind::Read;
        let access = Access { address: 0, seq: 0, thread: 0, bytes: 1, kind, flags: AccessFlags::NONE };
        let mut calls = 0;
        let visit = |_: Option<u64>, _: AccessEvent<'_>| {
            calls += 1;
            Err(Error::usage("enough"))
        };
        let mut visitor = Visitor { visit, threads: Vec::new(), types: Vec::new() };
        assert!(visitor.accesses(&[access, access]).is_err());
        assert_eq!(calls, 1);
    }
}
