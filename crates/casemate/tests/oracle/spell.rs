//! Writes steps in every spelling the crate's writer has.

use anytrace_casemate::{Layout, Source, Writer};

use super::step::Step;
use anytrace_casemate::{Radix, Style};

/// How many spellings there are.
pub(crate) const SPELLINGS: u64 = 24;

/// The trace in the spelling `number` (modulo [`SPELLINGS`]).
pub(crate) fn spell(steps: &[Step], number: u64) -> Vec<u8> {
    let number = number % SPELLINGS;
    let style = [Style::Canonical, Style::Positional, Style::Pretty][usize::try_from(number % 3).unwrap_or(0)];
    let flags = number / 3;
    let layout = Layout {
        is_bare: flags & 1 != 0,
        is_upper: flags & 2 != 0,
        is_source_early: flags & 4 != 0,
        keeps_operand: flags & 4 != 0,
        ..Layout::new(style, Radix::Hex)
    };
    let mut writer = Writer::with_layout(Vec::new(), &layout);
    for (line, step) in (1..).zip(steps) {
        let text = format!("gen.c:{line}");
        let source = if flags & 2 != 0 { Source::Absent } else { Source::Text(text.as_bytes()) };
        writer.write(&step.record(source)).unwrap_or_else(|error| panic!("{error}"));
    }
    writer.finish().unwrap_or_else(|error| panic!("{error}"))
}
