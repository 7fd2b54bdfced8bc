//! The modules of each crate form no circles: a module that uses another is not used by it, directly or by way of
//! others. A module may use its parent as long as only the parent's own part of the tree is involved: what a parent uses
//! of its descendants is not counted.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A module or an item: names from the crate's root.
type Name = Vec<String>;

/// What one module refers to.
#[derive(Debug, Default)]
struct Module {
    /// Every path in it.
    paths: BTreeSet<Name>,
    /// What its `use` items bring in, by name.
    imports: BTreeMap<String, Name>,
}

/// The modules of a crate.
type Modules = BTreeMap<Name, Module>;

fn read_modules(folder: &Path, name: &Name, modules: &mut Modules) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        // Tests use what they test, and are not used.
        if stem == "tests" || stem == "templates" {
            continue;
        }
        let child: Name = name.iter().cloned().chain([stem.clone()]).collect();
        if path.is_dir() {
            read_modules(&path, &child, modules);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let is_own = matches!(stem.as_str(), "mod" | "lib" | "main");
            let module = if is_own { name.clone() } else { child };
            let tokens: TokenStream = fs::read_to_string(&path).unwrap().parse().unwrap();
            let mut scan = Scan { here: module.clone(), module: Module::default() };
            scan.tokens(tokens);
            let known = modules.entry(module).or_default();
            known.paths.extend(scan.module.paths);
            known.imports.extend(scan.module.imports);
        }
    }
}

/// Reads the tokens of a file.
struct Scan {
    /// The module, or one inside the file.
    here: Name,
    module: Module,
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

/// True when `::` is at this place.
fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')
}

fn ident(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

fn braces(token: Option<&TokenTree>) -> Option<TokenStream> {
    match token {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => Some(group.stream()),
        _ => None,
    }
}

impl Scan {
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at = self.token(&tokens, at);
        }
    }

    /// Reads what begins at a token; returns the place after it.
    fn token(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        if is_punct(tokens.get(at), '#') && tokens.get(at + 1).is_some_and(|next| next.to_string() == "[cfg (test)]") {
            let is_end = |token: &TokenTree| is_punct(Some(token), ';') || braces(Some(token)).is_some();
            return tokens[at..].iter().position(is_end).map_or(tokens.len(), |end| at + end + 1);
        }
        match (&tokens[at], ident(tokens.get(at + 1)), braces(tokens.get(at + 2))) {
            (TokenTree::Ident(word), Some(name), Some(inner)) if word == "mod" => {
                self.here.push(name);
                self.tokens(inner);
                self.here.pop();
                return at + 3;
            }
            (TokenTree::Group(group), ..) => self.tokens(group.stream()),
            (TokenTree::Ident(word), ..) if word == "use" => return self.tree(tokens, at + 1, None, true),
            (TokenTree::Ident(word), ..) => {
                let is_inside = at > 0
                    && (is_punct(tokens.get(at - 1), ':') && is_colons(tokens, at.saturating_sub(2)))
                    || at > 0 && is_punct(tokens.get(at - 1), '.');
                // `pub(in path)` names who may see an item, not what it uses.
                let is_scope =
                    at > 0 && ident(tokens.get(at - 1)).is_some_and(|before| before == "in") && word == "crate";
                if !is_inside && !is_scope && is_colons(tokens, at + 1) {
                    return self.tree(tokens, at, None, false);
                }
            }
            _ => {}
        }
        at + 1
    }

    /// Reads a path, or a tree of them in a `use` item; returns the place after it.
    fn tree(&mut self, tokens: &[TokenTree], mut at: usize, prefix: Option<&Name>, is_use: bool) -> usize {
        let mut path = prefix.cloned();
        let mut last = prefix.and_then(|prefix| prefix.last().cloned());
        if is_colons(tokens, at) {
            at += 2;
        }
        loop {
            if let Some(word) = ident(tokens.get(at)) {
                path = Some(self.append(path, &word));
                last = if word == "self" { last } else { Some(word) };
            } else if let (Some(inner), true) = (braces(tokens.get(at)), is_use) {
                let inner: Vec<TokenTree> = inner.into_iter().collect();
                for part in inner.split(|token| is_punct(Some(token), ',')).filter(|part| !part.is_empty()) {
                    self.tree(part, 0, path.as_ref(), true);
                }
                return at + 1;
            } else {
                break;
            }
            at += 1;
            if !is_colons(tokens, at) {
                break;
            }
            at += 2;
        }
        let Some(path) = path else { return at + 1 };
        if is_use {
            if ident(tokens.get(at)).is_some_and(|word| word == "as") {
                last = ident(tokens.get(at + 1));
                at += 2;
            }
            last.and_then(|last| self.module.imports.insert(last, path.clone()));
        }
        self.module.paths.insert(path);
        at
    }

    /// A path and its next word.
    fn append(&self, path: Option<Name>, word: &str) -> Name {
        match (path, word) {
            (None, "crate") => Vec::new(),
            (None, "self") => self.here.clone(),
            (None, "super") => self.here.split_last().map_or(Vec::new(), |(_, parent)| parent.to_vec()),
            (Some(mut path), "super") => {
                path.pop();
                path
            }
            (Some(path), "self") => path,
            // Children, what was brought in, and other crates, which lead nowhere.
            (path, word) => path.unwrap_or_else(|| self.here.clone()).into_iter().chain([word.to_owned()]).collect(),
        }
    }
}

/// The module in which a path ends, past what modules bring in for others.
fn module_of(modules: &Modules, path: &Name, steps: usize) -> Name {
    let length = (0..=path.len()).rev().find(|length| modules.contains_key(&path[..*length])).unwrap_or(0);
    let (name, rest) = path.split_at(length);
    let imported = rest.first().and_then(|item| modules.get(name)?.imports.get(item));
    match (imported, steps) {
        (Some(next), 1..) if next != path => {
            let next = next.iter().chain(&rest[1..]).cloned().collect();
            module_of(modules, &next, steps - 1)
        }
        _ => name.to_vec(),
    }
}

/// For each module, those it uses.
fn uses(modules: &Modules) -> BTreeMap<&Name, BTreeSet<Name>> {
    let of = |(name, module): (&Name, &Module)| -> BTreeSet<Name> {
        let used = module.paths.iter().map(|path| module_of(modules, path, 8));
        used.filter(|other| !other.starts_with(name)).collect()
    };
    modules.iter().map(|(name, module)| (name, of((name, module)))).collect()
}

/// Everything that is used by way of others, too.
fn reached<'a>(uses: &'a BTreeMap<&Name, BTreeSet<Name>>, from: &'a Name) -> BTreeSet<&'a Name> {
    let (mut open, mut found) = (vec![from], BTreeSet::new());
    while let Some(name) = open.pop() {
        open.extend(uses.get(name).into_iter().flatten().filter(|other| found.insert(*other)));
    }
    found
}

/// The circles of a crate: modules that reach each other.
fn circles(modules: &Modules) -> Vec<Vec<String>> {
    let uses = uses(modules);
    let reached: BTreeMap<&Name, BTreeSet<&Name>> = modules.keys().map(|name| (name, reached(&uses, name))).collect();
    let mut circles = BTreeSet::new();
    for (name, others) in &reached {
        let circle: Vec<String> =
            others.iter().filter(|other| reached[**other].contains(name)).map(|other| other.join("::")).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

#[test]
fn modules_form_no_circles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let packages = ["crates", "recorders"].map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let mut folders: Vec<_> = packages.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    folders.push(root.join("xtask"));
    let mut read = 0;
    for folder in folders.iter().map(|folder| folder.join("src")).filter(|folder| folder.is_dir()) {
        let mut modules = Modules::new();
        read_modules(&folder, &Name::new(), &mut modules);
        read += modules.len();
        let found = circles(&modules);
        assert!(found.is_empty(), "circles in {}: {found:#?}", folder.display());
    }
    assert!(read > 500, "only {read} modules were found");
}

/// Circles of a crate made of these files.
fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let mut modules = Modules::new();
    read_modules(folder.path(), &Name::new(), &mut modules);
    circles(&modules)
}

#[test]
fn a_circle_is_found_however_it_is_written() {
    let b = ("b.rs", "use crate::a::X; pub struct Y(X);");
    for text in [
        "use crate::b::Y;",
        "use crate::{b, c::Z};",
        "use super::b::{self, Y};",
        "fn f() -> u8 { crate::b::g() }",
        "fn f() { h(&[super::b::Y]); }",
        "mod inner { use super::super::b::Y; }",
        // By way of what the root brings in.
        "use crate::Y;",
    ] {
        let lib = ("lib.rs", "mod a; mod b; mod c; pub use a::X; pub use b::Y;");
        assert_eq!(circles_of(&[lib, ("a.rs", text), b, ("c.rs", "")]), [["a", "b"]], "{text}");
    }
    let three = [("a.rs", "use crate::b::Y;"), ("b.rs", "use super::c;"), ("c.rs", "fn f() { super::a::g() }")];
    assert_eq!(circles_of(&three), [["a", "b", "c"]]);
    let across = [("a/mod.rs", "use crate::b::Y;"), ("a/inner.rs", "use super::X;"), ("b.rs", "use crate::a::inner;")];
    assert_eq!(circles_of(&across), [["a", "a::inner", "b"]]);
}

#[test]
fn parents_tests_and_other_crates_make_no_circle() {
    let lib = ("lib.rs", "mod a; mod b; pub const N: u8 = 1; pub use a::X; use b::Y; fn f() { a::g(); }");
    for (a, b) in [
        ("use crate::b::Y; use crate::N;", "use crate::N;"),
        ("use crate::b::Y;", "#[cfg(test)] mod tests { use crate::a::X; }"),
        ("use crate::b::Y;", "#[cfg(test)] use crate::a::X;"),
        ("use crate::b::Y;", "use other::a::X; fn f() { other::a::g(); x.a::<u8>(); }"),
        ("use crate::b::Y;", "// crate::a::X\nconst T: &str = \"crate::a::X\";"),
    ] {
        assert_eq!(circles_of(&[lib, ("a.rs", a), ("b.rs", b)]), Vec::<Vec<String>>::new(), "{a} {b}");
    }
}
