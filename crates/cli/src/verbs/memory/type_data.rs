//! `--program`: where layouts of types come from, for all verbs that name fields.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anytrace_core::layout::{Layout, Layouts, NoLayouts};
use anytrace_core::{InputOptions, text};
use anytrace_symbols::layouts::{TypeData, with_type_data};
use clap::Args;

use super::site_types::{SiteLayouts, Traces, read_all};
use crate::failure::Failure;
use crate::paint;

/// Type data.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Type data")]
pub(crate) struct TypeDataArguments {
    /// Program, library or object file with debug data (-g), for field names and sizes; or JSON from `types
    /// --layouts` or dwarf2json; may be repeated
    #[arg(short = 'm', long = "program", value_name = "PROGRAM", aliases = ["binary", "types-json"])]
    pub(crate) binary: Vec<PathBuf>,
    // Not a doc comment, in which brackets are links.
    #[arg(
        long = "type-of",
        value_name = "SITE=TYPE[N]",
        requires = "binary",
        help = "Type of the blocks allocated at SITE: its name in the trace, its function or FILE:LINE; with [N], so many \
                elements in each. @FILE has such lines; may be repeated"
    )]
    type_of: Vec<String>,
    /// Do not infer the types of allocations from the debug data and the source
    #[arg(long)]
    no_infer: bool,
}

impl TypeDataArguments {
    /// For one program, without options.
    pub(super) fn of(programs: &[PathBuf]) -> Self {
        Self { binary: programs.to_vec(), ..Self::default() }
    }

    /// Hands the layouts for these traces to `work`; without files those of no type. Reports what was noticed
    /// afterwards.
    pub(super) fn with<T>(
        &self,
        traces: Traces<'_>,
        work: impl FnOnce(&mut dyn Layouts) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if self.binary.is_empty() {
            return work(&mut NoLayouts);
        }
        let stated = read_all(&self.type_of)?;
        self.with_data(|data| {
            let mut layouts = SiteLayouts::new(data, stated, !self.no_infer, &self.binary, traces)?;
            let done = work(&mut layouts)?;
            layouts.complain()?;
            Ok(done)
        })
    }

    /// The same for what needs all of them.
    pub(super) fn with_data<T>(
        &self,
        work: impl FnOnce(&mut TypeData<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let paths: Vec<&Path> = self.binary.iter().map(PathBuf::as_path).collect();
        let done = with_type_data(&paths, InputOptions::default(), |data| {
            let done = work(data);
            for note in data.notes() {
                paint::complain("note", text::printable(note));
            }
            done
        });
        done.map_err(|error| Failure::bare(&error))?
    }
}

/// Type data for several engines, which ask one after the other.
pub(super) struct SharedLayouts<'a, 'l>(pub(super) &'a RefCell<&'l mut dyn Layouts>);

impl Layouts for SharedLayouts<'_, '_> {
    fn layout(&mut self, trace_name: &str, recorded_bytes: u64) -> Option<Arc<Layout>> {
        self.0.borrow_mut().layout(trace_name, recorded_bytes)
    }
}
