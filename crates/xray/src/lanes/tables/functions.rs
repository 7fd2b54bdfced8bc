//! The table `functions`: the functions that records name.

use anytrace_core::hash::{Map, Set};
use anytrace_core::index::Part;
use anytrace_core::span::Symbols;
use anytrace_core::table::{RowSink, Rows, Scan};
use anytrace_core::text::shown;
use anytrace_core::{Diagnostic, Error, Place, Sink, SpanOptions, Summary};

use super::{AnyRecord, FUNCTIONS, walk};
use crate::lanes::names::{is_number, number_text};
use crate::wire::basic::BasicVisitor;
use crate::wire::fdr::{Run, Visitor};
use crate::wire::marks::Known;
use crate::wire::moment::MomentKind;
use crate::wire::open::{XrayTrace, end};
use crate::wire::record::{BasicRecord, Header, Metadata};
use crate::wire::yaml::{YamlEntry, YamlHeader, YamlVisitor};

/// Ids below this are noted in a table.
const SMALL: usize = 1 << 16;

/// Most functions.
const FUNCTIONS_MAX: usize = 1 << 22;

/// Bits of an id that are the number within its object (page, section 1.3).
const LOCAL_BITS: u32 = 24;

/// Reads a trace as the rows of the table, in the order of ids.
pub(super) fn read(
    trace: XrayTrace,
    scan: &Scan,
    options: &SpanOptions,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let opened = trace.start(sink)?;
    let mut seen = Seen { small: vec![false; SMALL], large: Set::default(), names: Map::default(), sink };
    let (records, cursor) = walk(opened, &Part::default(), &mut seen)?;
    let mut rows = Rows::new(&FUNCTIONS, scan, out);
    for id in seen.ids() {
        push(id, seen.names.get(&id).map(|name| &**name), options.symbols.as_deref(), &mut rows)?;
    }
    rows.finish()?;
    Ok(Summary { records, bytes: end(&cursor, seen.sink)? })
}

fn push(id: u32, own: Option<&[u8]>, symbols: Option<&dyn Symbols>, rows: &mut Rows<'_>) -> Result<(), Error> {
    let symbol = symbols.and_then(|symbols| symbols.symbol(u64::from(id)));
    let location = symbol.and_then(|(_, location)| location);
    rows.int32(id.cast_signed());
    rows.int32((id >> LOCAL_BITS).cast_signed());
    match (own, symbol) {
        (Some(own), _) => rows.text(&*shown(own)),
        (None, Some((name, _))) => rows.text(name),
        (None, None) => rows.text(number_text(id).as_str()),
    }
    rows.text(location.map(|location| location.file.as_str()));
    rows.int32(location.filter(|location| location.line > 0).and_then(|location| i32::try_from(location.line).ok()));
    rows.end()
}

/// The functions so far.
struct Seen<'a> {
    small: Vec<bool>,
    large: Set<u32>,
    /// Names in the trace: the first of each function.
    names: Map<u32, Box<[u8]>>,
    sink: &'a mut dyn Sink,
}

impl Seen<'_> {
    #[inline]
    fn note(&mut self, id: u32) -> Result<(), Error> {
        match self.small.get_mut(id as usize) {
            Some(seen) => *seen = true,
            None => {
                self.large.insert(id);
                if self.large.len() > FUNCTIONS_MAX {
                    return Err(Error::limit(format!("more than {FUNCTIONS_MAX} functions")));
                }
            }
        }
        Ok(())
    }

    /// All ids, in order.
    fn ids(&self) -> Vec<u32> {
        let small = (0..).zip(&self.small).filter(|(_, seen)| **seen).map(|(id, _)| id);
        let mut ids: Vec<u32> = small.chain(self.large.iter().copied()).collect();
        ids.sort_unstable_by_key(|id| id.cast_signed());
        ids
    }
}

impl AnyRecord for Seen<'_> {
    fn begin(&mut self, _header: &Header, _known: Known) {}

    fn is_done(&self) -> bool {
        false
    }
}

impl Visitor for Seen<'_> {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        run.records().try_for_each(|(_, function)| self.note(function.id))
    }

    fn metadata(&mut self, _metadata: &Metadata<'_>, _raw: &[u8], _at: Place) -> Result<(), Error> {
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

impl BasicVisitor for Seen<'_> {
    fn record(&mut self, record: &BasicRecord, _raw: &[u8], _at: Place) -> Result<(), Error> {
        self.note(record.id.cast_unsigned())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

impl YamlVisitor for Seen<'_> {
    fn header(&mut self, _header: &YamlHeader) -> Result<(), Error> {
        Ok(())
    }

    fn entry(&mut self, entry: &YamlEntry, _at: Place, _line: u64) -> Result<(), Error> {
        // The function of an event is garbage written by the peer.
        if !matches!(entry.kind, MomentKind::Function(_)) {
            return Ok(());
        }
        let id = entry.function.cast_unsigned();
        if !entry.name.is_empty() && !is_number(&entry.name, id) {
            self.names.entry(id).or_insert_with(|| entry.name.as_slice().into());
        }
        self.note(id)
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}
