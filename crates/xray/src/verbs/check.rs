//! Rules beyond framing: the verifier's state table, order of time, pairing, constant process ids.

use anytrace_core::{Diagnostic, Error, Place, Severity, Sink};

use crate::rules;
use crate::verbs::pairing::{Pairing, Thread};
use crate::wire::basic::BasicVisitor;
use crate::wire::fdr::{GapKind, Run, Visitor};
use crate::wire::moment::{Clock, Moment, MomentKind, Moments};
use crate::wire::record::{BasicBody, BasicRecord, Body, CustomTime, FunctionKind, Metadata};

/// States of the block verifier (page, section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VerifierState {
    Start,
    Extents,
    NewBuffer,
    WallTime,
    Pid,
    NewCpu,
    TscWrap,
    CustomEvent,
    TypedEvent,
    Function,
    CallArgument,
    EndOfBuffer,
}

use VerifierState as S;

impl VerifierState {
    pub(crate) fn of(body: &Body<'_>) -> Self {
        match body {
            Body::NewBuffer { .. } => S::NewBuffer,
            Body::EndOfBuffer => S::EndOfBuffer,
            Body::NewCpu { .. } => S::NewCpu,
            Body::TscWrap { .. } => S::TscWrap,
            Body::WallTime { .. } => S::WallTime,
            Body::CustomEvent { .. } => S::CustomEvent,
            Body::CallArgument { .. } => S::CallArgument,
            Body::BufferExtents { .. } => S::Extents,
            Body::TypedEvent { .. } => S::TypedEvent,
            Body::Pid { .. } => S::Pid,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            S::Start => "the start of a buffer",
            S::Extents => "buffer-extents",
            S::NewBuffer => "new-buffer",
            S::WallTime => "wall-time",
            S::Pid => "pid",
            S::NewCpu => "new-cpu-id",
            S::TscWrap => "tsc-wrap",
            S::CustomEvent => "custom-event",
            S::TypedEvent => "typed-event",
            S::Function => "a function record",
            S::CallArgument => "call-argument",
            S::EndOfBuffer => "end-of-buffer",
        }
    }

    fn may_follow(self) -> &'static [VerifierState] {
        const BODY: &[VerifierState] =
            &[S::NewCpu, S::TscWrap, S::CustomEvent, S::TypedEvent, S::Function, S::EndOfBuffer];
        const CALL: &[VerifierState] =
            &[S::NewCpu, S::TscWrap, S::CustomEvent, S::TypedEvent, S::Function, S::EndOfBuffer, S::CallArgument];
        match self {
            S::Start => &[S::Extents, S::NewBuffer],
            S::Extents => &[S::NewBuffer],
            S::NewBuffer => &[S::WallTime],
            S::WallTime => &[S::Pid, S::NewCpu],
            S::Pid => &[S::NewCpu],
            S::NewCpu | S::TscWrap | S::CustomEvent | S::TypedEvent => BODY,
            S::Function | S::CallArgument => CALL,
            S::EndOfBuffer => &[S::NewBuffer, S::Extents],
        }
    }

    pub(crate) fn may_be_last(self) -> bool {
        !matches!(self, S::NewBuffer | S::WallTime | S::Pid)
    }

    /// The diagnostic when `next` may not follow this state.
    pub(crate) fn breach(self, next: Self, at: Place) -> Option<Diagnostic> {
        let allowed = self.may_follow();
        if allowed.contains(&next) {
            return None;
        }
        let names: Vec<_> = allowed.iter().map(|state| state.name()).collect();
        let report = rules::BAD_TRANSITION.at(at.offset).record(at.seq).field(format!("record after {}", self.name()));
        Some(report.expected(names.join(", ")).found(next.name()))
    }
}

/// Checks one trace, whatever its form.
pub(crate) struct Checker<'s> {
    sink: &'s mut dyn Sink,
    version: u16,
    state: VerifierState,
    clock: Clock,
    pairing: Pairing,
    /// The thread of this buffer, while the buffer is being checked.
    thread: Option<(u32, Thread)>,
    has_time: bool,
    /// A function record may have arguments now; in Basic traces: the record they belong to.
    takes_arguments: bool,
    /// After damage: arguments here belong to a function that was lost.
    is_behind_damage: bool,
    last_basic: Option<BasicRecord>,
    zero_ids: u64,
    first_zero: Option<Place>,
}

impl<'s> Checker<'s> {
    pub(crate) fn new(sink: &'s mut dyn Sink, version: u16) -> Self {
        Self {
            sink,
            version,
            state: VerifierState::Start,
            clock: Clock::new(version),
            pairing: Pairing::default(),
            thread: None,
            has_time: false,
            takes_arguments: false,
            is_behind_damage: false,
            last_basic: None,
            zero_ids: 0,
            first_zero: None,
        }
    }

    /// Reports what only the complete trace shows.
    pub(crate) fn finish(mut self, end: Place) -> Result<(), Error> {
        self.put_back();
        if let Some(at) = self.first_zero {
            let report = rules::FUNCTION_ID_ZERO.at(at.offset).record(at.seq);
            self.sink.report(report.found(format!("{} records, this is the first", self.zero_ids)))?;
        }
        self.pairing.finish(end, self.sink)
    }

    fn put_back(&mut self) {
        if let Some((number, mut thread)) = self.thread.take() {
            if self.has_time {
                thread.last_tsc = Some(self.clock.tsc);
            }
            self.pairing.put_back(number, thread);
        }
    }

    fn enter(&mut self, next: VerifierState, at: Place) -> Result<(), Error> {
        if let Some(problem) = self.state.breach(next, at) {
            self.sink.report(problem)?;
        }
        self.state = next;
        Ok(())
    }

    /// Kinds that were added in a later version (page, section 1.2).
    fn kind_in_version(&mut self, body: &Body<'_>, at: Place) -> Result<(), Error> {
        let since = match body {
            Body::BufferExtents { .. } => 2,
            Body::Pid { .. } | Body::TypedEvent { .. } => 3,
            _ => return Ok(()),
        };
        if self.version >= since {
            return Ok(());
        }
        let report = rules::KIND_NOT_IN_VERSION.at(at.offset).record(at.seq).field("kind");
        let expected = format!("version {since} or later");
        self.sink.report(report.expected(expected).found(format!("{} in version {}", body.name(), self.version)))
    }

    fn backwards(&mut self, before: u64, after: u64, severity: Severity, at: Place) -> Result<(), Error> {
        let report = rules::TSC_BACKWARDS.at(at.offset).record(at.seq).field("tsc").severity(severity);
        self.sink.report(report.expected(format!("at least {before}")).found(after.to_string()))
    }

    fn process(&mut self, process: i32, at: Place) -> Result<(), Error> {
        let process = process.cast_unsigned();
        let Some((number, thread)) = &mut self.thread else { return Ok(()) };
        match thread.process.replace(process) {
            Some(before) if before != process => {
                let report =
                    rules::PID_CHANGED.at(at.offset).record(at.seq).field(format!("thread {}", number.cast_signed()));
                self.sink.report(report.expected(format!("process {before}")).found(process.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// The first time of a buffer: its thread's previous buffer must have ended.
    fn first_time(&mut self, tsc: u64, at: Place) {
        self.has_time = true;
        if let Some((_, thread)) = &mut self.thread
            && thread.last_tsc.is_some_and(|last| last > tsc)
        {
            thread.disorders += 1;
            thread.first_disorder.get_or_insert(at);
            thread.forget();
        }
    }

    fn times(&mut self, body: &Body<'_>, at: Place) -> Result<(), Error> {
        let before = self.clock.tsc;
        let is_event_with_base =
            matches!(body, Body::CustomEvent { time: CustomTime::Delta { .. }, .. } | Body::TypedEvent { .. });
        let moves_base = is_event_with_base || matches!(body, Body::NewCpu { .. } | Body::TscWrap { .. });
        let Some(tsc) = self.clock.metadata(body).filter(|_| moves_base) else { return Ok(()) };
        if !self.has_time {
            self.first_time(tsc, at);
            return Ok(());
        }
        // Writers put a wrap record where time goes backwards (page, section 1.3, writer rules).
        let severity = if matches!(body, Body::TscWrap { .. }) { Severity::Note } else { Severity::Warning };
        if tsc < before { self.backwards(before, tsc, severity, at) } else { Ok(()) }
    }
}

impl Visitor for Checker<'_> {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        if self.state != VerifierState::Function {
            self.enter(VerifierState::Function, run.at)?;
        }
        self.is_behind_damage = false;
        let mut nobody = Thread::default();
        let thread = self.thread.as_mut().map_or(&mut nobody, |(_, thread)| thread);
        let mut sum = 0;
        let mut last = FunctionKind::Exit;
        for (at, function) in run.records() {
            thread.function(function.kind, function.id, at);
            sum += u64::from(function.delta);
            last = function.kind;
            if function.id == 0 {
                self.zero_ids += 1;
                self.first_zero.get_or_insert(at);
            }
        }
        self.clock.tsc = self.clock.tsc.wrapping_add(sum);
        self.takes_arguments = last == FunctionKind::EnterArgs;
        Ok(())
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, _raw: &[u8], at: Place) -> Result<(), Error> {
        let body = &metadata.body;
        if matches!(body, Body::NewBuffer { .. } | Body::BufferExtents { .. }) {
            self.put_back();
        }
        if self.is_behind_damage && matches!(body, Body::CallArgument { .. }) {
            self.state = VerifierState::CallArgument;
            let report = rules::BASIC_ARGUMENT.at(at.offset).record(at.seq).field("record before it");
            return self.sink.report(report.expected("its function record").found("damage"));
        }
        self.is_behind_damage = false;
        self.enter(VerifierState::of(body), at)?;
        self.kind_in_version(body, at)?;
        self.times(body, at)?;
        match *body {
            Body::NewBuffer { thread } => {
                let number = thread.cast_unsigned();
                self.thread = self.pairing.take(number).map(|thread| (number, thread));
                self.has_time = false;
                Ok(())
            }
            Body::Pid { process } => self.process(process, at),
            Body::CallArgument { .. } if !self.takes_arguments => {
                let report = rules::ARGUMENT_AFTER_EXIT.at(at.offset).record(at.seq).field("record before it");
                self.sink.report(report.expected("function-enter-arg or call-argument"))
            }
            Body::CallArgument { .. } => Ok(()),
            _ => {
                self.takes_arguments = false;
                Ok(())
            }
        }
    }

    fn buffer_end(&mut self, at: Place) -> Result<(), Error> {
        if !self.state.may_be_last() {
            let report = rules::BAD_END.at(at.offset).record(at.seq).expected("a buffer with a time base");
            self.sink.report(report.found(format!("its end after {}", self.state.name())))?;
        }
        self.put_back();
        self.state = VerifierState::Start;
        self.takes_arguments = false;
        self.is_behind_damage = false;
        Ok(())
    }

    fn gap(&mut self, kind: GapKind, _bytes: &[u8], _at: Place) -> Result<(), Error> {
        self.is_behind_damage |= kind == GapKind::Damage;
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

impl BasicVisitor for Checker<'_> {
    fn record(&mut self, record: &BasicRecord, _raw: &[u8], at: Place) -> Result<(), Error> {
        match record.body {
            BasicBody::Function { kind, tsc, .. } => {
                if kind == FunctionKind::TailExit && self.version < 2 {
                    let report = rules::KIND_NOT_IN_VERSION.at(at.offset).record(at.seq).field("kind");
                    self.sink.report(report.expected("version 2 or later").found("function-tail-exit in version 1"))?;
                }
                self.last_basic = Some(*record);
                let process = if self.version >= 3 { record.process } else { 0 };
                self.one(kind, record.id.cast_unsigned(), record.thread, process, tsc, at)
            }
            BasicBody::Argument { .. } => {
                let owner = self.last_basic.filter(|last| {
                    last.id == record.id
                        && last.thread == record.thread
                        && (self.version < 3 || last.process == record.process)
                });
                let takes =
                    |last: BasicRecord| matches!(last.body, BasicBody::Function { kind, .. } if kind.is_entry());
                match owner {
                    None => {
                        let report =
                            rules::BASIC_ARGUMENT.at(at.offset).record(at.seq).field("function, thread and process");
                        self.sink.report(report.expected("those of the record before").found(format!("#{}", record.id)))
                    }
                    Some(last) if !takes(last) => {
                        let report = rules::ARGUMENT_AFTER_EXIT.at(at.offset).record(at.seq).field("record before it");
                        self.sink.report(report.expected("function-enter-arg or function-enter").found(last.name()))
                    }
                    Some(_) => Ok(()),
                }
            }
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

impl Checker<'_> {
    /// One function record of a form with absolute times.
    fn one(
        &mut self,
        kind: FunctionKind,
        id: u32,
        thread: u32,
        process: u32,
        tsc: u64,
        at: Place,
    ) -> Result<(), Error> {
        if id == 0 {
            self.zero_ids += 1;
            self.first_zero.get_or_insert(at);
        }
        let Some(found) = self.pairing.function(thread, kind, id, at) else { return Ok(()) };
        let before = found.last_tsc.replace(tsc);
        let owner = found.process.replace(process);
        if let Some(before) = before.filter(|&before| before > tsc) {
            self.backwards(before, tsc, Severity::Warning, at)?;
        }
        match owner {
            Some(owner) if owner != process => {
                let report =
                    rules::PID_CHANGED.at(at.offset).record(at.seq).field(format!("thread {}", thread.cast_signed()));
                self.sink.report(report.expected(format!("process {owner}")).found(process.to_string()))
            }
            _ => Ok(()),
        }
    }
}

impl Moments for Checker<'_> {
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        let at = moment.at;
        let MomentKind::Function(kind) = moment.kind else { return Ok(()) };
        if !moment.arguments.is_empty() && !kind.is_entry() {
            let report = rules::ARGUMENT_AFTER_EXIT.at(at.offset).record(at.seq).field("args");
            self.sink.report(report.expected("none").found(moment.arguments.len().to_string()))?;
        }
        self.one(kind, moment.function, moment.thread, moment.process, moment.tsc, at)
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}
