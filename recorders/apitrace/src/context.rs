//! Contexts of OpenGL: what each may be asked, and what the recorder has to do before its calls.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::ask;

const GL_VERSION: u32 = 0x1f02;
const GL_EXTENSIONS: u32 = 0x1f03;
const GL_CONTEXT_PROFILE_MASK: u32 = 0x9126;
const GL_CONTEXT_CORE_PROFILE_BIT: i32 = 1;

/// A context, as long as the process lives: few are made.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) is_es: bool,
    /// Major version times ten, and the minor one.
    pub(crate) version: u32,
    pub(crate) is_core: bool,
    /// Of OpenGL ES 2: rows of images may be parts of longer ones.
    pub(crate) has_unpack_subimage: bool,
    /// A pointer to an array in the program's own memory was set.
    pub(crate) has_user_arrays: AtomicBool,
    /// Counts what may have changed arrays.
    array_changes: AtomicU32,
    /// The first size of a drawable is recorded.
    pub(crate) has_viewport: AtomicBool,
}

impl Context {
    /// The context that the driver has current.
    fn asked() -> Self {
        let text = String::from_utf8_lossy(&ask::string(GL_VERSION)).into_owned();
        let is_es = text.starts_with("OpenGL ES");
        let digits = text.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        let mut numbers =
            digits.split(|letter: char| !letter.is_ascii_digit()).filter_map(|word| word.parse::<u32>().ok());
        let version = numbers.next().unwrap_or(1) * 10 + numbers.next().unwrap_or(0).min(9);
        let is_core =
            !is_es && version >= 32 && ask::integer(GL_CONTEXT_PROFILE_MASK) & GL_CONTEXT_CORE_PROFILE_BIT != 0;
        let has_unpack_subimage = is_es && version < 30 && {
            let extensions = ask::string(GL_EXTENSIONS);
            extensions.split(|byte| *byte == b' ').any(|word| word == b"GL_EXT_unpack_subimage")
        };
        let (has_user_arrays, has_viewport) = (AtomicBool::new(false), AtomicBool::new(false));
        let array_changes = AtomicU32::new(1);
        Self { is_es, version, is_core, has_unpack_subimage, has_user_arrays, array_changes, has_viewport }
    }

    /// The program may have changed which arrays there are.
    pub(crate) fn change_arrays(&self) {
        self.array_changes.fetch_add(1, Relaxed);
    }

    /// How often that was.
    pub(crate) fn array_changes(&self) -> u32 {
        self.array_changes.load(Relaxed)
    }

    /// Whether images may come from a buffer.
    pub(crate) fn has_pixel_buffers(&self) -> bool {
        self.version >= if self.is_es { 30 } else { 21 }
    }

    /// Whether vertices and indices may come from buffers.
    pub(crate) fn has_buffers(&self) -> bool {
        self.version >= if self.is_es { 11 } else { 15 }
    }

    /// Whether the numbers of an indirect draw may be in the program's memory.
    pub(crate) fn may_have_indirect_memory(&self) -> bool {
        !self.is_es && !self.is_core && self.version >= 40
    }

    /// Whether arrays have names (`glVertexPointer`) as in the first versions.
    pub(crate) fn has_fixed_arrays(&self) -> bool {
        if self.is_es { self.version < 20 } else { !self.is_core }
    }

    /// Whether arrays have numbers (`glVertexAttribPointer`).
    pub(crate) fn has_attributes(&self) -> bool {
        self.version >= 20
    }
}

static CONTEXTS: Mutex<BTreeMap<u64, &'static Context>> = Mutex::new(BTreeMap::new());

thread_local! {
    static CURRENT: Cell<Option<&'static Context>> = const { Cell::new(None) };
}

/// The context that this thread has current.
pub(crate) fn current() -> Option<&'static Context> {
    CURRENT.get()
}

/// The thread has made a context current, or with 0 none.
pub(crate) fn made_current(handle: u64) -> Option<&'static Context> {
    let context = (handle != 0).then(|| {
        let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        *contexts.entry(handle).or_insert_with(|| Box::leak(Box::new(Context::asked())))
    });
    CURRENT.set(context);
    context
}

/// Another context may get the same handle.
pub(crate) fn destroyed(handle: u64) {
    CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner).remove(&handle);
}

/// All contexts may be gone; those that are not are asked again.
pub(crate) fn forget() {
    CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// The size of the drawable, if it is the first that the context has: the driver sets the viewport to it.
pub(crate) fn first_size(context: &Context) -> Option<[i32; 4]> {
    const GL_VIEWPORT: u32 = 0x0ba2;
    if context.has_viewport.load(Relaxed) {
        return None;
    }
    let found = ask::integers::<4>(GL_VIEWPORT);
    // A context without a surface has no size yet.
    if found[2] <= 0 || found[3] <= 0 {
        return None;
    }
    context.has_viewport.store(true, Relaxed);
    Some(found)
}
