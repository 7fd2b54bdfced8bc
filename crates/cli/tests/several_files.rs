//! Verbs that write several files write all of them or none.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn anytrace(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).current_dir(folder).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// A PNG of one color, large enough for a thumbnail.
fn picture(path: &Path, level: u8) {
    let mut encoder = png::Encoder::new(fs::File::create(path).unwrap(), 400, 300);
    encoder.set_color(png::ColorType::Grayscale);
    let pixels = vec![level; 400 * 300];
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
}

#[test]
fn a_page_of_pictures_appears_with_all_of_them_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    for (side, level) in [("a", 10), ("b", 200)] {
        fs::create_dir(folder.path().join(side)).unwrap();
        for name in ["1.png", "2.png"] {
            picture(&folder.path().join(side).join(name), level);
        }
    }
    // The second difference has no place to go.
    let taken = folder.path().join("b/2.diff.png");
    fs::create_dir(&taken).unwrap();
    let arguments = ["apitrace", "diff-images", "a/", "b/", "-o", "page.html"];
    let output = anytrace(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(!folder.path().join("page.html").exists());
    assert_eq!((files(&folder.path().join("a")).len(), files(&folder.path().join("b")).len()), (2, 3));
    fs::remove_dir(taken).unwrap();
    let output = anytrace(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("2.diff.png"), "{page}");
    // Two pictures with a thumbnail each; beside the second set the differences with theirs.
    assert_eq!((files(&folder.path().join("a")).len(), files(&folder.path().join("b")).len()), (4, 8));
}

#[test]
fn manual_pages_replace_none_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man");
    fs::create_dir(&pages).unwrap();
    let one = pages.join("anytrace-diff.1");
    fs::write(&one, "mine").unwrap();
    let output = anytrace(folder.path(), &["man", "--dir", "man"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert_eq!((files(&pages), fs::read_to_string(&one).unwrap()), (vec![one.clone()], "mine".to_owned()));
    let output = anytrace(folder.path(), &["man", "--dir", "man", "--force"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(files(&pages).len() > 20 && fs::read_to_string(&one).unwrap().contains("anytrace"), "{:?}", files(&pages));
    assert_eq!(files(folder.path()), [pages]);
}

#[test]
fn shaders_replace_none_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apitrace/corpus/peer/fbo.trace");
    let trace = trace.to_str().unwrap();
    let output = anytrace(folder.path(), &["apitrace", "state", "--call", "60", trace, "--dump-shaders", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let written = files(&folder.path().join("out"));
    assert!(written.len() > 1, "{written:?}");
    // All but the last one are gone: it stays, and none of the others comes back.
    written.iter().rev().skip(1).for_each(|path| fs::remove_file(path).unwrap());
    let output = anytrace(folder.path(), &["apitrace", "state", "--call", "60", trace, "--dump-shaders", "out"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert_eq!(files(&folder.path().join("out")), written[written.len() - 1..]);
}
