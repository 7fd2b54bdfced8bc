//! `advise` for programs. Keys are never removed; `remap` is what `sim --remap` takes.

use anytrace_analysis::advise::{Measured, Tried};
use anytrace_analysis::remap::TypePlan;
use anytrace_export::json::VERSION;
use serde_json::{Map, Value, json};

use super::super::remapping;
use super::super::site_types::origin;
use super::Advice;

/// One trace's object.
pub(super) fn object(advice: &Advice) -> Value {
    let of = |is_advice: bool| {
        let chosen = advice.tried.iter().filter(|one| one.is_advice() == is_advice);
        chosen.map(|one| tried(one, advice)).collect::<Vec<_>>()
    };
    json!({
        "version": VERSION,
        "file": advice.name,
        "format": advice.format,
        "records": advice.surveyed.profile.records,
        "threads": advice.surveyed.threads,
        "config": advice.config.name,
        "before": measured(&advice.before),
        "advice": of(true),
        "tried": of(false),
        "together": advice.together.as_ref().map(|(plans, found)| together(plans, found)),
    })
}

/// What all of them gain, and a file for `sim --remap` that has them all.
fn together(plans: &[TypePlan], found: &Measured) -> Value {
    let types: Vec<Value> = plans.iter().map(remapping::written).collect();
    let mut value = measured(found);
    value["remap"] = json!({"version": VERSION, "types": types});
    value
}

fn measured(measured: &Measured) -> Value {
    let levels: Map<String, Value> =
        measured.levels.iter().map(|(name, misses)| (name.clone(), json!(misses))).collect();
    json!({"missed_lines": levels, "weighted": measured.weighted()})
}

fn tried(one: &Tried, advice: &Advice) -> Value {
    let candidate = &one.candidate;
    let plan = &candidate.plan;
    let layout = advice.layout_of(&plan.name);
    let fields = candidate.placed.iter().map(|(unit, one)| {
        json!({
            "field": unit.name,
            "declared": unit.declared,
            "offset": unit.from,
            "size": unit.bytes,
            "uses": unit.accesses,
            "misses": unit.misses,
            "new_part": one.part,
            "new_offset": one.to,
        })
    });
    let cold = candidate.placed.iter().filter(|(_, one)| one.part > 0).map(|(unit, _)| unit.name.clone());
    json!({
        "type": plan.name,
        "name": layout.map(|layout| layout.name.as_str()),
        "inferred": origin(layout),
        "kind": candidate.kind.word(),
        "title": candidate.kind.title(),
        "reason": candidate.reason,
        "gain": one.gain,
        "before": measured(&one.before),
        "moved_unchanged": measured(&one.moved),
        "after": measured(&one.after),
        "type_misses_before": one.before.of_type(&plan.name),
        "type_misses_after": one.after.of_type(&plan.name),
        "size_before": plan.old_bytes,
        "sizes_after": plan.parts.iter().map(|part| part.bytes).collect::<Vec<_>>(),
        "split_off": cold.collect::<Vec<_>>(),
        "fields": fields.collect::<Vec<_>>(),
        "remap": remapping::written(plan),
    })
}
