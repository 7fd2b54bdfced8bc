//! Arguments and results, as values of the trace: inputs when a function is entered, outputs when it has returned.

use std::ffi::{CStr, c_char};

use crate::arguments::{Arguments, PARAMETERS_MAX};
use crate::extent::{Extent, extent, has_index_buffer, has_indirect_buffer, has_vertex_buffer, type_bytes};
use crate::stream::Stream;
use crate::table::{ALL_OF_EGL, ALL_OF_GL, GROUPS, Kind, Length, Parameter};

/// A text is not longer than this: what is behind is another program's fault.
const TEXT_MAX: usize = 64 << 20;

/// The extents of a call's pointers.
pub(crate) type Extents = [Option<Extent>; PARAMETERS_MAX];

/// Measures what a call's pointers lead to, before anything is written: the driver is asked for that.
pub(crate) fn measure(arguments: &Arguments) -> Extents {
    let mut extents = [None; PARAMETERS_MAX];
    for (at, (place, parameter)) in extents.iter_mut().zip(arguments.function.parameters).enumerate() {
        if parameter.pointers > 0 && arguments.raw(at) != 0 {
            *place = Some(extent(arguments, parameter));
        }
    }
    extents
}

/// Whether a parameter is written when the function has returned.
fn is_output(parameter: &Parameter) -> bool {
    parameter.pointers == 1
        && !parameter.is_const
        && !matches!(parameter.length, Length::Unknown | Length::Attributes(..))
        && !matches!(parameter.kind, Kind::Void)
}

/// Writes what a function is given.
///
/// # Safety
/// The program called the function with these arguments.
pub(crate) unsafe fn inputs(stream: &mut Stream, arguments: &Arguments, extents: &Extents) {
    for (at, parameter) in arguments.function.parameters.iter().enumerate() {
        let is_known = matches!(parameter.length, Length::Returned(_))
            || extents[at].is_some_and(|extent| extent != Extent::Opaque);
        if arguments.raw(at) != 0 && is_output(parameter) && is_known {
            continue;
        }
        stream.argument(at);
        // SAFETY: what a pointer leads to is of the extent by the function's contract.
        unsafe { input(stream, arguments, at, parameter, extents[at]) };
    }
}

unsafe fn input(stream: &mut Stream, arguments: &Arguments, at: usize, parameter: &Parameter, extent: Option<Extent>) {
    let raw = arguments.raw(at);
    let Some(extent) = extent else {
        return match parameter.kind {
            _ if parameter.pointers > 0 => stream.null(),
            Kind::Int32 if parameter.name == "param" => parameter_value(stream, arguments, raw),
            kind => number(stream, kind, raw),
        };
    };
    if let Length::Attributes(is_egl, group) = parameter.length
        && parameter.kind.bytes() >= 4
    {
        // SAFETY: a list ends with its last name by the function's contract.
        return unsafe { attributes(stream, arguments, parameter.kind, (is_egl, group), raw as *const u8) };
    }
    // SAFETY: as above, here and below.
    unsafe {
        match (parameter.pointers, extent) {
            (2, Extent::Count(count)) if parameter.kind == Kind::Character => texts(stream, arguments, raw as _, count),
            (2, Extent::Count(count)) if parameter.name == "indices" => pointed(stream, arguments, raw as _, count),
            (1, Extent::Terminated) => stream.text(CStr::from_ptr(raw as *const c_char).to_bytes()),
            (1, Extent::Bytes(bytes)) => stream.blob(std::slice::from_raw_parts(raw as *const u8, bytes)),
            (1, Extent::Count(count)) => match parameter.kind {
                Kind::Void => stream.blob(std::slice::from_raw_parts(raw as *const u8, count)),
                Kind::Character => stream.text(std::slice::from_raw_parts(raw as *const u8, count)),
                kind => array(stream, kind, raw as *const u8, count),
            },
            _ => stream.pointer(raw),
        }
    }
}

/// Writes what a function has returned, and what it wrote.
///
/// # Safety
/// The function has returned to the call with these arguments.
pub(crate) unsafe fn outputs(stream: &mut Stream, arguments: &Arguments, extents: &Extents, result: u64) {
    for (at, parameter) in arguments.function.parameters.iter().enumerate() {
        if !is_output(parameter) {
            continue;
        }
        let raw = arguments.raw(at);
        // SAFETY: the function has written as much as its contract says.
        unsafe {
            let count = match (extents[at], parameter.length) {
                (_, Length::Returned(count)) if raw != 0 => returned_count(arguments, count),
                (Some(Extent::Count(count)), _) => count,
                _ => continue,
            };
            stream.argument(at);
            if parameter.kind == Kind::Character {
                let bytes = std::slice::from_raw_parts(raw as *const u8, count.min(TEXT_MAX));
                let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
                stream.text(&bytes[..end]);
            } else {
                array(stream, parameter.kind, raw as *const u8, count);
            }
        }
    }
    match arguments.function.result {
        Kind::Void => {}
        Kind::Text => {
            stream.result();
            if result == 0 {
                stream.null();
            } else {
                // SAFETY: the driver returns a text that ends with a zero.
                stream.text(unsafe { CStr::from_ptr(result as *const c_char) }.to_bytes());
            }
        }
        kind => {
            stream.result();
            number(stream, kind, result);
        }
    }
}

/// A number of things that the function has written where a parameter points, at most as many as there is room for.
unsafe fn returned_count(arguments: &Arguments, at: u8) -> usize {
    let address = arguments.raw(at.into()) as *const i32;
    if address.is_null() {
        return 0;
    }
    // SAFETY: the function has written the number.
    let count = usize::try_from(unsafe { address.read_unaligned() }).unwrap_or(0);
    let room = arguments.named(&["config_size", "size"]).and_then(|room| usize::try_from(room).ok());
    room.map_or(count, |room| count.min(room))
}

/// One value. `raw`: a register, of which the bits above the type's are unspecified.
pub(crate) fn number(stream: &mut Stream, kind: Kind, raw: u64) {
    match kind {
        Kind::Int8 => stream.signed((raw as u8 as i8).into()),
        Kind::Uint8 | Kind::Character => stream.unsigned((raw as u8).into()),
        Kind::Int16 => stream.signed((raw as u16 as i16).into()),
        Kind::Uint16 => stream.unsigned((raw as u16).into()),
        Kind::Int32 => stream.signed((raw as u32 as i32).into()),
        Kind::Uint32 => stream.unsigned((raw as u32).into()),
        Kind::Int64 => stream.signed(raw as i64),
        Kind::Uint64 => stream.unsigned(raw),
        Kind::Float => stream.float(raw as u32),
        Kind::Double => stream.double(raw),
        Kind::Text | Kind::Handle | Kind::Void => stream.pointer(raw),
        Kind::Truth(group, true) => truth(stream, group, (raw as u8).into()),
        Kind::Truth(group, false) => truth(stream, group, (raw as u32 as i32).into()),
        Kind::Enum(group) => enumerant(stream, group.into(), (raw as u32).into()),
        Kind::Mask(group) => stream.mask(group.into(), (raw as u32).into()),
    }
}

fn truth(stream: &mut Stream, group: u16, value: i64) {
    match value {
        0 | 1 => stream.enumerant(group.into(), value),
        _ => stream.signed(value),
    }
}

/// An enumerant by the name that its group has for it, or another of the interface.
fn enumerant(stream: &mut Stream, group: usize, value: i64) {
    if GROUPS[group].has(value) {
        return stream.enumerant(group, value);
    }
    let all = if GROUPS[group].name.starts_with("EGL") { ALL_OF_EGL } else { ALL_OF_GL };
    if GROUPS[all].has(value) { stream.enumerant(all, value) } else { stream.signed(value) }
}

/// The value of a parameter of the state, which is a number or, for some names, an enumerant.
fn parameter_value(stream: &mut Stream, arguments: &Arguments, raw: u64) {
    let name = arguments.named(&["pname"]).and_then(|name| u32::try_from(name).ok()).unwrap_or(0);
    let value = i64::from(raw as u32 as i32);
    let is_enumerant = matches!(
        name,
        // Filters, wrapping, comparisons, swizzles, formats, environments and combinations, generation, fog, colour control.
        0x2800..=0x2803 | 0x8072 | 0x884c | 0x884d | 0x884b | 0x8e42..=0x8e45 | 0x90ea | 0x2200 | 0x8571 | 0x8572
            | 0x8580..=0x858a | 0x8590..=0x859a | 0x2500 | 0x0b65 | 0x81f8 | 0x8a48 | 0x8ca0
    );
    if is_enumerant && GROUPS[ALL_OF_GL].has(value) {
        stream.enumerant(ALL_OF_GL, value);
    } else {
        stream.signed(value);
    }
}

/// Values one after the other in memory.
unsafe fn array(stream: &mut Stream, kind: Kind, address: *const u8, count: usize) {
    stream.array(count);
    for at in 0..count {
        // SAFETY: there are so many.
        number(stream, kind, unsafe { read(address.add(at * kind.bytes()), kind.bytes()) });
    }
}

/// A value of 1, 2, 4 or 8 bytes.
unsafe fn read(address: *const u8, bytes: usize) -> u64 {
    // SAFETY: the caller's promise; the machine may be asked for what is not aligned.
    unsafe {
        match bytes {
            1 => address.read().into(),
            2 => address.cast::<u16>().read_unaligned().into(),
            4 => address.cast::<u32>().read_unaligned().into(),
            _ => address.cast::<u64>().read_unaligned(),
        }
    }
}

/// Texts, each of a length in another array or up to its zero.
unsafe fn texts(stream: &mut Stream, arguments: &Arguments, list: *const *const c_char, count: usize) {
    let lengths = arguments.place(&["length", "lengths"]).map_or(0, |at| arguments.raw(at)) as *const i32;
    stream.array(count);
    for at in 0..count {
        // SAFETY: the program passed so many texts, and as many lengths if any.
        unsafe {
            let text = list.add(at).read_unaligned();
            let length = if lengths.is_null() { -1 } else { lengths.add(at).read_unaligned() };
            match usize::try_from(length) {
                _ if text.is_null() => stream.null(),
                Ok(length) => stream.text(std::slice::from_raw_parts(text.cast::<u8>(), length)),
                Err(_) => stream.text(CStr::from_ptr(text).to_bytes()),
            }
        }
    }
}

/// Indices of several draws: each a blob, or an offset into a buffer.
unsafe fn pointed(stream: &mut Stream, arguments: &Arguments, list: *const *const u8, count: usize) {
    let is_buffer = has_index_buffer();
    let counts = arguments.place(&["count"]).map_or(0, |at| arguments.raw(at)) as *const i32;
    let bytes = arguments.named(&["type"]).and_then(|kind| type_bytes(kind as u32));
    stream.array(count);
    for at in 0..count {
        // SAFETY: the program passed so many pointers and counts.
        unsafe {
            let address = list.add(at).read_unaligned();
            let Some(bytes) = bytes.filter(|_| !is_buffer && !address.is_null() && !counts.is_null()) else {
                stream.pointer(address as u64);
                continue;
            };
            let count = usize::try_from(counts.add(at).read_unaligned()).unwrap_or(0);
            stream.blob(std::slice::from_raw_parts(address, count * bytes));
        }
    }
}

/// Names and values up to the name that ends them.
unsafe fn attributes(
    stream: &mut Stream,
    arguments: &Arguments,
    kind: Kind,
    (is_egl, group): (bool, u16),
    address: *const u8,
) {
    const EGL_NONE: u64 = 0x3038;
    // Names without a value: `GLX_USE_GL`, `GLX_RGBA`, `GLX_DOUBLEBUFFER`, `GLX_STEREO`.
    const ALONE: [u64; 4] = [1, 4, 5, 6];
    let end = if is_egl { EGL_NONE } else { 0 };
    let has_alone = arguments.function.name == "glXChooseVisual";
    let bytes = kind.bytes();
    let mut list = Vec::new();
    loop {
        // SAFETY: the list ends with the name that ends it, by the function's contract.
        let name = unsafe { read(address.add(list.len() * bytes), bytes) };
        list.push((name, true));
        if name == end {
            break;
        }
        if !(has_alone && ALONE.contains(&name)) {
            // SAFETY: as above: a value follows.
            list.push((unsafe { read(address.add(list.len() * bytes), bytes) }, false));
        }
    }
    stream.array(list.len());
    for (value, is_name) in list {
        let signed = if bytes == 8 { value as i64 } else { i64::from(value as u32 as i32) };
        if is_name && GROUPS[usize::from(group)].has(signed) {
            stream.enumerant(group.into(), signed);
        } else {
            stream.signed(signed);
        }
    }
}

/// Writes a call that the program did not make, of numbers by the function's types and, last, bytes.
pub(crate) fn fake(stream: &mut Stream, function: usize, thread: u32, numbers: &[u32], bytes: Option<&[u8]>) {
    let call = stream.enter(function, thread, true);
    let parameters = crate::table::FUNCTIONS[function].parameters;
    for (at, (value, parameter)) in numbers.iter().zip(parameters).enumerate() {
        stream.argument(at);
        number(stream, parameter.kind, (*value).into());
    }
    if let Some(bytes) = bytes {
        stream.argument(numbers.len());
        stream.blob(bytes);
    }
    stream.end();
    stream.leave(call);
    stream.end();
}

/// Why data that a function reads through a pointer are not recorded; `None`: all are.
pub(crate) fn unrecorded(arguments: &Arguments, extents: &Extents) -> Option<&'static str> {
    // What the program keeps for itself, and objects.
    const OTHERS: [&str; 5] = ["indices", "userParam", "image", "addr", "offset"];
    let parameters = arguments.function.parameters.iter().zip(extents);
    let mut opaque = parameters.filter(|(parameter, extent)| {
        parameter.is_const
            && **extent == Some(Extent::Opaque)
            && matches!(parameter.length, Length::Unknown)
            && parameter.kind != Kind::Handle
            && !OTHERS.contains(&parameter.name)
    });
    opaque.find_map(|(parameter, _)| match parameter.name {
        // Offsets into buffers, if there are buffers.
        "pointer" => (!has_vertex_buffer()).then_some("an array in the program's memory, of this kind"),
        "indirect" => (!has_indirect_buffer()).then_some("numbers of a draw in the program's memory"),
        _ => Some("what a pointer leads to: its length is not known"),
    })
}
