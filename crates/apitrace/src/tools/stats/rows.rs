//! Rows of statistics of any kind: their columns and their order.

use std::cmp::Reverse;

use super::Figures;

/// What rows are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Functions.
    Function,
    /// Frames.
    Frame,
    /// Threads.
    Thread,
    /// States: functions that set followed state, with the first argument if that is a name.
    State,
}

/// The label of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// A frame or thread.
    Number(u64),
    /// Frames, both ends included.
    Numbers(u64, u64),
    /// A function or state.
    Name(String),
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Numbers(from, to) => write!(f, "{from}-{to}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its label.
    pub label: Label,
    /// The figures of its calls.
    pub figures: Figures,
    /// Threads that made them; 0 if that is not counted.
    pub threads: u64,
    /// Frames that these calls ended.
    pub frames: u64,
    /// Number of the first call.
    pub first: u64,
    /// Number of the last call.
    pub last: u64,
}

/// A column of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The row's label.
    Name,
    /// [`Figures::calls`].
    Calls,
    /// [`Figures::raw_bytes`].
    Bytes,
    /// [`Figures::draws`].
    Draws,
    /// [`Figures::state_changes`].
    State,
    /// [`Figures::redundant`].
    Redundant,
    /// [`Figures::upload_bytes`].
    Uploads,
    /// [`Figures::blob_bytes`].
    Blobs,
    /// [`Figures::string_bytes`].
    Strings,
    /// [`Figures::array_values`].
    Arrays,
    /// [`Row::threads`].
    Threads,
    /// [`Row::frames`].
    Frames,
    /// [`Row::first`].
    First,
    /// [`Row::last`].
    Last,
}

impl Column {
    /// The columns of a table.
    pub fn of(by: By) -> &'static [Self] {
        use Column::{
            Arrays, Blobs, Bytes, Calls, Draws, First, Frames, Last, Name, Redundant, State, Strings, Threads, Uploads,
        };
        match by {
            By::Function => {
                &[Calls, Bytes, Draws, State, Redundant, Uploads, Blobs, Strings, Arrays, Threads, First, Last, Name]
            }
            By::Frame => &[Name, Calls, Draws, State, Redundant, Uploads, Bytes, First, Last],
            By::Thread => &[Name, Calls, Draws, State, Redundant, Uploads, Bytes, Frames, First, Last],
            By::State => &[State, Redundant, First, Last, Name],
        }
    }

    /// Its name in headings and options.
    pub fn word(self, by: By) -> &'static str {
        match self {
            Self::Name => match by {
                By::Function => "function",
                By::Frame => "frame",
                By::Thread => "thread",
                By::State => "state",
            },
            Self::Calls => "calls",
            Self::Bytes => "bytes",
            Self::Draws => "draws",
            Self::State if by == By::State => "sets",
            Self::State => "state_changes",
            Self::Redundant => "redundant",
            Self::Uploads => "upload_bytes",
            Self::Blobs => "blob_bytes",
            Self::Strings => "string_bytes",
            Self::Arrays => "array_values",
            Self::Threads => "threads",
            Self::Frames => "frames",
            Self::First if by == By::State => "first_redundant",
            Self::First => "first_call",
            Self::Last if by == By::State => "last_redundant",
            Self::Last => "last_call",
        }
    }
}

impl Row {
    /// The number in a column; 0 for names.
    pub fn get(&self, column: Column) -> u64 {
        let figures = &self.figures;
        match column {
            Column::Name => 0,
            Column::Calls => figures.calls,
            Column::Bytes => figures.raw_bytes,
            Column::Draws => figures.draws,
            Column::State => figures.state_changes,
            Column::Redundant => figures.redundant,
            Column::Uploads => figures.upload_bytes,
            Column::Blobs => figures.blob_bytes,
            Column::Strings => figures.string_bytes,
            Column::Arrays => figures.array_values,
            Column::Threads => self.threads,
            Column::Frames => self.frames,
            Column::First => self.first,
            Column::Last => self.last,
        }
    }
}

/// Rows of one kind.
#[derive(Debug, Clone, Default)]
pub struct Rows(pub(super) Vec<Row>);

impl Rows {
    /// The rows in order of first appearance.
    pub fn iter(&self) -> impl Iterator<Item = &Row> {
        self.0.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rows by a column: numbers from the greatest, first and last calls and names from the least. Rows that are
    /// equal in it are ordered by name.
    pub fn sorted(&self, column: Column) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.0.iter().collect();
        match column {
            Column::Name => rows.sort_by(|a, b| a.label.cmp(&b.label)),
            Column::First | Column::Last => rows.sort_by_key(|row| (row.get(column), &row.label)),
            _ => rows.sort_by_key(|row| (Reverse(row.get(column)), &row.label)),
        }
        rows
    }
}
