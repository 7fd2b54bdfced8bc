//! Symbols by address.

use object::{Architecture, BinaryFormat, Object, ObjectSymbol, SymbolKind};

use crate::ObjectFile;

/// A named range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// First address.
    pub address: u64,
    /// Length in bytes; where the file contains none it is 0, and the symbol extends to the next one.
    pub size_bytes: u64,
    /// The linker's name; for Mach-O without the underscore that every name begins with.
    pub name: &'a [u8],
}

/// The symbols of an object file, in order of addresses, one for each.
#[derive(Debug, Clone, Default)]
pub struct SymbolTable<'a> {
    symbols: Vec<Symbol<'a>>,
    /// Bits of an address that are not part of the place (ARM: bit 0 is set in addresses of Thumb code).
    ignored: u64,
}

impl<'a> ObjectFile<'a> {
    /// Functions and data objects by address.
    pub fn symbols(&self) -> SymbolTable<'a> {
        SymbolTable::new(self)
    }
}

impl<'a> SymbolTable<'a> {
    /// Functions, data and symbols of no type, from the symbol table; for a stripped file from the dynamic one.
    ///
    /// Of several at one address the largest is kept, of several largest ones the last in the file, as in the peer's
    /// symbolizer.
    fn new(object: &ObjectFile<'a>) -> Self {
        let file = &object.file;
        let ignored = u64::from(file.architecture() == Architecture::Arm);
        let collect = |symbols: object::SymbolIterator<'a, '_>| -> Vec<Symbol<'a>> {
            symbols.filter_map(|symbol| entry(object, &symbol, ignored)).collect()
        };
        let mut symbols = collect(file.symbols());
        if symbols.is_empty() {
            symbols = collect(file.dynamic_symbols());
        }
        Self::sorted(symbols, ignored)
    }

    /// The symbols of both.
    pub(crate) fn with(self, other: Self) -> Self {
        Self::sorted([self.symbols, other.symbols].concat(), self.ignored)
    }

    fn sorted(mut symbols: Vec<Symbol<'a>>, ignored: u64) -> Self {
        symbols.sort_by_key(|symbol| (symbol.address, symbol.size_bytes));
        symbols.dedup_by(|next, kept| {
            let is_same = next.address == kept.address;
            if is_same {
                *kept = *next;
            }
            is_same
        });
        Self { symbols, ignored }
    }

    /// The symbol whose range contains an address.
    pub fn find(&self, address: u64) -> Option<&Symbol<'a>> {
        let address = address & !self.ignored;
        let behind = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols.get(behind.checked_sub(1)?)?;
        let is_in = symbol.size_bytes == 0 || address - symbol.address < symbol.size_bytes;
        is_in.then_some(symbol)
    }

    /// All symbols, in order of addresses.
    pub fn symbols(&self) -> &[Symbol<'a>] {
        &self.symbols
    }
}

fn entry<'a>(object: &ObjectFile<'a>, symbol: &object::Symbol<'a, '_>, ignored: u64) -> Option<Symbol<'a>> {
    let is_macho = object.file.format() == BinaryFormat::MachO;
    let is_kind = matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data | SymbolKind::Unknown);
    let section = symbol.section_index()?;
    if !is_kind || (is_macho && !symbol.is_definition()) {
        return None;
    }
    let name = symbol.name_bytes().ok()?;
    let name = name.strip_prefix(b"_").filter(|_| is_macho).unwrap_or(name);
    if name.is_empty() || is_marker(object.file.architecture(), name) {
        return None;
    }
    let address = symbol.address().wrapping_add(object.layout.base(Some(section))) & !ignored;
    Some(Symbol { address, size_bytes: symbol.size(), name })
}

/// Symbols that mark the beginning of code and data, on processors whose supplement defines them.
fn is_marker(architecture: Architecture, name: &[u8]) -> bool {
    let marks: &[u8] = match architecture {
        Architecture::Arm => b"atd",
        Architecture::Aarch64 | Architecture::Riscv32 | Architecture::Riscv64 => b"xd",
        _ => return false,
    };
    name.first() == Some(&b'$') && name.get(1).is_some_and(|mark| marks.contains(mark))
}
