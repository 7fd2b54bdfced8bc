//! Builds logs piece by piece, sharing nothing with the crate's writer.

#![allow(dead_code, reason = "not every test uses every piece")]

/// A log under construction; every piece is appended unchanged.
#[derive(Debug, Default, Clone)]
pub(crate) struct Log {
    pub(crate) text: String,
    /// Offset of each labeled piece.
    pub(crate) labels: Vec<(&'static str, u64)>,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Begins a record.
    pub(crate) fn open(mut self, name: &str) -> Self {
        self.text += "(";
        self.text += name;
        self
    }

    /// ` (key value)`.
    pub(crate) fn key(mut self, key: &str, value: &str) -> Self {
        self.text += &format!(" ({key} {value})");
        self
    }

    /// ` value`.
    pub(crate) fn bare(mut self, value: &str) -> Self {
        self.text += " ";
        self.text += value;
        self
    }

    /// Stores the position of the next piece's first character after its blank.
    pub(crate) fn label(mut self, name: &'static str) -> Self {
        self.labels.push((name, self.text.len() as u64 + 1));
        self
    }

    /// Ends a record and its line.
    pub(crate) fn close(mut self) -> Self {
        self.text += ")\n";
        self
    }

    /// Any text.
    pub(crate) fn raw(mut self, text: &str) -> Self {
        self.text += text;
        self
    }

    pub(crate) fn at(&self, name: &str) -> u64 {
        self.labels.iter().find(|(label, _)| *label == name).map(|(_, at)| *at).expect("a label of this log")
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }
}
