//! What the program can be asked: its verbs and their options, as its own help lists them.
//!
//! Read from the help and not from a table here, so that a verb or an option that is new is part of the campaign at
//! once, or stops it until values for it are known.

use std::path::Path;
use std::process::Command;

/// A verb that takes arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verb {
    /// As it is typed: `xray account`.
    pub(crate) name: String,
    pub(crate) positionals: Vec<Positional>,
    pub(crate) options: Vec<Choice>,
}

/// What a verb takes without an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Positional {
    pub(crate) name: String,
    /// `-` may be given for it.
    pub(crate) may_be_stdin: bool,
    pub(crate) repeats: bool,
}

/// An option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    /// `--format`, or `-e` where there is no long form.
    pub(crate) name: String,
    pub(crate) value: Value,
    /// The verb does not start without it.
    pub(crate) is_required: bool,
}

/// What an option takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    None,
    /// The name of the value in the help, what it can be where that is listed, whether it can be left out.
    Some {
        name: String,
        listed: Vec<String>,
        is_optional: bool,
    },
}

/// All verbs of a program, asked for their help.
pub(crate) fn of_program(program: &Path) -> Result<Vec<Verb>, String> {
    let mut verbs = Vec::new();
    walk(program, &mut Vec::new(), &mut verbs)?;
    Ok(verbs)
}

fn walk(program: &Path, path: &mut Vec<String>, verbs: &mut Vec<Verb>) -> Result<(), String> {
    let output = Command::new(program).args(&*path).arg("-h").output();
    let output = output.map_err(|error| format!("cannot start {}: {error}", program.display()))?;
    let help = String::from_utf8_lossy(&output.stdout);
    let below = commands(&help);
    if below.is_empty() {
        verbs.push(parse(&path.join(" "), &help)?);
    }
    for name in below {
        path.push(name);
        walk(program, path, verbs)?;
        path.pop();
    }
    Ok(())
}

/// The names under `Commands:`; none where a help is that of one verb.
fn commands(help: &str) -> Vec<String> {
    let section = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Continued descriptions are indented deeper.
    let names = section.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    names.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Reads the short help of one verb.
fn parse(name: &str, help: &str) -> Result<Verb, String> {
    let usage: Vec<&str> = help.lines().filter_map(|line| line.trim().strip_prefix("Usage: ")).collect();
    let usage = usage.first().ok_or_else(|| format!("the help of {name} has no usage"))?;
    let mut verb = Verb { name: name.to_owned(), positionals: Vec::new(), options: Vec::new() };
    let mut entries: Vec<String> = Vec::new();
    for line in help.lines().take_while(|line| !line.starts_with("Example")) {
        let indent = line.len() - line.trim_start().len();
        let text = line.trim();
        let begins = (2..=6).contains(&indent) && text.starts_with(['-', '<', '[']);
        if begins && !text.starts_with("[possible") && !text.starts_with("[default") && !text.starts_with("[alias") {
            entries.push(text.to_owned());
        } else if let (true, Some(last)) = (indent > 0, entries.last_mut()) {
            // Two spaces end what is before the description.
            last.push_str(if last.contains("  ") { " " } else { "  " });
            last.push_str(text);
        } else if !line.is_empty() {
            // A heading: what follows continues nothing.
            entries.push(String::new());
        }
    }
    for entry in &entries {
        if entry.starts_with(['<', '[']) {
            verb.positionals.push(positional(entry));
        } else if let Some(option) = option(entry, usage) {
            verb.options.push(option);
        }
    }
    Ok(verb)
}

fn positional(entry: &str) -> Positional {
    let head = entry.split("  ").next().unwrap_or(entry);
    let name = head.trim_end_matches("...").trim_matches(['<', '>', '[', ']']);
    Positional {
        name: name.to_owned(),
        may_be_stdin: entry.contains("- is standard input"),
        repeats: head.ends_with("..."),
    }
}

/// `-t, --tool <TOOL>  Print as …  [possible values: a, b]`.
fn option(entry: &str, usage: &str) -> Option<Choice> {
    let head = entry.split("  ").next()?;
    let long = head.split([' ', ',']).find(|word| word.starts_with("--")).or_else(|| head.split(' ').next())?;
    let name = long.split(['[', '=', '.']).next()?.to_owned();
    if name.is_empty() || name == "--help" || name == "--version" && !head.contains('<') {
        return None;
    }
    let value = match head.split_once('<') {
        None => Value::None,
        Some((before, behind)) => Value::Some {
            name: behind[..behind.rfind('>').unwrap_or(behind.len())].to_owned(),
            listed: listed(entry),
            is_optional: before.ends_with("[="),
        },
    };
    let is_required = usage.split(' ').any(|word| word == name);
    Some(Choice { name, value, is_required })
}

fn listed(entry: &str) -> Vec<String> {
    let Some((_, behind)) = entry.split_once("[possible values: ") else { return Vec::new() };
    let values = behind.split(']').next().unwrap_or("");
    values.split(',').map(|value| value.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "\
Compare two traces

Usage: anytrace xray graph-diff [OPTIONS] --output <FILE> <BEFORE> [AFTER]...

Arguments:
  <BEFORE>    Trace; - is standard input
  [AFTER]...  Trace to compare

Options:
  -o, --output <FILE>          Write to this file
  -e, --edge-label <LABEL>     Label edges with the change of this [default: none] [possible
                               values: none, count, 90p]
      --explain[=<FORMAT>]     Say why [possible values: text, json]
  -q, --quiet...               Say less
  -e <EXPRESSION>              Replace
  -h, --help                   Print help

Reading:
      --fail-above <STAT=PERCENT>
          Exit with 1

CALLSET: items.

Example:
  anytrace xray graph-diff -m1 ./old
";

    #[test]
    fn the_help_of_a_verb_is_understood() {
        let verb = parse("xray graph-diff", HELP).unwrap();
        let names: Vec<_> =
            verb.positionals.iter().map(|one| (one.name.as_str(), one.may_be_stdin, one.repeats)).collect();
        assert_eq!(names, [("BEFORE", true, false), ("AFTER", false, true)]);
        let options: Vec<_> = verb.options.iter().map(|one| (one.name.as_str(), one.is_required)).collect();
        let wanted = ["--edge-label", "--explain", "--quiet", "-e", "--fail-above"].map(|name| (name, false));
        assert_eq!(options[0], ("--output", true));
        assert_eq!(options[1..], wanted);
        let value = |name: &str, listed: &[&str], is_optional| Value::Some {
            name: name.to_owned(),
            listed: listed.iter().map(|one| (*one).to_owned()).collect(),
            is_optional,
        };
        assert_eq!(verb.options[1].value, value("LABEL", &["none", "count", "90p"], false));
        assert_eq!(verb.options[2].value, value("FORMAT", &["text", "json"], true));
        assert_eq!(verb.options[3].value, Value::None);
        assert_eq!(verb.options[5].value, value("STAT=PERCENT", &[], false));
    }

    #[test]
    fn commands_are_listed_without_help() {
        let help = "Usage: anytrace <COMMAND>\n\nCommands:\n  dump   Print\n         more\n  gone  x\n  help  y\n\nOptions:\n  -h\n";
        assert_eq!(commands(help), ["dump", "gone"]);
    }
}
