//! What the program offers and no shape tries: asked of its help, so that a verb that is new cannot be forgotten.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::jobs::{EXEMPT, FAMILIES, jobs};
use crate::hostile::surface::{Value, Verb, of_program};
use crate::shell::output;

/// What a program has been asked for.
pub(super) struct Surface {
    verbs: Vec<Verb>,
    /// The forms of `convert --to`.
    forms: BTreeSet<String>,
}

impl Surface {
    pub(super) fn of(program: &Path) -> Result<Self, String> {
        let listed = output(Command::new(program).arg("formats"))?;
        Ok(Self { verbs: of_program(program)?, forms: forms(&String::from_utf8_lossy(&listed)) })
    }

    /// A line for each verb or form that no job tries, and for each exemption of something that is not a verb or is
    /// tried.
    pub(super) fn gaps(&self) -> Vec<String> {
        let tried: Vec<&str> = FAMILIES.into_iter().flat_map(jobs).collect();
        let mut gaps = Vec::new();
        for Verb { name, .. } in &self.verbs {
            let is_tried = tried.iter().any(|job| is_of(job, name));
            match (is_tried, EXEMPT.iter().any(|(exempt, _)| exempt == name)) {
                (false, false) => gaps.push(format!("no shape is tried with `{name}`, and no reason is given")),
                (true, true) => gaps.push(format!("`{name}` is exempt, and yet it is tried")),
                _ => {}
            }
        }
        let unknown = EXEMPT.iter().filter(|(exempt, _)| !self.verbs.iter().any(|verb| verb.name == *exempt));
        gaps.extend(unknown.map(|(exempt, _)| format!("`{exempt}` is exempt, and no verb")));
        let own: BTreeSet<_> = FAMILIES.into_iter().map(|family| family.form().to_owned()).collect();
        let is_written = |form: &String| tried.iter().any(|job| job.ends_with(&format!("--to {form}")));
        let forms = self.forms.iter().filter(|form| !own.contains(*form) && !is_written(form));
        gaps.extend(forms.map(|form| format!("no shape is tried with `convert --to {form}`")));
        gaps
    }

    /// True when the verb of a job has an option.
    pub(super) fn takes(&self, job: &str, option: &str) -> bool {
        let verb = self.verbs.iter().find(|verb| is_of(job, &verb.name));
        verb.is_some_and(|verb| verb.options.iter().any(|one| one.name == option))
    }

    /// The first job of a verb once more for each form of its results that no job names.
    pub(super) fn with_forms(&self, jobs: &[&str]) -> Vec<String> {
        let mut more = Vec::new();
        for verb in &self.verbs {
            let own: Vec<&&str> = jobs.iter().filter(|job| is_of(job, &verb.name)).collect();
            let listed = verb.options.iter().filter(|option| option.name == "--format").flat_map(|option| {
                if let Value::Some { listed, .. } = &option.value { listed.as_slice() } else { &[] }
            });
            if let Some(first) = own.first() {
                // The first is what is printed without the option.
                let is_new = |form: &&String| !own.iter().any(|job| job.ends_with(&format!("--format {form}")));
                more.extend(listed.skip(1).filter(is_new).map(|form| format!("{first} --format {form}")));
            }
        }
        more
    }
}

/// True when a job is one of a verb.
fn is_of(job: &str, verb: &str) -> bool {
    job.strip_prefix(verb).is_some_and(|rest| rest.starts_with(' '))
}

/// The names behind `--to` in the list of `anytrace formats`.
fn forms(listed: &str) -> BTreeSet<String> {
    let rows = listed.lines().filter_map(|line| line.trim_start().strip_prefix("--to "));
    rows.filter_map(|row| row.split_whitespace().next()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verb(name: &str) -> Verb {
        Verb { name: name.to_owned(), positionals: Vec::new(), options: Vec::new() }
    }

    #[test]
    fn a_new_verb_and_a_new_form_are_gaps() {
        let known = EXEMPT.iter().map(|(name, _)| verb(name)).chain([verb("info"), verb("xray stack")]);
        let listed = "xray  LLVM\n  --to xray   the source's\n  --to jsonl  lines\n  --to chrome x\n";
        let mut surface = Surface { verbs: known.collect(), forms: forms(listed) };
        assert_eq!(surface.gaps(), Vec::<String>::new());
        surface.verbs.extend([verb("xray stackless"), verb("inform")]);
        surface.forms.insert("chromium".to_owned());
        let gaps = surface.gaps();
        assert_eq!(gaps.len(), 3, "{gaps:?}");
        assert!(gaps[0].contains("`xray stackless`") && gaps[1].contains("`inform`") && gaps[2].contains("chromium"));
        surface.verbs.clear();
        assert_eq!(surface.gaps().len(), EXEMPT.len() + 1);
    }
}
