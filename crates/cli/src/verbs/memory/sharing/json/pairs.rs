//! A pair of fields that cores take from each other.

use anytrace_analysis::sharing::{ALL_CORES, Pair};
use serde_json::{Value, json};

use super::super::SharingArguments;
use super::super::outcome::Outcome;
use super::address;

pub(super) fn pair(pair: &Pair, outcome: &Outcome, options: &SharingArguments) -> Value {
    let found = &outcome.found;
    let of_pair = pair.proposal.and_then(|number| outcome.tried.as_ref()?.get(number));
    let advice = of_pair.filter(|one| one.is_advice()).map(|one| one.proposal.text.as_str());
    let sides = pair.sides.iter().map(|side| {
        let field = &side.field;
        let mut object = json!({
            "type": field.type_name,
            "offset": field.offset,
            "size": field.bytes,
            "field": field.to_string(),
            "core": (side.core != ALL_CORES).then_some(side.core),
        });
        if options.is_by_thread() {
            object["thread"] = found.threads_of(side.core).next().flatten().into();
        }
        if field.type_name.is_none() {
            object["address"] = address(field.offset).into();
        } else {
            object["element_bytes"] = field.element_bytes.into();
            object["name"] = field.name.clone().into();
            object["field_type"] = field.field_type.clone().into();
        }
        object
    });
    json!({
        "sides": sides.collect::<Vec<_>>(),
        "same_instance": pair.is_one_instance,
        "false_sharing_misses": pair.false_misses,
        "true_sharing_misses": pair.true_misses,
        "invalidations": pair.invalidations,
        "atomic": pair.has_atomics,
        "straddling": pair.has_straddles,
        "lines": pair.lines,
        "line": address(pair.line),
        "advice": advice,
    })
}
