//! Stack frames by path, and the open frames of each thread.

use std::collections::HashMap;

use super::batch::NONE;

/// Most distinct stacks that get a number.
const STACKS_MAX: usize = 1 << 20;

/// Most frames that are open at once, of all threads.
const OPEN_MAX: usize = 1 << 22;

/// Steps down a stack that may be spent, in all, on exits that match no open frame: a trace that is made so must not
/// cost a walk down a deep stack for each record.
const VAIN_STEPS_MAX: u64 = 1 << 28;

/// One path of calls from the outermost function.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stack {
    /// The path without its last call; [`NONE`] for the outermost.
    pub(super) parent: u32,
    /// The function called last.
    pub(super) function: u32,
    /// Number of its name, where that has one.
    pub(super) name: u32,
    /// The path found last one call further.
    last_child: u32,
}

/// All paths, numbered in order of first appearance, the same in all threads.
#[derive(Debug)]
pub(super) struct Stacks {
    all: Vec<Stack>,
    children: HashMap<(u32, u32), u32>,
    last_root: u32,
    is_full: bool,
}

impl Stacks {
    pub(super) fn new() -> Self {
        Self { all: Vec::new(), children: HashMap::new(), last_root: NONE, is_full: false }
    }

    /// The path one call further; [`NONE`] where there are too many to number.
    #[inline]
    pub(super) fn child(&mut self, parent: u32, function: u32, name: u32) -> u32 {
        let guess = self.all.get(parent as usize).map_or(self.last_root, |stack| stack.last_child);
        match self.all.get(guess as usize) {
            Some(stack) if stack.function == function && stack.parent == parent => guess,
            _ => self.find(parent, function, name),
        }
    }

    fn find(&mut self, parent: u32, function: u32, name: u32) -> u32 {
        let number = match self.children.get(&(parent, function)) {
            Some(&number) => number,
            None if self.all.len() >= STACKS_MAX => {
                self.is_full = true;
                return NONE;
            }
            None => {
                let number = u32::try_from(self.all.len()).unwrap_or(NONE);
                self.children.insert((parent, function), number);
                self.all.push(Stack { parent, function, name, last_child: NONE });
                number
            }
        };
        match self.all.get_mut(parent as usize) {
            Some(stack) => stack.last_child = number,
            None => self.last_root = number,
        }
        number
    }

    /// The paths, by number.
    pub(super) fn all(&self) -> &[Stack] {
        &self.all
    }

    /// There were paths that got no number.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }
}

/// An open frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) function: u32,
    pub(super) name: u32,
    pub(super) stack: u32,
}

/// What an exit ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// So many frames, the last of which is the one that is left.
    Frames(usize),
    /// No open frame.
    Nothing,
}

/// The open frames of all threads.
#[derive(Debug, Default)]
pub(super) struct Open {
    threads: Vec<Vec<Frame>>,
    frames: usize,
    /// Frames by thread that were too many to keep.
    surplus: HashMap<u32, u64>,
    vain_steps: u64,
}

impl Open {
    /// The innermost frame's path; [`NONE`] outside of all.
    #[inline]
    pub(super) fn stack(&self, thread: u32) -> u32 {
        self.threads.get(thread as usize).and_then(|frames| frames.last()).map_or(NONE, |frame| frame.stack)
    }

    /// Opens a frame; false where it is one too many.
    #[inline]
    pub(super) fn push(&mut self, thread: u32, frame: Frame) -> bool {
        if self.frames >= OPEN_MAX {
            *self.surplus.entry(thread).or_default() += 1;
            return false;
        }
        if self.threads.len() <= thread as usize {
            self.threads.resize_with(thread as usize + 1, Vec::new);
        }
        let Some(frames) = self.threads.get_mut(thread as usize) else { return false };
        frames.push(frame);
        self.frames += 1;
        true
    }

    /// What an exit from `function` ends.
    #[inline]
    pub(super) fn matching(&mut self, thread: u32, function: u32) -> Match {
        let Some(frames) = self.threads.get(thread as usize) else { return Match::Nothing };
        if frames.last().is_some_and(|top| top.function == function) {
            return Match::Frames(1);
        }
        let reach = if self.vain_steps > VAIN_STEPS_MAX { 64 } else { frames.len() };
        match frames.iter().rev().take(reach).position(|frame| frame.function == function) {
            Some(above) => Match::Frames(above + 1),
            None => {
                self.vain_steps += reach as u64;
                Match::Nothing
            }
        }
    }

    /// Ends a frame that was one too many to keep; false where there is none.
    pub(super) fn pop_surplus(&mut self, thread: u32) -> bool {
        if self.surplus.is_empty() {
            return false;
        }
        match self.surplus.get_mut(&thread) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }

    /// Ends the innermost frame.
    #[inline]
    pub(super) fn pop(&mut self, thread: u32) -> Option<Frame> {
        let frame = self.threads.get_mut(thread as usize)?.pop()?;
        self.frames -= 1;
        Some(frame)
    }

    /// How many frames of a thread are open.
    pub(super) fn depth(&self, thread: u32) -> usize {
        self.threads.get(thread as usize).map_or(0, Vec::len)
    }

    /// How many frames are open in all.
    pub(super) fn len(&self) -> usize {
        self.frames + self.surplus.values().map(|&count| usize::try_from(count).unwrap_or(usize::MAX)).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_path_has_one_number_in_all_threads() {
        let mut stacks = Stacks::new();
        let mut child = |parent, function| stacks.child(parent, function, 0);
        let (a, b) = (child(NONE, 1), child(0, 2));
        assert_eq!((a, b, child(NONE, 3)), (0, 1, 2));
        assert_eq!((child(NONE, 1), child(0, 2), child(2, 2)), (0, 1, 3));
        assert_eq!(stacks.all()[3].parent, 2);
    }

    #[test]
    fn an_exit_ends_the_frames_above_its_own_and_none_where_it_has_none() {
        let mut open = Open::default();
        for function in [1, 2, 3] {
            assert!(open.push(7, Frame { function, name: 0, stack: function }));
        }
        assert_eq!(open.matching(7, 2), Match::Frames(2));
        assert_eq!(open.matching(7, 9), Match::Nothing);
        assert_eq!(open.matching(3, 1), Match::Nothing);
        assert_eq!((open.stack(7), open.len()), (3, 3));
        assert_eq!(open.pop(7).map(|frame| frame.function), Some(3));
        assert_eq!((open.stack(7), open.len()), (2, 2));
    }
}
