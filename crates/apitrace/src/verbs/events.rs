//! What the forms of events have in common: which events are printed, when their text is written, and what becomes of
//! damaged ones.

use std::io::Write;

use anytrace_core::{DumpOptions, Error, Selection, Sink};

use crate::wire::record::{Event, Header, Token};
use crate::wire::signatures::Signatures;
use crate::wire::values::{Source, ValueWriter};
use crate::wire::visitor::{Context, Visitor};

/// The `--select` conditions that apply to events.
pub(crate) const CONDITIONS: [&str; 3] = ["records", "thread", "name"];

/// A line longer than this goes out in parts.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Lines are written in pieces of about this size.
const WRITE_BYTES: usize = 1 << 16;

/// True when an event is wanted.
pub(crate) fn is_selected(selection: &Selection, event: &Event, signatures: &Signatures) -> bool {
    selection.has_record(event.seq)
        && selection.has_thread(event.thread)
        && selection.own.numbers("frames").is_none_or(|frames| {
            // The only word: calls that end a frame.
            let ends = || event.function.and_then(|slot| signatures.function(slot)).is_some_and(|row| row.ends_frame);
            frames.contains_where(event.frame, |_| ends())
        })
        && selection.name.as_ref().is_none_or(|matches| {
            event.function.and_then(|slot| signatures.function(slot)).is_some_and(|row| matches(row.name()))
        })
}

/// Values of events, token by token.
pub(crate) enum Events {}

impl Source for Events {
    type Value<'a> = &'a Token<'a>;
    type Names = Signatures;
    /// Text is flushed between tokens.
    type Flow<'a> = ();
}

/// Writes an event, part by part.
pub(crate) trait EventForm: ValueWriter<Events> {
    /// Takes the header.
    fn header(&mut self, out: &mut Vec<u8>, header: &Header) {
        let _ = (out, header);
    }

    /// Takes each token before anything is written for it, those of events that are not wanted, too.
    fn note(&mut self, token: &Token<'_>, context: &Context<'_>) {
        let _ = (token, context);
    }

    /// Begins the line. For enters, this happens once the function is known.
    fn head(&mut self, out: &mut Vec<u8>, token: &Token<'_>, context: &Context<'_>, options: &DumpOptions);

    /// True if a detail is written after all arguments, wherever it is on the wire.
    fn is_tail(&self, detail: &Token<'_>) -> bool {
        let _ = detail;
        false
    }

    /// Writes a detail up to its value.
    fn detail(&mut self, out: &mut Vec<u8>, detail: &Token<'_>, context: &Context<'_>);

    /// Takes back the details of an event that this form cannot represent; returns true if there are to be none.
    /// `begin` is as for [`EventForm::end`].
    fn drops_details(&mut self, out: &mut Vec<u8>, begin: Option<usize>, context: &Context<'_>) -> bool {
        let _ = (out, begin, context);
        false
    }

    /// Writes a piece, or what follows the last one, of a long string or blob.
    fn piece(&mut self, out: &mut Vec<u8>, token: &Token<'_>);

    /// Ends the line. `begin` is where it begins in `out`, or `None` after a part of it was written.
    fn end(&mut self, out: &mut Vec<u8>, tail: &mut Vec<u8>, event: &Event, begin: Option<usize>) -> Result<(), Error>;

    /// Takes the end of the trace.
    fn finish(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// Ends a line whose event is damaged and a part of which was written already. The innermost level is the last.
    fn cut(&mut self, out: &mut Vec<u8>, levels: &[(Self::Level, u64)]);
}

/// Prints events in a form.
pub(crate) struct EventPrinter<'a, F: EventForm> {
    form: F,
    options: &'a DumpOptions,
    out: &'a mut dyn Write,
    lines: Vec<u8>,
    /// Where in `lines` the event begins; `None` after a part of it was written.
    begin: Option<usize>,
    /// What follows the arguments.
    tail: Vec<u8>,
    in_tail: bool,
    is_wanted: bool,
    /// What is open around the next value, and how many values of each were written.
    levels: Vec<(F::Level, u64)>,
}

impl<'a, F: EventForm> EventPrinter<'a, F> {
    pub(crate) fn new(form: F, options: &'a DumpOptions, out: &'a mut dyn Write) -> Self {
        Self {
            form,
            options,
            out,
            lines: Vec::with_capacity(WRITE_BYTES),
            begin: None,
            tail: Vec::new(),
            in_tail: false,
            is_wanted: false,
            levels: Vec::new(),
        }
    }

    /// Writes what is buffered at the end of the trace.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.form.finish(&mut self.lines);
        self.flush()
    }

    /// Writes what is buffered.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.out.write_all(&self.lines)?;
        self.lines.clear();
        self.begin = None;
        Ok(())
    }

    fn head(&mut self, token: &Token<'_>, context: &Context<'_>) {
        self.is_wanted = is_selected(&self.options.selection, context.event, context.signatures);
        if self.is_wanted {
            self.begin = Some(self.lines.len());
            self.tail.clear();
            self.levels.clear();
            self.in_tail = false;
            self.form.head(&mut self.lines, token, context, self.options);
        }
    }

    /// Writes a detail, or a part of its value.
    #[inline]
    fn write(&mut self, token: &Token<'_>, context: &Context<'_>) -> Result<(), Error> {
        let Self { form, lines, tail, levels, in_tail, .. } = self;
        let names = context.signatures;
        match token {
            Token::Argument(_) | Token::Return | Token::Thread(_) | Token::Flags(_) | Token::Backtrace(_) => {
                *in_tail = form.is_tail(token);
                let out = if *in_tail { tail } else { lines };
                form.detail(out, token, context);
                if let Token::Backtrace(_) = token {
                    levels.push((form.open(out, token, None, names), 0));
                }
                return Ok(());
            }
            _ => {}
        }
        let out = if *in_tail { tail } else { lines };
        match token {
            Token::EndLevel => {
                let closed = levels.pop();
                let mut outer = levels.last_mut().map(|(level, _)| level);
                if let Some((level, _)) = closed {
                    form.close(out, level, outer.as_deref_mut(), names);
                }
                form.after(out, outer.as_deref());
                return Ok(());
            }
            Token::BytesPiece(_) => {
                form.piece(out, token);
                return Ok(());
            }
            Token::BytesEnd(_) => {
                form.piece(out, token);
                form.after(out, levels.last().map(|(level, _)| level));
                return Ok(());
            }
            _ => {}
        }
        let outer = levels.last_mut().map(|(level, at)| {
            form.before(out, level, *at, names);
            *at += 1;
            &*level
        });
        if let Token::Array(_) | Token::Struct(..) | Token::Repr = token {
            let level = form.open(out, token, outer, names);
            levels.push((level, 0));
            return Ok(());
        }
        form.leaf(out, token, names, &mut ())?;
        if !matches!(token, Token::BytesStart(..)) {
            form.after(out, outer);
        }
        Ok(())
    }
}

impl<F: EventForm> Visitor for EventPrinter<'_, F> {
    fn header(&mut self, header: &Header, _: &mut dyn Sink) -> Result<(), Error> {
        self.form.header(&mut self.lines, header);
        Ok(())
    }

    fn token(&mut self, token: &Token<'_>, context: &Context<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        self.form.note(token, context);
        match token {
            Token::Enter { .. } => self.is_wanted = false,
            Token::Leave { .. } | Token::Function(_) => self.head(token, context),
            _ if !self.is_wanted => {}
            Token::EndEvent => {
                self.form.end(&mut self.lines, &mut self.tail, context.event, self.begin)?;
                (self.is_wanted, self.begin) = (false, None);
                if self.lines.len() >= WRITE_BYTES {
                    self.flush()?;
                }
            }
            _ => {
                if !self.form.drops_details(&mut self.lines, self.begin, context) {
                    self.write(token, context)?;
                } else if self.begin.is_some() {
                    self.levels.clear();
                }
                if self.lines.len() > LINE_BYTES_MAX {
                    self.flush()?;
                }
            }
        }
        Ok(())
    }

    fn abandon(&mut self, event: Option<&Event>) -> Result<(), Error> {
        if event.is_some() && self.is_wanted {
            match self.begin.take() {
                Some(begin) => self.lines.truncate(begin),
                // A part was written already and cannot be taken back, so the line is marked.
                None => self.form.cut(&mut self.lines, &self.levels),
            }
            self.is_wanted = false;
        }
        Ok(())
    }
}
