//! The pages besides the timeline, and what formats explain in words.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod client;

use std::path::PathBuf;

use anytrace_core::span::SymbolSource;
use anytrace_view::{Options, Source};
use client::{Client, example};
use serde_json::Value;

fn tour(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/tour").join(name)
}

/// The lines of a page that is text, each with the record to which it leads.
fn lines(page: &Value) -> Vec<(String, Option<f64>)> {
    let block = &page["blocks"][0];
    assert_eq!(block["kind"], "lines", "{page}");
    let links = block["links"].as_array().unwrap().iter().map(|link| link["start"].as_f64());
    let texts = block["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned());
    texts.zip(links).collect()
}

#[test]
fn violations_are_explained_and_lead_to_their_records() {
    let client = Client::of(&[tour("missing-tlbi.casemate")]);
    assert!(client.complete()["sections"].as_array().unwrap().contains(&"Explain".into()));
    let found = lines(&client.json("api/section/Explain"));
    assert!(found.iter().any(|(text, _)| text.starts_with("  missing: ")), "{found:?}");
    let (text, record) = found.iter().find(|(text, _)| text.starts_with("  at record ")).unwrap();
    let number = text.split_whitespace().nth(2).unwrap();
    assert_eq!(*record, number.parse().ok(), "{text}");
}

#[test]
fn a_record_has_its_fields_and_the_machine_after_it() {
    let client = Client::of(&[tour("missing-tlbi.casemate")]);
    client.complete();
    let slice = client.json("api/slice?track=0&depth=0&start=3");
    assert_eq!(slice["attributes"]["seq"], 3, "{slice}");
    assert!(slice["attributes"].as_object().unwrap().len() > 4, "{slice}");
    let one = &slice["explanations"][0];
    let title = Value::from("Machine after this record");
    assert_eq!((&one["name"], &one["title"], &one["at"]), (&"state".into(), &title, &"3".into()));
    let found = lines(&client.json("api/explain?name=state&track=0&at=3"));
    assert!(found[0].0.starts_with("after record 3 ") && found[0].1 == Some(3.0), "{found:?}");
    assert!(found.iter().any(|(text, _)| text == "locks"), "{found:?}");
}

#[test]
fn what_cannot_be_explained_is_said() {
    let client = Client::of(&[tour("missing-tlbi.casemate")]);
    client.complete();
    let late = client.json("api/explain?name=state&track=0&at=18446744073709551615");
    assert!(late["blocks"][0]["text"].as_str().unwrap().contains("no record"), "{late}");
    for (path, status) in [
        ("name=nothing&track=0&at=3", 404),
        ("name=breaches&track=0&at=3", 404),
        ("name=state&track=0", 400),
        ("name=state&track=0&at=-1", 400),
        ("name=state&at=3", 400),
    ] {
        assert_eq!(client.get(&format!("api/explain?{path}")).status, status, "{path}");
    }
    let client = Client::of(&[example("threads4.xray")]);
    client.complete();
    assert_eq!(client.get("api/explain?name=state&track=0&at=3").status, 404);
}

#[test]
fn a_call_has_the_state_of_opengl_after_it() {
    let client = Client::of(&[example("imm.trace")]);
    client.complete();
    let hits = client.json("api/search?q=glRotatef");
    let hit = &hits["hits"][0];
    let slice = client.json(&format!("api/slice?track={}&depth={}&start={}", hit["track"], hit["depth"], hit["start"]));
    let one = &slice["explanations"][0];
    assert_eq!(one["at"], slice["attributes"]["call"].to_string(), "{slice}");
    let (at, track) = (one["at"].as_str().unwrap(), &hit["track"]);
    let found = lines(&client.json(&format!("api/explain?name=state&track={track}&at={at}")));
    assert_eq!(found[0].0, format!("after call {at} glRotatef, thread 0"));
    assert!(found.iter().any(|(text, _)| text.contains("GL_MODELVIEW matrix = ")), "{found:?}");
}

#[test]
fn entries_have_their_states_on_the_axis_and_one_that_breaks_no_rule_its_history() {
    let client = Client::of(&[example("free_tree.casemate")]);
    let trace = client.complete();
    let page = client.json("api/section/Entries");
    let block = page["blocks"].as_array().unwrap().iter().find(|block| block["kind"] == "lanes").unwrap();
    let lanes = block["lanes"].as_array().unwrap();
    assert!(!lanes.is_empty(), "{page}");
    let last = trace["range"]["end"].as_f64().unwrap() + 1.0;
    for lane in lanes {
        let items = lane["items"].as_array().unwrap();
        assert_eq!(items.last().unwrap()["end"], last, "the last state lasts to the end: {lane}");
        let follows = |pair: &[Value]| pair[0]["end"] == pair[1]["start"] && pair[0]["label"] != pair[1]["label"];
        assert!(items.windows(2).all(follows), "{lane}");
    }
    // Each state begins at a record that wrote the entry or completed its cleaning.
    let address = lanes[0]["name"].as_str().unwrap();
    let record = lanes[0]["items"][0]["start"].as_f64().unwrap();
    let entry = client.json(&format!("api/explain?name=entry&track=0&at={record}"));
    assert_eq!(entry["title"], "The entry that this record wrote");
    let found = lines(&entry);
    assert!(found.iter().any(|(_, at)| *at == Some(record)), "{found:?}");
    assert_eq!(entry["blocks"][1]["lanes"][0]["name"], address);
}

#[test]
fn tasks_have_a_page_that_leads_to_their_polls() {
    let client = Client::of(&[example("tasks.heph")]);
    let trace = client.complete();
    let page = client.json("api/section/Tasks");
    let tables: Vec<&Value> =
        page["blocks"].as_array().unwrap().iter().filter(|block| block["kind"] == "table").collect();
    assert_eq!(tables.len(), 2, "{page}");
    let (rows, links) = (tables[0]["rows"].as_array().unwrap(), tables[0]["links"].as_array().unwrap());
    assert!(rows.len() > 10 && rows.len() == links.len());
    let (first, last) = (trace["range"]["start"].as_f64().unwrap(), trace["range"]["end"].as_f64().unwrap());
    for link in links {
        let (start, end) = (link["start"].as_f64().unwrap(), link["end"].as_f64().unwrap());
        assert!(first <= start && start <= end && end <= last, "{link}");
    }
}

#[test]
fn arrows_join_the_polls_of_a_span_in_the_window_and_at_the_slice() {
    let client = Client::of(&[example("tasks.heph")]);
    let trace = client.complete();
    assert_eq!((&trace["has_arrows"], &trace["arrows_left_out"]), (&true.into(), &0.into()));
    let window = format!("start={}&end={}", trace["range"]["start"], trace["range"]["end"]);
    let all = client.json(&format!("api/arrows?{window}"));
    let arrows = all["arrows"].as_array().unwrap();
    assert!(arrows.len() > 5 && all["count"] == arrows.len(), "{all}");
    let number = |value: &Value| value.as_f64().unwrap();
    for arrow in arrows {
        let (from, to) = (&arrow["from"], &arrow["to"]);
        assert!(number(&from["at"]) <= number(&to["at"]), "{arrow}");
        assert!(
            number(&from["start"]) <= number(&from["at"]) && number(&from["at"]) <= number(&from["end"]),
            "{arrow}"
        );
        assert_eq!(from["name"], to["name"], "polls of one span: {arrow}");
    }
    let few = client.json(&format!("api/arrows?{window}&limit=2"));
    assert_eq!((&few["count"], &few["arrows"]), (&all["count"], &Value::Array(Vec::new())));
    // The slice has the arrow that leads to it.
    let to = &arrows[0]["to"];
    let slice = client.json(&format!("api/slice?track={}&depth={}&start={}", to["track"], to["depth"], to["start"]));
    assert!(slice["arrows"].as_array().unwrap().contains(&arrows[0]), "{slice}");
    let place = format!("track={}&depth={}&start={}", to["track"], to["depth"], to["start"]);
    assert_eq!(client.json(&format!("api/arrows?{place}"))["arrows"], slice["arrows"]);
    assert_eq!(client.get("api/arrows?track=0&depth=0&start=-5").status, 404);
    assert_eq!(client.get("api/arrows?start=1").status, 400);
}

#[test]
fn live_bytes_are_a_line() {
    let client = Client::of(&[tour("particles.cacheray.gz")]);
    let trace = client.complete();
    let counters = trace["counters"].as_array().unwrap();
    assert_eq!((counters.len(), &counters[0]["track"]), (1, &Value::Null), "{counters:?}");
    let series = |window: &str| client.json(&format!("api/counter?id=0&{window}"));
    let last = trace["range"]["end"].as_f64().unwrap();
    let wide = series(&format!("start=0&end={last}&px=100"));
    assert!(wide["t"].as_array().unwrap().len() <= 101, "{wide}");
    // A pixel has no more than a record: no point has several values.
    let all = series(&format!("start=0&end={}&px=16000", last.min(16_000.0)));
    let (times, values) = (all["t"].as_array().unwrap(), all["last"].as_array().unwrap());
    // What the table of regions adds up to.
    let regions = &client.json("api/section/Types")["blocks"][1];
    let column =
        |name: &str| regions["columns"].as_array().unwrap().iter().position(|one| one["name"] == name).unwrap();
    let (added, removed) = (column("added_seq"), column("removed_seq"));
    let (size, count) = (column("element_bytes"), column("elements"));
    for (time, value) in times.iter().zip(values) {
        let time = time.as_f64().unwrap();
        let is_live = |row: &&Value| {
            row[added].as_f64().unwrap() <= time && row[removed].as_f64().is_none_or(|removed| removed > time)
        };
        let rows = regions["rows"].as_array().unwrap().iter().filter(is_live);
        let live: f64 = rows.map(|row| row[size].as_f64().unwrap() * row[count].as_f64().unwrap()).sum();
        assert_eq!(value.as_f64(), Some(live), "at record {time}");
    }
    assert!(!times.is_empty());
    assert_eq!(client.get("api/counter?id=1&start=0&end=9").status, 404);
}

#[test]
fn memory_has_caches_types_fields_and_sharing() {
    let client = Client::of(&[tour("particles.cacheray.gz")]);
    client.complete();
    let page = client.json("api/section/memory");
    let blocks = page["blocks"].as_array().unwrap();
    let marks = blocks[0]["marks"].as_array().unwrap();
    assert!(marks.len() >= 2 && marks[0]["label"].as_str().unwrap().starts_with("L1"), "{marks:?}");
    let heat = blocks.iter().find(|block| block["kind"] == "heat").unwrap();
    let names: Vec<&str> = heat["row_names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(names.iter().any(|name| name.split(' ').count() > 1), "types beside addresses: {names:?}");
    let titles: Vec<&str> = blocks.iter().filter_map(|block| block["title"].as_str()).collect();
    let types = blocks.iter().find(|block| block["title"].as_str().unwrap().starts_with("Types")).unwrap();
    assert!(titles.iter().any(|title| title.starts_with("Fields")), "{titles:?}");
    // The types of the page are those of the table.
    let known = client.json("api/section/Types");
    let rows = |block: &Value| block["rows"].as_array().unwrap().len();
    assert_eq!((rows(types), rows(&known["blocks"][0])), (3, 3));
    let regions = &known["blocks"][1];
    assert!(regions["rows"][0][3].as_str().unwrap().starts_with("0x"), "addresses are hexadecimal");
}

#[test]
fn memory_has_the_source_where_code_addresses_are_there() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/annotate");
    let source = SymbolSource { object: None, path: folder.join("list.so") };
    let client = Client::new(Options {
        files: vec![Source { path: folder.join("list.cacheray"), ..Source::default() }],
        symbols: vec![source],
        ..Options::default()
    });
    client.complete();
    let page = client.json("api/section/memory");
    let blocks = page["blocks"].as_array().unwrap();
    let titled =
        |title: &str| blocks.iter().find(|block| block["title"].as_str().is_some_and(|own| own.starts_with(title)));
    let functions = titled("Functions").unwrap()["rows"].as_array().unwrap();
    let names: Vec<&str> = functions.iter().map(|row| row[0].as_str().unwrap()).collect();
    assert_eq!(names, ["columns", "run", "walk"], "those with most misses first");
    let sum = |column: usize| functions.iter().map(|row| row[column].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum(1), sum(2)), (4496, 600));
    // Its path is relative to the project, where this test does not run.
    let lines = titled("./examples/annotate/list.c").unwrap()["lines"].as_array().unwrap();
    let line = lines.iter().find(|line| line["number"] == 25).unwrap();
    assert_eq!(line["values"][0], 4096);
    // A trace without them has neither.
    let client = Client::of(&[example("boxes.cacheray")]);
    let page = client.json("api/section/memory");
    assert!(page["blocks"].as_array().unwrap().iter().all(|block| block["kind"] != "source"));
}

#[test]
fn tables_of_formats_have_pages() {
    let tables = |name: &str, page: &str| {
        let client = Client::of(&[example(name)]);
        let sections = client.complete()["sections"].clone();
        assert!(sections.as_array().unwrap().contains(&page.into()), "{name}: {sections}");
        let blocks = client.json(&format!("api/section/{page}"))["blocks"].clone();
        let of = |block: &Value| {
            let names = block["columns"].as_array().unwrap().iter().map(|column| column["name"].clone());
            let columns = Value::Array(names.collect());
            (block["title"].as_str().unwrap().split(':').next().unwrap().to_owned(), columns, block["rows"].clone())
        };
        let tables = blocks.as_array().unwrap().iter().filter(|block| block["kind"] == "table").map(of);
        (tables.collect::<Vec<_>>(), blocks)
    };
    let (losses, blocks) = tables("relay.heph", "Losses");
    let columns = ["stream", "packets", "first_ns", "last_ns", "first_counter", "last_counter", "lost"];
    assert_eq!((losses[0].0.as_str(), &losses[0].1), ("streams", &Value::from(columns.to_vec())));
    let rows: Value = serde_json::json!([
        [0, 12, 78507, 98077556, 0, 11, 0],
        [1, 78, 349957, 92787957, 0, 77, 0],
        [2, 6, 698216, 98022174, 0, 5, 0]
    ]);
    assert_eq!((&losses[0].2, losses.len()), (&rows, 1));
    let none = blocks[1]["text"].as_str().unwrap();
    assert!(none.starts_with("This trace has nothing in its table loss: "), "{none}");
    let (frames, _) = tables("imm.trace", "Frames");
    assert_eq!((frames[0].0.as_str(), &frames[0].2[1]), ("frames", &serde_json::json!([1, 37, 19])));
    let (breaches, blocks) = tables("free_tree.casemate", "Breaches");
    assert!(breaches.is_empty() && blocks[0]["kind"] == "text", "{blocks}");
    let (none, blocks) = tables("boxes.cacheray", "Types");
    assert_eq!((none.len(), blocks.as_array().unwrap().len()), (0, 2));
}

#[test]
fn pages_of_formats_have_blocks() {
    for (name, expected) in
        [("threads4.xray", vec!["Summary", "Check"]), ("rows.lackey", vec!["Summary", "Check", "memory"])]
    {
        let client = Client::of(&[example(name)]);
        assert_eq!(client.complete()["sections"], Value::from(expected.clone()), "{name}");
        for section in expected {
            let page = client.json(&format!("api/section/{section}"));
            let blocks = page["blocks"].as_array().unwrap();
            assert!(!blocks.is_empty() && blocks.iter().all(|block| block["kind"].is_string()), "{page}");
            for heat in blocks.iter().filter(|block| block["kind"] == "heat") {
                let (rows, columns) = (heat["rows"].as_u64().unwrap(), heat["columns"].as_u64().unwrap());
                assert_eq!(heat["cells"].as_array().unwrap().len() as u64, rows * columns);
                assert_eq!(heat["row_names"].as_array().unwrap().len() as u64, rows);
            }
        }
        assert_eq!(client.get("api/section/nothing").status, 404);
    }
}
