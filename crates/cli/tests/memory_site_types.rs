//! Types of allocations without annotations: inferred from debug data and the source, or stated by `--type-of`.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod recorded;

use recorded::Bench;
use serde_json::Value;

const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct order { long id; double price; char note[48]; };
struct node { struct node *next; long key; long value; };
typedef struct { int x, y; } pair_t;
struct head { long count; struct order rows[]; };
static __attribute__((noinline)) void *xmalloc(size_t bytes) { void *at = malloc(bytes); if (!at) abort(); return at; }
static __attribute__((noinline)) struct order *orders(int n)
{
    struct order *all = calloc(n, sizeof *all);
    return all;
}
static __attribute__((noinline)) struct node *push(struct node *top, long key)
{
    struct node *node = xmalloc(sizeof(struct node));
    node->next = top; node->key = key; node->value = 1;
    return node;
}
static __attribute__((noinline)) pair_t *pairs(int n) { return malloc(n * sizeof(pair_t)); }
static __attribute__((noinline)) struct order *one(void) { struct order *single = malloc(64); return single; }
static __attribute__((noinline)) struct head *heads(int n)
{
    return malloc(sizeof(struct head) + n * sizeof(struct order));
}
static __attribute__((noinline)) struct order *mixed(size_t n) { struct order *odd = malloc(n); return odd; }
static __attribute__((noinline)) struct node *header(void) { return malloc(sizeof(struct node) + 24); }
static __attribute__((noinline)) void *two(void)
{
    struct order *a = malloc(192); struct node *b = (struct node *)a; return b;
}
static __attribute__((noinline)) void *both(void) { struct order *c = (struct order *)(struct node *)malloc(192); return c; }
static __attribute__((noinline)) char *bytes(void) { char *text = malloc(64); return text; }
int main(void)
{
    struct order *all = orders(3000);
    struct node *top = 0;
    pair_t *p = pairs(100);
    struct head *h = heads(5);
    struct order *s = one(), *m = mixed(64), *m2 = mixed(65);
    char *t = bytes();
    void *u = two(), *v = both(), *w = header();
    for (int i = 0; i < 64; i++) t[i] = i;
    double sum = 0;
    h->count = 5; s->id = 1; m->id = m2->id = 2;
    for (int i = 0; i < 100; i++) { top = push(top, i); p[i].x = i; }
    for (int r = 0; r < 5; r++) for (int i = 0; i < 3000; i++) sum += all[i].price;
    for (; top; top = top->next) sum += top->key;
    printf("%f %d %ld %d %d\n", sum, p[3].x, h->count, t[3], u && v && w);
    return 0;
}
"#;

fn types(bench: &Bench, more: &[&str]) -> Value {
    let arguments = ["memory", "types", "--config", "zen3", "-m", "app", "--format", "json", "app.mem"];
    let text = String::from_utf8(bench.run(&[&arguments[..], more].concat(), 0).stdout).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Name of the type, kind of evidence and elements of what a function allocates.
fn of(results: &Value, function: &str) -> (String, String, u64) {
    let start = format!("{function}+0x");
    let found =
        results["types"].as_array().unwrap().iter().find(|one| one["type"].as_str().unwrap().starts_with(&start));
    let found = found.unwrap_or_else(|| panic!("{function}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&found["name"]), text(&found["inferred"]["how"]), found["elements"].as_u64().unwrap())
}

fn is(name: &str, how: &str, elements: u64) -> (String, String, u64) {
    (name.to_owned(), how.to_owned(), elements)
}

fn recorded() -> Bench {
    let bench = Bench::new(SOURCE);
    bench.run(&["cacheray", "record", "-o", "app.mem", "--", "./app"], 0);
    bench
}

#[test]
fn types_are_inferred_from_source_lines_and_conflicts_infer_nothing() {
    let bench = recorded();
    let found = types(&bench, &[]);
    assert_eq!(of(&found, "orders"), is("order", "source line", 3000));
    assert_eq!(of(&found, "push"), is("node", "source line", 100));
    assert_eq!(of(&found, "pairs"), is("pair_t", "source line", 100));
    assert_eq!(of(&found, "heads"), is("head", "source line", 1));
    assert_eq!(of(&found, "one"), is("order", "assignment", 1));
    // Blocks of other sizes, something behind, letters, and a type that another one hides.
    for (function, elements) in [("mixed", 2), ("header", 1), ("bytes", 1), ("both", 1), ("two", 1)] {
        assert_eq!(of(&found, function), is("", "", elements), "{function}");
    }
    let text = String::from_utf8(bench.run(&["memory", "types", "-m", "app", "app.mem"], 0).stdout).unwrap();
    assert!(text.contains(": order [inferred from the source line]"), "{text}");
    let only = types(&bench, &["--type", "order"]);
    assert_eq!(only["types"].as_array().unwrap().len(), 2, "{only}");
    let none = types(&bench, &["--no-infer"]);
    assert!(none["types"].as_array().unwrap().iter().all(|one| one["inferred"].is_null()), "{none}");
    let advice = bench.run(&["memory", "advise", "--config", "zen3", "-m", "app", "app.mem"], 0);
    let advice = String::from_utf8(advice.stdout).unwrap();
    assert!(advice.contains(": order [inferred from the source line]: "), "{advice}");
    assert!(advice.contains("structure of arrays") && advice.contains("double price"), "{advice}");
}

#[test]
fn without_the_source_declarations_remain() {
    let bench = recorded();
    std::fs::remove_file(bench.path("app.c")).unwrap();
    let found = types(&bench, &[]);
    assert_eq!(of(&found, "orders"), is("order", "declaration", 3000));
    assert_eq!(of(&found, "push"), is("node", "declaration", 100));
    assert_eq!(of(&found, "one"), is("order", "declaration", 1));
    for (function, elements) in [("mixed", 2), ("bytes", 1), ("two", 1), ("heads", 1)] {
        assert_eq!(of(&found, function), is("", "", elements), "{function}");
    }
}

#[test]
fn types_can_be_stated() {
    let bench = recorded();
    let line = 1 + SOURCE.lines().position(|line| line.contains("char *text")).unwrap();
    std::fs::write(bench.path("types"), format!("# comment\n\napp.c:{line} = pair_t\ntwo=node[4]\n")).unwrap();
    let found = types(&bench, &["--type-of", "@types", "--type-of", "push=pair_t", "--no-infer"]);
    assert_eq!(of(&found, "bytes"), is("pair_t", "stated", 8));
    assert_eq!(of(&found, "two"), is("node", "stated", 4));
    assert_eq!(of(&found, "push"), is("pair_t", "stated", 300));
    // `calloc` says how many.
    assert_eq!(of(&found, "orders"), is("", "", 3000));
    for (stated, message) in [
        ("push", "expected SITE=TYPE"),
        ("push=node[0]", "a number of elements from 1"),
        ("push=nobody", "no type nobody in the debug data"),
        ("pull=node", "no allocation at pull: the trace has "),
        ("@missing", "cannot read missing"),
    ] {
        let arguments = ["memory", "types", "-m", "app", "--type-of", stated, "app.mem"];
        let failed = String::from_utf8(bench.run(&arguments, 2).stderr).unwrap();
        assert!(failed.contains(message), "{stated}: {failed}");
    }
    std::fs::write(bench.path("types"), "two=node\ntwo\n").unwrap();
    let failed = bench.run(&["memory", "types", "-m", "app", "--type-of", "@types", "app.mem"], 2);
    assert!(String::from_utf8(failed.stderr).unwrap().contains("types: line 2: expected SITE=TYPE"));
    bench.run(&["memory", "types", "--type-of", "two=node", "app.mem"], 2);
}

const CLASSES: &str = r#"
#include <cstdio>
#include <map>
#include <memory>
#include <vector>
namespace shop {
struct Order { long id; double price; char note[48]; };
struct Base { virtual ~Base() {} long a; };
struct Derived : Base { long b[3]; };
__attribute__((noinline)) Order *orders(int n) { return new Order[n](); }
__attribute__((noinline)) Base *derived() { Base *made = new Derived; return made; }
__attribute__((noinline)) void grow(std::vector<Order> &all, int n) { for (int i = 0; i < n; i++) all.push_back(Order{i, 1.0, {}}); }
__attribute__((noinline)) std::unique_ptr<Order> unique() { return std::make_unique<Order>(); }
__attribute__((noinline)) void insert(std::map<int, Order> &all) { all[3].id = 1; }
}
int main()
{
    using namespace shop;
    Order *all = orders(2000);
    Base *base = derived();
    std::vector<Order> many;
    grow(many, 100);
    auto single = unique();
    std::map<int, Order> by_key;
    insert(by_key);
    double sum = 0;
    for (int r = 0; r < 5; r++) for (int i = 0; i < 2000; i++) sum += all[i].price;
    std::printf("%f %ld %zu %ld %zu\n", sum, base->a, many.size(), single->id, by_key.size());
    delete base;
    delete[] all;
}
"#;

#[test]
fn classes_vectors_and_maps_have_their_elements() {
    for compiler in ["g++", "clang++"] {
        let bench = Bench::of(compiler, "app.cpp", CLASSES);
        bench.run(&["cacheray", "record", "-o", "app.mem", "--", "./app"], 0);
        let found = types(&bench, &[]);
        let inferred: Vec<(&str, &str, u64)> = found["types"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| !one["inferred"].is_null())
            .map(|one| {
                (one["type"].as_str().unwrap(), one["name"].as_str().unwrap(), one["elements"].as_u64().unwrap())
            })
            .collect();
        let has = |function: &str, name: &str, elements: u64| {
            inferred.iter().any(|one| one.0.contains(function) && one.1 == name && one.2 == elements)
        };
        assert!(has("shop::orders", "shop::Order", 2000), "{compiler}: {inferred:?}");
        assert!(has("shop::derived", "shop::Derived", 1), "{compiler}: {inferred:?}");
        assert!(has("", "shop::Order", 255), "{compiler}: {inferred:?}");
        assert!(has("", "shop::Order", 1), "{compiler}: {inferred:?}");
        let node = inferred.iter().find(|one| one.1.contains("_Rb_tree_node<"));
        // clang describes types of templates only where they are used completely.
        assert_eq!(node.map(|one| one.2), (compiler == "g++").then_some(1), "{compiler}: {inferred:?}");
    }
}
