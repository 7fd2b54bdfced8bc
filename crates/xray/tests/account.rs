//! Accounts against those of llvm-xray, and against a slow obvious version.

#![cfg(feature = "tools")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use anytrace_core::span::{Mangling, SymbolSource};
use anytrace_core::testing::{mutations, shared_corpus, truncations};
use anytrace_core::{Collect, Diagnostic, Error, Input, InputOptions, OpenOptions};
use anytrace_export::cells::Cells;
use anytrace_xray::record::FunctionKind;
use anytrace_xray::tools::account::{Account, AccountForm, AccountOptions, Row, SortKey, account};
use anytrace_xray::tools::map::{self, Map};
use anytrace_xray::{Mismatch, Moment, MomentKind, Moments, Ordered};

fn run(bytes: &[u8], options: AccountOptions, map: Option<&Map>, threads: usize) -> Account {
    let open = OpenOptions { threads, ..OpenOptions::default() };
    account(Input::from_bytes("x", bytes.to_vec()), &open, options, map, &mut Collect::default()).unwrap()
}

fn text(account: &Account, form: AccountForm) -> String {
    let mut out = Vec::new();
    account.write(form, Cells::Raw, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

const PLAIN: AccountOptions = AccountOptions { mismatch: Mismatch::Deduce, recursive_only: false };
/// The options that `-k` alone sets.
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
    // The peer supports only one object.
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

/// True when the peer wrote the file, and reported nothing except missing exits: with several threads, and with blocks
/// out of order, it compares times that cannot be compared.
fn is_right(trace: &str, expected: &Path) -> bool {
    let said = std::fs::read_to_string(format!("{}.err", expected.display())).unwrap_or_default();
    let is_fine = said.is_empty() || (trace.ends_with("exc") && said.ends_with("exit status 0\n"));
    expected.exists() && is_fine
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
                if is_right(&trace, &expected) {
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

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)).unwrap()
}

/// The obvious version: a list of open calls per thread, a list of lengths per function.
#[derive(Default)]
struct Naive {
    open: BTreeMap<(u32, u32), Vec<(u32, u64)>>,
    lengths: BTreeMap<u32, Vec<u64>>,
    orphans: u64,
}

impl Moments for Naive {
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        let MomentKind::Function(kind) = moment.kind else { return Ok(()) };
        let open = self.open.entry((moment.process, moment.thread)).or_default();
        if matches!(kind, FunctionKind::Enter | FunctionKind::EnterArgs) {
            open.push((moment.function, moment.tsc));
        } else if open.iter().any(|(function, _)| *function == moment.function) {
            while let Some((function, enter)) = open.pop() {
                self.lengths.entry(function).or_default().push(moment.tsc.abs_diff(enter));
                if function == moment.function {
                    break;
                }
            }
        } else {
            self.orphans += 1;
        }
        Ok(())
    }
    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

fn assert_like_naive(bytes: &[u8], what: &str) {
    let (mut naive, mut sink) = (Naive::default(), Collect::default());
    let ordered = Ordered::open(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default(), &mut sink).unwrap();
    ordered.by_thread(&mut naive, &mut sink).unwrap();
    for threads in [1, 3] {
        let account = run(bytes, PLAIN, None, threads);
        assert_eq!(account.counts.orphans, naive.orphans, "{what}");
        assert_eq!(account.rows.len(), naive.lengths.len(), "{what}");
        for (row, (id, lengths)) in account.rows.iter().zip(&naive.lengths) {
            let mut sorted = lengths.clone();
            sorted.sort_unstable();
            let n = sorted.len();
            let expected = (*id, n as u64, sorted[0], sorted[n / 2], sorted[n * 9 / 10], sorted[n * 99 / 100]);
            assert_eq!((row.id, row.count, row.min, row.median, row.p90, row.p99), expected, "{what}");
            assert_eq!(row.max, sorted[n - 1], "{what}");
            assert_eq!(row.sum, sorted.iter().map(|&length| u128::from(length)).sum::<u128>(), "{what}");
        }
    }
}

#[test]
fn accounts_are_those_of_an_obvious_version_damaged_traces_included() {
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "xray" || e == "yaml") {
            let bytes = std::fs::read(&path).unwrap();
            let name = path.display().to_string();
            assert_like_naive(&bytes, &name);
            if bytes.len() < 3000 {
                truncations(&bytes, 16, |_, part| assert_like_naive(part, &name));
                mutations(&bytes, 5, 10, |changed| assert_like_naive(changed, &name));
            }
        }
    }
    let Some(corpus) = shared_corpus("xray") else { return };
    for name in ["threads4", "threads3-smallbuf", "basic-threads", "ring", "events"] {
        let bytes = std::fs::read(corpus.join(format!("real/{name}.xray"))).unwrap();
        assert_like_naive(&bytes, name);
        assert_eq!(
            text(&run(&bytes, PLAIN, None, 1), AccountForm::Json),
            text(&run(&bytes, PLAIN, None, 4), AccountForm::Json)
        );
    }
}

#[test]
fn a_trace_without_frequency_is_accounted_for_in_ticks() {
    let account = run(&sample("v5-freq-zero.xray"), PLAIN, None, 1);
    let table = text(&account, AccountForm::Text);
    assert_eq!(account.facts.cycle_frequency, 0);
    assert!(table.contains("[10.000000, 10.000000,"), "{table}");
    assert!(text(&account, AccountForm::Json).contains("\"unit\": \"ticks\""));
}

#[test]
fn an_empty_trace_has_no_functions() {
    assert_eq!(run(&[], PLAIN, None, 1).total(), 0);
    let table = text(&run(&sample("empty.xray"), PLAIN, None, 1), AccountForm::Text);
    assert!(table.starts_with("Functions with latencies: 0\n   funcid      count [      min,"), "{table}");
}

#[test]
fn rows_are_sorted_by_any_column_and_the_total_stays() {
    let mut account = run(&sample("basic-exc.xray"), PLAIN, None, 1);
    let all = account.rows.clone();
    type IsSorted = fn(&[Row]) -> bool;
    let keys: [(SortKey, IsSorted); 3] = [
        (SortKey::Sum, |rows| rows.is_sorted_by_key(|row| row.sum)),
        (SortKey::Max, |rows| rows.is_sorted_by_key(|row| row.max)),
        (SortKey::Function, |rows| rows.is_sorted_by_key(|row| row.function.clone())),
    ];
    for (key, is_sorted) in keys {
        account.sort(key, true);
        account.sort(key, false);
        assert!(is_sorted(&account.rows), "{key:?}");
    }
    account.sort(SortKey::Id, false);
    assert_eq!(account.rows, all);
    account.truncate(1);
    assert_eq!((account.rows.len(), account.total()), (1, all.len()));
}

#[test]
fn json_has_seconds_and_ticks() {
    let account = run(&sample("basic-exc.xray"), PLAIN, None, 1);
    let value: serde_json::Value = serde_json::from_str(&text(&account, AccountForm::Json)).unwrap();
    assert_eq!(value["version"], 1);
    let (first, row) = (&value["functions"][0], &account.rows[0]);
    assert_eq!((first["id"].as_u64(), first["max_ticks"].as_u64()), (Some(u64::from(row.id)), Some(row.max)));
    assert!(value["deduced_exits"].as_u64().unwrap() > 0);
}
