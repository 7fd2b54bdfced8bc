//! The licenses of the crates that a program is linked from, as those licenses ask for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use crate::shell::{cargo, output};

/// How the files begin that a crate keeps its licenses in.
const BEGINNINGS: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// One text: the crates with their versions and licenses, then each license file once, with the crates that have it.
pub(super) fn of(package: &str, target: &str) -> Result<String, String> {
    let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
    let metadata = output(cargo().args(arguments))?;
    let metadata: Value = serde_json::from_slice(&metadata).map_err(|error| error.to_string())?;
    let linked = linked(&metadata, package);
    let mut text = String::from("Third-party crates in this program, and their licenses.\n\n");
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let is_ours = package["source"].is_null();
        if is_ours || !package["id"].as_str().is_some_and(|id| linked.contains(id)) {
            continue;
        }
        let name = format!("{} {}", text_of(&package["name"]), text_of(&package["version"]));
        let _ = writeln!(text, "{name}: {}", text_of(&package["license"]));
        let folder = Path::new(text_of(&package["manifest_path"])).parent().unwrap_or(Path::new("."));
        for file in license_files(folder)? {
            files.entry(file).or_default().push(name.clone());
        }
    }
    for (file, names) in files {
        let _ = write!(text, "\n{:-<100}\n{}:\n\n{}\n", "", names.join(", "), file.trim_end());
    }
    Ok(text)
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The ids of a package and of all that it is linked from: no build scripts' and no tests' dependencies.
fn linked<'a>(metadata: &'a Value, package: &str) -> BTreeSet<&'a str> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut open: Vec<&str> = packages.filter(|row| row["name"] == package).map(|row| text_of(&row["id"])).collect();
    let nodes = metadata["resolve"]["nodes"].as_array().into_iter().flatten();
    let nodes: BTreeMap<&str, &Value> = nodes.map(|node| (text_of(&node["id"]), node)).collect();
    let mut linked = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !linked.insert(id) {
            continue;
        }
        for dependency in nodes.get(id).into_iter().flat_map(|node| node["deps"].as_array()).flatten() {
            let mut kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            if kinds.any(|kind| kind["kind"].is_null()) {
                open.push(text_of(&dependency["pkg"]));
            }
        }
    }
    linked
}

/// The texts of the license files in a crate's folder.
fn license_files(folder: &Path) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path| std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(failed);
    paths.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_build_scripts_and_tests_are_not_linked() {
        let kinds = |kind: Value| serde_json::json!([{ "kind": kind }]);
        let metadata = serde_json::json!({
            "packages": [{ "name": "program", "id": "p" }],
            "resolve": { "nodes": [
                { "id": "p", "deps": [
                    { "pkg": "linked", "dep_kinds": kinds(Value::Null) },
                    { "pkg": "builds", "dep_kinds": kinds("build".into()) },
                    { "pkg": "tests", "dep_kinds": kinds("dev".into()) },
                ] },
                { "id": "linked", "deps": [{ "pkg": "below", "dep_kinds": kinds(Value::Null) }] },
            ] },
        });
        assert_eq!(linked(&metadata, "program"), BTreeSet::from(["below", "linked", "p"]));
    }
}
