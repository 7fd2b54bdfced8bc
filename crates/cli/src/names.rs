//! Names under which the program behaves as another one: apitrace and its players, so that scripts that call those work
//! unchanged.

use std::ffi::OsString;
use std::path::Path;

/// The command line as it would be under the program's own name. Where apitrace's sums are expected, drawables have
/// apitrace's sizes, and files are replaced.
pub(crate) fn spelled_out(given: Vec<OsString>) -> Vec<OsString> {
    let name = given.first().and_then(|name| Path::new(name).file_name()).unwrap_or_default();
    let group: &[&str] = match name.to_str() {
        Some("apitrace") => {
            let replays =
                given.get(1).is_some_and(|verb| verb == "replay" || verb == "retrace" || verb == "dump-images");
            if replays {
                let verb =
                    if given.get(1).is_some_and(|verb| verb == "dump-images") { "dump-images" } else { "replay" };
                let rest = given.into_iter().skip(2);
                let words = ["anytrace", "apitrace", verb, "--size=peer", "--force"];
                return words.into_iter().map(OsString::from).chain(rest).collect();
            }
            &["anytrace", "apitrace"]
        }
        Some("glretrace" | "eglretrace") => &["anytrace", "apitrace", "replay", "--size=peer", "--force"],
        _ => return given,
    };
    group.iter().map(OsString::from).chain(given.into_iter().skip(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(line: &str) -> String {
        let words = spelled_out(line.split(' ').map(OsString::from).collect());
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn other_programs_names_are_verbs() {
        assert_eq!(spelled("anytrace info x"), "anytrace info x");
        assert_eq!(spelled("/usr/bin/apitrace dump --calls=frame x"), "anytrace apitrace dump --calls=frame x");
        let replay = "anytrace apitrace replay --size=peer --force";
        assert_eq!(spelled("eglretrace --headless x"), format!("{replay} --headless x"));
        assert_eq!(spelled("apitrace retrace x"), format!("{replay} x"));
        assert_eq!(spelled("apitrace dump-images x"), "anytrace apitrace dump-images --size=peer --force x");
        assert_eq!(spelled("apitrace"), "anytrace apitrace");
    }
}
