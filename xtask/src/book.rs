//! `cargo xtask book`: the book as mdBook renders it, with every link of it and of the project's other pages checked.
//!
//! mdBook is installed below `target/tools`, so that its dependencies are not those of the workspace. Only links inside
//! the project are followed: the tests need no network for them.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use html5gum::{Token, Tokenizer};
use pulldown_cmark::{Event, Parser, Tag};

use crate::shell::{cargo, output, root, run};

const MDBOOK_VERSION: &str = "0.5.4";

/// Folders without pages of the project.
const FOREIGN: &[&str] = &["target", "node_modules", "corpus", "templates", ".git"];

pub(crate) fn run_all(arguments: &[String]) -> Result<(), String> {
    if !arguments.is_empty() {
        return Err(format!("book takes no arguments, not {}", arguments.join(" ")));
    }
    let book = root().join("target/book");
    render(&mdbook()?, &book)?;
    let mut dead = dead_in_book(&book)?;
    dead.extend(dead_in_pages()?);
    if dead.is_empty() {
        println!("the book is {}/index.html; every link in it and in the other pages has its target", book.display());
        return Ok(());
    }
    Err(format!("{} dead links:\n  {}", dead.len(), dead.join("\n  ")))
}

/// The program mdBook, installed if it is not there in this version.
fn mdbook() -> Result<PathBuf, String> {
    let tools = root().join("target/tools");
    let program = tools.join("bin/mdbook");
    let version = output(Command::new(&program).arg("--version")).unwrap_or_default();
    if String::from_utf8_lossy(&version).trim_end() != format!("mdbook v{MDBOOK_VERSION}") {
        // Without its search and its server; not optimized, because that takes three times as long.
        run(cargo()
            .args(["install", "mdbook", "--locked", "--no-default-features", "--debug", "--quiet", "--force"])
            .args(["--version", MDBOOK_VERSION, "--root"])
            .arg(&tools))?;
    }
    Ok(program)
}

/// Builds the book into a new folder. A warning, as of a tag that is not closed, is an error.
fn render(mdbook: &Path, book: &Path) -> Result<(), String> {
    let _: Option<()> = fs::remove_dir_all(book).ok();
    let mut command = Command::new(mdbook);
    command.args(["build", "docs/book", "--dest-dir"]).arg(book).current_dir(root());
    let result = command.output().map_err(|error| format!("mdbook: {error}"))?;
    let log = String::from_utf8_lossy(&result.stderr);
    if !result.status.success() || log.contains("WARN") {
        return Err(format!("mdbook build: {}\n{log}", result.status));
    }
    Ok(())
}

/// What a page of the book links to, and where it can be linked to.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    anchors: HashSet<String>,
}

impl Page {
    fn parse(html: &str) -> Self {
        let mut page = Page::default();
        for token in Tokenizer::new(html) {
            let Ok(Token::StartTag(tag)) = token else { continue };
            for (name, value) in tag.attributes {
                let value = String::from_utf8_lossy(&value).into_owned();
                match name.as_slice() {
                    b"href" | b"src" => page.links.push(value),
                    b"id" | b"name" => {
                        page.anchors.insert(value);
                    }
                    _ => {}
                }
            }
        }
        page
    }
}

/// Links of the rendered book whose file or anchor is not in it.
fn dead_in_book(book: &Path) -> Result<Vec<String>, String> {
    let mut pages = HashMap::new();
    for path in files(book, &|path| has_extension(path, "html"))? {
        // Its links are relative to wherever it is served.
        if path.ends_with("404.html") {
            continue;
        }
        pages.insert(path.clone(), Page::parse(&read(&path)?));
    }
    if pages.len() < 50 {
        return Err(format!("{}: only {} pages", book.display(), pages.len()));
    }
    let mut dead = Vec::new();
    for (path, page) in &pages {
        for link in page.links.iter().filter(|link| !is_external(link)) {
            let (file, anchor) = split(link);
            let target = if file.is_empty() { path.clone() } else { resolve(path, file) };
            let is_alive = match (pages.get(&target), anchor) {
                (Some(target), Some(anchor)) => target.anchors.contains(anchor),
                (Some(_), None) => true,
                (None, _) => target.starts_with(book) && target.is_file(),
            };
            if !is_alive {
                dead.push(format!("{}: {link}", shown(path)));
            }
        }
    }
    dead.sort();
    Ok(dead)
}

/// Links of the Markdown pages outside the book whose file is not in the project.
fn dead_in_pages() -> Result<Vec<String>, String> {
    let mut dead = Vec::new();
    for path in files(&root(), &|path| has_extension(path, "md"))? {
        let text = read(&path)?;
        for event in Parser::new(&text) {
            let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event else { continue };
            let (file, _) = split(&dest_url);
            if !is_external(&dest_url) && !file.is_empty() && !resolve(&path, file).exists() {
                dead.push(format!("{}: {dest_url}", shown(&path)));
            }
        }
    }
    Ok(dead)
}

fn is_external(link: &str) -> bool {
    ["http://", "https://", "mailto:", "data:"].iter().any(|scheme| link.starts_with(scheme))
}

/// The file and the anchor of a link.
fn split(link: &str) -> (&str, Option<&str>) {
    match link.split_once('#') {
        Some((file, "")) => (file, None),
        Some((file, anchor)) => (file, Some(anchor)),
        None => (link, None),
    }
}

/// Where a link of a page leads, without `..`.
fn resolve(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().map(Path::to_path_buf).unwrap_or_default();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e == extension)
}

/// The files below a folder that are wanted, in order of their names.
fn files(folder: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> Result<Vec<PathBuf>, String> {
    let error = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    let mut entries = fs::read_dir(folder).map_err(error)?.collect::<Result<Vec<_>, _>>().map_err(error)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type().map_err(error)?.is_dir() {
            if !FOREIGN.iter().any(|name| entry.file_name() == *name) {
                found.extend(files(&path, is_wanted)?);
            }
        } else if is_wanted(&path) {
            found.push(path);
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_anchors_of_a_page_are_found() {
        let page =
            Page::parse("<h2 id=\"a\"><a href=\"b.html#c\">href=\"no\"</a></h2><img src='d.png'><!-- <a href=e> -->");
        assert_eq!(page.links, ["b.html#c", "d.png"]);
        assert!(page.anchors.contains("a") && page.anchors.len() == 1);
    }

    #[test]
    fn a_link_leads_from_the_folder_of_its_page() {
        assert_eq!(resolve(Path::new("/b/verbs/x.html"), "../formats/./y.html"), Path::new("/b/formats/y.html"));
        assert_eq!(split("x.html#a"), ("x.html", Some("a")));
        assert_eq!(split("#a"), ("", Some("a")));
        assert_eq!(split("x.html#"), ("x.html", None));
    }

    #[test]
    fn a_dead_link_of_a_page_is_dead() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        for n in 0..50 {
            fs::write(folder.path().join(format!("{n}.html")), "<a href=\"0.html#top\"><p id=top>")?;
        }
        assert_eq!(dead_in_book(folder.path())?, Vec::<String>::new());
        fs::write(folder.path().join("x.html"), "<a href=\"0.html#no\"><a href=\"no.html\"><a href=\"../etc\">")?;
        assert_eq!(dead_in_book(folder.path())?.len(), 3);
        Ok(())
    }
}
