//! `--program` and `--remap` for verbs that simulate: elements and fields as type data have them, layouts as they might be.

use std::path::{Path, PathBuf};

use anytrace_analysis::elements::{Elements, TypeTable};
use anytrace_analysis::remap::{Remap, TypePlan};
use anytrace_core::layout::Layouts;
use anytrace_core::text::printable;
use anytrace_core::{AccessSink, Error, Sink, Trace};
use clap::Args;

use super::remapping;
use super::site_types::Traces;
use super::type_data::TypeDataArguments;
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::paint;

/// Type data, and what is changed.
#[derive(Debug, Clone, Args)]
pub(crate) struct WhatIfArguments {
    #[command(flatten)]
    type_data: TypeDataArguments,
    /// Simulate as if types had other layouts: JSON as written by `advise --format json` under `remap`, or lines
    /// `struct A=FIELD,OFFSET;FIELD,OFFSET` with --program
    #[arg(long, value_name = "FILE", help_heading = "Type data")]
    pub(super) remap: Option<PathBuf>,
}

impl WhatIfArguments {
    /// True when there is something to do.
    pub(super) fn is_any(&self) -> bool {
        !self.type_data.binary.is_empty() || self.remap.is_some()
    }

    /// Emits a trace to `out` through the requested steps; returns the types found.
    pub(super) fn emit(
        &self,
        (path, input): (&Path, &InputArguments),
        trace: Box<dyn Trace>,
        out: &mut dyn AccessSink,
        damage: &mut dyn Sink,
    ) -> Result<TypeTable, Failure> {
        let name = path.display().to_string();
        let failed = |error: Error| Failure::of(&name, &error);
        if !self.is_any() {
            trace.accesses(out, damage).map_err(failed)?;
            return Ok(TypeTable::default());
        }
        let files = [path.to_owned()];
        self.type_data.with(Traces { files: &files, input }, |layouts: &mut dyn Layouts| {
            let Some(path) = &self.remap else {
                let mut elements = Elements::new(layouts, out);
                trace.accesses(&mut elements, damage).map_err(failed)?;
                return Ok(elements.into_table());
            };
            let plans = remapping::load(path, layouts)?;
            let mut remap = Remap::new(plans.clone(), out);
            let mut elements = Elements::new(layouts, &mut remap);
            trace.accesses(&mut elements, damage).map_err(failed)?;
            let mut table = elements.into_table();
            table.forget_layouts(|name| plans.iter().any(|plan| super::types::is_called(name, &plan.name)));
            complain(&name, &plans, &remap);
            Ok(table)
        })
    }
}

fn complain(name: &str, plans: &[TypePlan], remap: &Remap<'_>) {
    let (name, done) = (printable(name), remap.done());
    let types: Vec<String> = plans.iter().map(|plan| printable(&plan.name)).collect();
    let types = types.join(", ");
    paint::complain(
        "note",
        format!("{name}: {} regions and {} accesses of {types} remapped", done.regions, done.accesses),
    );
    if done.other_sizes > 0 {
        let what = "regions have a different element size than the plan and are unchanged";
        paint::complain("note", format!("{name}: {} {what}", done.other_sizes));
    }
}
