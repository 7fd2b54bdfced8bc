//! The numbers of the header are those of the engine.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeMap;

use anytrace_casemate::model::QUIRKS;
use anytrace_casemate::{Domain, HintKind, Kind, MemoryOrder, Sysreg, TlbiOp};

const HEADER: &str = include_str!("../include/casemate.h");

/// The constants of an enum of the header, without the beginning of their names.
fn constants(name: &str, prefix: &str) -> Vec<(String, u32)> {
    let text = HEADER.split(&format!("enum {name} {{\n")).nth(1).unwrap().split("};").next().unwrap();
    let mut constants = Vec::new();
    for line in text.lines().map(|line| line.trim().trim_end_matches(',')).filter(|line| line.contains(" = ")) {
        let (name, value) = line.split_once(" = ").unwrap();
        let value =
            value.strip_prefix("1 << ").map_or_else(|| value.parse().unwrap(), |bit| 1 << bit.parse::<u32>().unwrap());
        constants.push((name.strip_prefix(prefix).unwrap().to_lowercase(), value));
    }
    constants
}

fn agrees<'a>(name: &str, prefix: &str, first: u32, names: impl Iterator<Item = &'a str>) {
    let expected: Vec<_> = names.map(|name| name.replace('-', "_")).zip(first..).collect();
    assert_eq!(constants(name, prefix), expected);
}

#[test]
fn enums_have_the_order_of_the_engine() {
    agrees("casemate_kind", "CASEMATE_", 1, Kind::ALL.iter().map(|kind| kind.name()));
    agrees("casemate_order", "CASEMATE_", 0, MemoryOrder::ALL.iter().map(|order| order.name()));
    agrees("casemate_sysreg", "CASEMATE_", 0, Sysreg::ALL.iter().map(|register| register.name()));
    agrees("casemate_hint", "CASEMATE_", 0, HintKind::ALL.iter().map(|hint| hint.name()));
    let mut barriers = constants("casemate_barrier", "CASEMATE_");
    assert_eq!(barriers.remove(0), ("isb".to_owned(), 0));
    let domains: Vec<_> = Domain::ALL.iter().map(|domain| format!("dsb_{}", domain.name())).zip(1..).collect();
    assert_eq!(barriers, domains);
}

#[test]
fn an_operation_and_a_form_are_an_operation_of_the_engine() {
    let (operations, forms) =
        (constants("casemate_tlbi", "CASEMATE_TLBI_"), constants("casemate_tlbi_form", "CASEMATE_TLBI_"));
    let mut numbers = BTreeMap::new();
    for (operation, first) in &operations {
        for (form, number) in &forms {
            let form = if form == "local" { "" } else { form };
            numbers.insert(format!("{operation}{form}"), first + number);
        }
    }
    assert_eq!(numbers.len(), TlbiOp::ALL.len());
    for op in TlbiOp::ALL {
        assert_eq!(numbers.get(op.name()), Some(&(*op as u32)), "{}", op.name());
    }
}

#[test]
fn rules_have_the_bits_of_the_engine() {
    let expected: Vec<_> = QUIRKS.iter().map(|row| (row.name.replace('-', "_"), 1 << row.quirk as u32)).collect();
    assert_eq!(constants("casemate_rule", "CASEMATE_RULE_"), expected);
}
