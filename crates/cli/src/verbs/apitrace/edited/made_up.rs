//! The name of an edited trace where `-o` gives none.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The name of the trace beside the input, as apitrace makes it up: `game.trace` becomes `game-trim.trace`.
pub(super) fn name(file: &Path, suffix: &str) -> Result<PathBuf, Failure> {
    match file.file_stem().filter(|_| file.as_os_str() != "-") {
        Some(stem) => {
            let mut name = stem.to_owned();
            name.push(suffix);
            Ok(file.with_file_name(name))
        }
        None => Err(Failure::usage("use -o to name the output trace")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_up_beside_the_input() {
        let made = |path: &str| name(Path::new(path), "-trim.trace").ok();
        assert_eq!(made("game.trace"), Some("game-trim.trace".into()));
        assert_eq!(made("a.b/game"), Some("a.b/game-trim.trace".into()));
        assert_eq!(made("/x/game.trace.gz"), Some("/x/game.trace-trim.trace".into()));
        assert_eq!(made("-"), None);
    }
}
