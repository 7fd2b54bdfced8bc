//! `anytrace memory advise`.

mod json;
mod passes;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};

use anytrace_analysis::advise::{Measured, Surveyed, Tried, best_of_each, candidates, rank};
use anytrace_analysis::cache::config::Config;
use anytrace_analysis::remap::TypePlan;
use anytrace_core::layout::{Layout, Layouts, Origin};
use clap::Args;

use super::caches::CacheArguments;
use super::site_types::Traces;
use super::type_data::TypeDataArguments;
use crate::arguments::{InputArguments, ResultForm, TOP, rows};
use crate::failure::Failure;
use crate::results::print_json;
use crate::{Verdict, for_each_file, open, terminal};
use passes::{Again, survey};

/// `memory advise`.
#[derive(Debug, Args)]
pub(crate) struct AdviseArguments {
    /// Traces; each is read three times, so pipes do not work
    #[arg(required = true, value_name = "TRACE")]
    files: Vec<PathBuf>,
    /// Types
    #[arg(short = 'n', long, value_name = "N", value_parser = rows, default_value = "6",
          help = format!("{TOP} (types considered, those with most misses first)"))]
    top: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    #[command(flatten)]
    type_data: TypeDataArguments,
    #[command(flatten)]
    caches: CacheArguments,
    #[command(flatten)]
    input: InputArguments,
}

/// What is printed of one trace.
struct Advice {
    name: String,
    format: &'static str,
    config: Config,
    surveyed: Surveyed,
    before: Measured,
    tried: Vec<Tried>,
    /// With the best advice for each type, when there are several.
    together: Option<(Vec<TypePlan>, Measured)>,
}

impl Advice {
    /// The layout of the type that a proposal is for.
    fn layout_of(&self, name: &str) -> Option<&Layout> {
        let table = &self.surveyed.profile.table;
        let number = (0..).zip(table.types()).find(|(_, one)| one.name.as_deref() == Some(name)).map(|(at, _)| at)?;
        table.layout(number).map(|layout| &**layout)
    }
}

pub(crate) fn run(options: &AdviseArguments) -> Result<Verdict, Failure> {
    let config = options.caches.load()?;
    let traces = Traces { files: &options.files, input: &options.input };
    options.type_data.with(traces, |layouts| {
        let mut objects = Vec::new();
        let mut is_first = true;
        let verdict = for_each_file(&options.files, |path| {
            let (advice, verdict) = advise(path, options, &config, layouts)?;
            if options.format == ResultForm::Json {
                objects.push(json::object(&advice));
            } else {
                let gap = if is_first { "" } else { "\n" };
                write!(terminal::stdout(), "{gap}{}", text::page(&advice))?;
            }
            is_first = false;
            Ok(verdict)
        })?;
        if options.format == ResultForm::Json {
            print_json(objects, options.files.len() > 1)?;
        }
        Ok(verdict)
    })
}

fn advise(
    path: &Path,
    options: &AdviseArguments,
    config: &Config,
    layouts: &mut dyn Layouts,
) -> Result<(Advice, Verdict), Failure> {
    let name = path.display().to_string();
    if open::is_read_once(path) {
        return Err(Failure::usage(format!("{name}: advise reads a trace three times: give a file, not a pipe")));
    }
    let (surveyed, config, format, verdict) = survey(path, options, config, layouts)?;
    let before = surveyed.profile.caches.as_ref().map(Measured::of).unwrap_or_default();
    let mut proposals = candidates(&surveyed, options.top);
    proposals.retain(|one| !is_of_library(&surveyed, &one.plan.name));
    let mut again = Again { path, options, config: &config, layouts };
    let mut tried = again.try_all(proposals, &before)?;
    rank(&mut tried);
    let best = best_of_each(&tried);
    let all = if best.len() > 1 { again.simulate(vec![best.clone()])?.pop() } else { None };
    let together = all.map(|found| (best, found));
    let advice = Advice { name, format, config, surveyed, before, tried, together };
    Ok((advice, verdict))
}

/// True for allocations of types that the C++ library declares: nobody changes those.
fn is_of_library(surveyed: &Surveyed, name: &str) -> bool {
    let layout = surveyed.profile.table.types().iter().find(|one| one.name.as_deref() == Some(name));
    let layout = layout.and_then(|one| one.layout.as_ref()).filter(|layout| layout.origin != Origin::Named);
    layout.is_some_and(|layout| ["std::", "__gnu_cxx::"].iter().any(|start| layout.name.starts_with(start)))
}
