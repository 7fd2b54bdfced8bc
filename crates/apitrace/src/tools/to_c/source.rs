//! The C files: calls as they are read, and at the end what all of them need.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::text::declared;
use crate::tools::gl::kind::{Kind, Scope};
use crate::tools::program::split_types;

/// Calls in a file; compilers take more than proportional time for more.
const CALLS_PER_FILE: u32 = 5000;

/// Calls in a function, for the same reason.
const CALLS_PER_FUNCTION: u32 = 250;

/// Files that are the same for all traces.
const RUNTIME: [(&str, &str); 2] =
    [("main.c", include_str!("runtime/main.c")), ("replay.h", include_str!("runtime/replay.h"))];

/// The files of calls.
pub(super) struct Source {
    folder: PathBuf,
    file: Option<BufWriter<File>>,
    /// Calls in the current file.
    calls: u32,
    /// Functions in it.
    parts: u32,
    pub(super) files: u32,
    /// Rows of the table of types that are called.
    pub(super) called: BTreeMap<&'static str, &'static str>,
}

impl Source {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), file: None, calls: 0, parts: 0, files: 0, called: BTreeMap::new() }
    }

    fn create(&self, name: &str) -> io::Result<BufWriter<File>> {
        File::create(self.folder.join(name)).map(BufWriter::new)
    }

    /// Writes statements of a call.
    pub(super) fn statement(&mut self, text: &str) -> io::Result<()> {
        if self.calls >= CALLS_PER_FILE {
            self.end_file()?;
        }
        let (number, calls) = (self.files, self.calls);
        if self.file.is_none() {
            let mut file = self.create(&format!("calls_{number}.c"))?;
            writeln!(file, "#include \"functions.h\"\n")?;
            self.file = Some(file);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        if calls % CALLS_PER_FUNCTION == 0 {
            if calls > 0 {
                writeln!(file, "}}\n")?;
            }
            writeln!(file, "static void part_{}(void)\n{{", self.parts)?;
            self.parts += 1;
        }
        self.calls += 1;
        file.write_all(text.as_bytes())
    }

    fn end_file(&mut self) -> io::Result<()> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        writeln!(file, "}}\n\nvoid calls_{}(void)\n{{", self.files)?;
        for part in 0..self.parts {
            writeln!(file, "    part_{part}();")?;
        }
        writeln!(file, "}}")?;
        file.flush()?;
        (self.calls, self.parts) = (0, 0);
        self.files += 1;
        Ok(())
    }

    /// Writes everything else. `sizes`: of the drawables; `data_bytes`: length of the data.
    pub(super) fn finish(
        mut self,
        names: &BTreeMap<String, u32>,
        sizes: &[(u32, u32)],
        data_bytes: u64,
    ) -> io::Result<()> {
        self.end_file()?;
        for (name, text) in RUNTIME {
            self.create(name)?.write_all(text.as_bytes())?;
        }
        self.write_header(names)?;
        self.write_functions(sizes, data_bytes)?;
        let mut make = self.create("Makefile")?;
        writeln!(make, "CFLAGS ?= -O1\n\nOBJECTS = main.o functions.o \\")?;
        for file in 0..self.files {
            writeln!(make, "\tcalls_{file}.o \\")?;
        }
        // -w: calls are written as recorded, whatever a compiler warns about.
        writeln!(make, "\nreplay: $(OBJECTS)\n\t$(CC) $(LDFLAGS) -o $@ $(OBJECTS) -ldl\n")?;
        writeln!(make, "%.o: %.c functions.h replay.h\n\t$(CC) -std=gnu11 -w $(CFLAGS) -c -o $@ $<\n")?;
        writeln!(make, "clean:\n\trm -f replay *.o\n\n.PHONY: clean")?;
        make.flush()?;
        self.create("README")?.write_all(README.as_bytes())
    }

    fn write_header(&self, names: &BTreeMap<String, u32>) -> io::Result<()> {
        let mut out = self.create("functions.h")?;
        writeln!(out, "#ifndef FUNCTIONS_H\n#define FUNCTIONS_H\n\n#include \"replay.h\"\n\nenum {{")?;
        for kind in Kind::ALL {
            writeln!(out, "    {} = {},", kind.name().to_ascii_uppercase(), kind.index())?;
        }
        writeln!(out, "}};\n")?;
        for (name, value) in names {
            writeln!(out, "#define {name} {value:#06x}")?;
        }
        writeln!(out)?;
        for (name, types) in &self.called {
            writeln!(out, "extern {};", pointer(name, types))?;
        }
        for file in 0..self.files {
            writeln!(out, "void calls_{file}(void);")?;
        }
        writeln!(out, "\n#endif")?;
        out.flush()
    }

    fn write_functions(&self, sizes: &[(u32, u32)], data_bytes: u64) -> io::Result<()> {
        let mut out = self.create("functions.c")?;
        writeln!(out, "#include \"functions.h\"\n")?;
        for (name, types) in &self.called {
            writeln!(out, "{};", pointer(name, types))?;
        }
        writeln!(out, "\nconst struct function functions[] = {{")?;
        for name in self.called.keys() {
            writeln!(out, "    {{\"{name}\", (void **)&{name}}},")?;
        }
        writeln!(out, "    {{0, 0}}\n}};\n\nconst struct size drawables[] = {{")?;
        for (width, height) in sizes {
            writeln!(out, "    {{{width}, {height}}},")?;
        }
        writeln!(out, "}};\nconst int drawables_count = {};\nconst uint64_t data_bytes = {data_bytes}u;", sizes.len())?;
        let shared: Vec<_> =
            Kind::ALL.iter().map(|kind| if kind.scope() == Scope::Group { "1" } else { "0" }).collect();
        writeln!(out, "const unsigned char is_shared[] = {{{}}};\n\nvoid replay(void)\n{{", shared.join(", "))?;
        for file in 0..self.files {
            writeln!(out, "    calls_{file}();")?;
        }
        writeln!(out, "}}")?;
        out.flush()
    }
}

/// The declaration of a pointer to a function.
fn pointer(name: &str, types: &'static str) -> String {
    let mut types = split_types(types);
    let returned = match types.next() {
        Some([b'p', letter]) => format!("{} *", super::text::type_name(*letter)),
        other => declared(other.unwrap_or(b"v")),
    };
    let parameters: Vec<String> = types.map(declared).collect();
    let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    format!("{returned} (*{name})({parameters})")
}

const README: &str = "A program that repeats the OpenGL calls of a trace without a window.\n\n\
    make\n./replay\n./replay --snapshots frame.    (writes frame.NNNNNNNNNN.ppm where a frame ends; the number is the call's)\n\n\
    It needs a C compiler, and when it runs libEGL with pbuffers and OpenGL; no headers. data.bin must stay beside it.\n\
    Exit codes: 0 fine, 2 it could not run.\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_those_of_the_registry() {
        assert_eq!(pointer("glEnd", "v"), "void (*glEnd)(void)");
        let source = pointer("glShaderSource", "vuippapi");
        assert_eq!(source, "void (*glShaderSource)(GLuint, GLint, const GLchar *const *, const GLint *)");
        assert_eq!(pointer("glMapBuffer", "pvee"), "void * (*glMapBuffer)(GLenum, GLenum)");
        assert_eq!(pointer("glFenceSync", "yee"), "GLsync (*glFenceSync)(GLenum, GLenum)");
    }
}
