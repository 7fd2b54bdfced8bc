//! What the format explains in words: the state of OpenGL after a call.

use anytrace_core::index::Open;
use anytrace_core::{Error, Explanation, Lines, OpenOptions, Sink, Subject};

use super::state::{state_at, write_text};
use crate::wire::reader::Reader;

/// The explanations of the format.
pub(crate) const EXPLANATIONS: &[Explanation] =
    &[Explanation { name: "state", title: "OpenGL state after this call", subject: Subject::Attribute("call") }];

/// True for the functions of OpenGL and of the interfaces to windows: others have no state of OpenGL.
pub(crate) fn explains(_: &str, name: &[u8]) -> bool {
    ["gl", "egl", "wgl", "CGL"].iter().any(|begin| name.starts_with(begin.as_bytes()))
}

/// Writes an explanation.
pub(crate) fn explain(
    explanation: &str,
    at: Option<u64>,
    open: &Open<'_>,
    options: &OpenOptions,
    out: &mut dyn Lines,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    if explanation != "state" {
        return Err(Error::usage(format!("apitrace traces have no explanation {explanation}")));
    }
    let state = state_at(&mut Reader::new(open()?, options)?, at, sink)?;
    if let Some(call) = at.filter(|_| !state.is_met) {
        return Err(Error::usage(format!("there is no call {call}")));
    }
    // The first represents calls without a context.
    let has_context = state.contexts.len() > 1;
    if !has_context && state.contexts.iter().all(|(_, known)| known.parameters.is_empty()) && state.objects.is_empty() {
        return out.line("No call up to here makes a context of OpenGL's or sets anything of it.", None);
    }
    let mut text = Vec::new();
    write_text(&mut text, &state)?;
    String::from_utf8_lossy(&text).lines().try_for_each(|line| out.line(line, None))
}

#[cfg(test)]
mod tests {
    use anytrace_core::testing::explained;

    use super::*;
    use crate::Apitrace;

    fn lines(explanation: &str, at: Option<u64>) -> Result<Vec<String>, Error> {
        let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let bytes = std::fs::read(examples.join("traces/imm.trace")).unwrap();
        Ok(explained(&Apitrace, &bytes, explanation, at)?.lines.into_iter().map(|(text, _)| text).collect())
    }

    #[test]
    fn only_calls_of_opengl_have_a_state_of_it() {
        for (name, is_one) in [("glClear", true), ("glXSwapBuffers", true), ("eglMakeCurrent", true), ("memcpy", false)]
        {
            assert_eq!(explains("state", name.as_bytes()), is_one, "{name}");
        }
        assert!(!explains("state", b"ID3D11DeviceContext::Draw"));
    }

    #[test]
    fn the_state_is_that_after_the_call() {
        let found = lines("state", Some(60)).unwrap();
        assert_eq!(found.first().map(String::as_str), Some("after call 60 glRotatef, thread 0"));
        assert!(found.iter().any(|line| line == "  GL_MATRIX_MODE = GL_MODELVIEW (call 58)"), "{found:?}");
        assert_eq!(
            lines("state", Some(0)).unwrap(),
            ["No call up to here makes a context of OpenGL's or sets anything of it."]
        );
        assert!(lines("state", None).unwrap()[0].starts_with("after call 96 "));
        assert!(lines("state", Some(1 << 40)).unwrap_err().to_string().contains("no call"));
        assert!(lines("other", None).is_err());
    }
}
