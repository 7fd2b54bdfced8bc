//! One run of a campaign: a verb, its arguments, and the files they name.

use serde_json::{Value as Json, json};

use super::mutate::mutated;
use super::random::Random;
use super::rows::{self, Reads, Row};
use super::samples::{FORMATS, Sample, Samples, smaller_of_two};
use super::surface::{Choice, Value, Verb};

/// What stands where an output is to be written, in runs with an old one.
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
    let mut maker = Maker { target, samples, case: empty(target), last_trace: None };
    maker.options(random);
    maker.positionals(random);
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
    /// The bytes a second input may be like.
    last_trace: Option<Vec<u8>>,
}

impl Maker<'_> {
    fn options(&mut self, random: &mut Random) {
        for value in self.target.row.always {
            let value = self.value(value, random);
            self.case.arguments.push(value);
        }
        let verb = &self.target.verb.name;
        let all: Vec<&Choice> = self.target.verb.options.iter().filter(|one| is_passed(verb, &one.name)).collect();
        let many = *random.pick(&[0, 1, 1, 2, 2, 3, 5]);
        let mut chosen: Vec<&Choice> = all.iter().copied().filter(|one| one.is_required).collect();
        // What decides the form of a result is passed more often than what decides a detail.
        for (name, times) in [("--format", 2), ("--to", 1), ("--output", 2), ("--plot", 6)] {
            let found = all.iter().find(|one| one.name == name);
            chosen.extend(found.filter(|_| random.one_in(times)));
        }
        if let Some((_, names)) = rows::MOSTLY.iter().find(|(of, _)| of == verb) {
            let name = random.pick(names);
            chosen.extend(all.iter().find(|one| one.name == *name).filter(|_| !random.one_in(10)));
        }
        for _ in 0..many.min(all.len()) {
            let choice = random.pick(&all);
            // Most of these change nothing where the format is recognised, and end the run where it is not.
            if !is_reading(&choice.name) || random.one_in(4) {
                chosen.push(choice);
            }
        }
        let mut seen: Vec<&str> = Vec::new();
        for choice in chosen {
            if choice.name != "--force" && !seen.contains(&choice.name.as_str()) {
                seen.push(&choice.name);
                self.pass(choice, random);
            }
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
            "@json" => self.add(&self.samples.json, "json", random),
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

    fn positionals(&mut self, random: &mut Random) {
        let reads = self.target.row.reads;
        for (number, positional) in self.target.verb.positionals.iter().enumerate() {
            let Some(kind) = reads.get(number).or(reads.last()) else { continue };
            let times = if positional.repeats && random.one_in(8) { 2 } else { 1 };
            for _ in 0..times {
                let before = self.case.files.len();
                let mut name = match kind {
                    Reads::Trace => self.trace(random),
                    Reads::Lines => self.lines(random),
                    Reads::Json => self.add(&self.samples.json, "json", random),
                    Reads::Object => self.add(&self.samples.objects, "object", random),
                    Reads::Pictures => self.pictures(number, random),
                    Reads::Output => self.value("@output", random),
                };
                if positional.may_be_stdin
                    && self.case.files.len() > before
                    && random.one_in(10)
                    && self.case.stdin.is_none()
                {
                    self.case.stdin = Some(before);
                    name = "-".to_owned();
                }
                self.case.arguments.push(name);
            }
        }
    }

    fn trace(&mut self, random: &mut Random) -> String {
        let formats = if random.one_in(6) { &[][..] } else { self.target.row.formats };
        let sample = self.samples.trace(formats, random);
        // A second trace is as a rule like the first: comparing strangers ends at once.
        let base = self.last_trace.clone().filter(|_| !random.one_in(4)).unwrap_or_else(|| sample.bytes.clone());
        let bytes = mutated(&base, self.samples, random);
        self.last_trace = Some(base);
        let extension = match random.below(4) {
            0 => (*random.pick(&["", "trace", "jsonl", "yaml", "gz", "log", "din", "index"])).to_owned(),
            1 => (*random.pick(&FORMATS)).to_owned(),
            _ => sample.extension.clone(),
        };
        self.file(bytes, &extension)
    }

    fn lines(&mut self, random: &mut Random) -> String {
        // The generic samples have JSON lines of every format among them.
        let found = (0..64).map(|_| self.samples.trace(&["apitrace"], random)).find(|one| one.extension == "jsonl");
        let sample = found.unwrap_or_else(|| self.samples.trace(&[], random));
        let bytes = mutated(&sample.bytes, self.samples, random);
        self.file(bytes, "jsonl")
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
