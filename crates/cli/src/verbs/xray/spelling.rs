//! Spellings of options that LLVM's tools take and clap does not.

use std::ffi::OsString;

/// Spellings `llvm-xray` takes that clap does not, and ours.
const SPELLINGS: [(&str, &str); 7] = [
    ("all", "all-stacks"),
    ("k1", "keep-going-1"),
    ("k2", "keep-going-2"),
    ("d1", "deduce-sibling-calls-1"),
    ("d2", "deduce-sibling-calls-2"),
    ("m1", "instr-map-1"),
    ("m2", "instr-map-2"),
];

/// Switches without a value here, which LLVM's tools take with one: `-k=true`, `--all-stacks=0`.
const SWITCHES: [&str; 15] = [
    "k",
    "d",
    "keep-going",
    "keep-going-1",
    "keep-going-2",
    "deduce-sibling-calls",
    "deduce-sibling-calls-1",
    "deduce-sibling-calls-2",
    "recursive-calls-only",
    "per-thread-stacks",
    "aggregate-threads",
    "all-stacks",
    "symbolize",
    "demangle",
    "no-demangle",
];

/// Turns the arguments of `anytrace xray …` into what clap reads: long options may have one dash and underscores
/// (`-all-stacks`, `--instr_map`), short ones two dashes, and switches a value, as in every LLVM tool. Other command
/// lines stay as they are.
pub(crate) fn normalize(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let arguments: Vec<OsString> = arguments.collect();
    if arguments.get(1).is_none_or(|group| group != "xray") {
        return arguments;
    }
    let is_extract = arguments.get(2).is_some_and(|verb| verb == "extract");
    let mut is_option = true;
    let mut normal = Vec::with_capacity(arguments.len());
    for (number, argument) in arguments.into_iter().enumerate() {
        is_option &= argument != "--";
        let text = argument.to_str().filter(|_| is_option && number >= 2);
        match text.map_or(Spelling::AsItIs, |text| respell(text, is_extract)) {
            Spelling::AsItIs => normal.push(argument),
            Spelling::Other(spelled) => normal.push(spelled.into()),
            Spelling::Nothing => {}
        }
    }
    normal
}

/// What an argument becomes.
enum Spelling {
    AsItIs,
    Other(String),
    /// A switch that is off.
    Nothing,
}

fn respell(argument: &str, is_extract: bool) -> Spelling {
    let (name, value) = argument.split_once('=').map_or((argument, None), |(name, value)| (name, Some(value)));
    let Some(bare) = name.strip_prefix("--").or_else(|| name.strip_prefix('-')) else { return Spelling::AsItIs };
    if !bare.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return Spelling::AsItIs;
    }
    let long = SPELLINGS
        .iter()
        .find(|(theirs, _)| *theirs == bare)
        .map_or_else(|| bare.replace('_', "-"), |(_, ours)| (*ours).to_owned());
    // One letter is a short option; a letter and digits are one of the table.
    let dashes = if long.len() == 1 { "-" } else { "--" };
    let is_switch = SWITCHES.contains(&long.as_str()) || (is_extract && long == "s");
    match value {
        Some("true" | "TRUE" | "True" | "1") if is_switch => Spelling::Other(format!("{dashes}{long}")),
        Some("false" | "FALSE" | "False" | "0") if long == "demangle" => Spelling::Other("--no-demangle".to_owned()),
        Some("false" | "FALSE" | "False" | "0") if is_switch => Spelling::Nothing,
        Some(value) => Spelling::Other(format!("{dashes}{long}={value}")),
        None => Spelling::Other(format!("{dashes}{long}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(line: &str) -> String {
        let words = normalize(line.split(' ').map(OsString::from));
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn options_may_be_spelled_as_llvm_tools_take_them() {
        assert_eq!(
            normalized("anytrace xray stack -all -stack-format=flame --instr_map=a -k - f_g"),
            "anytrace xray stack --all-stacks --stack-format=flame --instr-map=a -k - f_g"
        );
        assert_eq!(
            normalized("anytrace xray graph-diff -k1 -m2=x -- -all"),
            "anytrace xray graph-diff --keep-going-1 --instr-map-2=x -- -all"
        );
    }

    #[test]
    fn short_options_may_have_two_dashes_and_switches_a_value() {
        assert_eq!(
            normalized("anytrace xray graph --k -d=true -k=0 --o=- --keep-going-1=TRUE --demangle=false x"),
            "anytrace xray graph -k -d -o=- --keep-going-1 --no-demangle x"
        );
        assert_eq!(normalized("anytrace xray extract -s=1 --symbolize=0 b"), "anytrace xray extract -s b");
        assert_eq!(
            normalized("anytrace xray convert -s=0 -y=1 -m=k=1 - 1"),
            "anytrace xray convert -s=0 -y=1 -m=k=1 - 1"
        );
        assert_eq!(normalized("anytrace xray stack -- -k=0 --k"), "anytrace xray stack -- -k=0 --k");
    }

    #[test]
    fn other_groups_are_left_alone() {
        assert_eq!(normalized("anytrace info -all x_y"), "anytrace info -all x_y");
    }
}
