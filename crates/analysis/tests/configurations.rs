//! Configurations written as text, in the three forms of files, and read back.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use anytrace_analysis::cache::config::{Config, Inclusion, Level, Policy, Prefetch};
use anytrace_analysis::cache::config_file::{bytes_of, parse};
use common::Random;
use serde_json::{Value, json};

fn pick<T: Clone>(random: &mut Random, all: &[T]) -> T {
    all[random.below(all.len() as u64) as usize].clone()
}

/// A level that is right below one with lines of this many bytes.
fn level(random: &mut Random, name: &str, line: u64) -> Level {
    let ways = pick(random, &[0, 1, 2, 4, 8, 16]);
    let lines = ways.max(4) * (1 + random.below(9)) + random.below(3);
    let mut level = Level::new(name, lines * line + random.below(line), line, ways);
    level.policy = pick(random, &[Policy::Lru, Policy::Fifo, Policy::BitPlru, Policy::Srrip, Policy::Random]);
    if ways > 0 && random.once_in(4) {
        level.policy = Policy::TreePlru;
    }
    level.is_write_through = random.once_in(3);
    level.allocates_on_write = !random.once_in(3);
    level.prefetch = Prefetch { next_line: random.once_in(3), stride: random.once_in(3) };
    level
}

fn config(random: &mut Random, name: &str) -> Config {
    let inclusion = pick(random, &[Inclusion::Nine, Inclusion::Inclusive, Inclusion::Exclusive]);
    let mut line = pick(random, &[16, 32, 64]);
    let private = random.below(3);
    let mut levels = Vec::new();
    for at in 0..1 + random.below(3) {
        let mut one = level(random, &format!("L{}", at + 1), line);
        one.is_private = at < private;
        levels.push(one);
        line *= if inclusion == Inclusion::Exclusive { 1 } else { pick(random, &[1, 1, 2]) };
    }
    let mut config = Config { inclusion, is_coherent: !random.once_in(3), ..Config::new(name, levels) };
    for at in 0..random.below(3) {
        let ways = pick(random, &[0, 1, 4]);
        let mut tlb = Level::new(&format!("TLB{}", at + 1), (4 + random.below(40)) << 12, 4096, ways);
        tlb.is_private = at == 0 && random.once_in(2);
        config.tlb.push(tlb);
    }
    config
}

/// A size in one of its spellings.
fn size(random: &mut Random, bytes: u64) -> Value {
    match random.below(3) {
        0 => json!(bytes),
        1 if bytes.is_multiple_of(1024) => {
            json!(format!("{}{}", bytes / 1024, pick(random, &["KiB", "k", " KB", "kib"])))
        }
        _ => json!(format!("{bytes}")),
    }
}

fn policy(random: &mut Random, policy: Policy) -> Value {
    let words: &[&str] = match policy {
        Policy::TreePlru => &["plru", "tree-plru", "PLRU"],
        Policy::BitPlru => &["bit-plru", "nru", "bitplru"],
        Policy::Lru => &["lru", "LRU"],
        Policy::Fifo => &["fifo", "Fifo"],
        Policy::Srrip => &["srrip"],
        Policy::Brrip => &["brrip"],
        Policy::Random => &["random"],
        Policy::Opt => &["opt", "belady"],
    };
    json!(pick(random, words))
}

/// The object of a level. What is as by default may be absent or null.
fn written_level(random: &mut Random, level: &Level, is_tlb: bool) -> Value {
    let mut object = serde_json::Map::new();
    let mut put = |key: &str, value: Value, is_default: bool, choice: u64| match (is_default, choice) {
        (true, 0) => {}
        (true, 1) => drop(object.insert(key.to_owned(), Value::Null)),
        _ => drop(object.insert(key.to_owned(), value)),
    };
    put("name", json!(level.name), true, random.below(3));
    let ways = if level.ways == 0 { pick(random, &[0, 1]) } else { 2 };
    put("ways", if ways == 1 { json!("full") } else { json!(level.ways) }, false, 0);
    let word = policy(random, level.policy);
    put("policy", word, level.policy == Policy::Lru, random.below(3));
    put("private", json!(level.is_private), !level.is_private, random.below(3));
    if is_tlb {
        put("entries", json!(level.size / level.line), false, 0);
        let page = size(random, level.line);
        put("page", page, level.line == 4096, random.below(3));
        return Value::Object(object);
    }
    let (bytes, line) = (size(random, level.size), size(random, level.line));
    put("size", bytes, false, 0);
    put("line", line, level.line == 64, random.below(3));
    let word = if level.is_write_through { "through" } else { "back" };
    put("write", json!(word), !level.is_write_through, random.below(3));
    put("alloc", json!(level.allocates_on_write), level.allocates_on_write, random.below(3));
    let prefetch = match (level.prefetch.next_line, level.prefetch.stride) {
        (false, false) => json!("none"),
        (true, false) => json!(pick(random, &["next-line", "next_line"])),
        (false, true) => json!(["stride"]),
        (true, true) => json!(["stride", "next-line"]),
    };
    put("prefetch", prefetch, !level.prefetch.is_any(), random.below(3));
    Value::Object(object)
}

fn written(random: &mut Random, config: &Config) -> Value {
    let mut each = |levels: &[Level], is_tlb: bool| {
        levels.iter().map(|one| written_level(random, one, is_tlb)).collect::<Vec<_>>()
    };
    json!({
        "inclusion": config.inclusion.word(),
        "mesi": config.is_coherent,
        "levels": each(&config.levels, false),
        "tlb": each(&config.tlb, true),
        "comment": "for people",
    })
}

/// The bytes of a level that its sets do not use.
fn has_rest(level: &Level) -> bool {
    let lines = level.size / level.line;
    let ways = if level.ways == 0 { lines } else { level.ways };
    level.size != lines / ways * ways * level.line
}

#[test]
fn configurations_come_back_from_their_text() {
    let mut random = Random(1);
    for round in 0..400 {
        let mut configs: Vec<Config> =
            (0..1 + random.below(3)).map(|at| config(&mut random, &format!("config {at}"))).collect();
        let named: serde_json::Map<String, Value> =
            configs.iter().map(|config| (config.name.clone(), written(&mut random, config))).collect();
        let found = parse(&Value::Object(named).to_string(), "file").unwrap();
        assert_eq!(found.configs, configs, "round {round}");
        let rests =
            configs.iter().flat_map(|config| config.levels.iter().chain(&config.tlb)).filter(|one| has_rest(one));
        assert_eq!(found.notes.len(), rests.count(), "round {round}: {:?}", found.notes);
        // One alone is called after its file; a byte order mark before it is no part of it.
        let text = format!("\u{feff}{:#}", written(&mut random, &configs[0]));
        configs[0].name = "file".to_owned();
        assert_eq!(parse(&text, "file").unwrap().configs, configs[..1], "round {round}");
    }
}

#[test]
fn the_two_forms_of_upstream_say_the_same() {
    let mut random = Random(2);
    for round in 0..200 {
        let mut levels = Vec::new();
        let (mut ini, mut list) = (format!("number of caches = {}\n", 2), Vec::new());
        let block = 4 + random.below(3);
        for (name, power) in [("L1", 12), ("L2", 15)] {
            let (bytes, ways) = (power + random.below(3), pick(&mut random, &[0, 1, 2, 8]));
            let (code, policy) = pick(&mut random, &[(0, Policy::Lru), (1, Policy::Fifo), (4, Policy::Random)]);
            let through = random.below(2);
            let mut level = Level::new(name, 1 << bytes, 1 << block, ways);
            (level.policy, level.is_write_through) = (policy, through == 1);
            levels.push(level);
            let assoc = pick(&mut random, &["set_assoc", "Set associativity", "set-assoc"]);
            let rep = pick(&mut random, &["rep_policy", "replacement policy"]);
            ini += &format!("; remark\n[{name} cache]\ncache size : {bytes}\nblock_size={block} # six\n");
            ini += &format!("write_policy = {through}\n{assoc}={ways}\n  {rep} = {code}\n\n");
            list.push(json!({"name": name, "cache_size": bytes, "block_size": block, "write_policy": through,
                "set_assoc": ways, "rep_policy": code}));
        }
        let expected = [Config::new("file", levels)];
        let found = parse(&ini, "file").unwrap();
        assert_eq!(
            (found.configs.as_slice(), found.notes.as_slice()),
            (&expected[..], &[][..]),
            "round {round}: {ini}"
        );
        let found = parse(&json!({ "caches": list }).to_string(), "file").unwrap();
        assert_eq!(
            (found.configs.as_slice(), found.notes.as_slice()),
            (&expected[..], &[][..]),
            "round {round}: {list:?}"
        );
    }
}

/// Decimal digits and a unit, in numbers of any length: the bytes, if they are an integer of 64 bits.
fn slow_bytes(integer: u128, part: Option<&str>, shift: u32) -> Option<u64> {
    let scale = 10_u128.pow(part.map_or(0, str::len) as u32);
    let digits = integer * scale + part.map_or(0, |part| part.parse::<u128>().unwrap());
    let scaled = digits << shift;
    if scaled.is_multiple_of(scale) { u64::try_from(scaled / scale).ok() } else { None }
}

#[test]
fn sizes_are_exact_or_refused() {
    let mut random = Random(3);
    let units = [("", 0), ("B", 0), (" K", 10), ("kb", 10), ("MiB", 20), ("m", 20), (" GiB", 30), ("g", 30)];
    for _ in 0..20_000 {
        let (unit, shift) = pick(&mut random, &units);
        let bits = random.below(64);
        let integer = u128::from(random.next() >> bits);
        let places = random.below(4) as usize;
        let part = format!("{:03}", pick(&mut random, &[0, 5, 25, 50, 125, 250, 333, 500, 750, 999]));
        let part = (places > 0).then(|| &part[..places]);
        let number = part.map_or(integer.to_string(), |part| format!("{integer}.{part}"));
        let text = format!(" {number}{unit} ");
        assert_eq!(bytes_of(&text), slow_bytes(integer, part, shift), "{text:?}");
    }
    for wrong in ["", "K", "1.K", ".5K", "-1", "1e3", "0x10", "1 2", "1TiB", "1.2.3K", "1,5K", "99999999999999999999"] {
        assert_eq!(bytes_of(wrong), None, "{wrong:?}");
    }
}

/// Spoils one value of a configuration; the message must name its key.
#[test]
fn a_wrong_value_is_refused_with_its_key() {
    let mut random = Random(4);
    let keys = ["size", "line", "ways", "policy", "write", "alloc", "private", "prefetch", "name"];
    for round in 0..300 {
        let mut one = config(&mut random, "c");
        one.tlb.clear();
        let mut value = written(&mut random, &one);
        let at = random.below(one.levels.len() as u64) as usize;
        let key = pick(&mut random, &keys);
        let wrong = pick(&mut random, &[json!([[]]), json!({"a": 1}), json!(-1), json!(1.5), json!("\u{1b}[31m")]);
        // Any text is a name.
        let wrong = if key == "name" { json!(7) } else { wrong };
        value["levels"][at][key] = wrong.clone();
        let refused = parse(&json!({ "c": value }).to_string(), "file").unwrap_err().to_string();
        assert!(refused.starts_with(&format!("c.levels[{at}].{key}: expected ")), "round {round}, {wrong}: {refused}");
        assert!(refused.contains(", found ") && !refused.contains('\u{1b}'), "round {round}: {refused}");
    }
}

#[test]
fn unknown_keys_are_noted_with_their_place() {
    let mut random = Random(5);
    for round in 0..100 {
        let mut one = config(&mut random, "c");
        one.levels.iter_mut().chain(&mut one.tlb).for_each(|level| level.size = level.line * level.ways.max(4) * 8);
        let mut value = written(&mut random, &one);
        let at = random.below(one.levels.len() as u64) as usize;
        value["latency"] = json!(4);
        value["levels"][at]["assoc"] = json!(4);
        value["levels"][at]["_assoc"] = json!("a key for people");
        let mut notes = parse(&json!({ "c": value }).to_string(), "file").unwrap().notes;
        notes.sort();
        let expected = ["c.latency".to_owned(), format!("c.levels[{at}].assoc")];
        assert_eq!(notes, expected.map(|key| format!("{key}: ignoring unknown key")), "round {round}");
    }
}
