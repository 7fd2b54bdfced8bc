//! What has to be done besides recording a call, by the function's name.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::table::FUNCTIONS;

/// What a function does that the recorder has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Action {
    /// Nothing that it has to know.
    Plain = 1,
    MakeCurrent,
    DestroyContext,
    /// Destroys all contexts of a display.
    Terminate,
    GetProcAddress,
    /// It ends a frame.
    Swap,
    /// Declares an array of vertices.
    Pointer,
    /// Reads arrays.
    Draw,
    Map,
    Unmap,
    FlushMapped,
    /// Gives a buffer other memory.
    BufferData,
    DeleteBuffers,
    /// Declares several arrays at once.
    Interleaved,
    /// Changes which arrays are enabled, or where they are.
    ArrayState,
    Begin,
    ArrayElement,
    Link,
    /// Reads buffers that may be mapped.
    Reads,
}

static ACTIONS: [AtomicU8; FUNCTIONS.len()] = [const { AtomicU8::new(0) }; FUNCTIONS.len()];

const ALL: [Action; 19] = [
    Action::Plain,
    Action::MakeCurrent,
    Action::DestroyContext,
    Action::Terminate,
    Action::GetProcAddress,
    Action::Swap,
    Action::Pointer,
    Action::Draw,
    Action::Map,
    Action::Unmap,
    Action::FlushMapped,
    Action::BufferData,
    Action::DeleteBuffers,
    Action::Interleaved,
    Action::ArrayState,
    Action::Begin,
    Action::ArrayElement,
    Action::Link,
    Action::Reads,
];

/// What a function does, found once.
pub(crate) fn of(number: usize) -> Action {
    let known = ACTIONS[number].load(Relaxed);
    if let Some(action) = usize::from(known).checked_sub(1).and_then(|at| ALL.get(at)) {
        return *action;
    }
    let action = named(FUNCTIONS[number].name);
    ACTIONS[number].store(action as u8, Relaxed);
    action
}

fn named(name: &str) -> Action {
    let stem = VENDORS.iter().find_map(|vendor| name.strip_suffix(vendor)).unwrap_or(name);
    let begins = |starts: &[&str]| starts.iter().any(|start| stem.starts_with(start));
    match stem {
        "glXMakeCurrent" | "glXMakeContextCurrent" | "glXMakeCurrentRead" | "eglMakeCurrent" | "eglReleaseThread" => {
            Action::MakeCurrent
        }
        "glXDestroyContext" | "eglDestroyContext" => Action::DestroyContext,
        "eglTerminate" => Action::Terminate,
        "glXGetProcAddress" | "eglGetProcAddress" => Action::GetProcAddress,
        "glLinkProgram" => Action::Link,
        "glMapBuffer" | "glMapBufferRange" | "glMapNamedBuffer" | "glMapNamedBufferRange" => Action::Map,
        "glUnmapBuffer" | "glUnmapNamedBuffer" => Action::Unmap,
        "glFlushMappedBufferRange" | "glFlushMappedNamedBufferRange" => Action::FlushMapped,
        "glBufferData" | "glBufferStorage" | "glNamedBufferData" | "glNamedBufferStorage" => Action::BufferData,
        "glDeleteBuffers" => Action::DeleteBuffers,
        "glInterleavedArrays" => Action::Interleaved,
        "glBegin" => Action::Begin,
        "glArrayElement" => Action::ArrayElement,
        "glEnableClientState"
        | "glDisableClientState"
        | "glEnableVertexAttribArray"
        | "glDisableVertexAttribArray"
        | "glPushClientAttrib"
        | "glPopClientAttrib"
        | "glBindVertexArray"
        | "glVertexAttribBinding"
        | "glBindVertexBuffer"
        | "glBindVertexBuffers" => Action::ArrayState,
        _ if is_pointer(stem) => Action::Pointer,
        _ if begins(&["glXSwapBuffers", "eglSwapBuffers", "glFrameTerminator"]) => Action::Swap,
        _ if begins(&[
            "glDrawArrays",
            "glDrawElements",
            "glDrawRangeElements",
            "glMultiDrawArrays",
            "glMultiDrawElements",
        ]) =>
        {
            Action::Draw
        }
        _ if begins(&[
            "glDispatchCompute",
            "glCopyBuffer",
            "glCopyNamedBuffer",
            "glTexImage",
            "glTexSubImage",
            "glTextureSubImage",
            "glCompressedTex",
            "glDrawPixels",
            "glFlush",
            "glFinish",
            "glFenceSync",
            "glMemoryBarrier",
            "glGetBufferSubData",
            "glDrawTransformFeedback",
        ]) =>
        {
            Action::Reads
        }
        _ => Action::Plain,
    }
}

const VENDORS: [&str; 9] = ["ARB", "EXT", "OES", "KHR", "APPLE", "NV", "SGI", "ANGLE", "NOK"];

/// Functions that declare an array of vertices, whose last parameter points to it.
fn is_pointer(stem: &str) -> bool {
    const NAMES: [&str; 12] = [
        "glVertexPointer",
        "glNormalPointer",
        "glColorPointer",
        "glIndexPointer",
        "glEdgeFlagPointer",
        "glFogCoordPointer",
        "glSecondaryColorPointer",
        "glTexCoordPointer",
        "glMultiTexCoordPointer",
        "glVertexAttribPointer",
        "glVertexAttribIPointer",
        "glVertexAttribLPointer",
    ];
    NAMES.contains(&stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_with_and_without_a_vendor() {
        for (name, action) in [
            ("glVertexPointer", Action::Pointer),
            ("glVertexAttribPointerARB", Action::Pointer),
            ("glDrawElementsInstancedBaseVertexEXT", Action::Draw),
            ("glDrawElementArrayATI", Action::Plain),
            ("eglSwapBuffersWithDamageKHR", Action::Swap),
            ("glXSwapBuffersMscOML", Action::Swap),
            ("glXSwapIntervalEXT", Action::Plain),
            ("glUnmapBufferOES", Action::Unmap),
            ("glDrawBuffers", Action::Plain),
            ("glXGetProcAddressARB", Action::GetProcAddress),
        ] {
            assert_eq!(named(name), action, "{name}");
        }
    }

    #[test]
    fn each_action_is_at_its_number() {
        for (at, action) in ALL.iter().enumerate() {
            assert_eq!(*action as usize, at + 1);
        }
    }
}
