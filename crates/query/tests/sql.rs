//! Statements on the traces of the repository, against what the library says of them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod common;

use std::path::PathBuf;

use anytrace_core::table::{self, Scan};
use anytrace_core::tables;
use anytrace_core::testing::tables::rows;
use common::{Call, EXAMPLES, example, format_of};
use serde_json::{Value, json};

#[test]
fn every_column_of_every_table_has_the_sums_of_its_rows() {
    for name in EXAMPLES {
        let path = example(name);
        let format = format_of(&path);
        let bytes = std::fs::read(&path).unwrap();
        for of in tables::all(format) {
            let (all, _) = rows(format, &bytes, &of, &Scan::default()).unwrap();
            let mut wanted = vec!["count(*)".to_owned()];
            let mut expected = vec![json!(all.len())];
            for (number, column) in of.columns.iter().enumerate() {
                let values: Vec<&Value> = all.iter().map(|row| &row[number]).filter(|value| !value.is_null()).collect();
                wanted.push(format!("count(\"{}\")", column.name));
                expected.push(json!(values.len()));
                let numbers: Option<Vec<i128>> = values
                    .iter()
                    .map(|value| value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from)))
                    .collect();
                let is_number = !matches!(column.kind, table::ColumnType::Float64);
                if let Some(numbers) = numbers.filter(|numbers| is_number && !numbers.is_empty()) {
                    wanted.push(format!("min(\"{0}\")", column.name));
                    expected.push(json!(*numbers.iter().min().unwrap() as i64 as u64));
                    wanted.push(format!("max(\"{0}\")", column.name));
                    expected.push(json!(*numbers.iter().max().unwrap() as i64 as u64));
                }
            }
            // The parser sorts the keys of an object.
            let wanted: Vec<_> = wanted.iter().enumerate().map(|(n, one)| format!("{one} AS c{n:03}")).collect();
            let sql = format!("SELECT {} FROM \"{}\"", wanted.join(", "), of.name);
            for threads in [1, 2, 4, 7] {
                let printed = Call::sql(&sql).file(&path).with("threads", threads).with("format", "json").prints();
                let found: Vec<Value> = serde_json::from_str(&printed).unwrap();
                let found: Vec<Value> = found[0].as_object().unwrap().values().cloned().collect();
                let same = found.iter().zip(&expected).all(|(found, expected)| {
                    found == expected || found.as_i64().map(i64::cast_unsigned) == expected.as_u64()
                });
                assert!(
                    same && found.len() == expected.len(),
                    "{name} {} {threads}: {sql}\n{found:?}\n{expected:?}",
                    of.name
                );
            }
        }
    }
}

#[test]
fn a_projection_and_a_filter_give_the_same_as_the_entire_table() {
    let path = example("threads4.xray");
    let all = Call::sql("SELECT seq, name, start FROM spans ORDER BY seq, depth").file(&path).prints();
    let some = Call::sql("SELECT seq, name, start FROM spans WHERE seq BETWEEN 100 AND 200 ORDER BY seq, depth");
    let is_between = |line: &&str| (100..=200).contains(&line.split(',').next().unwrap().parse::<u64>().unwrap());
    let expected: Vec<_> = all.lines().skip(1).filter(is_between).collect();
    assert!(!expected.is_empty());
    assert_eq!(some.file(&path).prints().lines().skip(1).collect::<Vec<_>>(), expected);
    let limited = Call::sql("SELECT seq FROM events LIMIT 3").file(&path).prints();
    assert_eq!(limited.lines().count(), 4);
}

#[test]
fn several_files_are_one_table_with_a_column_that_says_which() {
    let (xray, heph) = (example("threads4.xray"), example("relay.heph"));
    let sql = "SELECT file, count(*) AS n FROM events GROUP BY file ORDER BY file";
    let both = Call::sql(sql).file(&heph).file(&xray).prints();
    let lines: Vec<_> = both.lines().collect();
    assert_eq!((lines[0], lines.len()), ("file,n", 3));
    for (path, line) in [(&heph, lines[1]), (&xray, lines[2])] {
        let alone = Call::sql("SELECT count(*) FROM events").file(path).prints();
        assert_eq!(line, format!("{},{}", path.display(), alone.lines().nth(1).unwrap()));
    }
    let schemas = json!(["before", "after"]);
    let joined = Call::sql("SELECT (SELECT count(*) FROM before.events) - (SELECT count(*) FROM after.events) AS d");
    assert_eq!(joined.file(&xray).file(&xray).with("schemas", schemas).prints(), "d\n0\n");
    let (code, said) = Call::sql("SELECT file FROM events").file(&xray).fails();
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn json_is_one_array_with_exact_integers_and_nulls() {
    let sql =
        "SELECT 18446744073709551615 AS big, -9223372036854775807 AS least, NULL AS none, 'a\"b' AS text, 1.5 AS f";
    let found: Value = serde_json::from_str(&Call::sql(sql).with("format", "json").prints()).unwrap();
    assert_eq!(found[0]["big"].as_u64(), Some(u64::MAX));
    assert_eq!(found[0]["least"].as_i64(), Some(-i64::MAX));
    assert!(found[0]["none"].is_null() && found[0].as_object().unwrap().contains_key("none"));
    assert_eq!((found[0]["text"].as_str(), found[0]["f"].as_f64()), (Some("a\"b"), Some(1.5)));
    let path = example("rows.lackey");
    let none = Call::sql("SELECT seq FROM events WHERE seq < 0").file(&path).with("format", "json").prints();
    assert_eq!(none, "[]\n");
    let lines = Call::sql("SELECT seq FROM events ORDER BY seq LIMIT 2").file(&path).with("format", "jsonl").prints();
    assert_eq!(lines, "{\"seq\":0}\n{\"seq\":1}\n");
}

#[test]
fn a_damaged_file_gives_its_rows_and_its_diagnostics() {
    let folder = tempfile::tempdir().unwrap();
    for (name, cut) in [("relay.heph", 1000), ("rows.lackey", 900), ("boxes.cacheray", 1001), ("threads4.xray", 5003)] {
        let bytes = std::fs::read(example(name)).unwrap();
        let mut damaged = bytes.clone();
        damaged[cut..cut + 40].fill(0xee);
        let path = folder.path().join(name);
        std::fs::write(&path, damaged).unwrap();
        let output = Call::sql("SELECT count(*) FROM events").file(&path).output();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains("byte 0x") && said.contains(name), "{name}: {said}");
        let rows: u64 = String::from_utf8_lossy(&output.stdout).lines().nth(1).unwrap().parse().unwrap();
        assert!(rows > 10, "{name}: {rows} rows");
    }
}

#[test]
fn bad_sql_is_named_in_few_lines() {
    let path = example("threads4.xray");
    for (sql, named) in [
        ("SELECT nothing FROM calls", "nothing"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELEKT 1 FROM calls", "SELEKT"),
        ("SELECT count( FROM calls", "found: calls"),
        ("COPY (SELECT 1) TO '/tmp/should-not-be.csv'", "not supported"),
        ("SELECT bucket(1, 0)", "width"),
        ("SELECT duration('3 parsecs')", "parsecs"),
        ("", "empty"),
    ] {
        let (code, said) = Call::sql(sql).file(&path).fails();
        assert_eq!(code, Some(2), "{sql}: {said}");
        assert!(said.contains(named) && said.lines().count() <= 5, "{sql}: {said}");
    }
    assert!(!PathBuf::from("/tmp/should-not-be.csv").exists());
    let (_, said) = Call::sql("SELECT * FROM nowhere").file(&path).fails();
    assert!(said.contains("calls") && said.contains("functions"), "{said}");
}

#[test]
fn functions_of_traces_work_on_columns_and_on_constants() {
    let path = example("threads4.xray");
    let one = |sql: &str| Call::sql(sql).file(&path).prints().lines().nth(1).unwrap_or("").to_owned();
    assert_eq!(one("SELECT hex(255), duration('3ms'), bucket(17, 5)"), "0xff,3000000,15");
    assert_eq!(one("SELECT attr('{\"a\":[1,2]}', 'a')"), "\"[1,2]\"");
    assert_eq!(one("SELECT count(*) FROM calls WHERE stack_path(stack) IS NULL"), "0");
    let deep = one("SELECT stack_path(stack), depth FROM calls ORDER BY depth DESC, seq LIMIT 1");
    let (path_of, depth) = deep.rsplit_once(',').unwrap();
    assert_eq!(path_of.matches(';').count().to_string(), depth);
    assert_eq!(one("SELECT percentile(x, 0.5) FROM (VALUES (1.0), (2.0), (9.0)) AS t(x)"), "2.0");
    assert_eq!(one("SELECT count(*) = (SELECT count(*) FROM spans) FROM slice"), "true");
    let (code, said) = Call::sql("SELECT symbol(address) FROM accesses").file(example("rows.lackey")).fails();
    assert!(code == Some(2) && said.contains("-m"), "{said}");
}

#[test]
fn parameters_are_numbers_where_they_look_like_it() {
    let path = example("rows.lackey");
    let call = |sql: &str, values: Value| Call::sql(sql).file(&path).with("parameters", values).prints();
    let printed = call("SELECT seq FROM events WHERE seq < $1 AND kind <> $2 ORDER BY seq", json!(["3", "nothing"]));
    assert_eq!(printed, "seq\n0\n1\n2\n");
    assert_eq!(call("SELECT seq FROM events WHERE seq = $at", json!(["at=2"])), "seq\n2\n");
}

#[test]
fn results_are_files_of_columns_too() {
    let path = example("threads4.xray");
    for (form, head, tail) in [("parquet", &b"PAR1"[..], &b"PAR1"[..]), ("arrow", b"ARROW1", b"ARROW1")] {
        let output = Call::sql("SELECT * FROM calls").file(&path).with("format", form).output();
        assert!(output.status.success());
        assert!(output.stdout.starts_with(head) && output.stdout.ends_with(tail), "{form}");
    }
}

#[test]
fn csv_guards_formulas_and_quotes_what_must_be() {
    let sql = "SELECT '=1+1' AS a, 'x,\"y\"' AS b, -5 AS c, NULL AS d";
    assert_eq!(Call::sql(sql).prints(), "a,b,c,d\n'=1+1,\"x,\"\"y\"\"\",-5,\n");
    assert_eq!(Call::sql(sql).with("csv_raw", true).prints(), "a,b,c,d\n=1+1,\"x,\"\"y\"\"\",-5,\n");
}

#[test]
fn little_memory_is_enough_for_a_sort_and_a_grouping() {
    let path = example("boxes.cacheray");
    let sql = "SELECT address, count(*) AS n FROM accesses GROUP BY address ORDER BY n DESC, address";
    let free = Call::sql(sql).file(&path).prints();
    let tight = Call::sql(sql).file(&path).with("memory_bytes", 8_u64 << 20).prints();
    assert_eq!(free, tight);
}

#[test]
fn a_sort_that_is_larger_than_the_memory_uses_the_disk_and_leaves_nothing_there() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, temporary) = (folder.path().join("long.lackey"), folder.path().join("temporary"));
    std::fs::create_dir(&temporary).unwrap();
    // In an order that is neither that of the addresses nor its opposite; about 50 MB as columns.
    let address = |seq: u64| 0x1000_0000 + seq * 7_919 % 400_009;
    let lines: String = (0..400_000).map(|seq| format!(" L {:08x},8\n", address(seq))).collect();
    std::fs::write(&trace, lines).unwrap();
    let mut order: Vec<u64> = (0..400_000).collect();
    order.sort_by_key(|seq| std::cmp::Reverse(address(*seq)));
    let expected: Vec<String> = order.iter().map(u64::to_string).collect();
    let sort = "SELECT * FROM events ORDER BY attributes DESC, seq";
    let least = anytrace_query::MEMORY_BYTES_MIN;
    for (memory, threads) in [(32 << 20, 1), (32 << 20, 2), (32 << 20, 7), (least, 1), (least, 2)] {
        let limited = |sql: &str| {
            let call = Call::sql(sql).file(&trace).temporary(&temporary);
            call.with("memory_bytes", memory).with("threads", threads).prints()
        };
        let printed = limited(sort);
        let found: Vec<&str> = printed.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
        assert!(found == expected, "{memory} bytes, {threads} threads: {} rows", found.len());
        let analyzed = limited(&format!("EXPLAIN ANALYZE {sort}"));
        let spilled = |text: &str| text.split("spill_count=").skip(1).any(|rest| !rest.starts_with('0'));
        assert!(spilled(&analyzed), "{memory} bytes, {threads} threads: {analyzed}");
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "{memory} bytes, {threads} threads");
    }
    let (code, said) = Call::sql(sort).file(&trace).with("memory_bytes", least - 1).fails();
    assert!(code == Some(2) && said.contains("expected at least 8M"), "{said}");
}

#[test]
fn a_join_that_is_larger_than_the_memory_uses_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, temporary) = (folder.path().join("long.lackey"), folder.path().join("temporary"));
    std::fs::create_dir(&temporary).unwrap();
    let address = |seq: u64| 0x1000_0000 + seq * 7_919 % 400_009;
    let lines: String = (0..400_000).map(|seq| format!(" L {:08x},8\n", address(seq))).collect();
    std::fs::write(&trace, lines).unwrap();
    let join = "SELECT count(*) AS n, sum(a.seq) AS one, sum(b.seq) AS other, max(length(a.attributes)) AS longest \
                FROM events a JOIN events b ON a.attributes = b.attributes";
    let sum: u64 = (0..400_000).sum();
    for (memory, threads) in [(32_u64 << 20, 1), (32 << 20, 2), (48 << 20, 4)] {
        let limited = |sql: &str| {
            let call = Call::sql(sql).file(&trace).temporary(&temporary);
            call.with("memory_bytes", memory).with("threads", threads).prints()
        };
        let printed = limited(join);
        assert!(printed.contains(&format!("400000,{sum},{sum},")), "{memory} bytes, {threads} threads: {printed}");
        let analyzed = limited(&format!("EXPLAIN ANALYZE {join}"));
        let is_spilled = analyzed.split("spill_count=").skip(1).any(|rest| !rest.starts_with('0'));
        assert!(is_spilled, "{memory} bytes, {threads} threads: {analyzed}");
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "{memory} bytes, {threads} threads");
    }
}

#[test]
fn tables_and_columns_are_listed() {
    let path = example("relay.heph");
    let tables = Call::sql("").file(&path).with("action", "tables").with("format", "jsonl").prints();
    let names: Vec<String> = tables
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["table"].as_str().unwrap().to_owned())
        .collect();
    for name in ["events", "packets", "streams", "loss", "attributes", "spans", "stacks"] {
        assert!(names.iter().any(|one| one == name), "{name} is not among {names:?}");
    }
    let columns = Call::sql("packets").file(&path).with("action", "describe").prints();
    assert!(columns.starts_with("column,type,meaning\nseq,BIGINT"), "{columns}");
    let (code, said) = Call::sql("nothing").file(&path).with("action", "describe").fails();
    assert!(code == Some(2) && said.contains("packets"), "{said}");
}

#[test]
fn another_version_and_a_missing_file_are_refused() {
    let (code, said) = Call::sql("SELECT 1").with("version", "0.0.1").fails();
    assert!(code == Some(2) && said.contains("cargo install"), "{said}");
    let (code, said) = Call::sql("SELECT 1").file("no/such/file").fails();
    assert!(code == Some(2) && said.contains("no/such/file"), "{said}");
    let empty = tempfile::NamedTempFile::new().unwrap();
    let (code, said) = Call::sql("SELECT * FROM events").file(empty.path()).fails();
    assert!(code == Some(2) && said.contains("events"), "{said}");
}
