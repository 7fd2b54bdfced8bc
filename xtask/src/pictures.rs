//! `cargo xtask pictures`: the pictures of README and book, each made by the command that its caption names.
//!
//! Pictures that the program draws itself are the same on every machine, and `--check` compares them with the committed
//! ones. Pages are photographed in Debian's Chromium, whose fonts and versions differ, so these are only made.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anstyle_svg::{Term, WIN10_CONSOLE};

use crate::shell::{cargo, output, root, run, shown};

/// Where the pictures are.
const FOLDER: &str = "docs/book/src/images";

/// What is written to a terminal, and its picture.
const TERMINALS: &[(&str, &[&str])] =
    &[("timeline.svg", &["timeline", "examples/tour/threads.yaml.gz", "--time=6.18ms..6.41ms", "--width=100"])];

/// Verbs that draw. The last word is the option that names the picture.
const DRAWINGS: &[(&str, &[&str])] = &[
    ("flame.svg", &["flame", "examples/tour/threads.yaml.gz", "--by=count", "-o"]),
    ("heatmap.svg", &["memory", "heatmap", "examples/tour/particles.cacheray.gz", "-o"]),
    ("frames.svg", &["apitrace", "stats", "--by=frame", "examples/traces/imm.trace", "--plot"]),
    (
        "mrc-layouts.svg",
        &[
            "memory",
            "mrc",
            "--by=type",
            "--working-set",
            "crates/cacheray/corpus/curves/layouts.up14-O0.trace.gz",
            "--plot",
        ],
    ),
];

/// A picture of a page.
struct Page {
    name: &'static str,
    content: Content,
    /// Of the window, in pixels.
    size: [u32; 2],
}

enum Content {
    /// `anytrace view` of a trace; the page's state is in the address, with times in the trace's own ticks.
    View { trace: &'static str, fragment: &'static str },
    /// `anytrace report` of a trace.
    Report(&'static str),
    /// `anytrace memory report` of a trace.
    MemoryReport(&'static str),
}

const PAGES: &[Page] = &[
    Page {
        name: "view.png",
        content: Content::View {
            trace: "examples/tour/threads.yaml.gz",
            fragment: "start=1931391779924&end=1931392499828",
        },
        size: [1280, 520],
    },
    Page {
        name: "view-selection.png",
        content: Content::View {
            trace: "examples/tour/threads.yaml.gz",
            fragment: "start=1931391908432&end=1931392108333&mark=1931391922710,1931392078478&tab=selection&theme=dark",
        },
        size: [1280, 800],
    },
    Page {
        name: "view-flame.png",
        content: Content::View {
            trace: "examples/tour/threads.yaml.gz",
            fragment: "start=1931391779924&end=1931392499828&tab=flame",
        },
        size: [1280, 800],
    },
    Page {
        name: "view-arrows.png",
        content: Content::View {
            trace: "examples/traces/tasks.heph",
            fragment: "start=1200000&end=7400000&tab=call&slice=1,1,6526347",
        },
        size: [1280, 800],
    },
    Page { name: "report.png", content: Content::Report("examples/tour/threads.yaml.gz"), size: [1280, 900] },
    Page {
        name: "memory-report.png",
        content: Content::MemoryReport("examples/tour/particles.cacheray.gz"),
        size: [1280, 1500],
    },
];

pub(crate) fn run_all(arguments: &[String]) -> Result<(), String> {
    let (is_check, binary) = match arguments {
        [] => (false, None),
        [check] if check == "--check" => (true, None),
        [flag, path] if flag == "--binary" => (false, Some(PathBuf::from(path))),
        other => return Err(format!("pictures takes --check, --binary PATH or nothing, not {}", other.join(" "))),
    };
    let program = match binary {
        Some(binary) => binary,
        None => {
            run(cargo().args(["build", "--quiet", "--locked", "--package", "anytrace"]))?;
            root().join("target/debug/anytrace")
        }
    };
    if is_check {
        return check(&program);
    }
    let folder = root().join(FOLDER);
    draw(&program, &folder)?;
    photograph(&program, &folder)
}

/// The committed pictures are those that the program draws.
pub(crate) fn check(program: &Path) -> Result<(), String> {
    let (made, committed) = (root().join("target/pictures"), root().join(FOLDER));
    fs::create_dir_all(&made).map_err(|error| format!("{}: {error}", made.display()))?;
    draw(program, &made)?;
    let read = |path: PathBuf| fs::read(&path).map_err(|error| format!("{}: {error}", path.display()));
    for (name, _) in TERMINALS.iter().chain(DRAWINGS) {
        if read(made.join(name))? != read(committed.join(name))? {
            return Err(format!("{FOLDER}/{name} is not what the program draws: run `cargo xtask pictures`"));
        }
    }
    Ok(())
}

/// Makes the pictures that need no browser.
fn draw(program: &Path, folder: &Path) -> Result<(), String> {
    for (name, words) in TERMINALS {
        let text = output(command(program).args(*words).arg("--color=always"))?;
        let text = String::from_utf8(text).map_err(|error| format!("{}: {error}", words.join(" ")))?;
        let prompt = format!("$ anytrace {}\n", words.join(" "));
        let drawn = Term::new().palette(WIN10_CONSOLE).render_svg(&(prompt + text.trim_end()));
        let path = folder.join(name);
        fs::write(&path, drawn).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    for (name, words) in DRAWINGS {
        output(command(program).args(*words).arg(folder.join(name)).arg("--force"))?;
    }
    Ok(())
}

/// Makes the pictures of pages. Needs Chromium, and what `cargo xtask viewer` installs.
fn photograph(program: &Path, folder: &Path) -> Result<(), String> {
    let mut wanted = Vec::new();
    for Page { name, content, size: [width, height] } in PAGES {
        let mut page = serde_json::json!({ "out": folder.join(name), "width": width, "height": height });
        match content {
            Content::View { trace, fragment } => {
                page["view"] = serde_json::json!([trace]);
                page["fragment"] = (*fragment).into();
            }
            Content::Report(trace) => {
                let html = root().join("target/pictures.html");
                run(command(program).args(["report", trace, "--force", "-o"]).arg(&html))?;
                page["page"] = "target/pictures.html".into();
            }
            Content::MemoryReport(trace) => {
                let html = root().join("target/pictures-memory.html");
                let caches = ["--config", "zen3", "--force", "-o"];
                run(command(program).args(["memory", "report", trace]).args(caches).arg(&html))?;
                page["page"] = "target/pictures-memory.html".into();
            }
        }
        wanted.push(page);
    }
    let mut node = Command::new("node");
    node.current_dir(root()).arg("viewer/tests/browser/pictures.mjs").env("ANYTRACE_COMMAND", program);
    let failed = |error: std::io::Error| format!("cannot run node: {error}");
    let mut child = node.stdin(Stdio::piped()).spawn().map_err(failed)?;
    if let Some(input) = child.stdin.take() {
        serde_json::to_writer(input, &wanted).map_err(|error| error.to_string())?;
    }
    let status = child.wait().map_err(failed)?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", shown(&node))) }
}

/// The program in the project's root, whose paths are in the pictures.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}
