//! Debian packages that tests and benchmarks compare with.

use std::process::Command;

use crate::shell::{has_program, run};

/// Programs of the formats' own systems, and the packages that each needs.
const PEERS: &[(&str, &[&str])] = &[
    ("llvm-xray", &["llvm"]),
    ("apitrace", &["apitrace"]),
    // What its `diff-images` needs and its package does not bring.
    ("/usr/lib/python3/dist-packages/PIL/Image.py", &["python3-pil"]),
    ("Xvfb", &["xvfb"]),
    ("clang-14", &["clang-14", "libclang-rt-14-dev"]),
    ("make", &["make"]),
    // What the documented commands pipe results into.
    ("jq", &["jq"]),
    // What formats the manual page of a package.
    ("man", &["man-db"]),
    // What the recorder's tests build their programs with.
    ("gcc", &["gcc", "libc6-dev"]),
    ("g++", &["g++"]),
    ("clang", &["clang"]),
    // Its package brings libEGL, which programs written by `apitrace to-c` load.
    ("eglinfo", &["mesa-utils", "libegl1", "libgl1-mesa-dri"]),
    ("valgrind", &["valgrind"]),
    ("babeltrace2", &["babeltrace2"]),
    // Programs that strip others and find what was stripped.
    ("objcopy", &["binutils"]),
    // What runs the checker that hypervisors link, built for Arm.
    ("qemu-aarch64-static", &["qemu-user-static"]),
    ("xz", &["xz-utils"]),
    ("debuginfod-find", &["debuginfod"]),
    // Programs that draw, for what `apitrace gltrim` keeps of them.
    ("glmark2", &["glmark2-x11"]),
    ("glmark2-es2", &["glmark2-es2-x11"]),
    ("/usr/games/etr", &["extremetuxracer"]),
    ("/usr/games/armagetronad", &["armagetronad"]),
    ("/usr/games/billard-gl", &["billard-gl"]),
    ("/usr/libexec/xscreensaver/pipes", &["xscreensaver-gl"]),
];

/// Targets of programs without an operating system, for which the checker that hypervisors link is built.
const TARGETS: [&str; 2] = ["x86_64-unknown-none", "aarch64-unknown-none-softfloat"];

/// Installs what is missing, where that is possible; says what stays missing and what that means.
pub(crate) fn install_peers() {
    install_targets();
    // One by one: a release of Debian that lacks one may have the others.
    for (_, packages) in PEERS.iter().filter(|(program, _)| !has_program(program)) {
        install(packages);
    }
}

/// Installs Rust's own library for [`TARGETS`], if rustup is there: it does nothing for those that are installed.
fn install_targets() {
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add"]).args(TARGETS);
    if !has_program("rustup") || run(&mut rustup).is_err() {
        println!("not installed: {} (need rustup); tests that need them are skipped", TARGETS.join(", "));
    }
}

/// Installs packages, where that is possible; says what stays missing and what that means.
pub(crate) fn install(packages: &[&str]) {
    if !has_program("apt-get") || !nix::unistd::geteuid().is_root() {
        println!("not installed: {} (needs root on Debian); tests that need them are skipped", packages.join(", "));
        return;
    }
    let mut update = Command::new("apt-get");
    update.args(["update", "-qq"]);
    let mut install = Command::new("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive");
    install.args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages);
    if let Err(message) = run(&mut update).and_then(|()| run(&mut install)) {
        println!("{message}; tests that need {} are skipped", packages.join(", "));
    }
}
