//! Real names, and no file between: `cacheray record` with variables and wrappers, `memory types -m`, and `memory sim -- ./app`.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod recorded;

use recorded::Bench;
use serde_json::Value;

const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct order { long id; double price; char note[40]; };
static struct order book[200];
long totals[64];
static __attribute__((noinline)) void *xmalloc(size_t bytes)
{
    void *at = malloc(bytes);
    if (!at)
        abort();
    return at;
}
static __attribute__((noinline)) long *fill(int count)
{
    long *numbers = xmalloc(count * sizeof *numbers); /* the numbers */
    for (int n = 0; n < count; n++)
        numbers[n] = n;
    return numbers;
}
int main(int count, char **arguments)
{
    long *numbers = fill(5000), sum = 0;
    for (int n = 0; n < 20000; n++) {
        book[n % 200].price += numbers[n % 5000];
        totals[n % 64] += n;
    }
    for (int n = 0; n < 200; n++)
        sum += book[n].price;
    printf("%ld\n", sum);
    return count > 1 ? atoi(arguments[1]) : 0;
}
"#;

/// The JSON of a verb; the program writes a line before it where it runs.
fn json(bench: &Bench, arguments: &[&str]) -> Value {
    let text = String::from_utf8(bench.run(arguments, 0).stdout).unwrap();
    serde_json::from_str(text.get(text.find('{').unwrap()..).unwrap()).unwrap()
}

fn of_type<'a>(results: &'a Value, name: &str) -> &'a Value {
    let types = results["types"].as_array().unwrap();
    let names: Vec<&Value> = types.iter().map(|one| &one["type"]).collect();
    types.iter().find(|one| one["type"] == name).unwrap_or_else(|| panic!("{name}: {names:?}"))
}

#[test]
fn places_have_lines_and_variables_the_fields_of_their_types() {
    let bench = Bench::new(SOURCE);
    bench.run(&["cacheray", "record", "-o", "app.mem", "--", "./app"], 0);
    let found = json(&bench, &["memory", "types", "--config", "zen3", "-m", "app", "--format", "json", "app.mem"]);
    let types = found["types"].as_array().unwrap();
    let numbers = types.iter().find(|one| one["type"].as_str().unwrap().starts_with("fill+0x")).unwrap();
    let line = 1 + SOURCE.lines().position(|line| line.contains("the numbers")).unwrap();
    assert_eq!((&numbers["places"][0]["function"], &numbers["places"][0]["line"]), (&"fill".into(), &line.into()));
    assert!(numbers["places"][0]["file"].as_str().unwrap().ends_with("app.c"));
    // 40,000 bytes without fields: by lines. Each number is written once, and read four times.
    assert_eq!(
        (&numbers["in_parts"], &numbers["writes"], &numbers["reads"]),
        (&true.into(), &5000.into(), &20_000.into())
    );
    assert_eq!(numbers["offsets"].as_object().unwrap().len(), 625);
    let book = of_type(&found, "book (global)");
    assert_eq!((&book["name"], &book["elements"]), (&"order".into(), &200.into()));
    let price = book["fields"].as_array().unwrap().iter().find(|field| field["path"] == "price").unwrap();
    assert_eq!((&price["offset"], &price["writes"]), (&8.into(), &20_000.into()));
    assert_eq!(of_type(&found, "totals (global)")["elements"], 64);
    let text = String::from_utf8(bench.run(&["memory", "types", "-m", "app", "app.mem"], 0).stdout).unwrap();
    assert!(text.contains("allocated at") && text.contains(&format!("app.c:{line}")), "{text}");
    // Nobody expects variables and stacks to be freed, and they are initialized.
    let mut lives = json(&bench, &["memory", "lifetime", "--format", "json", "app.mem"]);
    // Among the types they have no regions.
    for one in lives["types"].take().as_array().unwrap() {
        assert!(one["regions"] == 0 || !one["type"].as_str().unwrap().contains("(global)"), "{one}");
    }
    let text = lives.to_string();
    assert!(text.contains("fill+0x") && !text.contains("(global)") && !text.contains("(stack)"), "{text}");
    bench.run(&["cacheray", "record", "--force", "--no-globals", "--keep-wrappers", "-o", "app.mem", "--", "./app"], 0);
    let found = json(&bench, &["memory", "types", "--format", "json", "app.mem"]);
    let names: Vec<&str> = found["types"].as_array().unwrap().iter().map(|one| one["type"].as_str().unwrap()).collect();
    assert!(names.iter().any(|name| name.starts_with("xmalloc+0x")), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("(global)") || name.contains("(stack)")), "{names:?}");
}

#[test]
fn a_program_is_read_while_it_runs() {
    let bench = Bench::new(SOURCE);
    bench.run(&["cacheray", "record", "--no-pc", "-o", "app.mem", "--", "./app"], 0);
    let total = |results: &Value| (results["reads"].clone(), results["writes"].clone());
    for verb in ["sim", "types", "lifetime", "mrc", "numa", "sharing"] {
        let caches: &[&str] = if matches!(verb, "sim" | "types") { &["--config", "zen3"] } else { &[] };
        let of_file = json(&bench, &[&["memory", verb, "--format", "json"], caches, &["app.mem"]].concat());
        let live = json(&bench, &[&["memory", verb, "--format", "json"], caches, &["--", "./app"]].concat());
        assert_eq!(total(&of_file), total(&live), "{verb}");
        assert_eq!(of_file["records"], live["records"], "{verb}");
    }
    let sim = bench.run(&["memory", "sim", "--", "./app"], 0);
    let text = String::from_utf8(sim.stdout).unwrap();
    assert!(text.contains(" reads, ") && !bench.path("cacheray.trace").exists(), "{text}");
}

#[test]
fn programs_that_fail_are_reported_and_those_that_cannot_run_do_not_hang() {
    let bench = Bench::new(SOURCE);
    let failed = bench.run(&["memory", "sim", "--", "./app", "3"], 3);
    assert!(String::from_utf8_lossy(&failed.stderr).contains("ended with exit code 3"));
    assert!(!failed.stdout.is_empty());
    let gone = bench.run(&["memory", "sim", "--", "./gone"], 2);
    assert!(String::from_utf8_lossy(&gone.stderr).contains("cannot run ./gone"));
    // The verb ends before it reads, and the program has more to say than fits into a pipe.
    let missing = bench.run(&["memory", "sim", "--config", "missing.json", "--", "./app"], 2);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("missing.json"));
    let both = bench.run(&["memory", "sim", "a.mem", "--", "./app"], 2);
    assert!(String::from_utf8_lossy(&both.stderr).contains("cannot be used with"));
}
