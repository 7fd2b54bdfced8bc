//! Names of stripped programs, from wherever their symbols and debug data are: equal to those of the program as linked.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anytrace_core::testing::{has_program, skip};

const FUNCTIONS: usize = 300;

/// A program of many functions, of C++ and of C, inlined ones among them.
fn source() -> String {
    let mut text = "#include <vector>\nnamespace shop {\ntemplate <int N> struct Shelf { std::vector<int> all; \
                    __attribute__((noinline)) void put(int x) { all.push_back(x + N); } };\n"
        .to_owned();
    for number in 0..FUNCTIONS {
        text += &format!("int part{number}(int x) {{ Shelf<{number}> s; s.put(x); return s.all.back(); }}\n");
    }
    text += "}\nextern \"C\" int plain(int x) { return x + 1; }\nint main() { int sum = plain(1);\n";
    for number in 0..FUNCTIONS {
        text += &format!("sum += shop::part{number}(sum);\n");
    }
    text + "return sum == 5; }\n"
}

/// The program with everything in it, and the same stripped.
struct Built {
    folder: tempfile::TempDir,
    /// What `xray extract --symbolize` says of the complete program.
    wanted: String,
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn tool(folder: &Path, words: &str) -> Output {
    let mut words = words.split(' ');
    run(Command::new(words.next().unwrap()).args(words).current_dir(folder))
}

impl Built {
    /// `None` where a tool is missing.
    fn new(options: &str) -> Option<Self> {
        for program in ["clang-14", "objcopy", "strip", "nm", "xz"] {
            if !has_program(program) {
                skip(&format!("debug files: no {program}"));
                return None;
            }
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("app.cpp"), source()).unwrap();
        let words = format!(
            "clang-14 -x c++ -g -O1 -fxray-instrument -fxray-instruction-threshold=1 {options} app.cpp -o full -lstdc++"
        );
        tool(folder.path(), &words);
        tool(folder.path(), "strip -o app full");
        let built = Self { wanted: String::new(), folder };
        let wanted = built.names("full", &[]);
        assert!(wanted.0.matches("shop::part").count() > FUNCTIONS, "{}", wanted.0);
        assert!(!wanted.0.contains("@(") && wanted.1.is_empty(), "{}", wanted.1);
        Some(Self { wanted: wanted.0, ..built })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn tool(&self, words: &str) -> Output {
        tool(self.folder.path(), words)
    }

    /// The map with the names of a program, and what is said about it. No server is asked unless a variable names it.
    fn names(&self, program: &str, variables: &[(&str, &str)]) -> (String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
        command.args(["xray", "extract", "--symbolize", program]).current_dir(self.folder.path());
        command.env_remove("DEBUGINFOD_URLS").env("DEBUGINFOD_CACHE_PATH", self.path("cache"));
        let output = run(command.envs(variables.iter().copied()));
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    fn has_all_names(&self, program: &str, variables: &[(&str, &str)]) -> String {
        let (names, notes) = self.names(program, variables);
        assert!(names == self.wanted, "{program}: {notes}");
        notes
    }

    fn build_id(&self) -> String {
        let notes = String::from_utf8(self.tool("readelf -n full").stdout).unwrap();
        notes.split_once("Build ID: ").unwrap().1.lines().next().unwrap().trim().to_owned()
    }
}

#[test]
fn a_debug_file_that_the_program_names_is_found_and_only_if_it_belongs_to_it() {
    let Some(built) = Built::new("-Wl,--build-id=none") else { return };
    built.tool("objcopy --only-keep-debug full app.debug");
    built.tool("objcopy --add-gnu-debuglink=app.debug app");
    assert_eq!(built.has_all_names("app", &[]), "");
    // Packed, as distributions have it.
    built.tool("objcopy --compress-debug-sections=zlib app.debug packed");
    fs::create_dir_all(built.path("a/.debug")).unwrap();
    for name in ["a/app", "b"] {
        fs::copy(built.path("app"), built.path(name)).unwrap();
    }
    fs::copy(built.path("packed"), built.path("a/.debug/app.debug")).unwrap();
    // The checksum is of the file as it was.
    let (names, notes) = built.names("a/app", &[]);
    assert!(names.contains("@(") && notes.contains("is the debug file of another build"), "{notes}");
    fs::rename(built.path("app.debug"), built.path("a/.debug/app.debug")).unwrap();
    assert_eq!(built.has_all_names("a/app", &[]), "");
    // By a link, beside what it leads to.
    std::os::unix::fs::symlink("a/app", built.path("link")).unwrap();
    assert_eq!(built.has_all_names("link", &[]), "");
    // Nowhere: what is missing is named, and that nobody was asked.
    let (names, notes) = built.names("b", &[]);
    assert!(names.contains("@("), "{names}");
    let said = ["its debug data are in app.debug, which is missing", "DEBUGINFOD_URLS is not set", "have no name"];
    assert!(said.iter().all(|text| notes.contains(text)), "{notes}");
    // Below a folder for all programs, by the program's own.
    let own = fs::canonicalize(built.folder.path()).unwrap();
    let below = built.path("root").join(own.strip_prefix("/").unwrap());
    fs::create_dir_all(&below).unwrap();
    fs::copy(built.path("a/.debug/app.debug"), below.join("app.debug")).unwrap();
    assert_eq!(built.has_all_names("b", &[("ANYTRACE_DEBUG_DIR", "nothing:root")]), "");
}

#[test]
fn a_build_id_leads_to_the_debug_file() {
    let Some(built) = Built::new("-Wl,--build-id=sha1") else { return };
    let id = built.build_id();
    let folder = built.path("root/.build-id").join(&id[..2]);
    fs::create_dir_all(&folder).unwrap();
    built.tool("objcopy --only-keep-debug --compress-debug-sections=zlib full app.debug");
    let place = folder.join(format!("{}.debug", &id[2..]));
    fs::copy(built.path("app.debug"), &place).unwrap();
    assert_eq!(built.has_all_names("app", &[("ANYTRACE_DEBUG_DIR", "root")]), "");
    // What is there under its name but of another build.
    fs::write(built.path("app.cpp"), source().replace("x + 1", "x + 2")).unwrap();
    built.tool("clang-14 -x c++ -g -fxray-instrument -Wl,--build-id=sha1 app.cpp -o other -lstdc++");
    fs::copy(built.path("other"), &place).unwrap();
    let (names, notes) = built.names("app", &[("ANYTRACE_DEBUG_DIR", "root")]);
    assert!(names.contains("@(") && notes.contains("another build"), "{notes}");
    fs::write(&place, b"no object file").unwrap();
    let (_, notes) = built.names("app", &[("ANYTRACE_DEBUG_DIR", "root")]);
    assert!(notes.contains("its debug file is not used"), "{notes}");
    assert!(notes.contains(&format!("build id {id}")), "{notes}");
}

#[test]
fn symbols_in_the_program_itself_are_unpacked() {
    let Some(built) = Built::new("-Wl,--build-id=none -rdynamic") else { return };
    built.tool("objcopy --only-keep-debug full debug");
    // Only functions, and none that the program exports: those that gdb's manual says to keep.
    let listed = |words: &str| {
        let text = String::from_utf8(built.tool(words).stdout).unwrap();
        let row =
            |line: &str| (line.split(' ').nth(1) != Some("U")).then(|| line.split(' ').next().unwrap().to_owned());
        text.lines().filter_map(row).collect::<Vec<_>>()
    };
    let exported = listed("nm -D --format=posix --defined-only full");
    let all = listed("nm --format=posix --defined-only full");
    let rest: Vec<_> = all.into_iter().filter(|name| !exported.contains(name)).collect();
    assert!(!rest.is_empty());
    fs::write(built.path("keep"), rest.join("\n")).unwrap();
    built.tool("objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbols=keep debug mini");
    built.tool("xz --force --keep mini");
    built.tool("objcopy --add-section .gnu_debugdata=mini.xz app mine");
    assert_eq!(built.has_all_names("mine", &[]), "");
    // Damage is reported, and what is exported has names all the same.
    let mut packed = fs::read(built.path("mini.xz")).unwrap();
    let middle = packed.len() / 2;
    packed[middle] ^= 0x10;
    fs::write(built.path("mini.xz"), packed).unwrap();
    built.tool("objcopy --add-section .gnu_debugdata=mini.xz app damaged");
    let (names, notes) = built.names("damaged", &[]);
    assert!(names.contains("plain") && notes.contains(".gnu_debugdata cannot be unpacked"), "{notes}");
}

#[test]
fn a_server_is_asked_where_the_environment_names_one() {
    if !has_program("debuginfod-find") {
        return skip("debug files: no debuginfod-find");
    }
    let Some(built) = Built::new("-Wl,--build-id=sha1") else { return };
    built.tool("objcopy --only-keep-debug full app.debug");
    let wanted = format!("GET /buildid/{}/debuginfo ", built.build_id());
    let body = fs::read(built.path("app.debug")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = String::new();
            BufReader::new(&stream).read_line(&mut request).unwrap();
            let found = request.starts_with(&wanted);
            let head = if found { "HTTP/1.1 200 OK" } else { "HTTP/1.1 404 Not Found" };
            let bytes: &[u8] = if found { &body } else { b"" };
            let head = format!("{head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", bytes.len());
            // The client may have gone away.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(bytes));
        }
    });
    let (names, notes) = built.names("app", &[]);
    assert!(names.contains("@(") && notes.contains("DEBUGINFOD_URLS"), "{notes}");
    let notes = built.has_all_names("app", &[("DEBUGINFOD_URLS", &server)]);
    assert!(notes.contains("its debug data came from a server"), "{notes}");
    // From now on it is here.
    assert_eq!(built.has_all_names("app", &[]), "");
    fs::remove_dir_all(built.path("cache")).unwrap();
    let without_program = [("DEBUGINFOD_URLS", server.as_str()), ("PATH", "/nonexistent")];
    assert!(built.names("app", &without_program).1.contains("debuginfod-find"), "the program is named");
    // A server without it.
    fs::write(built.path("app.cpp"), "int main() { return 0; }").unwrap();
    built.tool("clang-14 -fxray-instrument -fxray-instruction-threshold=1 -Wl,--build-id=sha1 app.cpp -o none");
    built.tool("strip none");
    let notes = built.names("none", &[("DEBUGINFOD_URLS", &server)]).1;
    assert!(notes.contains(&format!("no debug data at {server}")), "{notes}");
}

#[test]
fn memory_verbs_find_debug_files_too() {
    if !has_program("objcopy") {
        return skip("debug files: no objcopy");
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let (trace, library) = (examples.join("annotate/list.cacheray"), examples.join("annotate/list.so"));
    let folder = tempfile::tempdir().unwrap();
    fs::copy(library, folder.path().join("list.so")).unwrap();
    let said = |verb: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
        command.args(["memory", verb, "--config", "zen3", "-m", "list.so"]).arg(&trace).current_dir(folder.path());
        let output = run(command.env_remove("DEBUGINFOD_URLS"));
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let verbs = ["annotate", "types", "advise"];
    let complete = verbs.map(said);
    assert!(complete[0].0.contains("annotate/list.c:25"), "{}", complete[0].0);
    tool(folder.path(), "objcopy --only-keep-debug list.so list.debug");
    tool(folder.path(), "strip list.so");
    let stripped = said("annotate");
    assert!(!stripped.0.contains("list.c:25"), "{}", stripped.0);
    tool(folder.path(), "objcopy --add-gnu-debuglink=list.debug list.so");
    assert_eq!(verbs.map(said), complete);
}
