//! What is mutated: the samples of the formats' crates, and of the shared corpora where they are.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::random::Random;
use crate::shell::root;

/// The formats, by the names of their crates.
pub(super) const FORMATS: [&str; 6] = ["apitrace", "cacheray", "casemate", "heph", "lackey", "xray"];

/// Longer samples would make a campaign of runs that all read for long.
const BYTES_MAX: u64 = 48 * 1024;

/// A file that runs are made of.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) extension: String,
    pub(super) bytes: Vec<u8>,
}

/// All samples, by what they are.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// One list a format, in the order of [`FORMATS`].
    traces: [Vec<Sample>; FORMATS.len()],
    /// Object files, and YAML maps of XRay.
    pub(super) objects: Vec<Sample>,
    /// JSON: configurations of caches, layouts, states of GL.
    pub(super) json: Vec<Sample>,
    /// Captures of datagrams.
    pub(super) datagrams: Vec<Sample>,
    /// Pictures.
    pub(super) images: Vec<Sample>,
}

impl Samples {
    /// Reads the samples; `shared` adds the corpora beside the project (or in `$ANYTRACE_CORPUS`).
    pub(super) fn read(shared: bool) -> Result<Self, String> {
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
        match samples.traces.iter().position(Vec::is_empty) {
            Some(missing) => Err(format!("no samples of {}", FORMATS[missing])),
            None => Ok(samples),
        }
    }

    /// A sample of one of these formats, small ones more often; all formats where none is named.
    pub(super) fn trace(&self, formats: &[&str], random: &mut Random) -> &Sample {
        let format = if formats.is_empty() { *random.pick(&FORMATS) } else { *random.pick(formats) };
        let number = FORMATS.iter().position(|name| *name == format).unwrap_or(0);
        smaller_of_two(&self.traces[number], random)
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
                self.add_file(&path, bytes, format);
            }
        }
        Ok(())
    }

    fn add_objects(&mut self, folder: &Path) -> Result<(), String> {
        let before = self.traces[0].len();
        self.add_folder(folder, 0)?;
        // Sources and names beside them are no traces.
        self.traces[0].truncate(before);
        Ok(())
    }

    fn add_file(&mut self, path: &Path, bytes: Vec<u8>, format: usize) {
        let extension = path.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
        let in_gzip = (extension == "gz").then(|| unzip(&bytes)).flatten();
        if let Some(inner) = in_gzip {
            self.add_file(&path.with_extension(""), inner, format);
        }
        let is_map = path.components().any(|part| part.as_os_str() == "maps");
        let sample = Sample { extension, bytes };
        let is_object = [&b"\x7fELF"[..], b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ"]
            .iter()
            .any(|magic| sample.bytes.starts_with(magic));
        match sample.extension.as_str() {
            _ if is_object || is_map => self.objects.push(sample),
            "json" => self.json.push(sample),
            "dgrams" => self.datagrams.push(sample),
            "png" | "raw" => self.images.push(sample),
            // What verbs print, and words about the samples: no verb reads it.
            "md" | "txt" | "info" | "check" | "dump" | "tsv" | "dot" | "c" | "spans" | "pickle" | "pickle-s" => {}
            _ => self.traces[format].push(sample),
        }
    }
}

/// One of some samples: of two that were drawn the shorter.
pub(super) fn smaller_of_two<'a>(samples: &'a [Sample], random: &mut Random) -> &'a Sample {
    let (a, b) = (random.pick(samples), random.pick(samples));
    if a.bytes.len() <= b.bytes.len() { a } else { b }
}

fn unzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut inner = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes).take(BYTES_MAX + 1).read_to_end(&mut inner).ok()?;
    (inner.len() as u64 <= BYTES_MAX).then_some(inner)
}
