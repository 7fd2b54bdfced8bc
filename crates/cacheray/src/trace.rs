//! The entry points: what other crates call.

use std::io::Write;

use anytrace_core::{
    Confidence, DumpOptions, Error, Format, FormatOption, Head, ImportOptions, Info, Input, Limits, OpenOptions,
    Outcome, Plan, Rule, Sink, Summary, Target, Trace,
};
use serde_json::{Map, Value, json};

use crate::options::OPTIONS;
use crate::rules::RULES;
use crate::verbs::check::Check;
use crate::verbs::info::{Counts, Sums};
use crate::verbs::types::{TypeTable, name_value};
use crate::wire::reader::Reader;
use crate::wire::record::Layout;
use crate::{
    NAME,
    verbs::{dump, jsonl, rewrite},
    wire::{detect, parallel},
};

/// The format, for [`anytrace_core`]'s entry points.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cacheray;

/// A trace with fewer types than this lists them in `info`.
const TYPES_LISTED_MAX: usize = 4096;

impl Format for Cacheray {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Cacheray"
    }

    fn noun(&self) -> &'static str {
        "record"
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &RULES
    }

    fn targets(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (NAME, "a cacheray trace, in any byte order (--to-endian) and pointer width (--to-pointer-width)"),
            ("jsonl", "JSON lines, one object per record"),
        ]
    }

    fn options(&self) -> &'static [FormatOption] {
        OPTIONS
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["cacheray", "trace"]
    }

    fn probe(&self, head: &Head<'_>) -> Confidence {
        detect::probe(head)
    }

    fn open(&self, input: Input, options: &OpenOptions) -> Result<Box<dyn Trace>, Error> {
        options.only("cacheray", &["endian"], OPTIONS)?;
        let reader = Reader::new(input, options)?;
        Ok(Box::new(Opened { reader, limits: options.limits, threads: options.threads }))
    }

    #[cfg(feature = "lanes")]
    fn has_accesses(&self) -> bool {
        true
    }

    fn empty_event_columns(&self) -> &'static [&'static str] {
        &["time_ns", "duration_ns"]
    }

    #[cfg(feature = "lanes")]
    fn part_tables(&self) -> &'static [&'static str] {
        &["events", "accesses"]
    }

    #[cfg(feature = "lanes")]
    fn dump_needs(
        &self,
        dump: &DumpOptions,
        _index: &anytrace_core::index::Index,
        _open: &anytrace_core::index::Open<'_>,
        _options: &OpenOptions,
    ) -> Result<Option<anytrace_core::index::Needs>, Error> {
        Ok(crate::lanes::marks::dump_needs(&dump.selection))
    }

    #[cfg(feature = "lanes")]
    fn tables(&self) -> &'static [anytrace_core::table::Table] {
        &crate::lanes::tables::TABLES
    }

    fn import(
        &self,
        input: Input,
        options: &ImportOptions<'_>,
        out: &mut dyn Target,
        _sink: &mut dyn Sink,
    ) -> Result<Outcome, Error> {
        jsonl::import(input, options, out)
    }
}

struct Opened {
    reader: Reader,
    limits: Limits,
    threads: usize,
}

impl Trace for Opened {
    fn info(mut self: Box<Self>, sink: &mut dyn Sink) -> Result<Info, Error> {
        let layout = *self.reader.layout();
        let mut info = Info::new(NAME);
        info.byte_order = Some(layout.endian);
        info.set_container(self.reader.layers(), None);
        let mut counts = Counts::new(layout, self.limits);
        if self.threads > 1 {
            parallel::count(&mut self.reader, &mut counts, self.threads, self.limits)?;
        }
        let passed = self.reader.walk(&mut counts, sink)?;
        info.bytes = passed.bytes;
        info.records = passed.records;
        let mut sums = counts.finish();
        info.set_kinds(sums.kinds());
        info.threads = std::mem::take(&mut sums.threads);
        info.details = details(&sums, layout);
        Ok(info)
    }

    fn dump(
        self: Box<Self>,
        options: &DumpOptions,
        out: &mut dyn Write,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        dump::dump(self.reader, options, self.limits, out, sink)
    }

    fn check(self: Box<Self>, sink: &mut dyn Sink) -> Result<Summary, Error> {
        let mut check = Check::new(*self.reader.layout(), self.limits);
        let passed = self.reader.walk(&mut check, sink)?;
        check.finish(sink)?;
        Ok(Summary { records: passed.records, bytes: passed.bytes })
    }

    fn rewrite(self: Box<Self>, plan: &Plan, out: &mut dyn Target, sink: &mut dyn Sink) -> Result<Outcome, Error> {
        rewrite::rewrite(self.reader, plan, self.limits, out, sink)
    }

    #[cfg(feature = "lanes")]
    fn accesses(
        self: Box<Self>,
        out: &mut dyn anytrace_core::AccessSink,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        crate::lanes::accesses::emit(self.reader, self.limits, out, sink)
    }

    #[cfg(feature = "lanes")]
    fn table(
        self: Box<Self>,
        table: &str,
        scan: &anytrace_core::table::Scan,
        _options: &anytrace_core::SpanOptions,
        out: &mut dyn anytrace_core::table::RowSink,
        sink: &mut dyn Sink,
    ) -> Result<Summary, Error> {
        crate::lanes::tables::read(self.reader, table, scan, out, sink)
    }

    #[cfg(feature = "lanes")]
    fn marks(
        mut self: Box<Self>,
        every_bytes: u64,
        out: &mut dyn anytrace_core::index::MarkSink,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        self.reader.mark_every(every_bytes);
        let mut marks = crate::lanes::marks::Marks { layout: *self.reader.layout(), out };
        self.reader.walk(&mut marks, sink).map(|_| ())
    }
}

/// Figures that only this format has: those of the corpus expectations, as far as they are bounded.
fn details(sums: &Sums, layout: Layout) -> Vec<(&'static str, Value)> {
    let mut details = vec![
        ("pointer_width", json!(layout.width.bytes())),
        ("tags", table(&sums.tags, |tag| format!("{tag:#04x}"))),
        ("access_sizes", table(&sums.sizes, |size| size.to_string())),
        ("bytes_read", json!(sums.bytes_read)),
        ("bytes_written", json!(sums.bytes_written)),
    ];
    if let Some((min, max)) = sums.addresses {
        details.extend([("address_min", json!(min)), ("address_max", json!(max))]);
    }
    details.extend([
        ("straddling_64_byte_line", json!(sums.straddles)),
        ("misaligned_without_flag", json!(sums.misaligned_without_flag)),
        ("aligned_with_unaligned_flag", json!(sums.aligned_with_flag)),
        ("odd_sizes", json!(sums.odd_sizes())),
        ("addresses_not_canonical", json!(sums.not_canonical)),
        ("flags_on_rtta", json!(sums.flagged_rtta())),
        ("rtta_live_at_end", json!(sums.live.live)),
        ("rtta_added_at_live", json!(sums.live.added_at_live)),
        ("rtta_remove_null", json!(sums.live.null_removes)),
        ("rtta_remove_without_add", json!(sums.live.unmatched_removes)),
    ]);
    if sums.live.unfollowed_adds > 0 {
        details.extend([
            ("rtta_followed", json!("in part: more live regions than the limit")),
            ("rtta_adds_not_followed", json!(sums.live.unfollowed_adds)),
            ("rtta_removes_not_followed", json!(sums.live.unfollowed_removes)),
        ]);
    }
    details.extend(type_details(&sums.types));
    details
}

/// The counts that are not zero, by name.
fn table(counts: &[u64; 256], name: impl Fn(u8) -> String) -> Value {
    let rows = (0..=u8::MAX).zip(counts).filter(|(_, count)| **count > 0);
    Value::Object(rows.map(|(key, count)| (name(key), (*count).into())).collect::<Map<_, _>>())
}

fn type_details(types: &TypeTable) -> Vec<(&'static str, Value)> {
    let rows = types.rows();
    let mut details = vec![("types", json!(rows.len()))];
    if types.other_adds > 0 {
        details.push(("types_other_adds", json!(types.other_adds)));
    }
    if rows.len() <= TYPES_LISTED_MAX {
        let list = rows.iter().map(|row| {
            json!({
                "name": name_value(&row.name),
                "elemsize": row.elemsize,
                "adds": row.adds,
                "elements": row.elements,
            })
        });
        details.push(("rtta_types", list.collect()));
    }
    details
}
