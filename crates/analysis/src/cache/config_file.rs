//! Configurations from files: our JSON, upstream's JSON, upstream's INI.
//!
//! Ours is an object of configurations by name, or one configuration, which is named after its file:
//!
//! ```
//! let text = r#"{"small": {
//!     "inclusion": "nine",
//!     "levels": [
//!         {"name": "L1", "size": "32KiB", "line": 64, "ways": 8, "policy": "plru", "prefetch": "next-line"},
//!         {"name": "L2", "size": 1048576, "line": 64, "ways": 16, "write": "back", "alloc": true}
//!     ],
//!     "tlb": [{"name": "DTLB", "entries": 64, "page": "4KiB", "ways": 4}]
//! }}"#;
//! let found = anytrace_analysis::cache::config_file::parse(text, "file").expect("it is right");
//! assert_eq!((found.configs[0].name.as_str(), found.configs[0].levels[0].size), ("small", 32768));
//! ```
//!
//! Upstream's Java simulator reads `{"caches": [{"name", "cache_size", "block_size", "write_policy", "set_assoc",
//! "rep_policy"}]}` with sizes as powers of two; the INI it ships has the same keys in sections.

use serde_json::{Map, Value};

use super::config::{Config, Inclusion, Level, Policy, Prefetch, Wrong};
use super::config_ini;
use super::config_upstream::Upstream;

/// The contents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// The configurations, checked; by name.
    pub configs: Vec<Config>,
    /// Ignored parts: unknown keys, and parts of sizes that do not make a complete set.
    pub notes: Vec<String>,
}

/// Reads a file's text. `stem` names a configuration without a name of its own.
///
/// # Errors
/// The first wrong key, or the place where the text is not JSON.
pub fn parse(text: &str, stem: &str) -> Result<ConfigFile, Wrong> {
    let mut notes = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parsed = serde_json::from_str(text);
    // Any valid JSON is not the INI form, which has sections in brackets.
    let configs = if parsed.is_ok() || text.trim_start().starts_with('{') {
        let value: Value = parsed.map_err(|error| {
            Wrong::new(format!("line {}, column {}", error.line(), error.column()), format!("no JSON: {error}"))
        })?;
        let Value::Object(object) = &value else {
            return Err(Wrong::new("(top)", format!("expected an object, found {}", shown(&value))));
        };
        of_object(object, stem, &mut notes)?
    } else {
        vec![config_ini::parse(text, stem, &mut notes)?]
    };
    if configs.is_empty() {
        return Err(Wrong::new("(top)", "expected a configuration, found none"));
    }
    for config in &configs {
        config.check().map_err(|wrong| Wrong::new(format!("{}.{}", config.name, wrong.key), wrong.what))?;
        notes.extend(config.left_over().iter().map(|left| format!("{}.{left}", config.name)));
    }
    Ok(ConfigFile { configs, notes })
}

fn of_object(object: &Map<String, Value>, stem: &str, notes: &mut Vec<String>) -> Result<Vec<Config>, Wrong> {
    if let Some(Value::Array(caches)) = object.get("caches") {
        return Ok(vec![java(caches, stem, notes)?]);
    }
    match object.get("levels") {
        // A configuration may be called so.
        Some(Value::Object(named)) if named.contains_key("levels") => {}
        Some(Value::Array(_)) => return Ok(vec![config(stem, object, notes)?]),
        Some(other) => return Err(Wrong::new("levels", format!("expected an array, found {}", shown(other)))),
        None => {}
    }
    let each = object.iter().filter(|(name, _)| !is_remark(name)).map(|(name, value)| match value {
        Value::Object(inner) => config(name, inner, notes),
        other => Err(Wrong::new(name, format!("expected an object with \"levels\", found {}", shown(other)))),
    });
    each.collect()
}

/// Keys that are for people.
fn is_remark(key: &str) -> bool {
    matches!(key, "description" | "source" | "comment" | "version") || key.starts_with('_')
}

/// An object being read, with the keys that were used.
struct Keys<'a> {
    path: String,
    object: &'a Map<String, Value>,
    asked: Vec<&'static str>,
}

impl<'a> Keys<'a> {
    fn new(path: String, object: &'a Map<String, Value>) -> Self {
        Self { path, object, asked: Vec::new() }
    }

    fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        self.asked.push(key);
        self.object.get(key).filter(|value| !value.is_null())
    }

    fn wrong(&self, key: &str, expected: &str, found: &Value) -> Wrong {
        Wrong::new(format!("{}.{key}", self.path), format!("expected {expected}, found {}", shown(found)))
    }

    fn missing(&self, key: &str, expected: &str) -> Wrong {
        Wrong::new(format!("{}.{key}", self.path), format!("expected {expected}, found nothing"))
    }

    fn bytes(&mut self, key: &'static str, default: Option<u64>) -> Result<u64, Wrong> {
        let expected = "a number of bytes, as 32768 or \"32KiB\"";
        match (self.get(key), default) {
            (None, Some(default)) => Ok(default),
            (None, None) => Err(self.missing(key, expected)),
            (Some(value), _) => size(value).ok_or_else(|| self.wrong(key, expected, value)),
        }
    }

    fn flag(&mut self, key: &'static str, default: bool) -> Result<bool, Wrong> {
        match self.get(key) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.wrong(key, "true or false", other)),
        }
    }

    fn word(&mut self, key: &'static str) -> Result<Option<&'a str>, Wrong> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(word)) => Ok(Some(word)),
            Some(other) => Err(self.wrong(key, "a word", other)),
        }
    }

    /// Notes the keys that were not used.
    fn rest(self, notes: &mut Vec<String>) {
        let unknown = self.object.keys().filter(|key| !self.asked.contains(&key.as_str()) && !is_remark(key));
        notes.extend(unknown.map(|key| format!("{}.{key}: ignoring unknown key", self.path)));
    }
}

fn config(name: &str, object: &Map<String, Value>, notes: &mut Vec<String>) -> Result<Config, Wrong> {
    let mut keys = Keys::new(name.to_owned(), object);
    let mut config = Config::new(name, Vec::new());
    config.inclusion = match keys.word("inclusion")? {
        None | Some("nine" | "non-inclusive") => Inclusion::Nine,
        Some("inclusive") => Inclusion::Inclusive,
        Some("exclusive") => Inclusion::Exclusive,
        Some(other) => return Err(keys.wrong("inclusion", "nine, inclusive or exclusive", &other.into())),
    };
    config.is_coherent = keys.flag("mesi", true)?;
    config.levels = match keys.get("levels") {
        Some(Value::Array(levels)) => each(name, "levels", levels, notes, level)?,
        Some(other) => return Err(keys.wrong("levels", "an array", other)),
        None => return Err(keys.missing("levels", "an array")),
    };
    config.tlb = match keys.get("tlb") {
        None => Vec::new(),
        Some(Value::Array(levels)) => each(name, "tlb", levels, notes, tlb_level)?,
        Some(other) => return Err(keys.wrong("tlb", "an array", other)),
    };
    keys.rest(notes);
    Ok(config)
}

/// Reads one level of a list.
type ReadLevel = fn(&mut Keys<'_>, usize) -> Result<Level, Wrong>;

fn each(
    name: &str,
    list: &str,
    levels: &[Value],
    notes: &mut Vec<String>,
    read: ReadLevel,
) -> Result<Vec<Level>, Wrong> {
    let mut found = Vec::new();
    for (at, value) in levels.iter().enumerate() {
        let path = format!("{name}.{list}[{at}]");
        let Value::Object(object) = value else {
            return Err(Wrong::new(path, format!("expected an object, found {}", shown(value))));
        };
        let mut keys = Keys::new(path, object);
        found.push(read(&mut keys, at)?);
        keys.rest(notes);
    }
    Ok(found)
}

fn level(keys: &mut Keys<'_>, at: usize) -> Result<Level, Wrong> {
    let name = keys.word("name")?.map_or_else(|| format!("L{}", at + 1), str::to_owned);
    let mut level = Level::new(&name, keys.bytes("size", None)?, keys.bytes("line", Some(64))?, ways(keys)?);
    level.policy = policy(keys)?;
    level.is_write_through = match keys.word("write")? {
        None | Some("back") => false,
        Some("through") => true,
        Some(other) => return Err(keys.wrong("write", "back or through", &other.into())),
    };
    level.allocates_on_write = keys.flag("alloc", true)?;
    level.is_private = keys.flag("private", false)?;
    level.prefetch = match keys.get("prefetch") {
        None => Prefetch::default(),
        Some(Value::Array(words)) => {
            words.iter().try_fold(Prefetch::default(), |sum, word| prefetch(keys, word, sum))?
        }
        Some(word) => prefetch(keys, word, Prefetch::default())?,
    };
    Ok(level)
}

fn tlb_level(keys: &mut Keys<'_>, at: usize) -> Result<Level, Wrong> {
    let name = keys.word("name")?.map_or_else(|| format!("TLB{}", at + 1), str::to_owned);
    let entries = match keys.get("entries") {
        None => return Err(keys.missing("entries", "a number of entries")),
        Some(value) => size(value).ok_or_else(|| keys.wrong("entries", "a number of entries", value))?,
    };
    let page = keys.bytes("page", Some(4096))?;
    let mut level = Level::new(&name, entries.saturating_mul(page), page, ways(keys)?);
    level.policy = policy(keys)?;
    level.is_private = keys.flag("private", false)?;
    Ok(level)
}

fn ways(keys: &mut Keys<'_>) -> Result<u64, Wrong> {
    let expected = "a number of ways, or 0 or \"full\" for fully associative";
    match keys.get("ways") {
        None => Err(keys.missing("ways", expected)),
        Some(Value::String(word)) if word == "full" => Ok(0),
        Some(value) => value.as_u64().ok_or_else(|| keys.wrong("ways", expected, value)),
    }
}

fn policy(keys: &mut Keys<'_>) -> Result<Policy, Wrong> {
    let Some(word) = keys.word("policy")? else { return Ok(Policy::Lru) };
    let lower = word.to_ascii_lowercase();
    let known = match lower.as_str() {
        "tree-plru" => Some(Policy::TreePlru),
        "bitplru" | "nru" => Some(Policy::BitPlru),
        "belady" => Some(Policy::Opt),
        other => Policy::ALL.into_iter().find(|policy| policy.word() == other),
    };
    known.ok_or_else(|| {
        let words: Vec<_> = Policy::ALL.iter().map(|policy| policy.word()).collect();
        keys.wrong("policy", &format!("one of {}", words.join(", ")), &word.into())
    })
}

fn prefetch(keys: &Keys<'_>, word: &Value, mut sum: Prefetch) -> Result<Prefetch, Wrong> {
    match word.as_str() {
        Some("none") => {}
        Some("next-line" | "next_line") => sum.next_line = true,
        Some("stride") => sum.stride = true,
        _ => return Err(keys.wrong("prefetch", "none, next-line, stride, or an array of these", word)),
    }
    Ok(sum)
}

/// Bytes: a number, or a number with a unit of powers of 1024.
fn size(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => bytes_of(text),
        _ => None,
    }
}

/// Reads `32KiB`, `32 K`, `1.25MiB`, `4096`.
pub fn bytes_of(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return None,
    };
    match number.split_once('.') {
        None => number.parse::<u64>().ok()?.checked_mul(1 << shift),
        Some((integer, part)) => {
            let integer = integer.parse::<u64>().ok()?.checked_mul(1 << shift)?;
            let scale = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
            let part = part.parse::<u64>().ok()?.checked_mul(1 << shift)?;
            (part % scale == 0).then_some(integer + part / scale)
        }
    }
}

fn java(caches: &[Value], stem: &str, notes: &mut Vec<String>) -> Result<Config, Wrong> {
    let mut levels = Vec::new();
    for (at, value) in caches.iter().enumerate() {
        let path = format!("caches[{at}]");
        let Value::Object(object) = value else {
            return Err(Wrong::new(path, format!("expected an object, found {}", shown(value))));
        };
        let mut keys = Keys::new(path.clone(), object);
        let name = keys.word("name")?.map_or_else(|| format!("L{}", at + 1), str::to_owned);
        let mut number = |key: &'static str, default: Option<u64>| match (keys.get(key), default) {
            (None, Some(default)) => Ok(default),
            (None, None) => Err(keys.missing(key, "a number")),
            (Some(value), _) => value.as_u64().ok_or_else(|| keys.wrong(key, "a number", value)),
        };
        let upstream = Upstream {
            cache_size: number("cache_size", None)?,
            block_size: number("block_size", Some(6))?,
            write_policy: number("write_policy", Some(0))?,
            set_assoc: number("set_assoc", Some(1))?,
            rep_policy: number("rep_policy", Some(0))?,
        };
        levels.push(upstream.level(&name, &path)?);
        keys.rest(notes);
    }
    Ok(Config::new(stem, levels))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => anytrace_core::text::printable(&other.to_string()).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        parse(text, "c").map_or_else(|wrong| wrong.to_string(), |_| "fine".to_owned())
    }

    #[test]
    fn errors_name_the_key_and_what_was_expected() {
        let level = |rest: &str| format!(r#"{{"x": {{"levels": [{{"name": "L1", {rest}}}]}}}}"#);
        assert!(wrong("{\"x\": ").starts_with("line 1, column 6: no JSON"));
        assert_eq!(wrong(r#"{"x": 3}"#), "x: expected an object with \"levels\", found 3");
        assert_eq!(wrong(r#"{"x": {}}"#), "x.levels: expected an array, found nothing");
        assert!(wrong(&level(r#""ways": 4"#)).starts_with("x.levels[0].size: expected a number of bytes"));
        assert!(wrong(&level(r#""size": "4 fish", "ways": 4"#)).ends_with("found \"4 fish\""));
        assert!(
            wrong(&level(r#""size": 4096, "ways": -1"#)).starts_with("x.levels[0].ways: expected a number of ways")
        );
        assert!(wrong(&level(r#""size": 4096, "ways": 4, "policy": "mru""#)).contains("one of lru, fifo, plru"));
        assert!(wrong(&level(r#""size": 4096, "ways": 400"#)).starts_with("x.levels[0].ways: expected at most 64"));
        assert!(wrong(&level(r#""size": 1e300, "ways": 4"#)).starts_with("x.levels[0].size"));
        assert_eq!(wrong(r#"{"levels": {}}"#), "levels: expected an array, found an object");
        assert_eq!(wrong(r#"{"levels": {"levels": [{"size": 4096, "ways": 4}]}}"#), "fine");
        assert_eq!(wrong("{}"), "(top): expected a configuration, found none");
        assert_eq!(wrong("[{}]"), "(top): expected an object, found an array");
        assert_eq!(wrong("null"), "(top): expected an object, found null");
    }

    #[test]
    fn keys_of_a_tlb_are_called_as_in_the_file() {
        let tlb = |rest: &str| {
            let level = r#"{"name": "L1", "size": 4096, "ways": 4}"#;
            wrong(&format!(r#"{{"x": {{"levels": [{level}], "tlb": [{{"name": "T", "ways": 4, {rest}}}]}}}}"#))
        };
        assert_eq!(tlb(r#""page": "4KiB""#), "x.tlb[0].entries: expected a number of entries, found nothing");
        assert_eq!(tlb(r#""entries": true"#), "x.tlb[0].entries: expected a number of entries, found true");
        assert!(tlb(r#""entries": 64, "page": 3000"#).starts_with("x.tlb[0].page: expected a power of two from 8"));
        assert_eq!(tlb(r#""entries": 0"#), "x.tlb[0].entries: expected at least one, found 0");
        assert!(tlb(r#""entries": 99999999999"#).starts_with("x.tlb[0].entries: expected at most 16777216, found"));
        let two = r#""entries": 64, "page": "2MiB"}, {"entries": 64, "ways": 4"#;
        assert_eq!(tlb(two), "x.tlb[1].page: expected at least the page of the level above, 2097152, found 4096");
    }

    #[test]
    fn unknown_keys_are_noted_and_remarks_are_not() {
        let found = parse(r#"{"levels": [{"size": "1.5 KiB", "ways": 0, "wyas": 3}], "source": "here"}"#, "c").unwrap();
        assert_eq!(found.notes, ["c.levels[0].wyas: ignoring unknown key"]);
        let level = &found.configs[0].levels[0];
        assert_eq!((level.name.as_str(), level.size, level.line), ("L1", 1536, 64));
        let found = parse(r#"{"levels": [{"size": 4100, "ways": 4}]}"#, "c").unwrap();
        assert!(
            found.notes.len() == 1 && found.notes[0].starts_with("c.levels[0].size: 4100 bytes are not a multiple")
        );
    }

    #[test]
    fn upstreams_json_counts_in_powers_of_two() {
        let text = r#"{"caches": [{"name": "L1", "cache_size": 12, "block_size": 6, "write_policy": 0,
                       "set_assoc": 4, "rep_policy": 1}]}"#;
        let level = parse(text, "java").unwrap().configs[0].levels[0].clone();
        assert_eq!((level.size, level.line, level.ways, level.policy), (4096, 64, 4, Policy::Fifo));
        assert!(wrong(&text.replace("\"rep_policy\": 1", "\"rep_policy\": 2")).starts_with("caches[0].rep_policy"));
        assert!(wrong(&text.replace("12", "64")).starts_with("caches[0].cache_size"));
    }

    #[test]
    fn sizes_have_units() {
        let sizes = ["32KiB", "32k", "1.25 MiB", "7", "1GB", "x", "1.0001k", "99999999999G", ""].map(bytes_of);
        let (k, m, g) = (1 << 10, 1 << 20, 1 << 30);
        assert_eq!(sizes[..5], [Some(32 * k), Some(32 * k), Some(m + m / 4), Some(7), Some(g)]);
        assert_eq!(sizes[5..], [None; 4]);
    }
}
