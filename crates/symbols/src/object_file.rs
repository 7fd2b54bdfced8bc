//! One program, library or relocatable file: its sections and symbols.

use std::borrow::Cow;
use std::io::{self, Read};

use anytrace_core::Error;
use object::read::macho::{FatArch, MachOFatFile32, MachOFatFile64};
use object::{
    AddressSize, Architecture, BinaryFormat, CompressionFormat, FileKind, Object, ObjectSection, ObjectSymbol,
};

use crate::Binary;
use crate::layout::Layout;
use crate::relocate;

/// An object file: ELF, Mach-O or PE, of 32 or 64 bits and either byte order.
pub struct ObjectFile<'a> {
    pub(crate) name: &'a str,
    pub(crate) file: object::File<'a>,
    pub(crate) layout: Layout,
}

/// A section's contents with relocations applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section<'a> {
    /// Address of its first byte.
    pub address: u64,
    /// Contents.
    pub data: Cow<'a, [u8]>,
}

impl<'a> ObjectFile<'a> {
    /// Reads the headers. Of a fat Mach-O file the part for `architecture` is taken (`arm64`, `x86_64`, as
    /// [`Self::architectures`] lists them), without one the part for the current machine, or else the first.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Unsupported`] when the file is not an object file of a known kind or its headers are
    /// damaged; [`anytrace_core::Kind::Usage`] when it has no part for the architecture.
    pub fn parse(binary: &'a Binary, architecture: Option<&str>) -> Result<Self, Error> {
        let name = binary.name();
        let bytes = slice(binary, architecture)?;
        let file = object::File::parse(bytes).map_err(|error| failed(name, "object file", error))?;
        if let Some(wanted) = architecture
            && wanted != architecture_name(file.architecture())
        {
            let found = architecture_name(file.architecture());
            return Err(Error::usage(format!("{name} is for {found}, not for {wanted}")));
        }
        let layout = Layout::new(&file).map_err(|what| failed(name, "layout", what))?;
        Ok(Self { name, file, layout })
    }

    /// Names of the architectures the file has code for: one, or several for a fat Mach-O file.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn architectures(binary: &Binary) -> Result<Vec<&'static str>, Error> {
        match slices(binary)? {
            Some(parts) => Ok(parts.iter().map(|(architecture, _)| architecture_name(*architecture)).collect()),
            None => Ok(vec![architecture_name(ObjectFile::parse(binary, None)?.file.architecture())]),
        }
    }

    /// The name of the file.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// True when addresses take eight bytes.
    pub fn is_64(&self) -> bool {
        // COFF has no width of its own: the processor determines it.
        let by_processor = self.file.format() == BinaryFormat::Coff
            && self.file.architecture().address_size() == Some(AddressSize::U64);
        self.file.is_64() || by_processor
    }

    /// True when the least significant byte comes first.
    pub fn is_little_endian(&self) -> bool {
        self.file.is_little_endian()
    }

    /// True when it has a section of that name, with contents.
    pub fn has_section(&self, section_name: &str) -> bool {
        self.file.section_by_name(section_name).is_some_and(|section| section.size() > 0)
    }

    /// True when it takes a function of that name from another object as it is loaded.
    pub fn imports(&self, function: &str) -> bool {
        let mut all = self.file.dynamic_symbols();
        all.any(|symbol| symbol.is_undefined() && symbol.name_bytes() == Ok(function.as_bytes()))
    }

    /// True when it has a symbol table other than that of what it exports: strip removes it.
    pub(crate) fn has_symbols(&self) -> bool {
        self.file.symbols().next().is_some()
    }

    /// A section by its name (`.text`; on Mach-O the segment does not matter), decompressed, with relocations applied:
    /// those of relocatable files, and of linked files the dynamic relocations for a program loaded at 0.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Unsupported`] when the contents are damaged or compressed in an unknown way.
    pub fn section(&self, section_name: &str) -> Result<Option<Section<'a>>, Error> {
        self.file.section_by_name(section_name).map(|section| self.contents(&section, section_name)).transpose()
    }

    /// All sections of a name, in the order of the file: relocatable files often have one for each function, which a
    /// linker puts together.
    ///
    /// # Errors
    /// As [`Self::section`].
    pub fn sections(&self, section_name: &str) -> Result<Vec<Section<'a>>, Error> {
        let named = self.file.sections().filter(|section| section.name() == Ok(section_name));
        named.map(|section| self.contents(&section, section_name)).collect()
    }

    fn contents(&self, section: &object::Section<'a, '_>, section_name: &str) -> Result<Section<'a>, Error> {
        let data = unpacked(section).map_err(|what| failed(self.name, section_name, what))?;
        let data = relocate::apply(&self.file, &self.layout, section, data);
        Ok(Section { address: self.layout.address(section), data })
    }
}

/// The word for an architecture, as Apple's and LLVM's tools have it where they have one.
fn architecture_name(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::X86_64 => "x86_64",
        Architecture::I386 => "i386",
        Architecture::Aarch64 => "arm64",
        Architecture::Arm => "arm",
        Architecture::PowerPc => "ppc",
        Architecture::PowerPc64 => "ppc64",
        Architecture::S390x => "s390x",
        Architecture::Mips | Architecture::Mips64 => "mips",
        Architecture::Riscv32 => "riscv32",
        Architecture::Riscv64 => "riscv64",
        Architecture::LoongArch64 => "loongarch64",
        Architecture::Hexagon => "hexagon",
        _ => "unknown",
    }
}

type Parts<'a> = Vec<(Architecture, &'a [u8])>;

/// The parts of a fat Mach-O file; `None` for any other file.
fn slices(binary: &Binary) -> Result<Option<Parts<'_>>, Error> {
    let (name, bytes) = (binary.name(), binary.bytes());
    let kind = FileKind::parse(bytes).map_err(|error| failed(name, "object file", error))?;
    let parts = match kind {
        FileKind::MachOFat32 => MachOFatFile32::parse(bytes).and_then(|fat| parts(fat.arches(), bytes)),
        FileKind::MachOFat64 => MachOFatFile64::parse(bytes).and_then(|fat| parts(fat.arches(), bytes)),
        _ => return Ok(None),
    };
    let parts = parts.map_err(|error| failed(name, "fat header", error))?;
    if parts.is_empty() { Err(failed(name, "fat header", "no parts")) } else { Ok(Some(parts)) }
}

fn parts<'a, F: FatArch>(arches: &[F], bytes: &'a [u8]) -> object::Result<Parts<'a>> {
    arches.iter().map(|arch| Ok((arch.architecture(), arch.data(bytes)?))).collect()
}

fn slice<'a>(binary: &'a Binary, architecture: Option<&str>) -> Result<&'a [u8], Error> {
    let Some(parts) = slices(binary)? else { return Ok(binary.bytes()) };
    let named = |wanted: &str| parts.iter().find(|(has, _)| architecture_name(*has) == wanted);
    if let Some(wanted) = architecture {
        return named(wanted).map(|(_, bytes)| *bytes).ok_or_else(|| {
            let names: Vec<_> = parts.iter().map(|(architecture, _)| architecture_name(*architecture)).collect();
            Error::usage(format!("{} has no slice for {wanted}, only for {}", binary.name(), names.join(", ")))
        });
    }
    let host = if cfg!(target_arch = "aarch64") { "arm64" } else { std::env::consts::ARCH };
    Ok(named(host).or(parts.first()).map(|(_, bytes)| *bytes).unwrap_or_default())
}

/// A section's contents, unpacked. A length that no compressor reaches is not believed.
pub(crate) fn unpacked<'a>(section: &object::Section<'a, '_>) -> Result<Cow<'a, [u8]>, String> {
    /// The best ratio that deflate reaches; zstd's is higher, but not on debug data.
    const RATIO_MAX: u64 = 1032;
    let packed = section.compressed_data().map_err(|error| error.to_string())?;
    let bytes = packed.data;
    if packed.format == CompressionFormat::None {
        return Ok(Cow::Borrowed(bytes));
    }
    let length_max = (bytes.len() as u64).saturating_mul(RATIO_MAX).saturating_add(64);
    if packed.uncompressed_size > length_max {
        return Err(format!("claims to decompress from {} to {} bytes", bytes.len(), packed.uncompressed_size));
    }
    let mut out = Vec::new();
    let done = match packed.format {
        CompressionFormat::Zlib => read(flate2::read::ZlibDecoder::new(bytes), packed.uncompressed_size, &mut out),
        CompressionFormat::Zstandard => zstd::stream::read::Decoder::with_buffer(bytes)
            .and_then(|decoder| read(decoder, packed.uncompressed_size, &mut out)),
        _ => return Err("unknown compression".to_owned()),
    };
    done.map_err(|error| format!("cannot be unpacked: {error}"))?;
    if out.len() as u64 == packed.uncompressed_size {
        Ok(Cow::Owned(out))
    } else {
        Err("decompresses to a length other than declared".to_owned())
    }
}

fn read(reader: impl Read, length: u64, out: &mut Vec<u8>) -> io::Result<()> {
    reader.take(length).read_to_end(out).map(|_| ())
}

/// An error about a part of the file.
pub(crate) fn failed(name: &str, part: &str, what: impl std::fmt::Display) -> Error {
    Error::unsupported(format!("{name}: {part}: {what}"))
}
