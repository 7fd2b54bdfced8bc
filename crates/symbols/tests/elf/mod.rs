//! ELF files written byte by byte after the specification, in every width and byte order. Shares no code with the
//! library that reads them.
#![allow(dead_code, clippy::unwrap_used, unreachable_pub, reason = "each test uses a part; a test fails by panicking")]

/// Processors by their number in `e_machine`.
pub const X86_64: u16 = 62;
pub const ARM: u16 = 40;
pub const AARCH64: u16 = 183;
pub const RISCV: u16 = 243;
pub const S390: u16 = 22;

/// Kinds of symbols, in the low half of `st_info`.
pub const NOTYPE: u8 = 0;
pub const OBJECT: u8 = 1;
pub const FUNC: u8 = 2;
pub const SECTION: u8 = 3;
pub const FILE: u8 = 4;
pub const COMMON: u8 = 5;
pub const TLS: u8 = 6;
pub const IFUNC: u8 = 10;

pub const SHN_UNDEF: u16 = 0;
pub const SHN_ABS: u16 = 0xfff1;

#[derive(Clone, Copy)]
pub struct Form {
    pub is_64: bool,
    pub is_big: bool,
    pub machine: u16,
}

pub const FORMS: [Form; 4] = [
    Form { is_64: true, is_big: false, machine: X86_64 },
    Form { is_64: true, is_big: true, machine: S390 },
    Form { is_64: false, is_big: false, machine: 3 },
    Form { is_64: false, is_big: true, machine: 20 },
];

#[derive(Clone, Copy)]
pub struct Symbol {
    pub name: &'static str,
    pub value: u64,
    pub size: u64,
    pub kind: u8,
    pub section: u16,
}

pub fn symbol(name: &'static str, value: u64, size: u64, kind: u8, section: u16) -> Symbol {
    Symbol { name, value, size, kind, section }
}

/// A section: name, type, flags, address, contents, the section it is linked to, what else it refers to, length of an
/// entry.
pub struct Part {
    pub name: &'static str,
    pub kind: u32,
    pub flags: u64,
    pub address: u64,
    pub bytes: Vec<u8>,
    pub link: u32,
    pub info: u32,
    pub entry: u64,
}

pub struct Writer {
    pub form: Form,
    pub bytes: Vec<u8>,
}

impl Writer {
    pub fn put(&mut self, value: u64, length: usize) {
        let bytes = value.to_le_bytes();
        let mut part = bytes[..length].to_vec();
        if self.form.is_big {
            part.reverse();
        }
        self.bytes.extend(part);
    }

    /// An address, offset or length.
    pub fn word(&mut self, value: u64) {
        self.put(value, if self.form.is_64 { 8 } else { 4 });
    }

    pub fn symbols(form: Form, symbols: &[Symbol]) -> (Vec<u8>, Vec<u8>) {
        let mut names = vec![0];
        let mut table = Self { form, bytes: Vec::new() };
        let null = symbol("", 0, 0, NOTYPE, SHN_UNDEF);
        for symbol in [null].iter().chain(symbols) {
            let name = if symbol.name.is_empty() { 0 } else { names.len() as u64 };
            if !symbol.name.is_empty() {
                names.extend(symbol.name.as_bytes());
                names.push(0);
            }
            let info = u64::from(symbol.kind | 1 << 4);
            table.put(name, 4);
            if form.is_64 {
                table.put(info, 1);
                table.put(0, 1);
                table.put(u64::from(symbol.section), 2);
                table.word(symbol.value);
                table.word(symbol.size);
            } else {
                table.word(symbol.value);
                table.word(symbol.size);
                table.put(info, 1);
                table.put(0, 1);
                table.put(u64::from(symbol.section), 2);
            }
        }
        (table.bytes, names)
    }

    /// Header, contents, section headers. The last part has the sections' names.
    pub fn file(form: Form, kind: u16, mut parts: Vec<Part>) -> Vec<u8> {
        let mut names = vec![0];
        let mut places = Vec::new();
        for part in &parts {
            places.push(names.len() as u64);
            names.extend(part.name.as_bytes());
            names.push(0);
        }
        places.push(names.len() as u64);
        names.extend(b".shstrtab\0");
        parts.push(Part { name: ".shstrtab", kind: 3, flags: 0, address: 0, bytes: names, link: 0, info: 1, entry: 0 });
        let header_bytes = if form.is_64 { 64 } else { 52 };
        let contents: usize = parts.iter().map(|part| part.bytes.len()).sum();
        let mut out = Self { form, bytes: b"\x7fELF".to_vec() };
        out.bytes.extend([1 + u8::from(form.is_64), 1 + u8::from(form.is_big), 1]);
        out.bytes.resize(16, 0);
        out.put(u64::from(kind), 2);
        out.put(u64::from(form.machine), 2);
        out.put(1, 4);
        out.word(0);
        out.word(0);
        out.word((header_bytes + contents) as u64);
        out.put(0, 4);
        out.put(header_bytes as u64, 2);
        out.put(0, 2);
        out.put(0, 2);
        out.put(if form.is_64 { 64 } else { 40 }, 2);
        out.put(parts.len() as u64 + 1, 2);
        out.put(parts.len() as u64, 2);
        assert_eq!(out.bytes.len(), header_bytes);
        parts.iter().for_each(|part| out.bytes.extend(&part.bytes));
        out.bytes.resize(out.bytes.len() + if form.is_64 { 64 } else { 40 }, 0);
        let mut offset = header_bytes as u64;
        for (part, name) in parts.iter().zip(places) {
            out.put(name, 4);
            out.put(u64::from(part.kind), 4);
            out.word(part.flags);
            out.word(part.address);
            out.word(offset);
            out.word(part.bytes.len() as u64);
            out.put(u64::from(part.link), 4);
            out.put(u64::from(part.info), 4);
            out.word(1);
            out.word(part.entry);
            offset += part.bytes.len() as u64;
        }
        out.bytes
    }
}
