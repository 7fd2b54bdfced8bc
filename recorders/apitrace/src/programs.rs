//! Where a program's attributes are. A driver chooses, and programs ask; a replay on another driver must find them at
//! the same numbers.

use std::ffi::{CStr, c_char};

use crate::ask;
use crate::stream::Stream;
use crate::table;

/// Names and numbers of a linked program's attributes.
pub(crate) fn attributes(program: u32) -> Vec<(Vec<u8>, i32)> {
    const GL_LINK_STATUS: u32 = 0x8b82;
    const GL_ACTIVE_ATTRIBUTES: u32 = 0x8b89;
    const GL_ACTIVE_ATTRIBUTE_MAX_LENGTH: u32 = 0x8b8a;
    let drivers = (ask::GET_PROGRAM.get(), ask::GET_ACTIVE_ATTRIBUTE.get(), ask::GET_ATTRIBUTE_LOCATION.get());
    let (Some(get), Some(active), Some(location)) = drivers else { return Vec::new() };
    let number = |name: u32| {
        let mut found = [0; 4];
        // SAFETY: the driver writes one number.
        unsafe { get(program, name, found.as_mut_ptr()) };
        found[0]
    };
    if number(GL_LINK_STATUS) == 0 {
        return Vec::new();
    }
    let room = number(GL_ACTIVE_ATTRIBUTE_MAX_LENGTH).clamp(0, 1 << 16) + 1;
    let mut name: Vec<c_char> = vec![0; usize::try_from(room).unwrap_or(1)];
    let mut found = Vec::new();
    for index in 0..number(GL_ACTIVE_ATTRIBUTES).max(0) as u32 {
        let (mut size, mut kind) = (0, 0);
        // SAFETY: the name has room for `room` bytes, and the driver ends it with a zero.
        let (text, place) = unsafe {
            active(program, index, room, std::ptr::null_mut(), &mut size, &mut kind, name.as_mut_ptr());
            (CStr::from_ptr(name.as_ptr()).to_bytes().to_vec(), location(program, name.as_ptr()))
        };
        // What OpenGL has built in has no number.
        if place >= 0 && !text.starts_with(b"gl_") {
            found.push((text, place));
        }
    }
    found
}

/// Records the numbers, as calls that the program did not make.
pub(crate) fn write(stream: &mut Stream, thread: u32, program: u32, places: &[(Vec<u8>, i32)]) {
    let Some(function) = table::number(b"glBindAttribLocation") else { return };
    for (name, place) in places {
        let call = stream.enter(function, thread, true);
        stream.argument(0);
        stream.unsigned(program.into());
        stream.argument(1);
        stream.signed((*place).into());
        stream.argument(2);
        stream.text(name);
        stream.end();
        stream.leave(call);
        stream.end();
    }
}
