//! One run of a campaign: a verb, its arguments, and the files they name.

use serde_json::{Value as Json, json};

use super::mutate::{mutated, mutated_json};
use super::random::Random;
use super::rows::{self, Reads, Row};
use super::samples::{FORMATS, Sample, Samples, smaller_of_two};
use super::surface::{Choice, Value, Verb};

/// What is at the output's path beforehand, in runs with an old one.
pub(super) const OLD: &[u8] = b"what was here before";

/// A command and its inputs. Files are named by their place in the list, so that nothing depends on a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) verb: String,
    /// All arguments, those of the verb's name included.
    pub(super) arguments: Vec<String>,
    /// Names and bytes of the inputs.
    pub(super) files: Vec<(String, Vec<u8>)>,
    /// Which of them comes through a pipe on standard input.
    pub(super) stdin: Option<usize>,
    /// Files and folders that the command may write.
    pub(super) outputs: Vec<String>,
    /// A file is at the place of each output before.
    pub(super) outputs_exist: bool,
    /// Names of the options, for what was covered.
    pub(super) options: Vec<String>,
}

/// A verb with all that is known of it.
pub(super) struct Target<'a> {
    pub(super) verb: &'a Verb,
    pub(super) row: &'a Row,
}

/// Makes the case of one run.
pub(super) fn make(target: &Target<'_>, samples: &Samples, random: &mut Random) -> Case {
    let mut maker =
        Maker { target, samples, case: empty(target), formats: target.row.formats, to: None, last_trace: None };
    // Options are often about what is in the first input.
    let mut chosen = maker.chosen(random);
    maker.choose_formats(&chosen, random);
    maker.choose_table(&mut chosen, random);
    let first = maker.case.arguments.len();
    if !chosen.iter().any(|one| rows::ALONE.contains(&(target.verb.name.as_str(), one.name.as_str()))) {
        let is_follow = |one: &&Choice| rows::FOLLOWING.contains(&(target.verb.name.as_str(), one.name.as_str()));
        maker.positionals(chosen.iter().any(is_follow), random);
    }
    let positionals = maker.case.arguments.split_off(first);
    for value in target.row.always {
        let value = maker.value(value, random);
        maker.case.arguments.push(value);
    }
    for choice in chosen {
        maker.pass(choice, random);
    }
    maker.case.arguments.extend(positionals);
    let case = &mut maker.case;
    if !case.outputs.is_empty() && random.one_in(4) {
        case.outputs_exist = true;
        let has_force = target.verb.options.iter().any(|option| option.name == "--force");
        if has_force && !random.one_in(4) {
            case.arguments.push("--force".to_owned());
            case.options.push("--force".to_owned());
        }
    }
    maker.case
}

fn empty(target: &Target<'_>) -> Case {
    Case {
        verb: target.verb.name.clone(),
        arguments: target.verb.name.split(' ').map(str::to_owned).collect(),
        files: Vec::new(),
        stdin: None,
        outputs: Vec::new(),
        outputs_exist: false,
        options: Vec::new(),
    }
}

struct Maker<'a> {
    target: &'a Target<'a>,
    samples: &'a Samples,
    case: Case,
    /// What traces are mostly of; all formats where none is named.
    formats: &'a [&'a str],
    /// The value of `--to`, which is chosen before what it is made of.
    to: Option<String>,
    /// The bytes a second input may be like.
    last_trace: Option<Vec<u8>>,
}

impl<'a> Maker<'a> {
    /// The options of this run.
    fn chosen(&self, random: &mut Random) -> Vec<&'a Choice> {
        let target: &'a Target<'a> = self.target;
        let verb = &target.verb.name;
        let all: Vec<&'a Choice> = target.verb.options.iter().filter(|one| is_passed(verb, &one.name)).collect();
        let many = *random.pick(&[0, 1, 1, 2, 2, 3, 5]);
        let mut drawn: Vec<&'a Choice> = all.iter().copied().filter(|one| one.is_required).collect();
        // What decides the form of a result is passed more often than what decides a detail.
        for (name, times) in [("--format", 2), ("--to", 1), ("--output", 2), ("--plot", 6)] {
            let found = all.iter().find(|one| one.name == name);
            drawn.extend(found.filter(|_| random.one_in(times)));
        }
        if let Some((_, names)) = rows::MOSTLY.iter().find(|(of, _)| of == verb) {
            let name = random.pick(names);
            drawn.extend(all.iter().find(|one| one.name == *name).filter(|_| !random.one_in(10)));
        }
        for _ in 0..many.min(all.len()) {
            let choice = random.pick(&all);
            // Most of these change nothing where the format is recognized, and end the run where it is not.
            if !is_reading(&choice.name) || random.one_in(6) {
                drawn.push(choice);
            }
        }
        let mut chosen: Vec<&'a Choice> = Vec::new();
        for choice in drawn {
            let is_new = choice.name != "--force" && chosen.iter().all(|one| one.name != choice.name);
            let is_apart = chosen.iter().any(|one| are_apart(verb, &one.name, &choice.name))
                || !means_something(&choice.name, target.row.formats);
            if is_new && (!is_apart || random.one_in(20)) {
                chosen.push(choice);
            }
        }
        chosen
    }

    /// What becomes one thing or another is made of a trace that can, as a rule.
    fn choose_formats(&mut self, chosen: &[&Choice], random: &mut Random) {
        for (_, formats) in rows::OF_FORMATS.iter().filter(|(name, _)| chosen.iter().any(|one| one.name == *name)) {
            if self.formats.is_empty() || self.formats.iter().any(|format| formats.contains(format)) {
                self.formats = formats;
            }
        }
        let Some(to) = chosen.iter().find(|one| one.name == "--to") else { return };
        let Value::Some { listed, .. } = &to.value else { return };
        if listed.is_empty() || is_narrowed(&self.target.verb.name, "--to") {
            return;
        }
        let to = random.pick(listed).clone();
        if let Some((_, formats)) = rows::BECOME.iter().find(|(values, _)| values.contains(&to.as_str()))
            && !random.one_in(10)
            && (self.formats.is_empty() || !self.formats.iter().any(|format| formats.contains(format)))
        {
            self.formats = formats;
        }
        self.to = Some(to);
    }

    /// A file of tables is of one, as a rule; what is not has none.
    fn choose_table(&self, chosen: &mut Vec<&'a Choice>, random: &mut Random) {
        const NAMES: [&str; 2] = ["--table", "--all-tables"];
        if !self.to.as_deref().is_some_and(|to| rows::TABLES.contains(&to)) {
            chosen.retain(|one| !NAMES.contains(&one.name.as_str()) || random.one_in(20));
        } else if !chosen.iter().any(|one| NAMES.contains(&one.name.as_str())) && !random.one_in(10) {
            let target: &'a Target<'a> = self.target;
            let name = if random.one_in(4) { NAMES[1] } else { NAMES[0] };
            chosen.extend(target.verb.options.iter().find(|one| one.name == name));
        }
    }

    fn pass(&mut self, choice: &Choice, random: &mut Random) {
        self.case.options.push(choice.name.clone());
        let arguments = &mut self.case.arguments;
        let Value::Some { name, listed, is_optional } = &choice.value else {
            return arguments.push(choice.name.clone());
        };
        if *is_optional && random.one_in(2) {
            return arguments.push(choice.name.clone());
        }
        let known = rows::values(&self.target.verb.name, &choice.name, name);
        let value = match known {
            _ if choice.name == "--to" && self.to.is_some() => self.to.clone().unwrap_or_default(),
            _ if choice.name == "--input-format" && !self.formats.is_empty() && !random.one_in(4) => {
                (*random.pick(self.formats)).to_owned()
            }
            _ if !listed.is_empty() && known.is_none_or(|_| !is_narrowed(&self.target.verb.name, &choice.name)) => {
                random.pick(listed).clone()
            }
            Some(values) => {
                let value = *random.pick(values);
                self.value(value, random)
            }
            None => return,
        };
        self.case.arguments.push(format!(
            "{}{}{value}",
            choice.name,
            if choice.name.starts_with("--") { "=" } else { "" }
        ));
    }

    /// A value as it is passed: what begins with `@` is a file.
    fn value(&mut self, value: &str, random: &mut Random) -> String {
        match value {
            "@trace" => self.trace(random),
            "@object" => self.add(&self.samples.objects, "object", random),
            "@config" => self.json(&self.samples.configs, random),
            "@layouts" => self.json(&self.samples.layouts, random),
            "@remap" => self.json(&self.samples.remaps, random),
            "@address" => self.address(random),
            "@datagrams" => self.add(&self.samples.datagrams, "datagrams", random),
            "@output" if random.one_in(8) => "-".to_owned(),
            "@output" | "@folder" => {
                let ending = *random.pick(&["", ".svg", ".json", ".trace", ".jsonl", ".gz"]);
                let name = format!("out{}{ending}", self.case.outputs.len());
                self.case.outputs.push(name.clone());
                name
            }
            _ => value.to_owned(),
        }
    }

    /// `follows`: the first one comes through a pipe, and is the only one.
    fn positionals(&mut self, follows: bool, random: &mut Random) {
        let reads = self.target.row.reads;
        for (number, positional) in self.target.verb.positionals.iter().enumerate() {
            let Some(kind) = reads.get(number).or(reads.last()) else { continue };
            let times = if positional.repeats && !follows && random.one_in(8) { 2 } else { 1 };
            for _ in 0..times {
                let before = self.case.files.len();
                let mut name = match kind {
                    Reads::Trace => self.trace(random),
                    Reads::Lines => self.lines(random),
                    Reads::States => self.json(&self.samples.states, random),
                    Reads::Object => self.add(&self.samples.objects, "object", random),
                    Reads::Rings => self.add(&self.samples.rings, "rings", random),
                    Reads::Pictures => self.pictures(number, random),
                    Reads::Output => self.value("@output", random),
                };
                let is_piped = follows || positional.may_be_stdin && random.one_in(10);
                if is_piped && self.case.files.len() > before && self.case.stdin.is_none() {
                    self.case.stdin = Some(before);
                    name = "-".to_owned();
                }
                self.case.arguments.push(name);
            }
        }
    }

    fn trace(&mut self, random: &mut Random) -> String {
        let formats = if random.one_in(25) { &[][..] } else { self.formats };
        let sample = match random.below(30) {
            0 if !self.samples.strangers.is_empty() => smaller_of_two(&self.samples.strangers, random),
            1 => self.samples.lines(formats, random),
            _ => self.samples.trace(formats, random),
        };
        // A second trace is as a rule like the first: comparing strangers ends at once.
        let base = self.last_trace.clone().filter(|_| !random.one_in(8)).unwrap_or_else(|| sample.bytes.clone());
        let bytes = mutated(&base, self.samples, random);
        self.last_trace = Some(base);
        let extension = match random.below(16) {
            0 => (*random.pick(&["", "trace", "jsonl", "yaml", "gz", "log", "din", "index"])).to_owned(),
            1 => (*random.pick(FORMATS)).to_owned(),
            _ => sample.extension.clone(),
        };
        self.file(bytes, &extension)
    }

    fn lines(&mut self, random: &mut Random) -> String {
        let formats = if random.one_in(25) { &[][..] } else { &["apitrace"] };
        let sample = self.samples.lines(formats, random);
        let bytes = mutated(&sample.bytes, self.samples, random);
        self.file(bytes, "jsonl")
    }

    /// A document, half the time as text that was damaged and half the time with other values.
    fn json(&mut self, samples: &[Sample], random: &mut Random) -> String {
        if samples.is_empty() || random.one_in(4) {
            return self.add(samples, "json", random);
        }
        let bytes = mutated_json(&smaller_of_two(samples, random).bytes, random);
        self.file(bytes, "json")
    }

    /// An address that is in the first input, most often one after the words for roots of page tables.
    fn address(&self, random: &mut Random) -> String {
        let text = self.case.files.first().map(|(_, bytes)| String::from_utf8_lossy(bytes)).unwrap_or_default();
        let numbers = |text: &str| -> Vec<u64> {
            let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() >= 4);
            words.filter_map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()).take(200).collect()
        };
        let roots: Vec<u64> = text
            .match_indices("ttbr")
            .chain(text.match_indices("set_root_lock"))
            .filter_map(|(at, _)| numbers(text.get(at..)?.get(..120)?).first().copied())
            .collect();
        let all = numbers(&text);
        match (roots.as_slice(), all.as_slice()) {
            (roots @ [_, ..], _) if !random.one_in(4) => format!("{:#x}", random.pick(roots) & 0xffff_ffff_f000),
            (_, all @ [_, ..]) => format!("{:#x}", random.pick(all)),
            _ => "0x1000".to_owned(),
        }
    }

    fn add(&mut self, samples: &[Sample], what: &str, random: &mut Random) -> String {
        let bytes = if samples.is_empty() {
            Vec::new()
        } else {
            mutated(&smaller_of_two(samples, random).bytes, self.samples, random)
        };
        self.file(bytes, what)
    }

    /// Two pictures of a set: files whose names begin alike.
    fn pictures(&mut self, set: usize, random: &mut Random) -> String {
        let prefix = format!("set{set}-");
        for number in 0..2 {
            let name = format!("{prefix}{number}.png");
            if !self.samples.images.is_empty() {
                let sample = random.pick(&self.samples.images);
                let bytes =
                    if random.one_in(2) { sample.bytes.clone() } else { mutated(&sample.bytes, self.samples, random) };
                self.case.files.push((name, bytes));
            }
        }
        prefix
    }

    fn file(&mut self, bytes: Vec<u8>, extension: &str) -> String {
        let dot = if extension.is_empty() { "" } else { "." };
        let name = format!("in{}{dot}{extension}", self.case.files.len());
        self.case.files.push((name.clone(), bytes));
        name
    }
}

/// Whether an option is ever passed.
pub(super) fn is_passed(verb: &str, option: &str) -> bool {
    !rows::NOT_PASSED.iter().any(|(v, o)| *v == verb && *o == option)
}

/// Whether two options of a verb are passed together only now and then.
fn are_apart(verb: &str, one: &str, other: &str) -> bool {
    let is_pair = |a: &[&str], b: &[&str]| a.contains(&one) && b.contains(&other);
    rows::APART.iter().any(|(of, a, b)| *of == verb && (is_pair(a, b) || is_pair(b, a)))
}

/// Whether an option says anything of one of some formats; none named is all.
fn means_something(option: &str, formats: &[&str]) -> bool {
    let of_option = rows::OF_FORMATS.iter().find(|(name, _)| *name == option);
    of_option.is_none_or(|(_, of)| formats.is_empty() || formats.iter().any(|format| of.contains(format)))
}

/// Options of the group *Reading*, which every verb has.
fn is_reading(option: &str) -> bool {
    matches!(
        option,
        "--input-format"
            | "--endian"
            | "--pointer-width"
            | "--radix"
            | "--recover"
            | "--record-limit"
            | "--no-mmap"
            | "--threads"
            | "--limit"
    )
}

/// Whether a row takes fewer values than the help lists.
fn is_narrowed(verb: &str, option: &str) -> bool {
    matches!((verb, option), ("heph replay", "--to"))
}

impl Case {
    /// The value of an option as it was passed: `--format=json`.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find_map(|argument| argument.strip_prefix(name)?.strip_prefix('='))
    }

    /// Whether one of these options was passed.
    pub(super) fn has_any(&self, names: &[&str]) -> bool {
        self.options.iter().any(|option| names.contains(&option.as_str()))
    }

    /// The options that say how an input is read, for other verbs on the same input.
    pub(super) fn reading(&self) -> Vec<String> {
        let names = ["--input-format", "--endian", "--pointer-width", "--radix", "--recover", "--record-limit"];
        let is_one = |argument: &&String| names.iter().any(|name| argument.split('=').next() == Some(name));
        self.arguments.iter().filter(is_one).cloned().collect()
    }

    /// The first input, if it is a file of a trace.
    pub(super) fn input(&self) -> Option<&str> {
        self.files.iter().map(|(name, _)| name.as_str()).find(|name| self.arguments.iter().any(|one| one == name))
    }

    /// As it is written beside the inputs of a find.
    pub(super) fn to_json(&self) -> Json {
        json!({
            "verb": self.verb,
            "arguments": self.arguments,
            "files": self.files.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "stdin": self.stdin,
            "outputs": self.outputs,
            "outputs_exist": self.outputs_exist,
            "options": self.options,
        })
    }

    /// The same, back; `read` gives the bytes of a file.
    pub(super) fn from_json(json: &Json, read: impl Fn(&str) -> Result<Vec<u8>, String>) -> Result<Self, String> {
        let texts = |key: &str| -> Vec<String> {
            json[key].as_array().into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect()
        };
        let files = texts("files").into_iter().map(|name| read(&name).map(|bytes| (name, bytes)));
        Ok(Self {
            verb: json["verb"].as_str().ok_or("no verb")?.to_owned(),
            arguments: texts("arguments"),
            files: files.collect::<Result<_, _>>()?,
            stdin: json["stdin"].as_u64().map(|n| n as usize),
            outputs: texts("outputs"),
            outputs_exist: json["outputs_exist"].as_bool().unwrap_or(false),
            options: texts("options"),
        })
    }
}
