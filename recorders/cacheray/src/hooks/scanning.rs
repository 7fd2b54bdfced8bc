//! Functions that scan text into the program's variables: `sscanf` and its like. What they wrote follows from the form and
//! the number of conversions that succeeded.
//!
//! # Safety
//!
//! Each body has the contract of the library function whose name it has: the form is a string, and the list has a valid
//! pointer for each conversion in it that is not suppressed. Nothing else is dereferenced here.

#![expect(clippy::undocumented_unsafe_blocks, reason = "one argument serves all: see Safety above")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;

use super::library::{is_watched, length, writes};
use super::printing::variadic;
use super::text::wide_length;
use crate::real;

/// A list of arguments, as the ABI has it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct List {
    registers: u32,
    floats: u32,
    overflow: *const *const c_void,
    saved: *const u8,
}

impl List {
    /// The next pointer.
    unsafe fn next(&mut self) -> *const c_void {
        if self.registers < 48 {
            // SAFETY: as the module's.
            let at = unsafe { self.saved.add(self.registers as usize).cast::<*const c_void>().read() };
            self.registers += 8;
            return at;
        }
        // SAFETY: as the module's.
        unsafe {
            let at = self.overflow.read();
            self.overflow = self.overflow.add(1);
            at
        }
    }
}

/// What one conversion writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// This many bytes.
    Bytes(usize),
    /// A string.
    Text,
    /// A string of wide letters.
    WideText,
}

/// One conversion of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Conversion {
    place: Place,
    /// `*`: nothing is written, and no pointer is there.
    is_suppressed: bool,
    /// `%n`, which counts letters, and is not counted itself.
    is_count: bool,
}

/// The next conversion of a form, and what is left of it.
fn next(form: &[u8]) -> Option<(Conversion, &[u8])> {
    let mut rest = form;
    loop {
        let at = rest.iter().position(|letter| *letter == b'%')?;
        rest = rest.get(at + 1..)?;
        if rest.first() != Some(&b'%') {
            break;
        }
        rest = rest.get(1..)?;
    }
    // Flags come in any order, before the width: no argument, digits in groups, digits of the locale.
    let flags = rest.iter().take_while(|letter| b"*'I".contains(letter)).count();
    let is_suppressed = rest.get(..flags)?.contains(&b'*');
    rest = rest.get(flags..)?;
    let digits = rest.iter().take_while(|letter| letter.is_ascii_digit()).count();
    let width = rest
        .get(..digits)?
        .iter()
        .fold(0_usize, |all, digit| all.saturating_mul(10).saturating_add(usize::from(digit - b'0')));
    rest = rest.get(digits..)?;
    if rest.first() == Some(&b'$') {
        // Arguments by number: not followed.
        return None;
    }
    let modifiers = rest.iter().take_while(|letter| b"hljztLqm".contains(letter)).count();
    let modifier = rest.get(..modifiers)?;
    let kind = *rest.get(modifiers)?;
    rest = rest.get(modifiers + 1..)?;
    if kind == b'[' {
        // A bracket, or a circumflex and a bracket, at the beginning belongs to the set.
        let from = usize::from(rest.first() == Some(&b'^'));
        let from = from + usize::from(rest.get(from) == Some(&b']'));
        let end = rest.get(from..)?.iter().position(|letter| *letter == b']')?;
        rest = rest.get(from + end + 1..)?;
    }
    let is_wide = modifier.contains(&b'l') || matches!(kind, b'S' | b'C');
    let place = match kind {
        _ if modifier.contains(&b'm') => Place::Bytes(8),
        b's' | b'S' | b'[' if is_wide => Place::WideText,
        b's' | b'[' => Place::Text,
        b'c' | b'C' => Place::Bytes(width.max(1) * if is_wide { 4 } else { 1 }),
        b'p' => Place::Bytes(8),
        b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => match modifier {
            [b'L', ..] => Place::Bytes(10),
            [b'l', ..] => Place::Bytes(8),
            _ => Place::Bytes(4),
        },
        _ => match modifier {
            [b'h', b'h'] => Place::Bytes(1),
            [b'h'] => Place::Bytes(2),
            [b'l' | b'j' | b'z' | b't' | b'L' | b'q', ..] => Place::Bytes(8),
            _ => Place::Bytes(4),
        },
    };
    Some((Conversion { place, is_suppressed, is_count: kind == b'n' }, rest))
}

/// Records what was scanned: `converted` conversions.
unsafe fn scanned(form: *const c_char, mut list: List, converted: c_int) {
    // SAFETY: as the module's.
    let mut form = unsafe { std::slice::from_raw_parts(form.cast::<u8>(), length(form)) };
    let mut left = converted;
    while let Some((conversion, rest)) = next(form) {
        let is_next = form.trim_ascii_start().strip_prefix(b"%").is_some_and(|rest| !rest.starts_with(b"%"));
        form = rest;
        // Behind the last conversion that was counted, only a `%n` is sure to be reached, where nothing is between.
        if left < 0 || (left == 0 && !(conversion.is_count && is_next)) {
            break;
        }
        if conversion.is_suppressed {
            continue;
        }
        left -= c_int::from(!conversion.is_count);
        // SAFETY: as the module's; the strings were written.
        unsafe {
            let at = list.next();
            match conversion.place {
                Place::Bytes(bytes) => writes(at, bytes),
                Place::Text => writes(at, length(at.cast()) + 1),
                Place::WideText => writes(at, (wide_length(at.cast()) + 1) * 4),
            }
        }
    }
}

type Stream = *mut c_void;

/// Defines functions with a form and a list of arguments.
macro_rules! scanning {
    ($($name:literal ($($from:ident: $kind:ty)?);)*) => {$(
        const _: () = {
            unsafe extern "C-unwind" fn body($($from: $kind,)? form: *const c_char, list: *mut List) -> c_int {
                static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
                const NAME: &CStr = match CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                };
                let real = real::function(&REAL, NAME);
                type Real = unsafe extern "C-unwind" fn($($kind,)? *const c_char, *mut List) -> c_int;
                // SAFETY: the library's function of this name has this type.
                let real: Real = unsafe { std::mem::transmute(real) };
                // The call may walk the list.
                let before = unsafe { *list };
                let converted = unsafe { real($($from,)? form, list) };
                if is_watched() {
                    unsafe { scanned(form, before, converted) };
                }
                converted
            }

            #[cfg(not(test))]
            #[unsafe(naked)]
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn entry() {
                std::arch::naked_asm!(concat!(".weak ", $name), "jmp {}", sym body)
            }

            #[cfg(test)]
            const _: unsafe extern "C-unwind" fn($($kind,)? *const c_char, *mut List) -> c_int = body;
        };
    )*};
}

scanning! {
    "vsscanf"(from: *const c_char);
    "__isoc99_vsscanf"(from: *const c_char);
    "__isoc23_vsscanf"(from: *const c_char);
    "vfscanf"(from: Stream);
    "__isoc99_vfscanf"(from: Stream);
    "__isoc23_vfscanf"(from: Stream);
    "vscanf"();
    "__isoc99_vscanf"();
    "__isoc23_vscanf"();
}

variadic! {
    "sscanf" => "vsscanf@PLT", 16, "rdx";
    "__isoc99_sscanf" => "__isoc99_vsscanf@PLT", 16, "rdx";
    "__isoc23_sscanf" => "__isoc23_vsscanf@PLT", 16, "rdx";
    "fscanf" => "vfscanf@PLT", 16, "rdx";
    "__isoc99_fscanf" => "__isoc99_vfscanf@PLT", 16, "rdx";
    "__isoc23_fscanf" => "__isoc23_vfscanf@PLT", 16, "rdx";
    "scanf" => "vscanf@PLT", 8, "rsi";
    "__isoc99_scanf" => "__isoc99_vscanf@PLT", 8, "rsi";
    "__isoc23_scanf" => "__isoc23_vscanf@PLT", 8, "rsi";
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

    use std::ffi::CString;

    use super::*;
    use crate::testing::Random;

    fn all(form: &str) -> Vec<(Place, bool, bool)> {
        let mut rest = form.as_bytes();
        let mut found = Vec::new();
        while let Some((one, left)) = next(rest) {
            found.push((one.place, one.is_suppressed, one.is_count));
            rest = left;
        }
        found
    }

    #[test]
    fn forms_say_what_is_written() {
        use Place::{Bytes, Text, WideText};
        let places = |form: &str| all(form).into_iter().map(|(place, ..)| place).collect::<Vec<_>>();
        assert_eq!(places("%d %5u%hhx,%hi %ld %lld %zu %jd"), [4, 4, 1, 2, 8, 8, 8, 8].map(Bytes));
        assert_eq!(places("100%% %f %lf %Lf %p %n"), [4, 8, 10, 8, 4].map(Bytes));
        assert_eq!(places("%s %10[^]a-z] %[]] %ls %S"), [Text, Text, Text, WideText, WideText]);
        assert_eq!(places("%c %7c %3lc %ms %m[a]"), [1, 7, 12, 8, 8].map(Bytes));
        assert_eq!(all("%*d%n"), [(Bytes(4), true, false), (Bytes(4), false, true)]);
        for end in ["", "%", "%%", "%*", "%5", "%l", "%[abc", "%1$d", "no conversion"] {
            assert_eq!(places(end), [], "{end}");
        }
    }

    unsafe extern "C" {
        fn sscanf(text: *const c_char, form: *const c_char, ...) -> c_int;
    }

    const ROOM: usize = 64;

    /// The bytes of each argument that the library writes, as one range from its start.
    fn written(text: &str, form: &str) -> (c_int, [usize; 3]) {
        let (text, form) = (CString::new(text).unwrap(), CString::new(form).unwrap());
        let mut converted = 0;
        let mut lengths = [0; 3];
        // A byte that is written is not what was there before, with at least one of the two.
        for fill in [0xaa_u8, 0x55] {
            let mut places = [[fill; ROOM]; 3];
            let [a, b, c] = places.each_mut().map(|place| place.as_mut_ptr());
            // SAFETY: both texts end in a zero byte, and no conversion of the test writes more than ROOM bytes.
            converted = unsafe { sscanf(text.as_ptr(), form.as_ptr(), a, b, c) };
            for (length, place) in lengths.iter_mut().zip(places) {
                let last = place.iter().rposition(|byte| *byte != fill);
                *length = last.map_or(0, |at| at + 1).max(*length);
            }
        }
        (converted, lengths)
    }

    /// The bytes that a conversion of a text writes, by what its form says.
    fn expected(place: Place, text: &str) -> usize {
        match place {
            Place::Bytes(bytes) => bytes,
            Place::Text => text.len() + 1,
            Place::WideText => (text.len() + 1) * 4,
        }
    }

    /// Texts, and conversions that take all of them.
    const CONVERSIONS: [(&str, &[&str]); 5] = [
        (
            "117",
            &[
                "d", "i", "u", "hhd", "hu", "ld", "lld", "jd", "zu", "td", "qd", "Ld", "'d", "'5d", "'5ld", "I3lld",
                "I'9hd", "3d", "7hhd", "09ld", "f", "lf", "Lf", "9lf", "'9lf", "a", "le", "LG", "s", "9s", "ls", "S",
                "3c", "3lc", "3C", "ms", "9ms", "m[0-9]", "3mc", "[0-9]", "9l[0-9]", "[^]a]", "'9s",
            ],
        ),
        ("0x1f", &["x", "i", "hhx", "lX", "p", "9p", "s", "4c", "[]x0-9f]", "'12zx"]),
        ("-5", &["d", "hhi", "hd", "lli", "'8jd", "f", "s", "2c"]),
        ("7", &["c", "lc", "C", "1c", "hho", "o", "1s", "mc"]),
        ("1e3", &["g", "lG", "LE", "5e", "'5lf", "s"]),
    ];

    #[test]
    fn the_library_writes_what_the_form_says() {
        for (text, kinds) in CONVERSIONS {
            for kind in kinds {
                let form = format!("%{kind}");
                let found = all(&form);
                let (converted, lengths) = written(text, &form);
                assert_eq!((converted, found.len()), (1, 1), "{form} of {text}");
                assert_eq!([expected(found[0].0, text), 0, 0], lengths, "{form} of {text}");
            }
        }
    }

    #[test]
    fn several_conversions_are_told_apart_by_the_library_and_by_us() {
        let mut random = Random(1);
        let mut below = |end: usize| random.below(end as u64) as usize;
        for _ in 0..4000 {
            let (mut text, mut form, mut due) = (String::new(), String::new(), Vec::new());
            while due.len() < 3 {
                let (one, kinds) = CONVERSIONS[below(CONVERSIONS.len())];
                // This set would take the space, and what follows it.
                let kinds: Vec<_> = kinds.iter().filter(|kind| !kind.contains('^')).collect();
                let kind = kinds[below(kinds.len())];
                text += one;
                match below(5) {
                    // Taken, and written nowhere.
                    0 if !kind.contains('m') => form += &format!("%*{kind}"),
                    1 => {
                        form += one;
                        text += "%";
                        form += "%%";
                    }
                    _ => {
                        form += &format!("%{kind}");
                        due.push(one);
                    }
                }
                // A space ends each, and letters do not skip it.
                text += " ";
                form += " ";
            }
            let found: Vec<_> = all(&form).into_iter().filter(|(_, is_suppressed, _)| !is_suppressed).collect();
            let (converted, lengths) = written(&text, &form);
            assert_eq!((converted, found.len()), (3, 3), "{form:?} of {text:?}");
            let expected: Vec<usize> =
                found.iter().zip(&due).map(|((place, ..), text)| expected(*place, text)).collect();
            assert_eq!(lengths.as_slice(), expected, "{form:?} of {text:?}");
        }
    }
}
