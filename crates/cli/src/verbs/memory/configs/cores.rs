//! The value of `--cores`: which thread runs on which core.

use anytrace_analysis::cache::CorePlan;

pub(super) fn core_plan(text: &str) -> Result<CorePlan, String> {
    let most = anytrace_analysis::cache::config::CORES_MAX;
    let core = |number: usize| {
        if number < most { Ok(number) } else { Err(format!("expected a core below {most}, found {number}")) }
    };
    if let Ok(count) = text.parse::<usize>() {
        let fits = (1..=most).contains(&count);
        return if fits { Ok(CorePlan::Count(count)) } else { Err(format!("expected 1 to {most} cores")) };
    }
    if text == "per-thread" {
        return Ok(CorePlan::PerThread);
    }
    let pairs = text.split(',').map(|pair| {
        let parts = pair.split_once('=').and_then(|(id, core)| Some((id.parse().ok()?, core.parse().ok()?)));
        let (id, number) = parts.ok_or_else(|| format!("expected a number, or ID=CORE,…, found {pair:?}"))?;
        Ok((id, core(number)?))
    });
    pairs.collect::<Result<_, String>>().map(CorePlan::Map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_a_number_or_a_map() {
        assert_eq!(core_plan("4"), Ok(CorePlan::Count(4)));
        assert_eq!(core_plan("7=0,9=1"), Ok(CorePlan::Map(vec![(7, 0), (9, 1)])));
        assert!(core_plan("0").is_err() && core_plan("65").is_err() && core_plan("a").is_err());
        assert!(core_plan("7=64").is_err());
    }
}
