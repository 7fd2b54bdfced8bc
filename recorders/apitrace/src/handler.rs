//! One call of the program: recorded, passed on, and its answer recorded. What the driver and the recorder itself call
//! meanwhile is passed on alone.

use std::ffi::{CStr, c_char};

use crate::actions::{self, Action};
use crate::arguments::Arguments;
use crate::lock::{Guard, Shared, lock};
use crate::mappings::{self, Mappings};
use crate::registers::Registers;
use crate::stream::Stream;
use crate::values::{self, Extents};
use crate::{arrays, backtraces, context, elements, loading, process, programs, real, table, thread, unknown};

/// Takes every call of a function that is exported.
pub(crate) unsafe extern "C" fn handle(number: u32, registers: &Registers) -> u64 {
    let number = number as usize;
    if thread::is_inside() || process::is_off() {
        // SAFETY: the function is the one that was called.
        return real::address(number).map_or(0, |address| unsafe { real::call(number, address, registers) });
    }
    thread::set_inside(true);
    // SAFETY: the stub passes the registers of the call.
    let result = unsafe { record(number, registers) };
    thread::set_inside(false);
    result
}

/// A call that is recorded.
struct Call<'a> {
    number: usize,
    registers: &'a Registers,
    arguments: Arguments,
    address: usize,
}

unsafe fn record(number: usize, registers: &Registers) -> u64 {
    let Some(address) = real::address(number) else {
        lock().losses.count(table::FUNCTIONS[number].name, "the driver has no such function");
        return 0;
    };
    // SAFETY: the caller's promise.
    let arguments = unsafe { Arguments::of(number, registers) };
    let call = Call { number, registers, arguments, address };
    // SAFETY: as above, for each kind of call.
    unsafe {
        match actions::of(number) {
            Action::Plain => call.plain(),
            Action::MakeCurrent => call.make_current(),
            Action::DestroyContext => {
                context::destroyed(call.arguments.raw(call.arguments.function.parameters.len() - 1));
                call.plain()
            }
            Action::Terminate => {
                context::forget();
                call.plain()
            }
            Action::GetProcAddress => call.get_proc_address(),
            Action::Swap => call.swap(),
            Action::Pointer => {
                call.change_arrays();
                if arrays::is_users(&call.arguments) { call.pass_on() } else { call.plain() }
            }
            Action::ArrayState => {
                call.change_arrays();
                call.plain()
            }
            Action::Begin => {
                elements::prepare();
                call.plain()
            }
            Action::ArrayElement if elements::are_users() => call.array_element(),
            Action::ArrayElement => call.plain(),
            Action::Draw => call.draw(),
            Action::Map => call.map(),
            Action::Unmap => call.unmap(),
            Action::FlushMapped => call.flush_mapped(),
            Action::BufferData => call.buffer_data(),
            Action::DeleteBuffers => call.delete_buffers(),
            Action::Interleaved if arrays::is_users(&call.arguments) => call.interleaved(),
            Action::Interleaved => call.plain(),
            Action::Link => call.link(),
            Action::Reads => {
                call.compare_mappings();
                call.plain()
            }
        }
    }
}

/// The lock, with a trace that is open, and the thread's number in it; `None`: nothing is recorded any more.
fn begin() -> Option<(Guard, u32)> {
    let mut shared = lock();
    if shared.stream.is_none() {
        process::open(&mut shared);
    }
    let stream = shared.stream.as_mut()?;
    let thread = thread::number(&mut stream.threads);
    Some((shared, thread))
}

impl Call<'_> {
    /// Calls the driver.
    unsafe fn pass_on(&self) -> u64 {
        // SAFETY: the program has called the function with these registers.
        unsafe { real::call(self.number, self.address, self.registers) }
    }

    unsafe fn plain(&self) -> u64 {
        // SAFETY: the caller's promise, here and below.
        unsafe {
            let extents = values::measure(&self.arguments);
            let number = self.enter(&extents);
            let result = self.pass_on();
            self.leave(number, &extents, result);
            result
        }
    }

    unsafe fn enter(&self, extents: &Extents) -> Option<u64> {
        let stack = if backtraces::is_wanted(self.number) { backtraces::addresses() } else { Vec::new() };
        let (mut shared, thread) = begin()?;
        let stream = shared.stream.as_mut()?;
        let number = stream.enter(self.number, thread, false);
        stream.backtrace(&stack);
        // SAFETY: the program has called the function with these arguments.
        unsafe { values::inputs(stream, &self.arguments, extents) };
        stream.end();
        self.count_opaque(extents, &mut shared);
        Some(number)
    }

    unsafe fn leave(&self, number: Option<u64>, extents: &Extents, result: u64) {
        let Some(number) = number else { return };
        let mut shared = lock();
        let Some(stream) = &mut shared.stream else { return };
        stream.leave(number);
        // SAFETY: the function has returned.
        unsafe { values::outputs(stream, &self.arguments, extents, result) };
        stream.end();
        process::after_call(&mut shared);
    }

    /// Data that a function reads and whose size is not known here.
    fn count_opaque(&self, extents: &Extents, shared: &mut Shared) {
        if let Some(parameter) = values::unrecorded(&self.arguments, extents) {
            shared.losses.count(self.arguments.function.name, parameter);
        }
    }

    unsafe fn make_current(&self) -> u64 {
        // SAFETY: the caller's promise.
        let result = unsafe { self.plain() };
        let parameters = self.arguments.function.parameters.len();
        if result as u32 == 0 {
            return result;
        }
        // The context is the last of the parameters; `eglReleaseThread` has none.
        let handle = parameters.checked_sub(1).map_or(0, |last| self.arguments.raw(last));
        let Some(context) = context::made_current(handle) else { return result };
        let Some([_, _, width, height]) = context::first_size(context) else { return result };
        let Some((mut shared, thread)) = begin() else { return result };
        let Some(stream) = &mut shared.stream else { return result };
        for name in ["glViewport", "glScissor"] {
            if let Some(function) = table::number(name.as_bytes()) {
                values::fake(stream, function, thread, &[0, 0, width as u32, height as u32], None);
            }
        }
        result
    }

    /// The program gets our function instead of the driver's.
    unsafe fn get_proc_address(&self) -> u64 {
        // SAFETY: the caller's promise.
        let result = unsafe { self.plain() };
        let name = self.arguments.raw(0) as *const c_char;
        if result == 0 || name.is_null() {
            return result;
        }
        // SAFETY: the program passes a text that ends with a zero.
        let name = unsafe { CStr::from_ptr(name) };
        match table::number(name.to_bytes()).and_then(|_| loading::symbol(name)) {
            Some(ours) => ours as u64,
            None => unknown::counted(&name.to_string_lossy(), result as usize) as u64,
        }
    }

    unsafe fn swap(&self) -> u64 {
        self.compare_mappings();
        // SAFETY: the caller's promise.
        let result = unsafe { self.plain() };
        process::after_frame(&mut lock());
        result
    }

    unsafe fn draw(&self) -> u64 {
        self.compare_mappings();
        // SAFETY: the caller's promise.
        let arrays = unsafe { arrays::read(&self.arguments) };
        if let Some((mut shared, thread)) = begin() {
            match &arrays {
                Ok(arrays) => arrays::write(&mut shared, thread, arrays),
                Err(why) => shared.losses.count(self.arguments.function.name, why),
            }
        }
        // SAFETY: as above.
        unsafe { self.plain() }
    }

    unsafe fn map(&self) -> u64 {
        // SAFETY: the caller's promise.
        let result = unsafe { self.plain() };
        if result != 0 {
            let mapped = mappings::mapped(&self.arguments);
            lock().mappings.insert(result, mapped);
        }
        result
    }

    unsafe fn unmap(&self) -> u64 {
        let address = mappings::address(&self.arguments);
        let is_known = self.with_mappings(|mappings, stream, thread| mappings.end(address, stream, thread));
        // SAFETY: the caller's promise.
        let result = unsafe { self.plain() };
        // One that the driver refuses was none.
        self.expect_mapping(is_known || result as u8 == 0);
        result
    }

    unsafe fn flush_mapped(&self) -> u64 {
        let address = mappings::address(&self.arguments);
        let number = |at: usize| usize::try_from(self.arguments.raw(at) as i64).unwrap_or(0);
        let range = number(1)..number(1).saturating_add(number(2));
        let is_known = self.with_mappings(|mappings, stream, thread| mappings.flush(address, range, stream, thread));
        self.expect_mapping(is_known);
        // SAFETY: the caller's promise.
        unsafe { self.plain() }
    }

    /// Records with the mappings, if anything is recorded.
    fn with_mappings(&self, record: impl FnOnce(&mut Mappings, &mut Stream, u32) -> bool) -> bool {
        let Some((mut shared, thread)) = begin() else { return true };
        let Shared { mappings, stream, .. } = &mut *shared;
        stream.as_mut().is_none_or(|stream| record(mappings, stream, thread))
    }

    fn expect_mapping(&self, is_known: bool) {
        if !is_known {
            lock()
                .losses
                .count(self.arguments.function.name, "what was written to the buffer: its mapping is not known");
        }
    }

    unsafe fn buffer_data(&self) -> u64 {
        let address = mappings::address(&self.arguments);
        if address != 0 {
            lock().mappings.forget(address);
        }
        // SAFETY: the caller's promise.
        unsafe { self.plain() }
    }

    unsafe fn delete_buffers(&self) -> u64 {
        let mut shared = lock();
        if !shared.mappings.is_empty() {
            let (count, list) =
                (usize::try_from(self.arguments.int(0)).unwrap_or(0), self.arguments.raw(1) as *const u32);
            // SAFETY: the program passes so many names.
            let names = (0..count).map(|at| unsafe { list.add(at).read_unaligned() }).collect::<Vec<_>>();
            shared.mappings.delete(&names);
        }
        drop(shared);
        // SAFETY: the caller's promise.
        unsafe { self.plain() }
    }

    fn change_arrays(&self) {
        if let Some(context) = context::current() {
            context.change_arrays();
        }
    }

    /// The values of an element are recorded, in place of the call.
    unsafe fn array_element(&self) -> u64 {
        if let Some((mut shared, thread)) = begin() {
            let Shared { stream, losses, .. } = &mut *shared;
            if let Some(stream) = stream {
                // SAFETY: the program has called the function with this index.
                let written = unsafe { elements::write(stream, thread, self.arguments.int(0)) };
                if let Err(why) = written {
                    losses.count(self.arguments.function.name, why);
                }
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.pass_on() }
    }

    /// Which arrays are enabled is recorded, in place of the call: its pointer leads to the program's memory.
    unsafe fn interleaved(&self) -> u64 {
        self.change_arrays();
        // SAFETY: the caller's promise.
        let result = unsafe { self.pass_on() };
        let states = arrays::enabled();
        if let Some((mut shared, thread)) = begin()
            && let Some(stream) = &mut shared.stream
        {
            for (array, is_enabled) in states {
                let name = if is_enabled { "glEnableClientState" } else { "glDisableClientState" };
                if let Some(function) = table::number(name.as_bytes()) {
                    values::fake(stream, function, thread, &[array], None);
                }
            }
        }
        result
    }

    fn compare_mappings(&self) {
        if mappings::has_persistent() {
            self.with_mappings(|mappings, stream, thread| {
                mappings.compare(stream, thread);
                true
            });
        }
    }

    /// Where attributes are is recorded before the call, so that another driver puts them there too.
    unsafe fn link(&self) -> u64 {
        // SAFETY: the caller's promise.
        let result = unsafe { self.pass_on() };
        let places = programs::attributes(self.arguments.uint(0));
        if let Some((mut shared, thread)) = begin()
            && let Some(stream) = &mut shared.stream
        {
            programs::write(stream, thread, self.arguments.uint(0), &places);
        }
        let extents = values::measure(&self.arguments);
        // SAFETY: as above; the function has returned already.
        unsafe {
            let number = self.enter(&extents);
            self.leave(number, &extents, result);
        }
        result
    }
}
