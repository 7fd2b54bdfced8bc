//! A file's bytes, mapped or in memory.

use std::io::Read;
use std::path::Path;

use anytrace_core::{Error, Input, InputOptions, LayerEnd};
use object::FileKind;

/// Most bytes taken from a pipe or a compressed file, which are loaded into memory.
const BYTES_MAX: u64 = 1 << 30;

/// A file that may be an object file: a program, a library, something else that names addresses.
pub struct Binary {
    name: String,
    body: Body,
}

enum Body {
    Mapped(Input),
    Bytes(Vec<u8>),
}

impl Binary {
    /// Opens a file; an uncompressed one is mapped, a compressed one decompressed into memory.
    ///
    /// # Errors
    /// I/O; [`anytrace_core::Kind::Limit`] when more than 1 GiB would have to be loaded into memory; damaged compressed
    /// data.
    pub fn open(path: &Path, options: InputOptions) -> Result<Self, Error> {
        Self::from_input(Input::open(path, options)?)
    }

    /// Takes an input.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_input(input: Input) -> Result<Self, Error> {
        let name = input.name().to_owned();
        // Tables of object files and debug data refer to each other by offsets.
        let input = input.at_hand();
        if input.as_slice().is_some() {
            return Ok(Self { name, body: Body::Mapped(input) });
        }
        let layers = input.layers().to_vec();
        let mut bytes = Vec::new();
        let mut reader = input.into_read().take(BYTES_MAX + 1);
        reader.read_to_end(&mut bytes).map_err(|error| Error::io(format_args!("cannot read {name}"), error))?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(Error::limit(format!(
                "{name}: longer than {BYTES_MAX} bytes, which is supported only for uncompressed files"
            )));
        }
        if layers.iter().any(|layer| matches!(layer.end(), LayerEnd::Truncated | LayerEnd::Corrupt(_))) {
            return Err(Error::unsupported(format!("{name}: the compressed data are damaged")));
        }
        Ok(Self { name, body: Body::Bytes(bytes) })
    }

    /// Takes bytes in memory as they are.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Self {
        Self { name: name.to_owned(), body: Body::Bytes(bytes) }
    }

    /// The name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.body {
            Body::Mapped(input) => input.as_slice().unwrap_or_default(),
            Body::Bytes(bytes) => bytes,
        }
    }

    /// True when the first bytes are those of an object file of a known kind: ELF, Mach-O (fat ones too), PE.
    pub fn is_object(&self) -> bool {
        FileKind::parse(self.bytes()).is_ok()
    }
}
