//! The last frame once more, and again: its calls are kept as they were read.

use std::rc::Rc;

use anytrace_core::{Error, Sink};

use super::Player;
use crate::lanes::calls::{Call, CallVisitor};
use crate::lanes::dictionary::Definition;
use crate::lanes::flags::CallFlags;
use crate::wire::record::Header;

/// Most bytes of a frame that is kept: a trace without frames is not kept as a whole.
const KEPT_BYTES_MAX: usize = 1 << 30;

/// A call that is played later.
struct Kept {
    about: Call<'static>,
    /// Those of the enter event, then those of the leave event.
    bytes: Box<[u8]>,
    enter: usize,
}

impl Kept {
    fn of(call: &Call<'_>) -> Self {
        let Call { number, thread, function, frame, seq, offset, end_seq, raw_bytes, is_incomplete, enter, leave } =
            *call;
        let nothing: &'static [u8] = &[];
        let about = Call {
            number,
            thread,
            function,
            frame,
            seq,
            offset,
            end_seq,
            raw_bytes,
            is_incomplete,
            enter: nothing,
            leave: nothing,
        };
        Self { about, bytes: [enter, leave].concat().into(), enter: enter.len() }
    }

    fn call(&self) -> Call<'_> {
        let (enter, leave) = self.bytes.split_at(self.enter);
        Call { enter, leave, ..self.about }
    }
}

/// Plays a frame when it has ended, so that the last one is known before what follows it: programs delete their contexts
/// there.
pub(super) struct Looped<'p, 'o> {
    player: &'p mut Player<'o>,
    last: Vec<Kept>,
    pending: Vec<Kept>,
    bytes: usize,
}

impl<'p, 'o> Looped<'p, 'o> {
    pub(super) fn new(player: &'p mut Player<'o>) -> Self {
        Self { player, last: Vec::new(), pending: Vec::new(), bytes: 0 }
    }

    /// After the last call: repeats the last frame so many times, then plays what followed it.
    pub(super) fn finish(mut self, times: u64) -> Result<(), Error> {
        let frames = self.player.frame;
        for _ in 0..if self.last.is_empty() { 0 } else { times } {
            if self.player.machine.is_done() {
                return Ok(());
            }
            // Each is the same frame.
            self.player.frame = frames.saturating_sub(1);
            Self::play(self.player, &self.last)?;
        }
        self.player.frame = frames;
        let pending = std::mem::take(&mut self.pending);
        Self::play(self.player, &pending)
    }

    fn play(player: &mut Player<'_>, calls: &[Kept]) -> Result<(), Error> {
        let dictionary = Rc::clone(&player.dictionary);
        calls.iter().try_for_each(|call| player.take(&call.call(), &dictionary))
    }
}

impl CallVisitor for Looped<'_, '_> {
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        self.player.header(header)
    }

    fn define(&mut self, definition: &Definition<'_>) {
        self.player.define(definition);
    }

    fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        self.bytes += call.enter.len() + call.leave.len() + size_of::<Kept>();
        if self.bytes > KEPT_BYTES_MAX {
            let text = format!("frame {} has more than {KEPT_BYTES_MAX} bytes: it cannot be repeated", call.frame);
            return Err(Error::limit(text));
        }
        self.pending.push(Kept::of(call));
        let function = self.player.dictionary.function(call.function);
        if function.is_some_and(|function| function.flags.has(CallFlags::END_FRAME)) {
            self.bytes = 0;
            self.last = std::mem::take(&mut self.pending);
            Self::play(self.player, &self.last)?;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.player.is_done()
    }
}
