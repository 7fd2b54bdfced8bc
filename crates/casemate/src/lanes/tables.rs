//! The trace as tables: `events`, `transitions` with a column per field, and `breaches`, what the checker finds.

use anytrace_core::table::{Column, ColumnType, EVENTS, RowSink, Rows, Scan, Table};
use anytrace_core::{Error, Sink, Summary, text};

use crate::model::Violation;
use crate::verbs::jsonl::JsonLines;
use crate::verbs::model_check::ModelCheck;
use crate::wire::record::{Barrier, Domain, HintKind, Operand, Record, Source, Transition};
use crate::wire::walk::{Here, Item, Walk};

/// The tables of the format.
pub(crate) static TABLES: [Table; 3] = [EVENTS, TRANSITIONS, BREACHES];

const TRANSITIONS: Table = Table {
    name: "transitions",
    help: "a transition, with a column for each field",
    columns: &[
        Column::new("seq", ColumnType::Int64, "number of the record, from 0"),
        Column::new("id", ColumnType::UInt64, "number that the tracer assigned"),
        Column::new("tid", ColumnType::Int64, "thread"),
        Column::new("kind", ColumnType::Name, "kind of transition"),
        Column::nullable("address", ColumnType::UInt64, "memory or lock; of an older TLBI, its page number"),
        Column::nullable("size", ColumnType::UInt64, "bytes"),
        Column::nullable(
            "value",
            ColumnType::UInt64,
            "word, register value, or value of a hint; of a TLBI, its operand",
        ),
        Column::nullable("mem_order", ColumnType::Name, "memory order of a write or atomic access"),
        Column::nullable("hint", ColumnType::Name, "kind of hint"),
        Column::nullable("location", ColumnType::UInt64, "object of a hint"),
        Column::nullable("src", ColumnType::Name, "place in the traced program"),
        Column::nullable("barrier", ColumnType::Name, "isb or dsb"),
        Column::nullable("domain", ColumnType::Name, "what a dsb waits for"),
        Column::nullable("op", ColumnType::Name, "operation of a TLBI or atomic access"),
        Column::nullable("sysreg", ColumnType::Name, "system register"),
        Column::nullable("read", ColumnType::UInt64, "word that an atomic access read"),
    ],
};

const BREACHES: Table = Table {
    name: "breaches",
    help: "a rule of break-before-make that a transition breaks, as `check` reports it",
    columns: &[
        Column::new("seq", ColumnType::Int64, "number of the record"),
        Column::new("offset", ColumnType::Int64, "its first byte"),
        Column::new("line", ColumnType::Int64, "its line, from 1"),
        Column::new("id", ColumnType::UInt64, "number that the tracer assigned"),
        Column::new("thread", ColumnType::Int64, "its thread"),
        Column::new("kind", ColumnType::Name, "kind of transition"),
        Column::new("rule", ColumnType::Name, "code of the rule"),
        Column::new("severity", ColumnType::Name, "error or warning; after lost records a warning"),
        Column::new("message", ColumnType::Text, "the reference's message"),
        Column::nullable("address", ColumnType::UInt64, "word, table, lock or register base that it concerns"),
        Column::new("more", ColumnType::Int64, "further places where the same transition breaks the same rule"),
        Column::nullable("change", ColumnType::Text, "for a change of a live entry: what changed"),
        Column::nullable("src", ColumnType::Name, "place in the traced program"),
    ],
};

/// Bytes walked at once where reading may end early.
const STEP_BYTES: usize = 1 << 18;

/// Reads a trace as the rows of a table.
pub(crate) fn read(
    walk: &mut Walk,
    table: &str,
    scan: &Scan,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let Some(wanted) = TABLES.iter().find(|one| one.name == table) else {
        return Err(Error::usage(format!("casemate traces have no table {table}")));
    };
    let mut rows = Rows::new(wanted, scan, out);
    match wanted.name {
        "events" => {
            let mut lines = JsonLines::new(false);
            each(walk, scan, sink, |item, here| match item {
                Item::Record(record) if is_wanted(scan, record, here) => event(&mut rows, &mut lines, record, here),
                _ => Ok(()),
            })?;
        }
        "transitions" => each(walk, scan, sink, |item, here| match item {
            Item::Record(record) if is_wanted(scan, record, here) => transition(&mut rows, record, here),
            _ => Ok(()),
        })?,
        _ => {
            let mut model = ModelCheck::new();
            each(walk, scan, sink, |item, here| {
                let Item::Record(record) = item else {
                    model.apply(&item);
                    return Ok(());
                };
                if !model.apply(&item) || !is_wanted(scan, record, here) {
                    return Ok(());
                }
                model.violations().iter().try_for_each(|found| breach(&mut rows, &model, found, record, here))
            })?;
        }
    }
    rows.finish()?;
    Ok(Summary { records: walk.records(), bytes: walk.offset() })
}

/// Visits every piece up to the last record that the scan may want.
fn each(
    walk: &mut Walk,
    scan: &Scan,
    sink: &mut dyn Sink,
    mut visit: impl FnMut(Item<'_>, &mut Here<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    if scan.filter.seq.is_none() {
        return walk.for_each(sink, visit);
    }
    let mut reach = STEP_BYTES;
    loop {
        let before = walk.offset();
        if !walk.step(reach, sink, &mut visit)? || scan.filter.ends_before(signed(walk.records())) {
            return Ok(());
        }
        // A piece that is longer than the reach.
        reach = if walk.offset() > before { STEP_BYTES } else { reach.saturating_mul(2) };
    }
}

#[inline]
fn is_wanted(scan: &Scan, record: &Record<'_>, here: &Here<'_>) -> bool {
    scan.filter.has_seq(signed(here.seq))
        && scan.filter.has_thread(i64::from(record.thread))
        && scan.filter.has_kind(record.kind().name())
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn event(rows: &mut Rows<'_>, lines: &mut JsonLines, record: &Record<'_>, here: &Here<'_>) -> Result<(), Error> {
    rows.count(here.seq);
    rows.count(here.offset);
    rows.int64(i64::from(record.thread));
    rows.int64(None);
    rows.int64(None);
    rows.name(record.kind().name());
    rows.raw_name(match record.source {
        Source::Text(text) => Some(text),
        Source::Absent | Source::Key(_) => None,
    });
    rows.text_with(|| {
        let mut out = Vec::new();
        lines.attributes(&mut out, record);
        String::from_utf8(out).ok()
    });
    rows.end()
}

fn transition(rows: &mut Rows<'_>, record: &Record<'_>, here: &Here<'_>) -> Result<(), Error> {
    let fields = Fields::of(&record.transition);
    rows.count(here.seq);
    rows.uint64(record.id);
    rows.int64(i64::from(record.thread));
    rows.name(record.kind().name());
    rows.uint64(fields.address);
    rows.uint64(fields.size);
    rows.uint64(fields.value);
    rows.name(fields.mem_order);
    rows.name(fields.hint.map(HintKind::name));
    rows.uint64(fields.location);
    source(rows, &record.source);
    rows.name(fields.barrier);
    rows.name(fields.domain.map(Domain::name));
    rows.name(fields.op);
    rows.name(fields.sysreg);
    rows.uint64(fields.read);
    rows.end()
}

/// The place in the traced program; a key into a map that is elsewhere is its number.
fn source(rows: &mut Rows<'_>, source: &Source<'_>) {
    match source {
        Source::Absent => rows.name(None),
        Source::Text(bytes) => rows.raw_name(*bytes),
        Source::Key(key) => rows.name(&*key.to_string()),
    }
}

/// The fields of a transition; each kind has some of them.
#[derive(Default)]
struct Fields<'a> {
    address: Option<u64>,
    size: Option<u64>,
    value: Option<u64>,
    mem_order: Option<&'static str>,
    hint: Option<HintKind>,
    location: Option<u64>,
    barrier: Option<&'static str>,
    domain: Option<Domain>,
    op: Option<&'a str>,
    sysreg: Option<&'a str>,
    read: Option<u64>,
}

impl<'a> Fields<'a> {
    #[inline]
    fn of(transition: &'a Transition) -> Self {
        let none = Self::default();
        match *transition {
            Transition::MemWrite { order, address, value } => {
                Self { mem_order: Some(order.name()), address: Some(address), value: Some(value), ..none }
            }
            Transition::MemAtomic { op, order, address, value, read } => Self {
                op: Some(op.name()),
                mem_order: Some(order.name()),
                address: Some(address),
                value: Some(value),
                read: Some(read),
                ..none
            },
            Transition::MemRead { address, value } => Self { address: Some(address), value: Some(value), ..none },
            Transition::MemInit { address, size } | Transition::MemFree { address, size } => {
                Self { address: Some(address), size: Some(size), ..none }
            }
            Transition::MemSet { address, size, value } => {
                Self { address: Some(address), size: Some(size), value: Some(value), ..none }
            }
            Transition::Barrier(Barrier::Isb) => Self { barrier: Some("isb"), ..none },
            Transition::Barrier(Barrier::Dsb(domain)) => Self { barrier: Some("dsb"), domain: Some(domain), ..none },
            Transition::Tlbi { op, operand } => {
                Self { op: Some(op.name()), address: page(operand), value: operand.value(), ..none }
            }
            Transition::OtherTlbi { ref name, operand } => {
                Self { op: Some(name.as_str()), address: page(operand), value: operand.value(), ..none }
            }
            Transition::OtherSysreg { ref name, value } => {
                Self { sysreg: Some(name.as_str()), value: Some(value), ..none }
            }
            Transition::SysregWrite { register, value } => {
                Self { sysreg: Some(register.name()), value: Some(value), ..none }
            }
            Transition::Hint { hint, location, value } => {
                Self { hint: Some(hint), location: Some(location), value: Some(value), ..none }
            }
            Transition::Lock { address } | Transition::Unlock { address } | Transition::Trylock { address } => {
                Self { address: Some(address), ..none }
            }
        }
    }
}

/// The page number of a TLBI in its older form.
fn page(operand: Operand) -> Option<u64> {
    match operand {
        Operand::AddressLevel { address, .. } => Some(address),
        Operand::None | Operand::Value(_) => None,
    }
}

fn breach(
    rows: &mut Rows<'_>,
    model: &ModelCheck,
    found: &Violation,
    record: &Record<'_>,
    here: &mut Here<'_>,
) -> Result<(), Error> {
    let (line, _) = here.complaint(found.breach.rule, 0).line.unwrap_or((0, 0));
    rows.count(here.seq);
    rows.count(here.offset);
    rows.count(line);
    rows.uint64(record.id);
    rows.int64(i64::from(record.thread));
    rows.name(record.kind().name());
    rows.name(found.breach.rule.code);
    rows.name(model.severity(found).name());
    rows.text(found.breach.message);
    rows.uint64(found.location);
    rows.count(found.more);
    rows.text_with(|| found.change.and_then(|change| change.words(true)).map(|words| text::printable(&words)));
    source(rows, &record.source);
    rows.end()
}
