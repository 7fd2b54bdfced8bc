//! Groupings by names, which are by numbers of names inside, against the rows that the library reads.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anytrace_core::table::{ColumnType, Scan, Table};
use anytrace_core::tables;
use anytrace_core::testing::tables::rows;
use common::{Call, EXAMPLES, example, format_of};
use serde_json::Value;

/// The columns of a table that are names.
fn names(table: &Table) -> Vec<(usize, &'static str)> {
    let all = table.columns.iter().enumerate();
    all.filter(|(_, column)| column.kind == ColumnType::Name).map(|(at, column)| (at, column.name)).collect()
}

/// How often each combination of some columns occurs.
fn counts<'a>(rows: impl Iterator<Item = Vec<&'a Value>>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    rows.for_each(|row| *counts.entry(serde_json::to_string(&row).unwrap()).or_default() += 1);
    counts
}

fn found(sql: &str, path: &Path, threads: usize) -> BTreeMap<String, u64> {
    let printed = Call::sql(sql).file(path).with("threads", threads).with("format", "json").prints();
    let rows: Vec<Value> = serde_json::from_str(&printed).unwrap();
    let mut found = BTreeMap::new();
    for row in &rows {
        let row = row.as_object().unwrap();
        let key: Vec<&Value> = row.iter().filter(|(name, _)| *name != "n").map(|(_, value)| value).collect();
        let before = found.insert(serde_json::to_string(&key).unwrap(), row["n"].as_u64().unwrap());
        assert_eq!(before, None, "{sql}: a group twice: {key:?}");
    }
    found
}

#[test]
fn groups_of_names_are_those_of_the_rows() {
    let (mut grouped, mut paired) = (0, 0);
    for name in EXAMPLES {
        let path = example(name);
        let bytes = std::fs::read(&path).unwrap();
        for table in tables::all(format_of(&path)) {
            let (all, _) = rows(format_of(&path), &bytes, &table, &Scan::default()).unwrap();
            for (at, column) in names(&table) {
                let expected = counts(all.iter().map(|row| vec![&row[at]]));
                let sql = format!("SELECT \"{column}\" AS a, count(*) AS n FROM \"{}\" GROUP BY 1", table.name);
                for threads in [1, 2, 4, 7] {
                    assert_eq!(found(&sql, &path, threads), expected, "{name}, {threads}: {sql}");
                    grouped += 1;
                }
            }
            // Two of them are one number of 64 bits.
            for pair in names(&table).windows(2) {
                let [(one, first), (other, second)] = pair else { continue };
                let expected = counts(all.iter().map(|row| vec![&row[*one], &row[*other]]));
                let sql = format!(
                    "SELECT \"{first}\" AS a, \"{second}\" AS b, count(*) AS n FROM \"{}\" GROUP BY 1, 2",
                    table.name
                );
                for threads in [1, 4] {
                    assert_eq!(found(&sql, &path, threads), expected, "{name}, {threads}: {sql}");
                    paired += 1;
                }
            }
        }
    }
    assert!(grouped > 100 && paired > 20, "{grouped}, {paired}");
}

#[test]
fn names_are_grouped_beside_other_columns_with_filters_and_twice() {
    let path = example("boxes.cacheray");
    let format = format_of(&path);
    let table = tables::all(format).into_iter().find(|table| table.name == "accesses").unwrap();
    let column = |name: &str| table.columns.iter().position(|column| column.name == name).unwrap();
    let (kind, size) = (column("kind"), column("size"));
    let bytes = std::fs::read(&path).unwrap();
    let (all, _) = rows(format, &bytes, &table, &Scan::default()).unwrap();
    for threads in [1, 2, 7] {
        let sql = "SELECT kind AS a, size AS b, kind AS c, count(*) AS n FROM accesses GROUP BY 1, 2, 3";
        let expected = counts(all.iter().map(|row| vec![&row[kind], &row[size], &row[kind]]));
        assert_eq!(found(sql, &path, threads), expected, "{threads}");
        let sql = "SELECT kind AS a, count(*) AS n FROM accesses WHERE size = 4 GROUP BY 1 HAVING count(*) > 1";
        let mut expected = counts(all.iter().filter(|row| row[size] == 4).map(|row| vec![&row[kind]]));
        expected.retain(|_, count| *count > 1);
        assert_eq!(found(sql, &path, threads), expected, "{threads}");
        let sql = "SELECT x.kind AS a, sum(y.n) AS n FROM (SELECT DISTINCT kind FROM accesses) x JOIN \
                   (SELECT kind, count(*) AS n FROM accesses GROUP BY kind) y ON x.kind = y.kind GROUP BY x.kind";
        assert_eq!(found(sql, &path, threads), counts(all.iter().map(|row| vec![&row[kind]])), "{threads}");
    }
}

#[test]
fn several_files_and_little_memory_give_the_same_groups() {
    let paths: Vec<PathBuf> = ["threads4.xray", "relay.heph"].map(example).to_vec();
    let mut expected = BTreeMap::new();
    for path in &paths {
        let format = format_of(path);
        let table = tables::all(format).into_iter().find(|table| table.name == "spans").unwrap();
        let name = table.columns.iter().position(|column| column.name == "name").unwrap();
        let (all, _) = rows(format, &std::fs::read(path).unwrap(), &table, &Scan::default()).unwrap();
        for (key, count) in counts(all.iter().map(|row| vec![&row[name]])) {
            *expected.entry(key).or_insert(0) += count;
        }
    }
    let sql = "SELECT name AS a, count(*) AS n FROM spans GROUP BY name";
    for memory in [None, Some(16 << 20)] {
        let mut call = Call::sql(sql).file(&paths[0]).file(&paths[1]).with("threads", 4).with("format", "json");
        if let Some(bytes) = memory {
            call = call.with("memory_bytes", bytes);
        }
        let rows: Vec<Value> = serde_json::from_str(&call.prints()).unwrap();
        let row = |row: &Value| (serde_json::to_string(&[&row["a"]]).unwrap(), row["n"].as_u64().unwrap());
        assert_eq!(rows.iter().map(row).collect::<BTreeMap<_, _>>(), expected, "{memory:?}");
    }
}

#[test]
fn a_plan_groups_by_numbers_only_where_it_reads_a_scan() {
    let explain = |sql: &str| Call::sql(sql).file(example("boxes.cacheray")).with("action", "explain").prints();
    let plan = explain("SELECT kind, count(*) FROM accesses GROUP BY kind");
    assert!(plan.contains("NumberExec: kind") && plan.contains("NameExec: kind"), "{plan}");
    let plan = explain("SELECT size, count(*) FROM accesses GROUP BY size");
    assert!(!plan.contains("NumberExec"), "{plan}");
    let plan = explain("SELECT kind, size, count(*) FROM accesses GROUP BY ROLLUP (kind, size)");
    assert!(!plan.contains("NumberExec"), "{plan}");
}
