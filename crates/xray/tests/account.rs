//! Accounts against those of llvm-xray, and against an obvious version.

#![cfg(feature = "tools")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Read;
use std::path::{Path, PathBuf};

use anytrace_core::span::{Mangling, SymbolSource};
use anytrace_core::testing::{mutations, shared_corpus, truncations};
use anytrace_core::{Collect, Input, InputOptions, OpenOptions};
use anytrace_xray::Mismatch;
use anytrace_xray::tools::account::{Account, AccountForm, AccountOptions, SortKey, account};
use anytrace_xray::tools::map::{self, Map};

fn run(bytes: &[u8], options: AccountOptions, map: Option<&Map>, threads: usize) -> Account {
    let open = OpenOptions { threads, ..OpenOptions::default() };
    account(Input::from_bytes("x", bytes.to_vec()), &open, options, map, &mut Collect::default()).unwrap()
}

fn text(account: &Account, form: AccountForm) -> String {
    let mut out = Vec::new();
    account.write(form, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

const PLAIN: AccountOptions = AccountOptions { mismatch: Mismatch::Deduce, recursive_only: false };
/// What `-k` alone asks for.
const SKIP: AccountOptions = AccountOptions { mismatch: Mismatch::Skip, recursive_only: false };
const RECURSIVE: AccountOptions = AccountOptions { mismatch: Mismatch::Skip, recursive_only: true };

/// The map of a trace of the shared corpus.
fn map_of(corpus: &Path, trace: &str) -> Option<Map> {
    let base = trace.trim_start_matches("basic-");
    let known = ["args", "customs", "exc", "tail", "threads", "dso"];
    let program = known.into_iter().find(|name| base.starts_with(name));
    let names: &[&str] = match program {
        Some("dso") => &["dso-main-22", "dso-lib-22"],
        Some("args") => &["args-14"],
        Some("customs") => &["customs-14"],
        Some("exc") => &["exc-14"],
        Some("tail") => &["tail-14"],
        Some("threads") => &["threads-14"],
        _ if base.starts_with("fib") || base.starts_with("ring") => &["fib-14"],
        _ => return None,
    };
    let folder = std::env::temp_dir().join(format!("anytrace-account-{}-{trace}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut sources = Vec::new();
    // The peer knows one object.
    for name in names.iter().take(1) {
        let packed = Input::open(&corpus.join(format!("maps/{name}.elf.gz")), InputOptions::default()).unwrap();
        let mut bytes = Vec::new();
        packed.into_read().read_to_end(&mut bytes).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        sources.push(SymbolSource { object: None, path });
    }
    let map = map::load(&sources, Mangling::Demangled).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    Some(map)
}

/// True when the peer made the file without an error on standard error.
fn is_right(expected: &Path) -> bool {
    expected.exists() && !PathBuf::from(format!("{}.err", expected.display())).exists()
}

#[test]
fn accounts_are_those_of_the_peer_wherever_it_gives_one_without_error() {
    let Some(corpus) = shared_corpus("xray") else { return };
    let mut compared = 0;
    for folder in ["real", "synth"] {
        for entry in std::fs::read_dir(corpus.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "xray") {
                continue;
            }
            let trace = path.file_stem().unwrap().to_string_lossy().into_owned();
            let bytes = std::fs::read(&path).unwrap();
            let map = map_of(&corpus, &trace);
            let mut compare = |name: &str, form: AccountForm, make: &dyn Fn() -> Account| {
                let expected = corpus.join(folder).join(format!("{trace}.{name}"));
                if is_right(&expected) {
                    let expected = std::fs::read_to_string(&expected).unwrap();
                    assert_eq!(text(&make(), form), expected, "{trace}.{name}");
                    compared += 1;
                }
            };
            let sorted = |options, map, key, descending| {
                let mut account = run(&bytes, options, map, 1);
                account.sort(key, descending);
                account
            };
            compare("account.csv", AccountForm::Csv, &|| run(&bytes, PLAIN, None, 2));
            compare("account-d.csv", AccountForm::Csv, &|| run(&bytes, PLAIN, None, 1));
            compare("account-k.csv", AccountForm::Csv, &|| run(&bytes, SKIP, None, 1));
            compare("account-count.csv", AccountForm::Csv, &|| sorted(SKIP, None, SortKey::Count, true));
            compare("account-recursive.csv", AccountForm::Csv, &|| run(&bytes, RECURSIVE, None, 1));
            compare("account-sum-dsc-top5.txt", AccountForm::Text, &|| {
                let mut account = sorted(PLAIN, map.as_ref(), SortKey::Sum, true);
                account.truncate(5);
                account
            });
            compare("sym.account.csv", AccountForm::Csv, &|| run(&bytes, PLAIN, map.as_ref(), 1));
        }
    }
    assert!(compared > 100, "{compared}");
}
