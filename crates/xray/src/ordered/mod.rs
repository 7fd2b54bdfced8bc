//! Any XRay trace in order of time: each thread's moments by themselves, or all threads' together.
//!
//! On the wire the threads of a Basic trace are mixed, and an FDR trace has each thread in buffers, in the order in
//! which they were written out, which need not be that of time (page, sections 1.3 and 2).

mod store;

use std::collections::HashMap;

use anytrace_core::{Cursor, Error, Input, OpenOptions, Sink, Summary};

use crate::basic::walk_basic;
use crate::moment::{BasicMoments, FdrMoments, Moments};
use crate::reader::Reader;
use crate::record::TYPE_FDR;
use crate::trace::{Form, Opened, XrayTrace, end};
use crate::yaml::{YamlHeader, YamlMoments, walk_yaml};
use store::{Collecting, Store};

/// Forms of trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceForm {
    /// No bytes, or a header that names no known version or type: there are no moments.
    Nothing,
    /// Flight data recorder.
    Fdr,
    /// Basic, also called naive.
    Basic,
    /// Text.
    Yaml,
}

/// What the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Form of the file.
    pub form: SourceForm,
    /// The version, of YAML that of the trace it was made from.
    pub version: u32,
    /// 0 Basic, 1 FDR; of YAML that of the trace it was made from.
    pub type_code: u32,
    /// Whether the counter runs at a constant rate.
    pub constant_tsc: bool,
    /// Whether the counter runs on while a processor sleeps.
    pub nonstop_tsc: bool,
    /// Ticks a second; 0 where unknown.
    pub cycle_frequency: u64,
}

impl Facts {
    const NOTHING: Self = Self {
        form: SourceForm::Nothing,
        version: 0,
        type_code: 0,
        constant_tsc: false,
        nonstop_tsc: false,
        cycle_frequency: 0,
    };
}

/// An opened trace that will be read in order of time.
///
/// ```
/// use anytrace_core::{Collect, Diagnostic, Error, Input, OpenOptions};
/// use anytrace_xray::{Moment, Moments, Ordered};
///
/// #[derive(Default)]
/// struct Times(Vec<u64>);
///
/// impl Moments for Times {
///     fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
///         self.0.push(moment.tsc);
///         Ok(())
///     }
///     fn report(&mut self, problem: Diagnostic) -> Result<(), Error> {
///         Err(Error::malformed(problem))
///     }
/// }
///
/// let text = "---
/// header:
///   version: 3
///   type: 0
///   constant-tsc: true
///   nonstop-tsc: true
///   cycle-frequency: 5
/// records:
///   - { type: 0, func-id: 1, function: f, cpu: 0, thread: 7, kind: function-enter, tsc: 9, data: '' }
///   - { type: 0, func-id: 1, function: f, cpu: 0, thread: 8, kind: function-enter, tsc: 4, data: '' }
/// ...
/// ";
/// let (mut times, mut sink) = (Times::default(), Collect::default());
/// let trace = Ordered::open(Input::from_bytes("x.yaml", text.into()), &OpenOptions::default(), &mut sink)?;
/// assert_eq!(trace.header().cycle_frequency, 5);
/// trace.by_time(&mut times, &mut sink)?;
/// assert_eq!(times.0, [4, 9]);
/// # Ok::<(), Error>(())
/// ```
pub struct Ordered {
    facts: Facts,
    store: Store,
    summary: Summary,
}

impl Ordered {
    /// Opens a trace of any form and reads its header. Damage goes to the sink, here or while moments are given.
    ///
    /// # Errors
    /// I/O, options that the format does not have, and what the sink returns.
    pub fn open(input: Input, options: &OpenOptions, sink: &mut dyn Sink) -> Result<Self, Error> {
        options.only("xray", &["endian"])?;
        let trace = XrayTrace::new(input, options);
        let Opened { cursor, form, limits } = trace.start(sink)?;
        let mut facts = Facts::NOTHING;
        let mut collecting = Collecting { store: Store::default(), sink };
        let (records, cursor): (u64, Cursor) = match form {
            Form::Empty | Form::Unreadable(_) => (0, crate::rewrite::drain(cursor)?),
            Form::Yaml => {
                let on_header = |_: &mut Collecting<'_>, header: &YamlHeader| {
                    facts = Facts {
                        form: SourceForm::Yaml,
                        version: header.version,
                        type_code: header.type_code,
                        constant_tsc: header.constant_tsc,
                        nonstop_tsc: header.nonstop_tsc,
                        cycle_frequency: header.cycle_frequency,
                    };
                    Ok(())
                };
                walk_yaml(cursor, &limits, &mut YamlMoments { moments: &mut collecting, on_header })?
            }
            Form::Binary(header, layout) => {
                let is_fdr = header.type_code == TYPE_FDR;
                facts = Facts {
                    form: if is_fdr { SourceForm::Fdr } else { SourceForm::Basic },
                    version: u32::from(header.version),
                    type_code: u32::from(header.type_code),
                    constant_tsc: header.constant_tsc(layout),
                    nonstop_tsc: header.nonstop_tsc(layout),
                    cycle_frequency: header.cycle_frequency,
                };
                if is_fdr {
                    let mut moments = FdrMoments::new(&mut collecting, header.version);
                    Reader::new(cursor, header, layout, &limits).walk(&mut moments)?
                } else {
                    let mut moments = BasicMoments::new(&mut collecting, header.version);
                    let walked = walk_basic(cursor, layout, &mut moments)?;
                    moments.finish()?;
                    walked
                }
            }
        };
        let Collecting { store, sink } = collecting;
        let bytes = end(&cursor, sink)?;
        Ok(Self { facts, store, summary: Summary { records, bytes } })
    }

    /// What the header says.
    pub fn header(&self) -> &Facts {
        &self.facts
    }

    /// Gives every moment, those of each thread (of each process) in order of time. Threads may be mixed.
    ///
    /// Damage goes to the sink; [`Moments::report`] and [`Moments::lost`] are not called.
    ///
    /// # Errors
    /// I/O, and what the receiver and the sink return.
    pub fn by_thread<M: Moments>(mut self, moments: &mut M, _sink: &mut dyn Sink) -> Result<Summary, Error> {
        self.group();
        self.store.give(moments)?;
        Ok(self.summary)
    }

    /// As [`Self::by_thread`], with the trace's threads spread over `threads` workers: each has a receiver of its own
    /// from `make` and is given all moments of the threads that fell to it. Which those are may differ from run to run.
    ///
    /// # Errors
    /// As [`Self::by_thread`].
    pub fn by_thread_parallel<M: Moments + Send>(
        self,
        _threads: usize,
        make: impl Fn() -> M + Sync,
        sink: &mut dyn Sink,
    ) -> Result<(Vec<M>, Summary), Error> {
        let mut moments = make();
        let summary = self.by_thread(&mut moments, sink)?;
        Ok((vec![moments], summary))
    }

    /// Gives every moment in order of time; those of one time in the order of their processes, threads and records
    /// (FDR), or of the file (Basic, YAML).
    ///
    /// Damage goes to the sink; [`Moments::report`] and [`Moments::lost`] are not called.
    ///
    /// # Errors
    /// As [`Self::by_thread`].
    pub fn by_time<M: Moments>(mut self, moments: &mut M, _sink: &mut dyn Sink) -> Result<Summary, Error> {
        if self.facts.form == SourceForm::Fdr {
            self.group();
        }
        self.store.entries.sort_by_key(|entry| entry.tsc);
        self.store.give(moments)?;
        Ok(self.summary)
    }

    /// Threads one after another, their buffers in order of time.
    fn group(&mut self) {
        let entries = &mut self.store.entries;
        if self.facts.form == SourceForm::Fdr {
            let mut first = HashMap::new();
            for entry in &*entries {
                first.entry((entry.process, entry.thread, entry.buffer)).or_insert(entry.tsc);
            }
            let time = |key| first.get(&key).copied().unwrap_or_default();
            entries.sort_by_key(|e| (e.process, e.thread, time((e.process, e.thread, e.buffer)), e.buffer, e.at.seq));
        } else {
            entries.sort_by_key(|entry| (entry.process, entry.thread, entry.tsc));
        }
    }
}
