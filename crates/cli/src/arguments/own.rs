//! Options that only some formats have, made from what the formats declare.

use std::marker::PhantomData;
use std::sync::OnceLock;

use anytrace_core::{Format, FormatOption, NumberSet, OptionUse, OptionValues, Setting, Settings};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::values::number_set;

/// Where the options of an [`OwnArguments`] take effect.
pub(crate) trait Use: std::fmt::Debug + Clone + Default + Send + Sync + 'static {
    /// The place.
    const USE: OptionUse;
}

/// When a trace is opened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Read;

/// When records are selected.
#[derive(Debug, Clone, Default)]
pub(crate) struct Select;

/// When a trace is written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Write;

impl Use for Read {
    const USE: OptionUse = OptionUse::Read;
}

impl Use for Select {
    const USE: OptionUse = OptionUse::Select;
}

impl Use for Write {
    const USE: OptionUse = OptionUse::Write;
}

/// The options of one use that formats declare, and their values.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnArguments<U: Use>(pub(crate) Settings, PhantomData<U>);

/// An option and the formats that have it.
pub(crate) struct Declared {
    option: &'static FormatOption,
    formats: Vec<&'static dyn Format>,
    /// The words it takes, of all formats.
    words: Vec<&'static str>,
}

impl Declared {
    /// What distinguishes it from the other arguments of a verb.
    pub(crate) fn id(&self) -> String {
        format!("own-{}", self.option.name)
    }

    /// The help for a verb that the formats which pass `fits` have; `None` where none of them has the option.
    pub(crate) fn help(&self, fits: impl Fn(&dyn Format) -> bool) -> Option<String> {
        let names: Vec<_> = self.formats.iter().filter(|format| fits(**format)).map(|format| format.name()).collect();
        (!names.is_empty()).then(|| format!("{} ({})", self.option.help, names.join(", ")))
    }

    fn argument(&self) -> Arg {
        let option = self.option;
        let argument = Arg::new(self.id()).long(option.name).aliases(option.aliases.iter().copied());
        let argument = argument.help(self.help(|_| true).unwrap_or_default());
        match option.values {
            OptionValues::Flag => argument.action(ArgAction::SetTrue),
            OptionValues::OneOf(_) => {
                let names = if self.words.len() > 3 { option.value_name.to_owned() } else { self.words.join("|") };
                let values = PossibleValuesParser::new(self.words.iter().copied());
                argument.value_name(names).value_parser(values).hide_possible_values(self.words.len() <= 3)
            }
            OptionValues::Number => argument
                .value_name(option.value_name)
                .allow_negative_numbers(true)
                .value_parser(clap::value_parser!(i64)),
            OptionValues::Numbers(words) => {
                let set = move |text: &str| number_set(text, words);
                argument.value_name(option.value_name).action(ArgAction::Append).value_parser(set)
            }
        }
    }

    fn setting(&self, matches: &ArgMatches) -> Option<Setting> {
        let id = self.id();
        match self.option.values {
            OptionValues::Flag => matches.get_flag(&id).then_some(Setting::Flag),
            OptionValues::OneOf(_) => matches.get_one::<String>(&id).map(|word| word.as_str().into()),
            OptionValues::Number => matches.get_one::<i64>(&id).map(|number| (*number).into()),
            OptionValues::Numbers(_) => matches.get_many::<NumberSet>(&id).map(|sets| {
                let mut all = NumberSet::default();
                sets.for_each(|set| all.add_set(set));
                all.into()
            }),
        }
    }
}

/// Every option that some format declares for a use, in the order of the formats. Made once: every verb that reads a
/// trace asks for it, and all verbs are built whichever one runs.
pub(crate) fn declared(used_to: OptionUse) -> &'static [Declared] {
    static ALL: [OnceLock<Vec<Declared>>; 3] = [const { OnceLock::new() }; 3];
    let [read, select, write] = &ALL;
    let cell = match used_to {
        OptionUse::Read => read,
        OptionUse::Select => select,
        OptionUse::Write => write,
    };
    cell.get_or_init(|| collect(used_to))
}

fn collect(used_to: OptionUse) -> Vec<Declared> {
    let mut found: Vec<Declared> = Vec::new();
    for format in anytrace_formats::all() {
        for option in format.options().iter().filter(|option| option.used_to == used_to) {
            let words: &[&str] = if let OptionValues::OneOf(words) = option.values { words } else { &[] };
            match found.iter_mut().find(|known| known.option.name == option.name) {
                Some(known) => {
                    known.formats.push(*format);
                    let new = words.iter().filter(|word| !known.words.contains(word));
                    let new: Vec<_> = new.copied().collect();
                    known.words.extend(new);
                }
                None => found.push(Declared { option, formats: vec![*format], words: words.to_vec() }),
            }
        }
    }
    found
}

impl<U: Use> FromArgMatches for OwnArguments<U> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut own = Self::default();
        own.update_from_arg_matches(matches)?;
        Ok(own)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for known in declared(U::USE) {
            if let Some(setting) = known.setting(matches) {
                self.0.set(known.option.name, setting);
            }
        }
        Ok(())
    }
}

impl<U: Use> Args for OwnArguments<U> {
    fn augment_args(command: Command) -> Command {
        declared(U::USE).iter().fold(command, |command, known| command.arg(known.argument()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Hides the options that mean nothing for any format a verb works on, and names the formats that remain: in the verb
/// of that name, or in all if there is none.
pub(crate) fn fit(command: Command, named: Option<&str>) -> Command {
    let mut verbs: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    if let Some(named) = verbs.iter().position(|verb| Some(verb.as_str()) == named) {
        verbs = vec![verbs.swap_remove(named)];
    }
    verbs.into_iter().fold(command, |command, name| match formats_of(&name) {
        // Their help names all formats already.
        Fits::All => command,
        fits => command.mut_subcommand(&name, |verb| fit_verb(verb, fits)),
    })
}

fn fit_verb(mut verb: Command, fits: Fits) -> Command {
    for used_to in [OptionUse::Read, OptionUse::Select, OptionUse::Write] {
        for known in declared(used_to) {
            let id = known.id();
            if verb.get_arguments().any(|argument| argument.get_id() == id.as_str()) {
                verb = verb.mut_arg(&id, |argument| match known.help(|format| fits.holds(format)) {
                    Some(help) => argument.help(help),
                    None => argument.hide(true),
                });
            }
        }
    }
    let inner: Vec<String> = verb.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    inner.into_iter().fold(verb, |verb, name| verb.mut_subcommand(name, |inner| fit_verb(inner, fits)))
}

/// The formats a verb works on.
#[derive(Debug, Clone, Copy)]
enum Fits {
    All,
    Spans,
    Accesses,
    Only(&'static str),
}

impl Fits {
    fn holds(self, format: &dyn Format) -> bool {
        match self {
            Self::All => true,
            Self::Spans => format.has_spans(),
            Self::Accesses => format.has_accesses(),
            Self::Only(name) => format.name() == name,
        }
    }
}

fn formats_of(verb: &str) -> Fits {
    match verb {
        "stats" | "flame" | "timeline" => Fits::Spans,
        // The group runs the verbs of `memory`.
        "memory" | "cacheray" => Fits::Accesses,
        _ => anytrace_formats::by_name(verb).map_or(Fits::All, |format| Fits::Only(format.name())),
    }
}

#[cfg(test)]
mod tests {

    #[test]
    fn a_name_has_one_use_and_one_kind_of_value_in_all_formats() {
        let all: Vec<_> = anytrace_formats::all().iter().flat_map(|format| format.options()).collect();
        for option in &all {
            for other in all.iter().filter(|other| other.name == option.name) {
                assert_eq!(option.used_to, other.used_to, "{}", option.name);
                assert_eq!(
                    std::mem::discriminant(&option.values),
                    std::mem::discriminant(&other.values),
                    "{}",
                    option.name
                );
            }
        }
    }

    #[test]
    fn a_verb_shows_the_options_of_its_formats_alone() {
        let command = crate::command::command();
        let shown = |path: &[&str]| -> Vec<String> {
            let leaf = path.iter().fold(&command, |command, name| {
                command.find_subcommand(name).unwrap_or_else(|| panic!("no verb {name}"))
            });
            let own = leaf.get_arguments().filter(|argument| !argument.is_hide_set());
            own.filter_map(|argument| argument.get_id().as_str().strip_prefix("own-").map(str::to_owned)).collect()
        };
        assert_eq!(shown(&["memory", "sim"]), ["pointer-width"]);
        assert_eq!(shown(&["stats"]), ["recover", "event"]);
        assert_eq!(shown(&["casemate", "explain"]), ["radix"]);
        assert!(shown(&["xray", "account"]).is_empty());
        for name in ["pointer-width", "radix", "recover", "container", "level", "style"] {
            assert!(shown(&["convert"]).contains(&name.to_owned()), "{name}");
        }
    }
}
