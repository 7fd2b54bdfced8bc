//! `anytrace info`: what a trace is and what is in it.

use std::io::Write;
use std::path::Path;

use anytrace_core::{Collect, Format, Info, Input, Severity, text};
use anytrace_export::json;
use serde_json::Value;

use crate::arguments::{InfoArguments, ResultForm};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Reporter, Way, rendered};
use crate::{Verdict, for_each_file, open, paint};

/// How many diagnostics the text form shows of each file.
const SHOWN: usize = 3;

/// Longest value shown; JSON has all of it.
const VALUE_CHARS: usize = 90;

/// Column of the values.
const KEY_WIDTH: usize = 26;

/// How many threads the text form lists.
const THREADS_SHOWN: usize = 8;

/// How much of a file `--quick` looks at: enough for the first block of any container.
const QUICK_BYTES: usize = 4 << 20;

pub(crate) fn run(options: &InfoArguments) -> Result<Verdict, Failure> {
    let mut objects = Vec::new();
    let verdict = for_each_file(&options.files, |path| one(path, options, &mut objects))?;
    if options.format == ResultForm::Json {
        print_json(objects, options.files.len() > 1)?;
    }
    Ok(verdict)
}

/// One object for one file, an array for several.
pub(crate) fn print_json(mut objects: Vec<Value>, is_array: bool) -> Result<(), Failure> {
    let value = match objects.pop() {
        Some(only) if !is_array => only,
        None if !is_array => return Ok(()),
        last => {
            objects.extend(last);
            Value::Array(objects)
        }
    };
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &value).map_err(|error| Failure::output(&error.into()))?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

fn one(path: &Path, options: &InfoArguments, objects: &mut Vec<Value>) -> Result<Verdict, Failure> {
    let name = path.display().to_string();
    let opened = open::open_trace(path, &options.input)?;
    let format = opened.as_ref().ok().map(|(format, _)| *format);
    let mut reporter = Reporter::new(&name, format, Way::Keep, options.input.limit);
    let info = match opened {
        Err(damage) => {
            reporter.take(damage)?;
            Info::new("unknown")
        }
        Ok((format, input)) if options.quick => quick(format, &input, options)?,
        Ok((format, input)) => {
            let _progress = Progress::watch(&input);
            let trace = open::enter(format, input, &options.input)?;
            trace.info(&mut reporter).map_err(|error| Failure::of(&name, &error))?
        }
    };
    let damage_count = reporter.count(Severity::Error);
    match options.format {
        ResultForm::Json => objects.push(json::info(&name, &info, reporter.kept(), damage_count)),
        ResultForm::Text => print_text(&name, &info, &reporter, format.map_or("record", |f| f.noun()), options.quick)?,
    }
    Ok(reporter.verdict())
}

/// What the first bytes alone tell: no counts, no damage.
fn quick(format: &'static dyn Format, input: &Input, options: &InfoArguments) -> Result<Info, Failure> {
    let head = input.as_slice().map_or(input.head().bytes, |all| &all[..all.len().min(QUICK_BYTES)]).to_vec();
    let trace = open::enter(format, Input::from_bytes(input.name(), head), &options.input)?;
    let seen = trace.info(&mut Collect::default()).map_err(|error| Failure::of(input.name(), &error))?;
    let mut info = Info::new(format.name());
    info.format_version = seen.format_version;
    info.byte_order = seen.byte_order;
    info.dialect = seen.dialect;
    info.set_container(input.layers(), seen.container.as_deref());
    let file_bytes = input.file_bytes().filter(|_| input.layers().is_empty());
    info.bytes = file_bytes.or(input.head().total_bytes).unwrap_or_default();
    Ok(info)
}

fn print_text(name: &str, info: &Info, reporter: &Reporter, noun: &str, is_quick: bool) -> Result<(), Failure> {
    let (bold, dim) = (paint::BOLD, paint::DIM);
    let mut out = String::new();
    let mut row = |key: &str, value: String| {
        out.push_str(&format!("  {dim}{key:<KEY_WIDTH$}{dim:#} {value}\n"));
    };
    let version = info.format_version.as_ref().map(|v| format!(" version {v}")).unwrap_or_default();
    let dialect = info.dialect.as_ref().map(|d| format!(", {d}")).unwrap_or_default();
    row("format", format!("{}{version}{dialect}", info.format));
    if let Some(container) = &info.container {
        row("container", container.clone());
    }
    if let Some(order) = info.byte_order {
        row("byte order", order.name().to_owned());
    }
    row("bytes", grouped(info.bytes));
    if !is_quick {
        row("records", grouped(info.records));
        for (kind, count) in &info.kinds {
            row("", format!("{:>14}  {kind}", grouped(*count)));
        }
        if let Some(time) = &info.time {
            row("time", shown_time(time));
        }
        if !info.threads.is_empty() {
            row("threads", info.threads.len().to_string());
            for (id, count) in info.threads.iter().take(THREADS_SHOWN) {
                row("", format!("{:>14}  {id}", grouped(*count)));
            }
            if info.threads.len() > THREADS_SHOWN {
                row("", format!("{:>14}  (--format json lists all)", "…"));
            }
        }
        // What a trace has none of is left to the JSON form.
        for (key, value) in info.details.iter().filter(|(_, value)| *value != 0 && plain(value) != "none") {
            row(&key.replace('_', " "), shown_value(key, value));
        }
        let errors = reporter.count(Severity::Error);
        row(
            "damage",
            match errors {
                0 => "none".to_owned(),
                1 => "1 place".to_owned(),
                several => format!("{several} places"),
            },
        );
    }
    let mut stdout = anstream::stdout();
    stdout.write_all(format!("{bold}{}{bold:#}\n{out}", text::printable(name)).as_bytes())?;
    for diagnostic in reporter.kept().iter().filter(|d| d.severity == Severity::Error).take(SHOWN) {
        stdout.write_all(rendered(name, noun, diagnostic).as_bytes())?;
    }
    stdout.flush()?;
    Ok(())
}

fn shown_time(time: &anytrace_core::TimeRange) -> String {
    let length = time.end.saturating_sub(time.start);
    let per_second = if time.unit == "ns" { Some(1_000_000_000) } else { time.per_second.filter(|hz| *hz > 0) };
    let seconds = per_second.map(|hz| format!(", {:.6} s", length as f64 / hz as f64)).unwrap_or_default();
    let unit = if time.unit == "tick" { "ticks" } else { time.unit };
    format!("{} to {} {unit}{seconds}", time.start, time.end)
}

/// A detail as people read it: amounts in groups of three digits, addresses in hex, names of things as they are.
fn shown_value(key: &str, value: &Value) -> String {
    let text = match value.as_u64() {
        Some(address) if key.starts_with("address") && !key.ends_with("canonical") => format!("{address:#x}"),
        Some(number) if !key.ends_with("_ns") && !key.ends_with("_id") => grouped(number),
        _ => plain(value),
    };
    let safe = text::printable(&text);
    match safe.char_indices().nth(VALUE_CHARS) {
        Some((at, _)) => format!("{}…", &safe[..at]),
        None => safe,
    }
}

/// A JSON value without quotes and braces.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => format!("{:.4}", number.as_f64().unwrap_or_default()),
        Value::Number(number) => number.to_string(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(map) if map.is_empty() => "none".to_owned(),
        Value::Object(map) => {
            map.iter().map(|(key, value)| format!("{key} {}", plain(value))).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_from_the_right() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
