//! From a source to a trace by two commands: `cacheray cc` and `cacheray record`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SOURCE: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long words[8];
int other(int n);
int main(int argc, char **argv)
{
    for (int i = 0; i < 1000; i++)
        words[i & 7] = i;
    if (argc > 1 && !strcmp(argv[1], "fork") && !fork())
        return other(1);
    if (argc > 1 && !strcmp(argv[1], "fork"))
        wait(0);
    if (argc > 1 && !strcmp(argv[1], "term"))
        raise(SIGTERM);
    if (argc > 1 && !strcmp(argv[1], "again"))
        execl(argv[2], argv[2], (char *)0);
    printf("%d arguments\n", argc - 1);
    return argc > 1 ? atoi(argv[1]) : 0;
}
"#;
const OTHER: &str =
    "static volatile long more[2];\nint other(int n) { for (int i = 0; i < 50; i++) more[n] = i; return 0; }\n";

/// A folder with the two sources, and a copy of the program under test that has no library beside it.
struct Bench {
    folder: tempfile::TempDir,
    cache: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = tempfile::tempdir_in(tmp).unwrap();
        std::fs::write(folder.path().join("app.c"), SOURCE).unwrap();
        std::fs::write(folder.path().join("other.c"), OTHER).unwrap();
        let exe = env!("CARGO_BIN_EXE_anytrace");
        let alone = folder.path().join("anytrace");
        if std::fs::hard_link(exe, &alone).is_err() {
            std::fs::copy(exe, &alone).unwrap();
        }
        // Shared by the tests and by later runs: a version of the recorder is built once.
        Self { folder, cache: tmp.join("cacheray-cache") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn anytrace(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.path("anytrace"));
        command.args(arguments).current_dir(self.folder.path()).env("XDG_CACHE_HOME", &self.cache);
        command.env_remove("CACHERAY_OPTIONS").env_remove("ANYTRACE_CACHERAY_RECORDER").env("NO_COLOR", "1");
        command.output().unwrap()
    }

    fn done(&self, arguments: &[&str]) -> Output {
        let output = self.anytrace(arguments);
        assert!(output.status.success(), "{arguments:?}: {}{}", out(&output), err(&output));
        output
    }

    /// Records in a trace, which must break no rule.
    fn records(&self, trace: &str) -> u64 {
        let output = self.done(&["check", "--input-format", "cacheray", "--format", "json", trace]);
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((value["errors"].as_u64(), value["warnings"].as_u64()), (Some(0), Some(0)), "{value}");
        value["records"].as_u64().unwrap()
    }
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A clang that is here; the tests' packages bring one.
fn clang() -> &'static str {
    let all = ["clang", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang-14"];
    let is_here = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    all.into_iter().find(is_here).unwrap_or_else(|| panic!("no clang is here"))
}

#[test]
fn two_commands_lead_from_sources_to_a_trace() {
    let bench = Bench::new();
    for compiler in ["gcc", clang(), "g++"] {
        bench.done(&[
            "cacheray",
            "cc",
            "--",
            compiler,
            "-O1",
            "-Wno-deprecated",
            "-o",
            "app",
            "app.c",
            "other.c",
            "-lm",
        ]);
        let output = bench.done(&["cacheray", "record", "--force", "-o", "app.trace", "--", "./app", "0", "--force"]);
        assert_eq!(out(&output), "2 arguments\n");
        let records = bench.records("app.trace");
        assert!(records > 1000, "{compiler}: {records}");
        let said = err(&output);
        assert!(said.contains("app.trace: 1,0") && said.contains(" records, "), "{compiler}: {said}");
        assert!(!said.contains("not built"), "{said}");
    }
}

#[test]
fn the_header_declares_types() {
    let bench = Bench::new();
    let header = bench.done(&["cacheray", "cc", "--print-header"]);
    std::fs::write(bench.path("cacheray.h"), header.stdout).unwrap();
    let source = "#include \"cacheray.h\"\nstruct node { long value; };\n\
        int main(void) { struct node *n = CACHERAY_MALLOC(struct node, 3); n[2].value = 1; CACHERAY_FREE(n); return 0; }\n";
    std::fs::write(bench.path("typed.c"), source).unwrap();
    bench.done(&["cacheray", "cc", "--", "gcc", "typed.c", "-o", "typed"]);
    bench.done(&["cacheray", "record", "-o", "typed.trace", "--", "./typed"]);
    let dump = bench.done(&["dump", "--input-format", "cacheray", "typed.trace"]);
    assert!(out(&dump).contains("elemsize 8 elemcount 3 thread 0 type \"struct node\""), "{}", out(&dump));
}

#[test]
fn steps_may_be_taken_one_by_one() {
    let bench = Bench::new();
    bench.done(&["cacheray", "cc", "--", "gcc", "-c", "app.c"]);
    bench.done(&["cacheray", "cc", "--", "gcc", "-fPIC", "-c", "other.c"]);
    bench.done(&["cacheray", "cc", "--", "gcc", "-shared", "other.o", "-o", "libother.so"]);
    std::fs::write(bench.path("rest"), "app.o -o app\n-L . -lother '-Wl,-rpath,$ORIGIN'").unwrap();
    bench.done(&["cacheray", "cc", "--", "gcc", "@rest"]);
    let output = bench.done(&["cacheray", "record", "-o", "app.trace", "--", "./app", "fork"]);
    assert!(bench.records("app.trace") > 1000);
    // The forked process runs in the library.
    let said = err(&output);
    let child = said.split_whitespace().find(|word| word.starts_with("app.trace.")).unwrap().trim_end_matches(':');
    assert!(bench.records(child) >= 50);
}

#[test]
fn the_programs_exit_code_is_passed_on() {
    let bench = Bench::new();
    bench.done(&["cacheray", "cc", "--", "gcc", "-o", "app", "app.c", "other.c"]);
    let run = |argument: &str| bench.anytrace(&["cacheray", "record", "-q", "--force", "--", "./app", argument]);
    assert_eq!(run("7").status.code(), Some(7));
    let ended = run("term");
    assert_eq!((ended.status.code(), err(&ended).as_str()), (Some(128 + 15), ""));
    assert!(bench.records("cacheray.trace") >= 1000);
    assert_eq!(bench.anytrace(&["cacheray", "record", "--force", "--", "./no-such"]).status.code(), Some(2));
    assert_eq!(bench.anytrace(&["cacheray", "cc", "--", "gcc", "no-such.c"]).status.code(), Some(1));
}

#[test]
fn a_trace_that_could_not_be_written_is_no_success() {
    const LIMITED: &str = "#include <signal.h>\n#include <string.h>\n#include <sys/resource.h>\n#include <unistd.h>\n\
        static volatile long words[8];\nint main(int argc, char **argv) {\n\
        struct rlimit limit = {8192, 8192};\nif (!strcmp(argv[1], \"limit\")) setrlimit(RLIMIT_FSIZE, &limit);\n\
        if (!strcmp(argv[1], \"silent\")) { setrlimit(RLIMIT_FSIZE, &limit); close(2); }\n\
        for (int i = 0; i < 1000; i++) words[i & 7] = i;\n\
        if (!strcmp(argv[1], \"kill\")) raise(SIGKILL);\nreturn argc > 2 ? 7 : 0; }\n";
    let bench = Bench::new();
    std::fs::write(bench.path("full.c"), LIMITED).unwrap();
    bench.done(&["cacheray", "cc", "--", "gcc", "-o", "full", "full.c"]);
    let run = |output: &str, arguments: &[&str]| {
        let record = ["cacheray", "record", "--force", "-o", output, "--", "./full"];
        bench.anytrace(&[&record, arguments].concat())
    };
    // A device that is always full; a file that may not grow; the same without a standard error to say it on.
    for (output, mode, why) in [
        ("/dev/full", "plain", "No space left on device"),
        ("t.trace", "limit", "File too large"),
        ("t.trace", "silent", "File too large"),
        ("/dev/full", "kill", ""),
    ] {
        let ended = run(output, &[mode]);
        let said = err(&ended);
        let code = if mode == "kill" { 128 + 9 } else { 1 };
        assert_eq!(ended.status.code(), Some(code), "{mode}: {said}");
        let is_reported = said.lines().any(|line| line.contains(&format!("{output}: the trace is incomplete")));
        assert_eq!(is_reported, mode != "kill", "{mode}: {said}");
        assert!(said.contains(why), "{mode}: {said}");
        assert!(mode != "kill" || said.contains("the program was killed"), "{said}");
    }
    // What was written in time is a trace.
    assert!(bench.path("t.trace").metadata().unwrap().len() > 7000);
    bench.records("t.trace");
    // A program that fails goes before.
    let ended = run("/dev/full", &["plain", "fails"]);
    assert_eq!(ended.status.code(), Some(7));
    assert!(err(&ended).contains("the trace is incomplete"), "{}", err(&ended));
    // Without `record` there is a line, and the code is the program's.
    let mut alone = Command::new(bench.path("full"));
    let alone = alone.arg("plain").env("CACHERAY_OPTIONS", "tracefile=/dev/full").output().unwrap();
    assert_eq!(alone.status.code(), Some(0));
    let line = "cacheray: cannot write the trace to /dev/full: No space left on device";
    assert!(err(&alone).starts_with(line), "{}", err(&alone));
}

/// Processes that end so that their recorder cannot write any more, while the program succeeds.
const PROCESSES: &str = r#"
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long words[8];
static void work(void) { for (int i = 0; i < 1000; i++) words[i & 7] = i; }
static int is(char **argv, const char *mode) { return !strcmp(argv[1], mode); }
int main(int argc, char **argv)
{
    work();
    if (is(argv, "syscall"))
        syscall(SYS_exit_group, 0);
    if (is(argv, "vfork")) {
        if (!vfork())
            _exit(0);
        if (!vfork()) {
            execl("/nowhere", "nowhere", (char *)0);
            execl("/bin/true", "true", (char *)0);
        }
    } else if (!is(argv, "plain") && !fork()) {
        int left = 0;
        if (is(argv, "exec") && !execl("/nowhere", "nowhere", (char *)0))
            return 1;
        work();
        if (is(argv, "killed"))
            raise(SIGKILL);
        if (is(argv, "stays")) {
            close(0); close(1); close(2);
            mkdir("started", 0700);
            for (; left < 200 && access("stop", F_OK); left++)
                usleep(50000);
        }
        if (is(argv, "exec"))
            execl("/bin/true", "true", (char *)0);
        return 0;
    }
    while (!is(argv, "stays") ? wait(0) > 0 : access("started", F_OK))
        usleep(1000);
    work();
    return argc > 2 ? 7 : 0;
}
"#;

#[test]
fn a_process_that_took_records_along_is_no_success_though_the_program_is_one() {
    let bench = Bench::new();
    std::fs::write(bench.path("p.c"), PROCESSES).unwrap();
    bench.done(&["cacheray", "cc", "--", "gcc", "-w", "-o", "p", "p.c"]);
    let run = |output: &str, arguments: &[&str]| {
        let record = ["cacheray", "record", "--force", "-o", output, "--", "./p"];
        let ended = bench.anytrace(&[&record, arguments].concat());
        (ended.status.code(), err(&ended))
    };
    let lost = "its last records, still in the recorder's buffer, are lost";
    for (mode, code) in [("plain", 0), ("fork", 0), ("exec", 0), ("vfork", 0), ("killed", 1), ("syscall", 1)] {
        let (found, said) = run("t.trace", &[mode]);
        assert_eq!(found, Some(code), "{mode}: {said}");
        assert_eq!(said.contains(lost), code == 1, "{mode}: {said}");
    }
    // The program's own failure goes before.
    let (code, said) = run("t.trace", &["killed", "fails"]);
    assert!(code == Some(7) && said.contains(lost), "{code:?} {said}");
    let (code, said) = run("t.trace", &["stays"]);
    std::fs::write(bench.path("stop"), "").unwrap();
    assert!(code == Some(0) && said.contains("1 process that the program started still runs"), "{code:?} {said}");
    // A stream is one process's: what the forked one does is lost.
    let fifo = bench.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reader = Command::new("cat").arg(&fifo).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let (code, said) = run("fifo", &["fork"]);
    assert!(code == Some(1) && said.contains("a forked process is not recorded"), "{code:?} {said}");
    std::fs::write(bench.path("got.trace"), reader.wait_with_output().unwrap().stdout).unwrap();
    assert!(bench.records("got.trace") >= 2000);
}

#[test]
fn what_the_c_library_writes_is_recorded_so_that_nothing_looks_unwritten() {
    const COPIES: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
        struct node { char name[40]; long value; };\nstruct gap { char one; long two; };\nint main(int argc, char **argv) {\n\
        struct node *all = malloc(sizeof *all), *zero = calloc(1, sizeof *zero); long sum = 0;\n\
        memset(all, 0, sizeof *all); strcpy(all->name, \"a name of some length\");\n\
        all = realloc(all, 100 * sizeof *all);\n\
        for (int i = 1; i < 100; i++) { memcpy(&all[i], &all[0], sizeof *all); snprintf(all[i].name, 40, \"%d\", i); }\n\
        for (int i = 0; i < 100; i++) for (char *c = all[i].name; *c; c++) sum += *c + all[i].value + zero->value;\n\
        struct gap *gap = malloc(sizeof *gap), *copy = malloc(2 * sizeof *copy), local;\n\
        gap->one = 1; gap->two = argc; memcpy(copy, gap, sizeof *gap); copy[1] = *gap; local = copy[1];\n\
        sum += copy->one + copy[1].two + local.two; free(gap); free(copy);\n\
        char *twin = strdup(argv[0]); for (char *c = twin; *c; c++) sum += *c;\n\
        printf(\"%ld\\n\", sum); free(twin); free(all); free(zero); return 0; }\n";
    let bench = Bench::new();
    std::fs::write(bench.path("copies.c"), COPIES).unwrap();
    for compiler in ["gcc", clang()] {
        for level in [&["-O0"][..], &["-O2", "-D_FORTIFY_SOURCE=2"]] {
            let call = [&["cacheray", "cc", "--", compiler], level, &["-o", "copies", "copies.c"]].concat();
            bench.done(&call);
            bench.done(&["cacheray", "record", "--force", "-o", "t.trace", "--", "./copies"]);
            let found = bench.done(&["cacheray", "lifetime", "--format", "json", "t.trace"]);
            let value: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
            let value = if value.is_array() { &value[0] } else { &value };
            assert_eq!(value["reads_before_write_count"].as_u64(), Some(0), "{compiler} {level:?}: {value}");
            assert_eq!(value["accesses_after_remove_count"].as_u64(), Some(0), "{compiler} {level:?}");
            assert!(value["records"].as_u64() > Some(1000), "{compiler} {level:?}");
        }
    }
}

#[test]
fn a_program_started_by_a_recorded_one_writes_beside_it() {
    let bench = Bench::new();
    bench.done(&["cacheray", "cc", "--", "gcc", "-o", "app", "app.c", "other.c"]);
    let output = bench.done(&["cacheray", "record", "-o", "t.trace", "--", "./app", "again", "./app"]);
    let said = err(&output);
    let second = said.split_whitespace().find(|word| word.starts_with("t.trace.")).unwrap().trim_end_matches(':');
    assert!(bench.records("t.trace") >= 1000 && bench.records(second) >= 1000);
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let bench = Bench::new();
    bench.done(&["cacheray", "cc", "--", "gcc", "-o", "app", "app.c", "other.c"]);
    bench.done(&["cacheray", "record", "-o", "app.trace", "--", "./app"]);
    let again = bench.anytrace(&["cacheray", "record", "-o", "app.trace", "--", "./app"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(err(&again).contains("app.trace exists; use --force to replace it"));
    let colon = bench.anytrace(&["cacheray", "record", "-o", "a:b", "--", "./app"]);
    assert!(err(&colon).contains("separated by colons"));
    let out = bench.anytrace(&["cacheray", "record", "-o", "-", "--", "./app"]);
    assert!(err(&out).contains("use a FIFO to stream a trace"));
    let fixed = bench.anytrace(&["cacheray", "cc", "--", "gcc", "-static", "-o", "app", "app.c", "other.c"]);
    assert_eq!(fixed.status.code(), Some(2));
    assert!(err(&fixed).contains("remove -static"));
    let plain = Command::new("gcc").args(["-o", "plain", "app.c", "other.c"]).current_dir(bench.folder.path()).status();
    assert!(plain.unwrap().success());
    let output = bench.done(&["cacheray", "record", "-o", "plain.trace", "--", "./plain"]);
    assert!(err(&output).contains("only its allocations are recorded"), "{}", err(&output));
    assert!(bench.records("plain.trace") < 100);
    let mut command = Command::new("gcc");
    command.args(["-fsanitize=thread", "-o", "sanitized", "app.c", "other.c"]).current_dir(bench.folder.path());
    if command.output().unwrap().status.success() {
        let output = bench.anytrace(&["cacheray", "record", "--", "./sanitized"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(err(&output).contains("linked with ThreadSanitizer"));
    }
}

#[test]
fn the_recorder_is_built_once_and_named_by_the_environment() {
    let mut bench = Bench::new();
    bench.cache = bench.path("fresh");
    let first = bench.done(&["cacheray", "cc", "--", "gcc", "-o", "app", "app.c", "other.c"]);
    assert!(err(&first).contains("building the recorder (first use only) in "), "{}", err(&first));
    let second = bench.done(&["cacheray", "cc", "--", "gcc", "-o", "app", "app.c", "other.c"]);
    assert_eq!(err(&second), "");
    let missing = Command::new(bench.path("anytrace"))
        .args(["cacheray", "cc", "--", "gcc", "-o", "app", "app.c", "other.c"])
        .current_dir(bench.folder.path())
        .env("ANYTRACE_CACHERAY_RECORDER", "/nowhere")
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(err(&missing).contains("ANYTRACE_CACHERAY_RECORDER is /nowhere"));
    let without = Command::new(bench.path("anytrace"))
        .args(["cacheray", "cc", "--", "gcc", "-o", "app", "app.c", "other.c"])
        .current_dir(bench.folder.path())
        .env_remove("ANYTRACE_CACHERAY_RECORDER")
        .env("XDG_CACHE_HOME", bench.path("other"))
        .env("RUSTC", "no-such-compiler")
        .output()
        .unwrap();
    assert_eq!(without.status.code(), Some(2));
    assert!(err(&without).contains("no-such-compiler cannot be run"), "{}", err(&without));
}

#[test]
fn a_toolchain_beside_rustups_own_programs_builds_where_those_fail() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    let script = |path: PathBuf, text: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let sysroot = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--print", "sysroot"])
        .output()
        .unwrap();
    let real = format!("#!/bin/sh\nexec '{}/bin/rustc' \"$@\"\n", out(&sysroot).trim());
    script(bench.path(".cargo/bin/rustc"), "#!/bin/sh\necho no default is configured >&2\nexit 1\n");
    script(bench.path(".rustup/toolchains/stable-here/bin/rustc"), &real);
    let print = |home: &str, path: &str| {
        let mut command = Command::new(bench.path("anytrace"));
        command.args(["cacheray", "cc", "--print-folder"]).env("HOME", bench.path(home)).env("PATH", path);
        command.env_remove("ANYTRACE_CACHERAY_RECORDER").env_remove("XDG_CACHE_HOME").env_remove("RUSTC");
        command.output().unwrap()
    };
    let own = bench.path(".cargo/bin");
    let output = print("empty", &format!("{}:/usr/bin:/bin", own.display()));
    assert!(output.status.success(), "{}", err(&output));
    let folder = PathBuf::from(out(&output).trim());
    assert!(folder.join("libanytrace_cacheray_recorder.so").is_file(), "{}", folder.display());
    std::fs::remove_dir_all(bench.path(".rustup")).unwrap();
    let output = print("other", &format!("{}:/usr/bin:/bin", own.display()));
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("no default is configured"), "{}", err(&output));
}
