//! Exports a trace as a C program that replays its calls without a window (`apitrace to-c`).
//!
//! The calls are written to C files as they are read, long data to `data.bin`; only tables are kept in memory. The
//! program finds EGL and OpenGL at run time, makes a context for each of the trace's, and maps the trace's object names
//! to those it gets.

mod arguments;
mod data;
mod source;
mod statements;
mod windows;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;

use anytrace_core::{Error, Limits, Outcome, Sink};

use crate::lanes::calls::{Call, CallOptions, CallVisitor, read_calls};
use crate::lanes::dictionary::{Definition, Dictionary};
use crate::lanes::flags::CallFlags;
use crate::tools::callset::CallSet;
use crate::tools::gl::contexts::{Change, ContextVerb, Contexts, System, context_action};
use crate::tools::gl::values::Values;
use crate::wire::reader::Reader;
use crate::wire::record::{Header, VERSION_THREADS};

use arguments::{Expressions, Unfit};
use data::Data;
use source::Source;
use statements::{Rule, Rules, Statement};
use windows::{Windows, asked};

/// Most omitted functions that are reported by name.
const LEFT_OUT_MAX: usize = 256;

/// What is exported.
#[derive(Debug, Clone, Default)]
pub struct ToCOptions {
    /// Only these calls; `None`: all. Calls that make and select contexts are always exported.
    pub calls: Option<CallSet>,
    /// Only calls of these frames, by number. Combined with `calls`: those of either.
    pub frames: Option<CallSet>,
}

/// Writes the program to an existing folder. `records_written` of the outcome is the number of calls it makes; its
/// notes list the OpenGL calls that it does not make, and why.
///
/// # Errors
/// I/O, limits, and what the sink returns.
pub fn to_c(
    reader: &mut Reader,
    options: &ToCOptions,
    folder: &Path,
    limits: &Limits,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let path = folder.join("data.bin");
    let data = Data::create(&path).map_err(|error| Error::io(path.display(), error))?;
    let mut exporter = Exporter {
        options,
        dictionary: Dictionary::default(),
        rules: Rules::default(),
        expressions: Expressions { data, names: BTreeMap::new() },
        source: Source::new(folder),
        contexts: Contexts::new(false),
        windows: Windows::new(),
        binds_gl: HashMap::new(),
        shown: None,
        frame: 0,
        written: 0,
        left_out: BTreeMap::new(),
        left_out_rest: 0,
    };
    let how = CallOptions { keeps_blobs: true, ..CallOptions::default().with_limits(limits) };
    let totals = read_calls(reader, how, &mut exporter, sink)?;
    let Exporter { source, expressions, windows, written, left_out, left_out_rest, .. } = exporter;
    let Expressions { data, names } = expressions;
    let wrote = data.finish().and_then(|length| source.finish(&names, &windows.sizes(), length));
    wrote.map_err(|error| Error::io(folder.display(), error))?;
    let mut notes: Vec<String> = left_out
        .into_iter()
        .map(|((name, why), calls)| {
            format!("{name}: {calls} call{} left out: {why}", if calls == 1 { "" } else { "s" })
        })
        .collect();
    if left_out_rest > 0 {
        notes.push(format!("{left_out_rest} calls of other functions left out"));
    }
    Ok(Outcome { records_read: totals.calls, records_written: written, bytes_lost: totals.lost_bytes, notes })
}

struct Exporter<'o> {
    options: &'o ToCOptions,
    dictionary: Dictionary,
    rules: Rules,
    expressions: Expressions,
    source: Source,
    contexts: Contexts,
    windows: Windows,
    /// Threads for which EGL makes contexts of OpenGL instead of OpenGL ES.
    binds_gl: HashMap<u64, bool>,
    /// The context and drawable that are current in the program.
    shown: Option<(u32, usize)>,
    frame: u64,
    written: u64,
    left_out: BTreeMap<(String, &'static str), u64>,
    left_out_rest: u64,
}

impl CallVisitor for Exporter<'_> {
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        self.dictionary = Dictionary::new(header.version);
        self.contexts = Contexts::new(header.version >= VERSION_THREADS);
        Ok(())
    }

    fn define(&mut self, definition: &Definition<'_>) {
        self.dictionary.define(definition);
    }

    fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        self.take(call).map_err(|error| Error::io("the source", error))
    }
}

impl Exporter<'_> {
    fn take(&mut self, call: &Call<'_>) -> io::Result<()> {
        let dictionary = std::mem::take(&mut self.dictionary);
        let taken = self.take_with(call, &dictionary);
        self.dictionary = dictionary;
        taken
    }

    fn take_with(&mut self, call: &Call<'_>, dictionary: &Dictionary) -> io::Result<()> {
        let Some(function) = dictionary.function(call.function) else {
            self.leave_out("?", "its name was lost");
            return Ok(());
        };
        let (name, flags) = (function.name(), function.flags);
        let values = Values::new(call, dictionary);
        let ends_frame = flags.has(CallFlags::END_FRAME);
        let frame = self.frame;
        self.frame += u64::from(ends_frame);
        if name == b"eglBindAPI" && (self.binds_gl.len() < 1 << 14 || self.binds_gl.contains_key(&call.thread)) {
            self.binds_gl.insert(call.thread, values.integer(0) == Some(0x30a2));
        }
        if let Some(action) = context_action(name) {
            return self.take_context(call, name, action, &values);
        }
        let context = self.contexts.current(call.thread);
        let stem = self.rules.of(call.function, function).stem;
        self.windows.take(stem, &values, context, call.thread);
        if !self.is_wanted(call.number, frame, flags) {
            return Ok(());
        }
        if ends_frame {
            self.show(context, call.thread)?;
            self.written += 1;
            return self.source.statement(&format!("    frame_end({});\n", call.number));
        }
        let rule = self.rules.of(call.function, function);
        if rule.is_silent {
            return Ok(());
        }
        if call.is_incomplete {
            let name = rule.name.clone();
            return self.leave_out_here(&name, "it never returned", call.number);
        }
        match Self::statement(rule, &values, &mut self.expressions) {
            Ok(text) => {
                if let Some((name, types)) = rule.called {
                    self.source.called.insert(name, types);
                }
                self.show(context, call.thread)?;
                self.written += 1;
                // A separate block lets compilers reuse the arrays' memory for the next call.
                let needs_block = text.contains("[]){") && !text.starts_with('{');
                let (open, close) = if needs_block { ("{ ", " }") } else { ("", "") };
                self.source.statement(&format!("    /* {} */ {open}{text}{close}\n", call.number))
            }
            Err(Unfit::Io(error)) => Err(error),
            Err(Unfit::Value(why)) => {
                let name = rule.name.clone();
                self.leave_out_here(&name, why, call.number)
            }
        }
    }

    fn statement(rule: &Rule, values: &Values<'_>, expressions: &mut Expressions) -> Result<String, Unfit> {
        Statement { rule, values, expressions }.write()
    }

    fn is_wanted(&self, number: u64, frame: u64, flags: CallFlags) -> bool {
        match (&self.options.calls, &self.options.frames) {
            (None, None) => true,
            (calls, frames) => {
                calls.as_ref().is_some_and(|calls| calls.has(number, flags))
                    || frames.as_ref().is_some_and(|frames| frames.has(frame, flags))
            }
        }
    }

    /// Makes the context of a thread current in the program.
    fn show(&mut self, context: u32, thread: u64) -> io::Result<()> {
        let wanted = (context, self.windows.of_thread(thread));
        if self.shown == Some(wanted) {
            return Ok(());
        }
        self.shown = Some(wanted);
        self.source.statement(&format!("    make_current({context}, {});\n", wanted.1))
    }

    fn take_context(
        &mut self,
        call: &Call<'_>,
        name: &[u8],
        action: (System, ContextVerb),
        values: &Values<'_>,
    ) -> io::Result<()> {
        let changes =
            if call.is_incomplete { Vec::new() } else { self.contexts.take(action, values, call.thread, call.number) };
        let binds_gl = self.binds_gl.get(&call.thread).copied().unwrap_or(false);
        if let ContextVerb::MakeCurrent(_) = action.1 {
            self.windows.make_current(name, values, call.thread);
        }
        for change in changes {
            match change {
                Change::Created(context) => {
                    let row = self.contexts.get(context);
                    let mut asked = asked(row.system, name, values, binds_gl);
                    if row.created.is_none() {
                        // Its creation is not in the trace. With EGL it is most probably one of OpenGL ES.
                        asked = windows::Asked { is_es: asked.is_es, ..windows::Asked::default() };
                        asked.version.0 = if asked.is_es { 3 } else { 0 };
                    }
                    let group = row.group;
                    let before = self.contexts.all().get(1..context as usize).unwrap_or_default();
                    let share = before.iter().position(|other| other.group == group).map_or(-1, |at| at as i64 + 1);
                    let (major, minor) = asked.version;
                    let (api, profile) = (if asked.is_es { "API_ES" } else { "API_GL" }, asked.profile);
                    let text = format!("    new_context({context}, {share}, {api}, {major}, {minor}, {profile});\n");
                    self.source.statement(&text)?;
                }
                Change::Current(Some(context)) => self.show(context, call.thread)?,
                Change::Joined { to, .. } => self.join(to)?,
                Change::Ended { context, .. } => {
                    if self.shown.is_some_and(|(shown, _)| shown == context) {
                        self.shown = None;
                    }
                    self.source.statement(&format!("    end_context({context});\n"))?;
                }
                Change::Current(None) => {}
            }
        }
        self.written += 1;
        Ok(())
    }

    /// All contexts of a group share. Joining them again is harmless.
    fn join(&mut self, group: u32) -> io::Result<()> {
        let of_group = |(at, context): (usize, &crate::tools::gl::contexts::Context)| {
            (context.group == group && at > 0 && !context.has_ended).then_some(at)
        };
        let members: Vec<usize> = self.contexts.all().iter().enumerate().filter_map(of_group).collect();
        let Some((first, others)) = members.split_first() else { return Ok(()) };
        for other in others {
            self.source.statement(&format!("    share_contexts({first}, {other});\n"))?;
        }
        Ok(())
    }

    fn leave_out_here(&mut self, name: &str, why: &'static str, number: u64) -> io::Result<()> {
        self.leave_out(name, why);
        self.source.statement(&format!("    /* {number}: {name} is left out: {why} */\n"))
    }

    fn leave_out(&mut self, name: &str, why: &'static str) {
        let key = (name.to_owned(), why);
        if self.left_out.len() >= LEFT_OUT_MAX && !self.left_out.contains_key(&key) {
            self.left_out_rest += 1;
            return;
        }
        *self.left_out.entry(key).or_default() += 1;
    }
}
