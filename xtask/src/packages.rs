//! Debian packages that tests and benchmarks compare with.

use std::process::Command;

use crate::shell::{has_program, run};

/// Programs of the formats' own systems, and the packages that each needs.
const PEERS: [(&str, &[&str]); 3] =
    [("llvm-xray", &["llvm"]), ("apitrace", &["apitrace"]), ("clang-14", &["clang-14", "libclang-rt-14-dev"])];

/// Installs what is missing, where that is possible; says what stays missing and what that means.
pub(crate) fn install_peers() {
    let missing: Vec<_> = PEERS.iter().filter(|(program, _)| !has_program(program)).collect();
    if missing.is_empty() {
        return;
    }
    if !has_program("apt-get") || !nix::unistd::geteuid().is_root() {
        let names: Vec<_> = missing.iter().flat_map(|(_, packages)| packages.iter().copied()).collect();
        println!("not installed: {} (needs root on Debian); tests that need them are skipped", names.join(", "));
        return;
    }
    let mut update = Command::new("apt-get");
    update.args(["update", "-qq"]);
    if let Err(message) = run(&mut update) {
        println!("{message}");
    }
    // One by one: a release of Debian that lacks one may have the others.
    for (program, packages) in missing {
        let mut install = Command::new("apt-get");
        install.env("DEBIAN_FRONTEND", "noninteractive");
        install.args(["install", "-y", "-qq", "--no-install-recommends"]).args(*packages);
        if let Err(message) = run(&mut install) {
            println!("{message}; tests that need {program} are skipped");
        }
    }
}
