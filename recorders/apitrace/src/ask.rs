//! Questions to the driver, which the program does not notice: no question is asked that a context of its version would
//! answer with an error.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::sync::OnceLock;

use crate::{real, table};

/// A function of the driver, by its type.
#[derive(Debug)]
pub(crate) struct Driver<F> {
    name: &'static str,
    address: OnceLock<Option<usize>>,
    kind: PhantomData<F>,
}

impl<F: Copy> Driver<F> {
    /// # Safety
    /// `F` is the function's type.
    pub(crate) const unsafe fn new(name: &'static str) -> Self {
        Self { name, address: OnceLock::new(), kind: PhantomData }
    }

    /// The function; `None`: the driver has none.
    pub(crate) fn get(&self) -> Option<F> {
        let address = *self.address.get_or_init(|| table::number(self.name.as_bytes()).and_then(real::address));
        assert!(size_of::<F>() == size_of::<usize>(), "a pointer to a function");
        // SAFETY: the address is that of the function whose type `F` is (`new`).
        address.map(|address| unsafe { std::mem::transmute_copy::<usize, F>(&address) })
    }
}

macro_rules! driver {
    ($($constant:ident $name:literal ($($parameter:ty),*) $(-> $result:ty)?;)*) => {
        $(
            pub(crate) static $constant: Driver<unsafe extern "C" fn($($parameter),*) $(-> $result)?> = {
                // SAFETY: the type is that of the registry.
                unsafe { Driver::new($name) }
            };
        )*
    };
}

driver! {
    GET_INTEGER "glGetIntegerv" (u32, *mut i32);
    GET_STRING "glGetString" (u32) -> *const c_char;
    IS_ENABLED "glIsEnabled" (u32) -> u8;
    GET_POINTER "glGetPointerv" (u32, *mut *const u8);
    GET_ATTRIBUTE "glGetVertexAttribiv" (u32, u32, *mut i32);
    GET_ATTRIBUTE_POINTER "glGetVertexAttribPointerv" (u32, u32, *mut *const u8);
    CLIENT_ACTIVE_TEXTURE "glClientActiveTexture" (u32);
    GET_BUFFER_PARAMETER "glGetBufferParameteriv" (u32, u32, *mut i32);
    GET_BUFFER_DATA "glGetBufferSubData" (u32, isize, isize, *mut u8);
    MAP_BUFFER_RANGE "glMapBufferRange" (u32, isize, isize, u32) -> *mut u8;
    UNMAP_BUFFER "glUnmapBuffer" (u32) -> u8;
    GET_PROGRAM "glGetProgramiv" (u32, u32, *mut i32);
    GET_ACTIVE_ATTRIBUTE "glGetActiveAttrib" (u32, u32, i32, *mut i32, *mut i32, *mut u32, *mut c_char);
    GET_ATTRIBUTE_LOCATION "glGetAttribLocation" (u32, *const c_char) -> i32;
}

/// State that is one number; 0 where there is no driver.
pub(crate) fn integer(name: u32) -> i32 {
    integers::<1>(name)[0]
}

/// State that is `N` numbers.
pub(crate) fn integers<const N: usize>(name: u32) -> [i32; N] {
    // Room for what a driver has more than one expects.
    let mut found = [0; 32];
    if let Some(get) = GET_INTEGER.get() {
        // SAFETY: no state that is asked for here has more than 16 numbers.
        unsafe { get(name, found.as_mut_ptr()) };
    }
    std::array::from_fn(|at| found.get(at).copied().unwrap_or(0))
}

/// A text that the driver keeps.
pub(crate) fn string(name: u32) -> Vec<u8> {
    let Some(get) = GET_STRING.get() else { return Vec::new() };
    // SAFETY: the driver answers with null or a text that stays while the context does.
    unsafe {
        let text = get(name);
        if text.is_null() { Vec::new() } else { CStr::from_ptr(text).to_bytes().to_vec() }
    }
}

pub(crate) fn is_enabled(name: u32) -> bool {
    // SAFETY: takes a number.
    IS_ENABLED.get().is_some_and(|is_enabled| unsafe { is_enabled(name) } != 0)
}
