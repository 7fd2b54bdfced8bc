//! The doors: what other crates call.

use std::io::Write;

use anytrace_core::{
    Confidence, DumpOptions, Error, Format, Head, ImportOptions, Info, Input, Limits, OpenOptions, Outcome, Plan, Rule,
    Sink, Summary, Target, Trace,
};
use serde_json::{Map, Value, json};

use crate::check::Check;
use crate::info::Counts;
use crate::reader::Reader;
use crate::record::Layout;
use crate::rules::RULES;
use crate::types::name_value;
use crate::{NAME, detect, dump, jsonl, rewrite};

/// The format, for [`anytrace_core`]'s doors.
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
            (NAME, "a cacheray trace, in any byte order (--endian) and pointer width (--pointer-width)"),
            ("jsonl", "JSON lines, one object a record"),
        ]
    }

    fn probe(&self, head: &Head<'_>) -> Confidence {
        detect::probe(head)
    }

    fn open(&self, input: Input, options: &OpenOptions) -> Result<Box<dyn Trace>, Error> {
        Ok(Box::new(Opened { reader: Reader::new(input, options)?, limits: options.limits }))
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
}

impl Trace for Opened {
    fn info(self: Box<Self>, sink: &mut dyn Sink) -> Result<Info, Error> {
        let layout = self.reader.layout();
        let mut info = Info::new(NAME);
        info.byte_order = Some(layout.endian);
        info.set_container(self.reader.layers(), None);
        let mut counts = Counts::new(layout, self.limits);
        let passed = self.reader.walk(&mut counts, sink)?;
        info.bytes = passed.bytes;
        info.records = passed.records;
        info.set_kinds(counts.kinds().map(|(kind, count)| (kind.name(), count)));
        info.details = details(&counts, layout);
        info.threads = counts.into_threads();
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
        let mut check = Check::new(self.reader.layout(), self.limits);
        let passed = self.reader.walk(&mut check, sink)?;
        check.finish(sink)?;
        Ok(Summary { records: passed.records, bytes: passed.bytes })
    }

    fn rewrite(self: Box<Self>, plan: &Plan, out: &mut dyn Target, sink: &mut dyn Sink) -> Result<Outcome, Error> {
        rewrite::rewrite(self.reader, plan, self.limits, out, sink)
    }
}

/// What only this format has: figures of the corpus expectations, as far as they are bounded.
fn details(counts: &Counts, layout: Layout) -> Vec<(&'static str, Value)> {
    let table =
        |rows: Vec<(String, u64)>| Value::Object(rows.into_iter().map(|(k, n)| (k, n.into())).collect::<Map<_, _>>());
    let tags = counts.tags().into_iter().map(|(tag, count)| (format!("{tag:#04x}"), count)).collect();
    let sizes = counts.sizes().into_iter().map(|(size, count)| (size.to_string(), count)).collect();
    let (bytes_read, bytes_written) = counts.bytes();
    let mut details = vec![
        ("pointer_width", json!(layout.width.bytes())),
        ("tags", table(tags)),
        ("access_sizes", table(sizes)),
        ("bytes_read", json!(bytes_read)),
        ("bytes_written", json!(bytes_written)),
    ];
    if let Some((min, max)) = counts.addresses() {
        details.extend([("address_min", json!(min)), ("address_max", json!(max))]);
    }
    let live = counts.live();
    details.extend([
        ("straddling_64_byte_line", json!(counts.straddles())),
        ("misaligned_without_flag", json!(counts.misaligned_without_flag())),
        ("aligned_with_unaligned_flag", json!(counts.aligned_with_flag())),
        ("odd_sizes", json!(counts.odd_sizes())),
        ("addresses_not_canonical", json!(counts.not_canonical())),
        ("flags_on_rtta", json!(counts.flagged_rtta())),
        ("rtta_live_at_end", json!(live.live)),
        ("rtta_added_at_live", json!(live.added_at_live)),
        ("rtta_remove_null", json!(live.null_removes)),
        ("rtta_remove_without_add", json!(live.unmatched_removes)),
    ]);
    if live.is_over {
        details.push(("rtta_followed", json!("in part: more live regions than the limit")));
    }
    details.extend(type_details(counts));
    details
}

fn type_details(counts: &Counts) -> Vec<(&'static str, Value)> {
    let rows = counts.types.rows();
    let mut details = vec![("types", json!(rows.len()))];
    if counts.types.other_adds > 0 {
        details.push(("types_other_adds", json!(counts.types.other_adds)));
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
