//! The book's table of options that single formats have is made from what the formats declare.
//!
//! `UPDATE_GOLDENS=1` writes it again.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::Path;

use anytrace_core::{FormatOption, OptionUse, OptionValues};

const BEGIN: &str =
    "<!-- format options: the rows are made from the formats by crates/cli/tests/format_options.rs -->\n";
const END: &str = "<!-- end of format options -->\n";

/// The table that the formats' options make, with the formats in the order in which they are listed.
fn table() -> String {
    let mut table = "| format | option | applies to | meaning |\n|---|---|---|---|\n".to_owned();
    for format in anytrace_formats::all() {
        for option in format.options() {
            table +=
                &format!("| {} | {} | {} | {} |\n", format.name(), spelling(option), applies_to(option), option.help);
        }
    }
    table
}

/// The option with its values; bars would end a cell.
fn spelling(option: &FormatOption) -> String {
    let values = match option.values {
        OptionValues::Flag => String::new(),
        OptionValues::OneOf(words) => format!(" {}", words.join("\\|")),
        OptionValues::Number | OptionValues::Numbers(_) => format!(" {}", option.value_name),
    };
    format!("`--{}{values}`", option.name)
}

fn applies_to(option: &FormatOption) -> &'static str {
    match option.used_to {
        OptionUse::Read => "reading",
        OptionUse::Select => "selecting records",
        OptionUse::Write => "writing",
    }
}

#[test]
fn the_table_in_the_book_is_what_the_formats_declare() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/verbs/shared.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page marks where the table begins");
    let (found, after) = rest.split_once(END).expect("the page marks where the table ends");
    let expected = format!("\n{}\n", table());
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, [before, BEGIN, &expected, END, after].concat()).unwrap();
        return;
    }
    assert_eq!(found, expected, "UPDATE_GOLDENS=1 writes the table again");
}

#[test]
fn the_table_names_every_option_of_every_format() {
    let options: usize = anytrace_formats::all().iter().map(|format| format.options().len()).sum();
    assert!(options > 5);
    assert_eq!(table().lines().count(), options + 2, "one row for each, below two lines of headings");
    assert!(table().lines().all(|line| line.replace("\\|", "").matches('|').count() == 5), "{}", table());
}
