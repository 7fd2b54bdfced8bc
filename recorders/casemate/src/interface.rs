//! The functions of the header, and the one place where its pointers are followed.
//!
//! What holds between calls: at most one call is at work ([`enter`]), and no arena is current unless one is.

use core::ffi::{c_char, c_void};
use core::mem::{align_of, size_of};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use anytrace_casemate_model as model;
use anytrace_casemate_model::{BbmLevel, QUIRKS, Quirks, Severity, Violation};

use crate::arena::{self, ALIGN, Arena};
use crate::line::Line;
use crate::steps::{self, Act, Step};

/// Results of a step, and verdicts.
const OK: i32 = 0;
const VIOLATION: i32 = 1;
const UNKNOWN: i32 = 2;
const STOPPED: i32 = 3;
const INVALID: i32 = 4;
const BUSY: i32 = 5;

/// Flags of [`Options`].
const RACY: u32 = 1;
const IGNORE_UNINITIALISED: u32 = 2;
const NO_SYSREG: u32 = 4;
const GO_ON: u32 = 8;

/// `struct casemate_options` of the header.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// 0 architecture, 1 strict, 2 the reference's.
    pub rules: u32,
    /// Flags.
    pub flags: u32,
    /// The level of FEAT_BBM.
    pub bbm: u32,
    /// Rules to switch on, as bits.
    pub rules_on: u32,
    /// Rules to switch off, as bits.
    pub rules_off: u32,
    /// 0.
    pub reserved: u32,
    /// Decides the places of addresses in hash tables; 0 for a fixed one.
    pub seed: u64,
}

type Log = unsafe extern "C" fn(context: *mut c_void, line: *const c_char, length: usize);
type Abort = unsafe extern "C" fn(context: *mut c_void, line: *const c_char);
type Symbol = unsafe extern "C" fn(context: *mut c_void, address: u64, name: *mut c_char, size: usize) -> usize;

/// `struct casemate_callbacks` of the header.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Callbacks {
    /// Given to each callback.
    pub context: *mut c_void,
    /// Takes a line of text.
    pub log: Option<Log>,
    /// Is called when checking stops.
    pub abort: Option<Abort>,
    /// Writes the name of an address; returns its length, 0 if there is none.
    pub symbol: Option<Symbol>,
}

impl Default for Callbacks {
    fn default() -> Self {
        Self { context: ptr::null_mut(), log: None, abort: None, symbol: None }
    }
}

/// `struct casemate_report` of the header.
#[repr(C)]
pub struct Report {
    code: [u8; 48],
    message: [u8; 112],
    is_error: u32,
    has_location: u32,
    location: u64,
    more: u64,
    old_value: u64,
    new_value: u64,
    deciding_bits: u64,
}

/// `struct casemate_memory` of the header.
#[repr(C)]
pub struct Memory {
    bytes: u64,
    used_bytes: u64,
    peak_bytes: u64,
}

/// The state of a checker, at the beginning of the caller's block.
pub struct Checker {
    magic: u64,
    arena: Arena,
    callbacks: Callbacks,
    verdict: i32,
    is_stopped: bool,
    /// Memory ran out in the last step: what it broke is not known.
    lacks_memory: bool,
    steps: u64,
    model: model::Checker,
}

const MAGIC: u64 = 0x6361_7365_6d61_7465;

static IS_BUSY: AtomicBool = AtomicBool::new(false);

/// A call at work.
struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        arena::set_current(ptr::null_mut());
        IS_BUSY.store(false, Ordering::Release);
    }
}

/// Begins a call; none while another one is at work.
fn enter() -> Option<Entered> {
    // Not by way of `then_some`: what it does not return ends the call at work when it is dropped.
    if IS_BUSY.swap(true, Ordering::Acquire) { None } else { Some(Entered) }
}

impl Options {
    fn model(&self) -> Option<model::Options> {
        let set = match self.rules {
            0 => Quirks::ARCHITECTURE,
            1 => Quirks::STRICT,
            2 => Quirks::COMPAT,
            _ => return None,
        };
        let known = (1_u64 << QUIRKS.len()) - 1;
        let has_unknown = u64::from(self.rules_on | self.rules_off) & !known != 0;
        if has_unknown || self.rules_on & self.rules_off != 0 || self.flags >= 2 * GO_ON || self.reserved != 0 {
            return None;
        }
        let mut quirks = set;
        for (bit, row) in QUIRKS.iter().enumerate() {
            let is_in = |set: u32| set >> (bit & 31) & 1 != 0;
            if is_in(self.rules_on) || is_in(self.rules_off) {
                quirks = quirks.with(row.quirk, is_in(self.rules_on));
            }
        }
        let has = |flag| self.flags & flag != 0;
        Some(model::Options {
            quirks,
            is_racy: has(RACY),
            ignores_uninitialised: has(IGNORE_UNINITIALISED),
            no_sysreg: has(NO_SYSREG),
            bbm: match self.bbm {
                0 => BbmLevel::Zero,
                1 => BbmLevel::One,
                2 => BbmLevel::Two,
                _ => return None,
            },
            goes_on: has(GO_ON),
        })
    }
}

/// Makes a checker in a block of memory, which it uses until the caller takes the block back; null if the block is too
/// small or an option has no meaning.
///
/// # Safety
///
/// `memory` is the beginning of `bytes` bytes that nothing else uses from now on. `options` and `callbacks` are null, or
/// point at what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn casemate_initialise(
    memory: *mut c_void,
    bytes: usize,
    options: *const Options,
    callbacks: *const Callbacks,
) -> *mut Checker {
    // SAFETY: the caller's promise.
    let (options, callbacks) = unsafe { (options.as_ref(), callbacks.as_ref()) };
    let options = options.copied().unwrap_or_default();
    let Some(_entered) = enter() else { return ptr::null_mut() };
    let Some(rules) = options.model() else { return ptr::null_mut() };
    let align = align_of::<Checker>().max(ALIGN);
    let skipped = memory.align_offset(align);
    let own = size_of::<Checker>().next_multiple_of(ALIGN);
    let needed = skipped.saturating_add(own);
    if memory.is_null() || needed >= bytes {
        return ptr::null_mut();
    }
    let checker: *mut Checker = memory.wrapping_byte_add(skipped).cast();
    let rest = memory.wrapping_byte_add(needed).cast();
    // SAFETY: the place is aligned and inside the block. The arena comes first: what is made next takes memory from it.
    let first = unsafe {
        let first = &raw mut (*checker).arena;
        first.write(Arena::new(rest, bytes - needed));
        first
    };
    arena::set_current(first);
    model::take_lack();
    if options.seed != 0 {
        model::set_seed(options.seed);
    }
    let model = model::Checker::new(rules);
    if model::take_lack() {
        return ptr::null_mut();
    }
    // SAFETY: as above; every field is written before anyone reads it.
    unsafe {
        (&raw mut (*checker).callbacks).write(callbacks.copied().unwrap_or_default());
        (&raw mut (*checker).verdict).write(OK);
        (&raw mut (*checker).is_stopped).write(false);
        (&raw mut (*checker).lacks_memory).write(false);
        (&raw mut (*checker).steps).write(0);
        (&raw mut (*checker).model).write(model);
        (&raw mut (*checker).magic).write(MAGIC);
    }
    checker
}

/// The checker, if the pointer is to one.
///
/// # Safety
///
/// The pointer is null or from [`casemate_initialise`], and its block still belongs to the checker.
unsafe fn checker_of(checker: *mut Checker, _: &mut Entered) -> Option<&mut Checker> {
    // SAFETY: the caller's promise, and that one call is at work.
    unsafe { checker.as_mut() }.filter(|checker| checker.magic == MAGIC)
}

/// Checks a step; returns what it was.
///
/// # Safety
///
/// The checker is null or from [`casemate_initialise`], and its block still belongs to it. `step` is null or points at
/// a step.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn casemate_step(checker: *mut Checker, step: *const Step) -> i32 {
    let Some(mut entered) = enter() else { return BUSY };
    // SAFETY: the caller's promises.
    let (Some(known), Some(step)) = (unsafe { checker_of(checker, &mut entered) }, unsafe { step.as_ref() }) else {
        return INVALID;
    };
    if known.is_stopped {
        return STOPPED;
    }
    let thread = step.thread;
    match step.give(Taker { checker: known, thread }) {
        Some(true) => OK,
        // SAFETY: it is a checker, and the call is at work.
        Some(false) => unsafe { end(entered, checker, thread) },
        None => INVALID,
    }
}

/// Checks a step whose operation or register is given by its name, as a trace has it: `casemate_tlbi_name` and
/// `casemate_sysreg_name` of the header. `is_register`: 0 or 1.
///
/// # Safety
///
/// The checker is null or from [`casemate_initialise`], and its block still belongs to it. `name` is null or points at
/// bytes that end with 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn casemate_step_name(
    checker: *mut Checker,
    thread: u32,
    is_register: i32,
    name: *const c_char,
    value: u64,
) -> i32 {
    let Some(mut entered) = enter() else { return BUSY };
    // SAFETY: the caller's promise.
    let Some(known) = (unsafe { checker_of(checker, &mut entered) }).filter(|_| !name.is_null()) else {
        return INVALID;
    };
    if known.is_stopped {
        return STOPPED;
    }
    let mut word = [0_u8; steps::NAME_MAX + 1];
    let mut length = 0;
    for (at, place) in word.iter_mut().enumerate() {
        // SAFETY: no byte before this one was 0: it is part of the name.
        *place = unsafe { name.cast::<u8>().add(at).read() };
        if *place == 0 {
            break;
        }
        length = at + 1;
    }
    let transition = word.get(..length).and_then(|word| steps::named(is_register != 0, word, value));
    let Some(transition) = transition else { return INVALID };
    if (Taker { checker: known, thread }).act(transition) {
        return OK;
    }
    // SAFETY: it is a checker, and the call is at work.
    unsafe { end(entered, checker, thread) }
}

/// The checker that takes a step: true if that broke no rule, and there was memory for it. What it comes to otherwise is
/// found out elsewhere: a line that a function may return would be copied in every step.
struct Taker<'a> {
    checker: &'a mut Checker,
    thread: u32,
}

impl Act for Taker<'_> {
    type Result = bool;

    #[inline(always)]
    fn act(self, transition: model::Transition) -> bool {
        arena::set_current(&raw mut self.checker.arena);
        self.checker.steps += 1;
        self.checker.model.step(self.thread, &transition).is_empty() && !model::is_lacking()
    }
}

/// The result of a step that broke a rule or lacked memory. Ends the call, and calls the last callback: it need not
/// return.
///
/// # Safety
///
/// As for [`checker_of`].
#[cold]
#[inline(never)]
unsafe fn end(mut entered: Entered, checker: *mut Checker, thread: u32) -> i32 {
    // SAFETY: the caller's promise.
    let Some(checker) = (unsafe { checker_of(checker, &mut entered) }) else { return INVALID };
    let (result, line) = checker.conclude(thread, model::take_lack());
    let end = line.map(|line| (line, checker.callbacks));
    drop(entered);
    if let Some((line, Callbacks { context, abort: Some(abort), .. })) = end {
        // SAFETY: the function that the caller gave, with its own context and a line that lives until it returns.
        unsafe { abort(context, line.as_ptr().cast()) };
    }
    result
}

impl Checker {
    /// What a step came to that broke a rule or lacked memory, and the last words if checking stops.
    #[cold]
    fn conclude(&mut self, thread: u32, lacks_memory: bool) -> (i32, Option<Line>) {
        if lacks_memory {
            (self.is_stopped, self.lacks_memory) = (true, true);
            if self.verdict == OK {
                self.verdict = UNKNOWN;
            }
            let mut line = Line::new();
            line.text("casemate: step ").decimal(self.steps);
            line.text(": out of memory: nothing is known from here on");
            self.log(&line);
            return (UNKNOWN, Some(line));
        }
        let goes_on = self.model.options().goes_on;
        let (mut result, mut last) = (OK, None);
        for found in self.model.found() {
            let line = self.describe(thread, found);
            self.log(&line);
            match found.severity {
                Severity::Error => {
                    result = if self.verdict == UNKNOWN { UNKNOWN } else { VIOLATION };
                    last = (!goes_on).then_some(line);
                }
                _ if found.breach.is_doubt && result == OK => result = UNKNOWN,
                _ => {}
            }
        }
        if self.verdict == OK {
            self.verdict = result;
        }
        self.is_stopped = last.is_some();
        (result, last)
    }

    fn log(&self, line: &Line) {
        if let Some(log) = self.callbacks.log {
            // SAFETY: the function that the caller gave, with its own context and a line that lives until it returns.
            unsafe { log(self.callbacks.context, line.as_ptr().cast(), line.length()) };
        }
    }

    fn describe(&self, thread: u32, found: &Violation) -> Line {
        let is_error = found.severity == Severity::Error;
        let mut line = Line::new();
        line.text("casemate: step ").decimal(self.steps).text(", thread ").decimal(u64::from(thread));
        line.text(if is_error { ": error: " } else { ": warning: " }).text(found.breach.message);
        line.text(" [").text(found.breach.rule.code).text("]");
        if let Some(location) = found.location {
            line.text(" at ").hex(location);
            self.name(location, &mut line);
        }
        if found.more > 0 {
            line.text(" and ").decimal(found.more).text(" more");
        }
        if let Some(change) = found.change {
            line.text(": ").hex(change.old).text(" -> ").hex(change.new);
        }
        line
    }

    /// Adds the name of an address, if the caller knows one.
    fn name(&self, address: u64, line: &mut Line) {
        let Some(symbol) = self.callbacks.symbol else { return };
        let mut name = [0_u8; 64];
        // SAFETY: the function that the caller gave, with its own context and room for the name.
        let length = unsafe { symbol(self.callbacks.context, address, name.as_mut_ptr().cast(), name.len()) };
        if let Some(name) = name.get(..length.min(64)).filter(|name| !name.is_empty()) {
            line.text(" (");
            name.iter().take_while(|byte| **byte != 0).for_each(|byte| line.byte(*byte));
            line.text(")");
        }
    }
}

/// The verdict of all steps until now.
///
/// # Safety
///
/// The checker is null or from [`casemate_initialise`], and its block still belongs to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn casemate_verdict(checker: *mut Checker) -> i32 {
    let Some(mut entered) = enter() else { return BUSY };
    // SAFETY: the caller's promise.
    unsafe { checker_of(checker, &mut entered) }.map_or(INVALID, |checker| checker.verdict)
}

/// What the last step broke: writes the report with a number from 0 on, and returns 1, or 0 if there is none.
///
/// # Safety
///
/// The checker is null or from [`casemate_initialise`], and its block still belongs to it. `report` is null or points at
/// room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn casemate_report(checker: *mut Checker, number: usize, report: *mut Report) -> i32 {
    let Some(mut entered) = enter() else { return 0 };
    // SAFETY: the caller's promise.
    let Some(checker) = (unsafe { checker_of(checker, &mut entered) }) else { return 0 };
    let has_reports = !checker.lacks_memory && !report.is_null();
    let Some(found) = checker.model.found().get(number).filter(|_| has_reports) else { return 0 };
    let change = found.change.map_or((0, 0, 0), |change| (change.old, change.new, change.deciding));
    let stale = found.stale.map_or(change, |stale| (stale.old, stale.new, 0));
    // SAFETY: the caller's promise; the place need not be initialised.
    unsafe {
        report.write(Report {
            code: text(found.breach.rule.code),
            message: text(found.breach.message),
            is_error: u32::from(found.severity == Severity::Error),
            has_location: u32::from(found.location.is_some()),
            location: found.location.unwrap_or(0),
            more: found.more,
            old_value: stale.0,
            new_value: stale.1,
            deciding_bits: stale.2,
        });
    }
    1
}

/// A text with a zero at its end.
fn text<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    for (place, byte) in bytes.iter_mut().take(N.saturating_sub(1)).zip(text.bytes()) {
        *place = byte;
    }
    bytes
}

/// How much of its block a checker uses; returns 1, or 0 if there is no checker.
///
/// # Safety
///
/// As for [`casemate_report`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn casemate_memory(checker: *mut Checker, memory: *mut Memory) -> i32 {
    let Some(mut entered) = enter() else { return 0 };
    // SAFETY: the caller's promise.
    let Some(checker) = (unsafe { checker_of(checker, &mut entered) }).filter(|_| !memory.is_null()) else { return 0 };
    let (bytes, used, peak) = checker.arena.account();
    // SAFETY: the caller's promise.
    unsafe { memory.write(Memory { bytes: bytes as u64, used_bytes: used as u64, peak_bytes: peak as u64 }) };
    1
}
