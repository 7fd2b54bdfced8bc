//! Records apitrace traces of programs that draw with OpenGL, OpenGL ES, GLX and EGL. The library is preloaded
//! (`LD_PRELOAD`), which `anytrace apitrace trace` does.
//!
//! Every function of the registries of Khronos is exported (`stubs`) and led to one handler (`handler`), which
//! writes what it is given (`values`), calls the driver's function (`real`) and writes what it answers. What the
//! driver reads later than it is called for is recorded as calls that the program did not make: arrays in the program's
//! memory (`arrays`), mapped buffers (`mappings`), places of attributes (`programs`), sizes of drawables
//! (`context`).
//!
//! Linux on x86-64 only; elsewhere the library is empty.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod actions;
mod arguments;
mod arrays;
mod ask;
mod backtraces;
mod context;
mod elements;
mod exec;
mod extent;
mod handler;
mod loading;
mod lock;
mod losses;
mod mappings;
mod process;
mod programs;
mod reach;
mod real;
mod registers;
mod stream;
mod stubs;
mod table;
mod text;
mod thread;
mod unknown;
mod values;
