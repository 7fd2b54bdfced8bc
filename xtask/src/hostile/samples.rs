//! What is mutated: the samples of the formats' crates, and of the shared corpora where they are.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::random::Random;
use crate::shell::root;

/// The formats, by the names of their crates.
pub(super) const FORMATS: &[&str] = &[
    // One a line: `cargo xtask new-format` adds another.
    "apitrace", "cacheray", "casemate", "heph", "lackey", "xray", "perfetto", "chrome", "perf", "fuchsia", "ctf",
];

/// Longer samples would make a campaign of runs that all read for long.
const BYTES_MAX: u64 = 48 * 1024;

/// Samples that the program is asked about at once.
const ASKED_AT_ONCE: usize = 200;

/// A file that runs are made of.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) extension: String,
    pub(super) bytes: Vec<u8>,
    /// Where it is, or its wrapper.
    path: PathBuf,
}

/// All samples, by what they are.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// One list per format, in the order of [`FORMATS`].
    traces: [Vec<Sample>; FORMATS.len()],
    /// The same for JSON lines.
    lines: [Vec<Sample>; FORMATS.len()],
    /// What no format fits: broken headers, and other files.
    pub(super) strangers: Vec<Sample>,
    /// Object files, and YAML maps of XRay.
    pub(super) objects: Vec<Sample>,
    /// JSON: configurations of caches.
    pub(super) configs: Vec<Sample>,
    /// JSON: layouts of types.
    pub(super) layouts: Vec<Sample>,
    /// JSON: types with new layouts.
    pub(super) remaps: Vec<Sample>,
    /// JSON: states of GL.
    pub(super) states: Vec<Sample>,
    /// Captures of datagrams.
    pub(super) datagrams: Vec<Sample>,
    /// Memory with ring buffers.
    pub(super) rings: Vec<Sample>,
    /// Pictures.
    pub(super) images: Vec<Sample>,
}

impl Samples {
    /// Reads the samples; `shared` adds the corpora beside the project (or in `$ANYTRACE_CORPUS`). Where there is a
    /// program, it says which format fits each of them; else the folder does.
    pub(super) fn read(shared: bool, program: Option<&Path>) -> Result<Self, String> {
        let mut samples = Self::default();
        let others = match std::env::var_os("ANYTRACE_CORPUS") {
            Some(folder) => PathBuf::from(folder),
            None => root().join("../shared/corpus"),
        };
        for (number, format) in FORMATS.iter().enumerate() {
            samples.add_folder(&root().join("crates").join(format).join("corpus"), number)?;
            if shared && others.join(format).is_dir() {
                samples.add_folder(&others.join(format), number)?;
            }
        }
        let symbols = root().join("crates/symbols/corpus");
        if symbols.is_dir() {
            samples.add_objects(&symbols)?;
        }
        if let Some(program) = program {
            samples.sort_by_format(program)?;
        }
        match samples.traces.iter().position(Vec::is_empty) {
            Some(missing) => Err(format!("no samples of {}", FORMATS[missing])),
            None => Ok(samples),
        }
    }

    /// A sample of one of these formats, small ones more often; all formats where none is named.
    pub(super) fn trace(&self, formats: &[&str], random: &mut Random) -> &Sample {
        smaller_of_two(&self.traces[number_of(formats, random)], random)
    }

    /// JSON lines of one of these formats; a trace where there are none.
    pub(super) fn lines(&self, formats: &[&str], random: &mut Random) -> &Sample {
        let number = number_of(formats, random);
        let is_there = !self.lines[number].is_empty();
        smaller_of_two(if is_there { &self.lines[number] } else { &self.traces[number] }, random)
    }

    /// Puts each trace where the program says it belongs, whatever its folder and its extension.
    fn sort_by_format(&mut self, program: &Path) -> Result<(), String> {
        let mut paths: Vec<PathBuf> = self.traces.iter().flatten().map(|sample| sample.path.clone()).collect();
        paths.dedup();
        let mut formats = BTreeMap::new();
        for paths in paths.chunks(ASKED_AT_ONCE) {
            let output = Command::new(program).args(["info", "--format=json"]).args(paths).output();
            let output = output.map_err(|error| format!("cannot start {}: {error}", program.display()))?;
            let json: serde_json::Value =
                serde_json::from_slice(&output.stdout).map_err(|error| format!("info on the samples: {error}"))?;
            let one = std::slice::from_ref(&json);
            for info in json.as_array().map_or(one, Vec::as_slice) {
                if let (Some(file), Some(format)) = (info["file"].as_str(), info["format"].as_str()) {
                    formats.insert(PathBuf::from(file), format.to_owned());
                }
            }
        }
        for sample in self.traces.iter_mut().flat_map(std::mem::take).collect::<Vec<_>>() {
            let number = formats.get(&sample.path).and_then(|format| FORMATS.iter().position(|name| name == format));
            match number {
                Some(number) => self.traces[number].push(sample),
                None => self.strangers.push(sample),
            }
        }
        Ok(())
    }

    fn add_folder(&mut self, folder: &Path, format: usize) -> Result<(), String> {
        let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        // The order of a folder is not the same everywhere, and numbers choose by it.
        paths.sort();
        for path in paths {
            if path.is_dir() {
                self.add_folder(&path, format)?;
            } else if fs::metadata(&path).is_ok_and(|meta| meta.len() <= BYTES_MAX) {
                let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                self.add_file(&path, &path, bytes, format);
            }
        }
        Ok(())
    }

    fn add_objects(&mut self, folder: &Path) -> Result<(), String> {
        let before = self.traces[0].len();
        self.add_folder(folder, 0)?;
        // Sources and names beside them are not traces.
        self.traces[0].truncate(before);
        Ok(())
    }

    /// `path` is the file's, `name` without the endings of wrappers that were removed.
    fn add_file(&mut self, path: &Path, name: &Path, bytes: Vec<u8>, format: usize) {
        let extension = name.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
        let in_gzip = (extension == "gz").then(|| unzip(&bytes)).flatten();
        if let Some(inner) = in_gzip {
            self.add_file(path, &name.with_extension(""), inner, format);
        }
        let is_map = name.components().any(|part| part.as_os_str() == "maps");
        let sample = Sample { extension, bytes, path: path.to_owned() };
        let is_object = [&b"\x7fELF"[..], b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ"]
            .iter()
            .any(|magic| sample.bytes.starts_with(magic));
        match sample.extension.as_str() {
            _ if is_object || is_map => self.objects.push(sample),
            // The only traces that are JSON files.
            "json"
                if FORMATS.get(format) == Some(&"chrome")
                    && path.components().any(|part| part.as_os_str() == "chrome") =>
            {
                self.traces[format].push(sample);
            }
            "json" => self.add_json(sample),
            "jsonl" => self.lines[format].push(sample),
            "rings" => self.rings.push(sample),
            "dgrams" => self.datagrams.push(sample),
            "png" | "raw" => self.images.push(sample),
            // What verbs print, and words about the samples: no verb reads it.
            "md" | "txt" | "info" | "check" | "dump" | "tsv" | "dot" | "c" | "cpp" | "h" | "toml" | "err" | "spans"
            | "pickle" | "pickle-s" => {}
            _ => self.traces[format].push(sample),
        }
    }

    /// Sorts a JSON document by what is in it; what is printed by verbs is read by none.
    fn add_json(&mut self, sample: Sample) {
        let Ok(json) = serde_json::from_slice::<serde_json::Value>(&sample.bytes) else { return };
        let is_config = |json: &serde_json::Value| json["levels"].is_array() || json["caches"].is_object();
        if !json["structs"].is_null() {
            self.layouts.push(sample);
        } else if json["types"].is_array() && json["version"].is_u64() {
            self.remaps.push(sample);
        } else if json["parameters"].is_object() {
            self.states.push(sample);
        } else if is_config(&json) || json.as_object().is_some_and(|object| object.values().any(is_config)) {
            self.configs.push(sample);
        }
    }
}

fn number_of(formats: &[&str], random: &mut Random) -> usize {
    let format = if formats.is_empty() { *random.pick(FORMATS) } else { *random.pick(formats) };
    FORMATS.iter().position(|name| *name == format).unwrap_or(0)
}

/// One of some samples: of two that were drawn the shorter.
pub(super) fn smaller_of_two<'a>(samples: &'a [Sample], random: &mut Random) -> &'a Sample {
    let (a, b) = (random.pick(samples), random.pick(samples));
    if a.bytes.len() <= b.bytes.len() { a } else { b }
}

pub(super) fn unzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut inner = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes).take(BYTES_MAX + 1).read_to_end(&mut inner).ok()?;
    (inner.len() as u64 <= BYTES_MAX).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_sorted_by_what_is_in_them() {
        let mut samples = Samples::default();
        for json in [
            r#"{"structs": {"a": {}}, "version": 4}"#,
            r#"{"version": 1, "types": []}"#,
            r#"{"parameters": {}}"#,
            r#"{"caches": {}}"#,
            r#"{"desk": {"levels": []}}"#,
            r#"{"records": 7}"#,
            "no JSON",
        ] {
            samples.add_file(Path::new("x.json"), Path::new("x.json"), json.into(), 0);
        }
        let counts = [&samples.layouts, &samples.remaps, &samples.states, &samples.configs].map(Vec::len);
        assert_eq!((counts, samples.traces[0].len()), ([1, 1, 1, 2], 0));
    }
}
