//! The table of calls.

use anytrace_core::table::{Column, ColumnType, Filter, Rows, Table};
use anytrace_core::text::shown;
use anytrace_core::{Error, Sink};

use super::{ValueText, int32};
use crate::lanes::calls::{Call, CallVisitor};
use crate::lanes::dictionary::{Definition, Dictionary, Named};
use crate::lanes::flags::CallFlags;
use crate::lanes::walk::{Place, note_details};
use crate::wire::record::Header;

pub(super) const CALLS: Table = Table {
    name: "calls",
    help: "a call, when it is left; calls that never return come last",
    columns: &[
        Column::new("call", ColumnType::Int64, "its number"),
        Column::new("thread", ColumnType::Int32, "number of its thread"),
        Column::new("frame", ColumnType::Int64, "frame in which it is entered, from 0"),
        Column::new("function", ColumnType::Name, "its function; ? where the name is lost"),
        Column::new("enter_seq", ColumnType::Int64, "number of the event that enters it"),
        Column::nullable("leave_seq", ColumnType::Int64, "number of the event that leaves it"),
        Column::new("flags", ColumnType::Name, "what its function is known to do, fake, incomplete"),
        Column::nullable("result", ColumnType::Text, "return value as `apitrace dump` prints it"),
    ],
};

// Columns of `CALLS`.
const FLAGS: usize = 6;
const RESULT: usize = 7;

/// Makes the rows.
pub(super) struct CallRows<'a> {
    rows: Rows<'a>,
    filter: &'a Filter,
    dictionary: Dictionary,
    values: ValueText,
    places: Vec<Place>,
}

impl<'a> CallRows<'a> {
    pub(super) fn new(rows: Rows<'a>, filter: &'a Filter) -> Self {
        Self { rows, filter, dictionary: Dictionary::default(), values: ValueText::new(), places: Vec::new() }
    }

    pub(super) fn into_rows(self) -> Rows<'a> {
        self.rows
    }
}

impl CallVisitor for CallRows<'_> {
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        self.dictionary = Dictionary::new(header.version);
        Ok(())
    }

    fn define(&mut self, definition: &Definition<'_>) {
        self.dictionary.define(definition);
    }

    fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        let Self { rows, filter, dictionary, values, places } = self;
        let thread = int32(call.thread);
        if !filter.has_thread(i64::from(thread)) {
            return Ok(());
        }
        rows.count(call.number);
        rows.int32(thread);
        rows.count(call.frame);
        let function = dictionary.function(call.function);
        rows.numbered_name(call.function, || function.map_or("?".into(), |function| shown(function.name())));
        rows.count(call.seq);
        rows.count((!call.is_incomplete).then_some(call.end_seq));
        if !rows.wants(FLAGS) && !rows.wants(RESULT) {
            rows.name("");
            rows.text(None);
            return rows.end();
        }
        let unknown = Named::default();
        let details = note_details(call, function.unwrap_or(&unknown), dictionary, places);
        let flags = details.all_flags(call, dictionary);
        rows.numbered_name(u32::from(flags.0), || words(flags).into());
        match details.returned.filter(|_| rows.wants(RESULT)) {
            Some(wire) => rows.raw_text(values.of(wire, call, dictionary)?),
            None => rows.text(None),
        }
        rows.end()
    }
}

/// The words of flags, with a comma between them.
fn words(flags: CallFlags) -> String {
    let words = CallFlags::WORDS.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, word)| *word);
    words.collect::<Vec<_>>().join(",")
}
