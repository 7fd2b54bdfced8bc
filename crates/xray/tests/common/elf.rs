//! Builds linked ELF files with an instrumentation map, from labeled parts, in either width and byte order.

/// A function with a name: address, length, name.
pub type Named = (u64, u64, &'static str);

/// A dynamic relocation without a symbol: its address, and the value written there.
pub type Relative = (u64, u64);

/// What an ELF file is built of.
#[derive(Clone)]
pub struct Elf {
    pub is_64: bool,
    pub is_little: bool,
    pub machine: u16,
    /// The map's address and bytes.
    pub map: (u64, Vec<u8>),
    pub functions: Vec<Named>,
    pub relatives: Vec<Relative>,
    /// Kind of a relocation that adds the load address, by the processor's supplement.
    pub relative_kind: u32,
}

/// A section: name, kind, flags, address, contents, link, info, entry size.
type Section<'a> = (&'a str, u32, u64, u64, Vec<u8>, u32, u32, u64);

impl Elf {
    pub fn new(is_64: bool, is_little: bool, machine: u16) -> Self {
        let (map, functions, relatives) = ((0x2000, Vec::new()), Vec::new(), Vec::new());
        Self { is_64, is_little, machine, map, functions, relatives, relative_kind: 8 }
    }

    fn order(&self, bytes: &mut [u8]) {
        if self.is_little {
            bytes.reverse();
        }
    }

    pub fn number(&self, out: &mut Vec<u8>, value: u64, length: usize) {
        let mut bytes = value.to_be_bytes()[8 - length..].to_vec();
        self.order(&mut bytes);
        out.extend(bytes);
    }

    fn word(&self, out: &mut Vec<u8>, value: u64) {
        self.number(out, value, if self.is_64 { 8 } else { 4 });
    }

    /// Adds an entry to the map: address and function as they are stored, kind, always, version.
    pub fn sled(mut self, address: u64, function: u64, tail: [u8; 3]) -> Self {
        let mut bytes = std::mem::take(&mut self.map.1);
        let end = bytes.len() + if self.is_64 { 32 } else { 16 };
        self.word(&mut bytes, address);
        self.word(&mut bytes, function);
        bytes.extend(tail);
        bytes.resize(end, 0xaa);
        self.map.1 = bytes;
        self
    }

    fn symbols(&self) -> (Vec<u8>, Vec<u8>) {
        let (mut table, mut names) = (vec![0; if self.is_64 { 24 } else { 16 }], vec![0]);
        for (address, length, name) in &self.functions {
            let at = names.len() as u64;
            names.extend(name.as_bytes());
            names.push(0);
            self.number(&mut table, at, 4);
            if self.is_64 {
                table.extend([0x12, 0]);
                self.number(&mut table, 1, 2);
                self.number(&mut table, *address, 8);
                self.number(&mut table, *length, 8);
            } else {
                self.number(&mut table, *address, 4);
                self.number(&mut table, *length, 4);
                table.extend([0x12, 0]);
                self.number(&mut table, 1, 2);
            }
        }
        (table, names)
    }

    fn relocations(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (place, value) in &self.relatives {
            self.word(&mut out, *place);
            self.word(&mut out, u64::from(self.relative_kind));
            self.word(&mut out, *value);
        }
        out
    }

    pub fn build(&self) -> Vec<u8> {
        let (symbols, strings) = self.symbols();
        let relocations = self.relocations();
        let (symbol_bytes, relocation_bytes) = if self.is_64 { (24, 24) } else { (16, 12) };
        let none = Vec::new;
        let sections: Vec<Section<'_>> = vec![
            ("", 0, 0, 0, none(), 0, 0, 0),
            (".text", 1, 6, 0x1000, none(), 0, 0, 0),
            ("xray_instr_map", 1, 2, self.map.0, self.map.1.clone(), 0, 0, 0),
            (".symtab", 2, 0, 0, symbols, 4, 1, symbol_bytes),
            (".strtab", 3, 0, 0, strings, 0, 0, 0),
            // Not linked to a symbol table, as in a static program that relocates itself.
            (".rela.dyn", 4, 2, 0x500, relocations, 0, 0, relocation_bytes),
        ];
        let mut names = Vec::new();
        let mut headers = Vec::new();
        let header_bytes = if self.is_64 { 64 } else { 52 };
        let mut body = Vec::new();
        for (name, kind, flags, address, contents, link, info, entry) in &sections {
            let (name_at, offset) = (names.len() as u64, header_bytes + body.len() as u64);
            names.extend(name.as_bytes());
            names.push(0);
            self.number(&mut headers, name_at, 4);
            self.number(&mut headers, u64::from(*kind), 4);
            for value in [*flags, *address, offset, contents.len() as u64] {
                self.word(&mut headers, value);
            }
            self.number(&mut headers, u64::from(*link), 4);
            self.number(&mut headers, u64::from(*info), 4);
            self.word(&mut headers, 1);
            self.word(&mut headers, *entry);
            body.extend(contents);
        }
        // The section of section names comes last and holds its own.
        let (name_at, offset) = (names.len() as u64, header_bytes + body.len() as u64);
        names.extend(b".shstrtab\0");
        self.number(&mut headers, name_at, 4);
        self.number(&mut headers, 3, 4);
        for value in [0, 0, offset, names.len() as u64] {
            self.word(&mut headers, value);
        }
        self.number(&mut headers, 0, 8);
        self.word(&mut headers, 1);
        self.word(&mut headers, 0);
        body.extend(names);
        let mut out = self.header(header_bytes + body.len() as u64, sections.len() as u64);
        out.extend(body);
        out.extend(headers);
        out
    }

    fn header(&self, sections_at: u64, last_section: u64) -> Vec<u8> {
        let mut out = vec![0x7f, b'E', b'L', b'F', 1 + u8::from(self.is_64), 2 - u8::from(self.is_little), 1];
        out.resize(16, 0);
        self.number(&mut out, 3, 2);
        self.number(&mut out, u64::from(self.machine), 2);
        self.number(&mut out, 1, 4);
        for value in [0x1000, 0, sections_at] {
            self.word(&mut out, value);
        }
        self.number(&mut out, 0, 4);
        let (header, section) = if self.is_64 { (64, 64) } else { (52, 40) };
        for value in [header, 0, 0, section, last_section + 1, last_section] {
            self.number(&mut out, value, 2);
        }
        out
    }
}
