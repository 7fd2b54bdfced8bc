//! A line of the index: what is in a closed file.

use serde_json::{Value, json};

/// A file of a collection.
#[derive(Debug, Clone, Default)]
pub(crate) struct IndexLine {
    pub(crate) file: String,
    pub(crate) source: u32,
    pub(crate) kind: String,
    pub(crate) peer: String,
    pub(crate) events: u64,
    pub(crate) metadata: u64,
    pub(crate) bytes: u64,
    pub(crate) epoch_ns: Option<u64>,
    /// Of the events' times.
    pub(crate) range: Option<(u64, u64)>,
    pub(crate) session: Option<Value>,
    /// Files that were removed for this one.
    pub(crate) removed: Vec<String>,
    /// True for a file that a killed collector left unfinished.
    pub(crate) is_recovered: bool,
}

impl IndexLine {
    /// The line, with its end.
    pub(crate) fn to_text(&self) -> String {
        let mut line = json!({
            "version": 1,
            "file": self.file,
            "source": self.source,
            "kind": self.kind,
            "peer": self.peer,
            "events": self.events,
            "metadata": self.metadata,
            "bytes": self.bytes,
            "epoch_ns": self.epoch_ns,
            "start_ns": self.range.map(|range| range.0),
            "end_ns": self.range.map(|range| range.1),
        });
        if let Some(session) = &self.session {
            line["session"] = session.clone();
        }
        match self.removed.as_slice() {
            [] => {}
            [removed] => line["removed"] = removed.as_str().into(),
            several => line["removed"] = several.into(),
        }
        if self.is_recovered {
            line["recovered"] = true.into();
        }
        format!("{line}\n")
    }

    /// What is needed of a line that was written earlier; `None` for one that is cut.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let number = |name: &str| value[name].as_u64();
        Some(Self {
            file: value["file"].as_str()?.to_owned(),
            source: u32::try_from(number("source")?).ok()?,
            events: number("events")?,
            metadata: number("metadata")?,
            bytes: number("bytes")?,
            session: value.get("session").cloned(),
            ..Self::default()
        })
    }
}
