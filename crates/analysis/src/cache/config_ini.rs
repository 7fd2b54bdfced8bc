//! Upstream's `cache.conf`: a section for each cache, nearest first, sizes as powers of two.

use super::config::{Config, Wrong};
use super::config_upstream::Upstream;

/// The sections' keys, some in two spellings.
const KEYS: [(&str, usize); 7] = [
    ("cache_size", 0),
    ("block_size", 1),
    ("write_policy", 2),
    ("set_associativity", 3),
    ("set_assoc", 3),
    ("replacement_policy", 4),
    ("rep_policy", 4),
];

/// A section being read: where it began, its name, its values.
struct Section {
    path: String,
    name: String,
    values: [Option<u64>; 5],
}

/// Reads a file's text.
pub(super) fn parse(text: &str, stem: &str, notes: &mut Vec<String>) -> Result<Config, Wrong> {
    let mut sections: Vec<Section> = Vec::new();
    let mut announced = None;
    for (number, line) in (1_usize..).zip(text.lines()) {
        let line = line.split(['#', ';']).next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let Some(name) = name.strip_suffix(']') else {
                return Err(Wrong::new(format!("line {number}"), "expected ] at the end of a section's name"));
            };
            let name = name.trim();
            let short = name.strip_suffix("cache").map_or(name, str::trim);
            let name = if short.is_empty() { name } else { short }.to_owned();
            sections.push(Section { path: format!("[{name}]"), name, values: [None; 5] });
            continue;
        }
        let Some((key, value)) = line.split_once(['=', ':']) else {
            return Err(Wrong::new(format!("line {number}"), "expected KEY=VALUE, [SECTION] or # for a remark"));
        };
        let key = key.trim().to_ascii_lowercase().replace([' ', '-'], "_");
        let value = value.trim();
        let number_of = |path: &str| {
            let what = format!("line {number}: expected a number, found {:?}", anytrace_core::text::printable(value));
            value.parse::<u64>().map_err(|_| Wrong::new(format!("{path}{key}"), what))
        };
        match (sections.last_mut(), KEYS.iter().find(|(name, _)| *name == key)) {
            (None, _) if key == "number_of_caches" => announced = Some(number_of("")?),
            (Some(section), Some((_, at))) => {
                let value = number_of(&format!("{}.", section.path))?;
                if let Some(place) = section.values.get_mut(*at) {
                    *place = Some(value);
                }
            }
            _ => {
                let key = anytrace_core::text::printable(&key).to_string();
                notes.push(format!("line {number}: ignoring unknown key {key}"));
            }
        }
    }
    if let Some(announced) = announced.filter(|announced| *announced != sections.len() as u64) {
        notes.push(format!("number_of_caches is {announced}, but {} caches follow", sections.len()));
    }
    let levels = sections.iter().map(|section| {
        let [cache_size, block_size, write_policy, set_assoc, rep_policy] = section.values;
        let missing = || Wrong::new(format!("{}.cache_size", section.path), "expected a power of two, found nothing");
        let upstream = Upstream {
            cache_size: cache_size.ok_or_else(missing)?,
            block_size: block_size.unwrap_or(6),
            write_policy: write_policy.unwrap_or(0),
            set_assoc: set_assoc.unwrap_or(1),
            rep_policy: rep_policy.unwrap_or(0),
        };
        upstream.level(&section.name, &section.path)
    });
    Ok(Config::new(stem, levels.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::super::config_file::parse;

    const TEXT: &str = "# two caches\nnumber of caches = 2\n\n[L1 cache]\ncache_size=10\t# 1 KiB\nblock_size=6\n\
                        set_associativity=0\n[L2 cache]\ncache_size=16\nreplacement_policy=4\nlatency=3\n";

    #[test]
    fn sections_are_levels() {
        let found = parse(TEXT, "cache").unwrap();
        let [l1, l2] = &found.configs[0].levels[..] else { panic!("two levels") };
        assert_eq!((l1.name.as_str(), l1.size, l1.ways), ("L1", 1024, 0));
        assert_eq!((l2.name.as_str(), l2.size, l2.ways, l2.policy.word()), ("L2", 65536, 1, "random"));
        assert_eq!(found.notes, ["line 11: ignoring unknown key latency"]);
    }

    #[test]
    fn the_wrong_key_is_named() {
        let wrong = |text: &str| parse(text, "c").map_or_else(|w| w.to_string(), |_| "fine".to_owned());
        assert_eq!(wrong("[L1 cache\n"), "line 1: expected ] at the end of a section's name");
        assert_eq!(wrong("hello"), "line 1: expected KEY=VALUE, [SECTION] or # for a remark");
        assert_eq!(wrong(&TEXT.replace("=10", "=x")), "[L1].cache_size: line 5: expected a number, found \"x\"");
        assert_eq!(wrong("[L1 cache]\nblock_size=6"), "[L1].cache_size: expected a power of two, found nothing");
        assert!(wrong("").contains("levels: expected at least one level"));
        assert!(parse("number_of_caches=3\n[a]\ncache_size=12", "c").unwrap().notes[0].contains("1 caches follow"));
    }
}
