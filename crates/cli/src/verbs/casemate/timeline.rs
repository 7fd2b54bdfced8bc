//! `anytrace casemate timeline`.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anytrace_casemate::tools::TimelinePage;
use anytrace_casemate::tools::history::Event;
use anytrace_casemate::tools::timeline::{self, Of};
use anytrace_core::{Error, Input};
use clap::Args;
use serde_json::json;

use super::options::RuleArguments;
use super::story_form::{StoryForm, page};
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::ledger::lost;
use crate::report::Reporter;
use crate::{Verdict, open, terminal};

/// `casemate timeline`.
#[derive(Debug, Args)]
pub(crate) struct TimelineArguments {
    /// Trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The entry at this address, including barriers and TLBIs that had no effect; may be repeated
    #[arg(long = "location", value_name = "ADDR", value_parser = super::address, required_unless_present = "all_unclean")]
    locations: Vec<u64>,
    /// Every invalidated entry, until it is valid again
    #[arg(long, conflicts_with = "locations")]
    all_unclean: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = StoryForm::Text)]
    format: StoryForm,
    /// Print a page for a browser, with a picture of each entry; the same as --format html
    #[arg(long, conflicts_with = "format")]
    html: bool,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &TimelineArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let of = if options.all_unclean { Of::AllUnclean } else { Of::Locations(options.locations.clone()) };
    let input = super::open_input(&options.file, &options.input)?;
    let mut damage = super::damage(&options.file, &options.input);
    let form = options.format.or_html(options.html);
    if form == StoryForm::Html {
        return html(options, &name, input, &of, damage);
    }
    let is_json = form == StoryForm::Json;
    let mut out = BufWriter::new(terminal::stdout().json(is_json));
    let mut document = Document { out: &mut out, events: 0 };
    let model = options.rules.model()?;
    let read = timeline::timeline(input, &open::open_options(&options.input), model, &of, &mut damage, |event| {
        let written = if is_json { document.event(event) } else { document.line(event) };
        written.map_err(|error| Error::io("cannot write", error))
    });
    let failure = read.err().map(|error| Failure::of(&name, &error));
    if is_json && (failure.is_none() || document.events > 0) {
        let ended = document.finish(&name, failure.as_ref());
        // Where standard output is gone, that is why it failed.
        if failure.is_none() {
            ended?;
        }
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    out.flush()?;
    drop(out);
    damage.print_rest()?;
    Ok(damage.verdict())
}

/// Prints a page, which is complete only at the end of the trace.
fn html(
    options: &TimelineArguments,
    name: &str,
    input: Input,
    of: &Of,
    mut damage: Reporter,
) -> Result<Verdict, Failure> {
    let mut collected = TimelinePage::default();
    let model = options.rules.model()?;
    let read = timeline::timeline(input, &open::open_options(&options.input), model, of, &mut damage, |event| {
        collected.add(event);
        Ok(())
    });
    read.map_err(|error| Failure::of(name, &error))?;
    damage.print_rest()?;
    page(name, "timeline", &collected.html(name))?;
    Ok(damage.verdict())
}

/// What is printed, event by event: there may be far more of them than bytes in the trace.
struct Document<'a> {
    out: &'a mut dyn Write,
    events: u64,
}

impl Document<'_> {
    fn line(&mut self, event: &Event) -> io::Result<()> {
        self.out.write_all(timeline::event_text(event).as_bytes())
    }

    /// An element of the list in the JSON object, which begins with the first one.
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.out.write_all(if self.events == 0 { "{\n  \"events\": [\n    " } else { ",\n    " }.as_bytes())?;
        self.events += 1;
        // Line ends within strings are escaped.
        let text = format!("{:#}", timeline::event_json(event));
        self.out.write_all(text.replace('\n', "\n    ").as_bytes())
    }

    /// Ends the JSON object. One that breaks off reports why.
    fn finish(&mut self, file: &str, failure: Option<&Failure>) -> io::Result<()> {
        let list = if self.events == 0 { "{\n  \"events\": []" } else { "\n  ]" };
        let error = failure.map_or(String::new(), |failure| format!(",\n  \"error\": {}", json!(failure.message())));
        let lost = lost(Some(file));
        writeln!(self.out, "{list}{error},\n  \"file\": {},\n  \"lost\": {lost},\n  \"version\": 1\n}}", json!(file))?;
        self.out.flush()
    }
}
