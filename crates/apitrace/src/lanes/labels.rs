//! The text before arguments, made once per function.

use crate::lanes::dictionary::Named;

/// Defines the text before names and arguments in one kind of output.
pub(crate) trait Labeling {
    /// Appends the text before a function's arguments.
    fn push_head(&self, out: &mut Vec<u8>, function: &Named);

    /// Appends the text before an argument's value.
    fn push_label(&self, out: &mut Vec<u8>, index: u64, function: &Named);
}

/// Most arguments whose labels are kept; real functions have 32 at most.
const LABELS_MAX: u64 = 64;

/// Most functions whose labels are kept.
const FUNCTIONS_MAX: usize = 1 << 13;

/// The texts of one function.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// All texts concatenated: the text before the arguments, then for each argument the text before its value.
    text: Vec<u8>,
    ends: Vec<u32>,
}

impl Labels {
    fn new(function: &Named, style: &impl Labeling) -> Self {
        let mut labels = Self::default();
        style.push_head(&mut labels.text, function);
        labels.end();
        for index in 0..function.count().min(LABELS_MAX) {
            style.push_label(&mut labels.text, index, function);
            labels.end();
        }
        labels
    }

    fn end(&mut self) {
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
    }

    fn part(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)? as usize;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |start| *start as usize);
        self.text.get(start..end)
    }

    /// The text before the arguments, such as the name and an opening parenthesis.
    #[inline]
    pub(crate) fn head(&self) -> &[u8] {
        self.part(0).unwrap_or_default()
    }

    /// The text before an argument; `None` if it is not kept.
    #[inline]
    pub(crate) fn argument(&self, index: u64) -> Option<&[u8]> {
        self.part(usize::try_from(index).ok()?.checked_add(1)?)
    }
}

/// Labels of the functions seen so far.
#[derive(Debug, Default)]
pub(crate) struct LabelCache {
    rows: Vec<Option<Box<Labels>>>,
    /// The last function beyond those kept.
    other: Option<(u32, Labels)>,
    none: Labels,
}

impl LabelCache {
    /// Labels of the function in a slot.
    #[inline]
    pub(crate) fn get(&mut self, slot: u32, function: &Named, style: &impl Labeling) -> &Labels {
        let at = slot as usize;
        if at >= FUNCTIONS_MAX {
            let kept = self.other.take().filter(|(known, _)| *known == slot);
            let other = kept.unwrap_or_else(|| (slot, Labels::new(function, style)));
            return &self.other.insert(other).1;
        }
        if self.rows.len() <= at {
            self.rows.resize_with(at + 1, || None);
        }
        match self.rows.get_mut(at) {
            Some(place) => place.get_or_insert_with(|| Box::new(Labels::new(function, style))),
            None => &self.none,
        }
    }
}
