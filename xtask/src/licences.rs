//! `cargo xtask licences`: no dependency comes in under a license nobody decided on.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::shell::{cargo, output};

/// Licenses anyone may combine with MIT OR Apache-2.0 without further duty than to name them.
const ALLOWED: [&str; 14] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "CC0-1.0",
    "Unicode-3.0",
    "Unlicense",
    "0BSD",
    "BSL-1.0",
    // inferno: copyleft for its own files only, which we do not change.
    "CDDL-1.0",
    // libbz2-rs-sys, which DataFusion's default features bring into the cluster: BSD in other words.
    "bzip2-1.0.6",
];

pub(crate) fn run() -> Result<(), String> {
    let mut used: BTreeMap<String, u32> = BTreeMap::new();
    let mut refused = Vec::new();
    // The Python package and the cluster are workspaces of their own.
    let manifests = ["Cargo.toml", "python/Cargo.toml", "crates/cluster/Cargo.toml"];
    let workspaces = manifests.into_iter().map(metadata).collect::<Result<Vec<Value>, String>>()?;
    for package in workspaces.iter().filter_map(|metadata| metadata["packages"].as_array()).flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let license = package["license"].as_str().unwrap_or_default().replace('/', " OR ");
        *used.entry(license.clone()).or_default() += 1;
        if !is_allowed(&license) {
            refused.push(format!("{name}: {}", if license.is_empty() { "no license given" } else { &license }));
        }
    }
    for (license, count) in &used {
        println!("{count:>4}  {license}");
    }
    if refused.is_empty() { Ok(()) } else { Err(format!("licenses nobody allowed:\n{}", refused.join("\n"))) }
}

fn metadata(manifest: &str) -> Result<Value, String> {
    let arguments = ["metadata", "--format-version", "1", "--locked", "--manifest-path", manifest];
    serde_json::from_slice(&output(cargo().args(arguments))?).map_err(|error| error.to_string())
}

/// An SPDX expression is allowed when one alternative of each part that is required is allowed.
fn is_allowed(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], " ");
    plain.split(" AND ").all(|part| part.split(" OR ").any(|name| ALLOWED.contains(&name.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_allowed_alternative_is_enough_and_every_required_part_counts() {
        assert!(is_allowed("MIT OR GPL-3.0"));
        assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(!is_allowed("MIT AND GPL-3.0"));
        assert!(!is_allowed(""));
    }
}
