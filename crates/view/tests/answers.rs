//! Answers over real connections, compared with all spans of the example traces.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod client;

use std::collections::BTreeMap;

use anytrace_core::span::EdgeKind;
use anytrace_core::{Collect, Input, InputOptions, OpenOptions, SpanOptions, each_span};
use anytrace_formats::{Recognized, recognize};
use client::{Client, Item, example};
use serde_json::Value;

const WITH_SPANS: [&str; 4] = ["threads4.xray", "relay.heph", "imm.trace", "imm-trim.trace"];
const WITHOUT_SPANS: [&str; 3] = ["rows.lackey", "boxes.cacheray", "free_tree.casemate"];

/// A span or an instant, as a slow pass over the trace finds it.
#[derive(Debug, Clone)]
struct Known {
    track: u32,
    depth: u32,
    start: u64,
    end: u64,
    own: u64,
    name: String,
    path: Vec<String>,
    is_instant: bool,
}

fn known(name: &str) -> Vec<Known> {
    let input = Input::open(&example(name), InputOptions::default()).unwrap();
    let Recognized::Trace(format) = recognize(&input.head()) else { panic!("{name}") };
    let trace = format.open(input, &OpenOptions::default()).unwrap();
    let mut all = Vec::new();
    each_span(trace, &SpanOptions::default(), &mut Collect::default(), |span| {
        all.push(Known {
            track: span.track_id,
            depth: u32::try_from(span.depth).unwrap(),
            start: span.start,
            end: span.end,
            own: span.self_time,
            name: span.name.to_owned(),
            path: span.path().map(str::to_owned).collect(),
            is_instant: span.kind == EdgeKind::Instant,
        });
        Ok(())
    })
    .unwrap();
    all
}

fn names(client: &Client) -> Vec<String> {
    let names = client.json("api/names?from=0");
    assert_eq!(names["from"], 0);
    names["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[expect(clippy::cast_precision_loss, reason = "the page's numbers")]
fn float(number: u64) -> f64 {
    number as f64
}

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }
}

fn assert_item(name: &str, all: &[Known], names: &[String], item: &Item, pixel: f64) {
    let is_instant = item.flags & 8 != 0;
    let mut inside: Vec<&Known> = all
        .iter()
        .filter(|known| (known.track, known.depth) == (item.track, item.depth))
        .filter(|known| float(known.start) >= item.start && float(known.end) <= item.end)
        .collect();
    if item.count == 1 {
        inside.retain(|known| known.is_instant == is_instant && known.name == names[item.name as usize]);
        assert!(
            inside.iter().any(|known| (float(known.start), float(known.end)) == (item.start, item.end)),
            "{item:?}"
        );
        return;
    }
    assert_eq!(item.name, u32::MAX);
    assert!(item.end - item.start <= pixel, "{name}: {item:?} is wider than {pixel}");
    let longest = &names[item.longest_name as usize];
    // Runs are of spans or of instants; their flags are those of one slice only, so the count says which.
    let fits = [false, true].into_iter().any(|instants| {
        let own: Vec<_> = inside.iter().filter(|known| known.is_instant == instants).collect();
        let busy: u64 = own.iter().map(|known| known.end - known.start).sum();
        let most = own.iter().map(|known| known.end - known.start).max();
        let has_longest = own.iter().any(|known| Some(known.end - known.start) == most && known.name == *longest);
        own.len() == item.count as usize && float(busy) == item.busy && has_longest
    });
    assert!(fits, "{name}: {item:?}: {inside:?}");
}

#[test]
fn every_item_of_random_windows_is_what_a_count_over_all_spans_gives() {
    for name in WITH_SPANS {
        let client = Client::of(&[example(name)]);
        let (trace, all, names) = (client.complete(), known(name), names(&client));
        assert_eq!(trace["slices"], all.iter().filter(|known| !known.is_instant).count());
        assert_eq!(trace["instants"], all.iter().filter(|known| known.is_instant).count());
        let (first, last) =
            (all.iter().map(|one| one.start).min().unwrap(), all.iter().map(|one| one.end).max().unwrap());
        let mut random = Random(7);
        for round in 0..40 {
            let width = (last - first) >> (round % 14);
            let start = first + random.below(last - first - width + 1);
            let (start, end) = (float(start), float(start + width));
            let pixels = 40 + u32::try_from(random.below(1600)).unwrap();
            let items = client.tiles(start, end, pixels);
            let pixel = (end - start) / f64::from(pixels);
            for item in &items {
                assert_item(name, &all, &names, item, pixel);
            }
            // Every span that is seen in the window is in some item.
            for known in all.iter().filter(|known| float(known.end) >= start && float(known.start) <= end) {
                let has = |item: &&Item| {
                    (item.track, item.depth) == (known.track, known.depth)
                        && item.start <= float(known.start)
                        && item.end >= float(known.end)
                };
                assert!(items.iter().any(|item| has(&item)), "{name}: {known:?}");
            }
            let mut sorted = items.clone();
            sorted.sort_by(|a, b| (a.track, a.depth).cmp(&(b.track, b.depth)).then(a.start.total_cmp(&b.start)));
            assert!(items.iter().zip(&sorted).all(|(a, b)| (a.track, a.depth, a.start) == (b.track, b.depth, b.start)));
        }
    }
}

#[test]
fn a_selection_counts_what_begins_in_it() {
    for name in WITH_SPANS {
        let client = Client::of(&[example(name)]);
        let all: Vec<Known> = known(name).into_iter().filter(|known| !known.is_instant).collect();
        let (first, last) =
            (all.iter().map(|one| one.start).min().unwrap(), all.iter().map(|one| one.end).max().unwrap());
        let middle = first + (last - first) / 2;
        for (start, end) in [(first, last + 1), (first, middle), (middle, last + 1), (middle, middle)] {
            let found = client.json(&format!("api/selection?start={start}&end={end}"));
            let begun: Vec<&Known> = all.iter().filter(|one| one.start >= start && one.start < end).collect();
            let mut expected: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
            for one in &begun {
                let of = expected.entry(&one.name).or_default();
                *of = (of.0 + 1, of.1 + one.end - one.start, of.2 + one.own);
            }
            let rows = found["names"].as_array().unwrap().iter();
            let rows: BTreeMap<&str, (u64, f64, f64)> = rows
                .map(|row| {
                    let count = row["count"].as_u64().unwrap();
                    (row["name"].as_str().unwrap(), (count, number(&row["total"]), number(&row["self"])))
                })
                .collect();
            let expected: BTreeMap<&str, (u64, f64, f64)> = expected
                .into_iter()
                .map(|(name, (count, total, own))| (name, (count, float(total), float(own))))
                .collect();
            assert_eq!(rows, expected, "{name}");
            assert_eq!(found["count"], begun.len(), "{name}");
            let counts = found["histogram"]["counts"].as_array().unwrap();
            assert_eq!(counts.iter().map(|count| count.as_u64().unwrap()).sum::<u64>(), begun.len() as u64);
            let slowest = begun.iter().map(|one| one.end - one.start).max();
            let of = |slow: &Value| number(&slow["end"]) - number(&slow["start"]);
            assert_eq!(found["slowest"].get(0).map(of), slowest.map(float), "{name}");
        }
    }
}

#[test]
fn a_search_finds_what_has_the_name_in_order() {
    for name in WITH_SPANS {
        let client = Client::of(&[example(name)]);
        let all = known(name);
        for wanted in ["", "a", "#1", "GL", "e"] {
            let found = client.json(&format!("api/search?q={}", wanted.replace('#', "%23")));
            let has = |one: &&Known| !wanted.is_empty() && one.name.to_lowercase().contains(&wanted.to_lowercase());
            let count = all.iter().filter(has).count();
            assert_eq!(found["total"], count, "{name} {wanted}");
            let hits = found["hits"].as_array().unwrap();
            assert_eq!(hits.len(), count.min(1000), "{name} {wanted}");
            let starts: Vec<f64> = hits.iter().map(|hit| number(&hit["start"])).collect();
            assert!(starts.is_sorted(), "{name} {wanted}");
            assert_eq!(found["truncated"], count > 1000);
        }
        let every = client.json("api/search?q=/^/&limit=3");
        assert_eq!(
            (&every["total"], every["hits"].as_array().unwrap().len()),
            (&Value::from(all.len()), all.len().min(3))
        );
    }
}

#[test]
fn the_flame_of_all_is_time_by_stack() {
    fn walk(node: &Value, path: &mut Vec<String>, out: &mut BTreeMap<Vec<String>, (f64, u64)>) {
        for child in node["children"].as_array().unwrap() {
            path.push(child["name"].as_str().unwrap().to_owned());
            out.insert(path.clone(), (number(&child["total"]), child["count"].as_u64().unwrap()));
            walk(child, path, out);
            path.pop();
        }
    }
    for name in WITH_SPANS {
        let client = Client::of(&[example(name)]);
        let mut expected: BTreeMap<Vec<String>, (u64, u64)> = BTreeMap::new();
        for one in known(name).into_iter().filter(|known| !known.is_instant) {
            let of = expected.entry(one.path).or_default();
            *of = (of.0 + one.end - one.start, of.1 + 1);
        }
        let flame = client.json("api/flame");
        let mut found = BTreeMap::new();
        walk(&flame["root"], &mut Vec::new(), &mut found);
        let least = number(&flame["root"]["total"]) * 0.001;
        for (path, (total, count)) in &expected {
            // Small ones are summed up.
            if float(*total) >= least {
                assert_eq!(found.get(path), Some(&(float(*total), *count)), "{name} {path:?}");
            }
        }
        let shown = found.keys().filter(|path| !path.last().unwrap().ends_with(" more)"));
        assert!(shown.clone().all(|path| expected.contains_key(path)), "{name}");
    }
}

#[test]
fn a_slice_has_its_stack_and_what_is_inside() {
    for name in WITH_SPANS {
        let client = Client::of(&[example(name)]);
        let all = known(name);
        for one in all.iter().filter(|known| !known.is_instant).step_by(all.len() / 60 + 1) {
            let (track, depth, start) = (one.track, one.depth, one.start);
            let found = client.json(&format!("api/slice?track={track}&depth={depth}&start={start}"));
            // Several slices may begin at one time, all but the last without length.
            let is_it = |known: &&Known| {
                (known.track, known.depth, known.start) == (track, depth, start)
                    && !known.is_instant
                    && known.name == found["name"]
                    && float(known.end) == number(&found["end"])
            };
            let real = all.iter().find(is_it).unwrap_or_else(|| panic!("{name}: {found}"));
            assert_eq!(number(&found["self"]), float(real.own));
            let stack = found["stack"].as_array().unwrap();
            assert_eq!(stack.len(), depth as usize, "{name}: {found}");
            for (above, around) in stack.iter().enumerate() {
                assert_eq!(around["depth"], above);
                assert!(number(&around["start"]) <= float(real.start) && number(&around["end"]) >= float(real.end));
            }
        }
    }
}

#[test]
fn records_of_formats_without_spans_are_instants_by_number() {
    for name in WITHOUT_SPANS {
        let client = Client::of(&[example(name)]);
        let trace = client.complete();
        assert_eq!((&trace["unit"], &trace["error"]), (&Value::from("seq"), &Value::Null), "{name}");
        let instants = trace["instants"].as_u64().unwrap();
        assert!(instants > 10 && trace["slices"] == 0, "{name}");
        let (start, end) = (number(&trace["range"]["start"]), number(&trace["range"]["end"]));
        for pixels in [10, 1000] {
            let items = client.tiles(start, end, pixels);
            assert_eq!(items.iter().map(|item| u64::from(item.count)).sum::<u64>(), instants, "{name}");
        }
        let one = client.tiles(start, start, 10);
        assert!(one.iter().all(|item| item.count == 1 && item.flags & 8 != 0), "{name}: {one:?}");
    }
}

#[test]
fn several_traces_are_shown_together() {
    let client = Client::of(&[example("threads4.xray"), example("relay.heph"), example("rows.lackey")]);
    let trace = client.complete();
    let tracks = trace["tracks"].as_array().unwrap();
    let mut ids: Vec<u64> = tracks.iter().map(|track| track["id"].as_u64().unwrap()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "numbers of tracks differ");
    for (file, format) in ["xray", "heph", "lackey"].into_iter().enumerate() {
        assert_eq!(trace["files"][file]["format"], format);
        assert!(tracks.iter().any(|track| track["file"] == file));
    }
    let (start, end) = (number(&trace["range"]["start"]), number(&trace["range"]["end"]));
    let drawn: u64 = client.tiles(start, end, 800).iter().map(|item| u64::from(item.count)).sum();
    assert_eq!(drawn, trace["slices"].as_u64().unwrap() + trace["instants"].as_u64().unwrap());
}

#[test]
fn nothing_new_is_an_empty_answer() {
    let client = Client::of(&[example("threads4.xray")]);
    let version = client.complete()["version"].as_u64().unwrap();
    assert_eq!(client.get(&format!("api/trace?after={version}")).status, 204);
    assert_eq!(client.get(&format!("api/trace?after={}", version - 1)).status, 200);
}

#[test]
fn what_is_no_trace_is_an_answer_with_words() {
    let client = Client::of(&[example("../README.md"), example("missing.xray")]);
    let trace = client.complete();
    assert!(trace["error"].as_str().unwrap().contains("unknown format"), "{trace}");
    assert!(trace["files"][1]["error"].as_str().unwrap().contains("missing.xray"), "{trace}");
    assert_eq!(trace["range"], Value::Null);
    assert!(client.tiles(0.0, 1e9, 100).is_empty());
}

#[test]
fn a_window_is_exported_in_every_form() {
    let client = Client::of(&[example("threads4.xray")]);
    let range = client.complete()["range"].clone();
    let (first, last) = (number(&range["start"]), number(&range["end"]));
    let (start, end) = (first + (last - first) * 0.1, first + (last - first) * 0.4);
    for form in ["chrome", "perfetto", "folded", "speedscope", "csv", "svg", "native"] {
        let all = client.get(&format!("api/export?form={form}"));
        let part = client.get(&format!("api/export?form={form}&start={start}&end={end}"));
        assert_eq!((all.status, part.status), (200, 200), "{form}: {}", part.text());
        assert!(part.header("content-disposition").unwrap().starts_with("attachment; filename=\"threads4-window."));
        assert!(!part.body.is_empty(), "{form}");
        if !matches!(form, "svg" | "folded") {
            assert!(part.body.len() < all.body.len(), "{form}: {} of {}", part.body.len(), all.body.len());
        }
    }
    let native = client.get("api/export?form=native");
    assert_eq!(native.body, std::fs::read(example("threads4.xray")).unwrap());
    let chrome = client.get(&format!("api/export?form=chrome&start={start}&end={end}"));
    let events = chrome.json();
    let begins =
        events["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "B" || event["ph"] == "X");
    let open = known("threads4.xray")
        .into_iter()
        .filter(|one| !one.is_instant && float(one.start) < end.ceil() && float(one.end) >= start.ceil());
    assert_eq!(begins.count(), open.count());
}

#[test]
fn a_slice_has_the_attributes_of_its_record() {
    let client = Client::of(&[example("relay.heph")]);
    let found = client.json("api/search?q=Building%20runtime");
    let hit = &found["hits"][0];
    let slice = client.json(&format!("api/slice?track={}&depth={}&start={}", hit["track"], hit["depth"], hit["start"]));
    assert_eq!((&slice["name"], &slice["attributes"]["worker_threads"]), (&"Building runtime".into(), &1.into()));
}

#[test]
fn tables_have_their_columns() {
    let client = Client::of(&[example("threads4.xray")]);
    let tables = client.json("api/tables");
    let calls = tables.as_array().unwrap().iter().find(|table| table["table"] == "calls").unwrap();
    assert!(calls["columns"].as_array().unwrap().iter().any(|column| column["name"] == "duration"));
}
