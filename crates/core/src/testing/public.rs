//! The public surface of a format crate, which has the same names in all of them: `Reader`, `Writer`, `parse`. What its
//! tests do to every sample through nothing else.
//!
//! [`surface!`](crate::surface) makes a [`Surface`] of a crate; the functions here run over it.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use super::{Exam, dripping, examine_with, truncations};
use crate::{Diagnostic, Error, Format, Input, InputOptions, Kind, Need, OpenOptions, Passed, Place, Settings};

/// A record as a value that outlives its reader, with its place; or damage.
pub type Found<R> = Result<(Place, R), Diagnostic>;

/// What a reader returned, in order, and what it passed.
pub type Walked<R> = Result<(Vec<Found<R>>, Passed), Error>;

/// The reader and the writer of a format crate, made by [`surface!`](crate::surface).
pub trait Surface {
    /// A record as a value: everything that a test compares.
    type Row: Clone + Debug + PartialEq;

    /// Reads with `next` to the end, and writes each record again.
    ///
    /// # Errors
    /// What the reader returns.
    fn read(input: Input, options: &OpenOptions) -> Result<Read<Self::Row>, Error>;

    /// Reads with `for_each`.
    ///
    /// # Errors
    /// What the reader returns.
    fn for_each(input: Input, options: &OpenOptions) -> Walked<Self::Row>;
}

/// Everything that a reader returns, and the copy that a writer made of it.
#[derive(Debug, PartialEq)]
pub struct Read<R> {
    /// Records and damage, in order.
    pub steps: Vec<Found<R>>,
    /// The reader's layout, as text.
    pub layout: String,
    /// What the reader passed.
    pub passed: Passed,
    /// The bytes written.
    pub copy: Vec<u8>,
    /// Why records, or anything, were not written.
    pub refused: Vec<String>,
}

/// Makes a [`Surface`](crate::testing::public::Surface) of a format crate: `surface!(Public, anytrace_format)`, where a
/// row is the record's `Debug` text, or `surface!(Public, anytrace_format, Row, row_of)`.
#[macro_export]
macro_rules! surface {
    ($name:ident, $format:ident) => {
        $crate::surface!($name, $format, String, |record: &$format::Record<'_>| format!("{record:?}"));
    };
    ($name:ident, $format:ident, $row:ty, $row_of:expr) => {
        struct $name;

        impl $crate::testing::public::Surface for $name {
            type Row = $row;

            fn read(
                input: $crate::Input,
                options: &$crate::OpenOptions,
            ) -> Result<$crate::testing::public::Read<$row>, $crate::Error> {
                let mut reader = $format::Reader::new(input, options)?;
                let mut writer = $format::Writer::with_layout(Vec::new(), reader.layout());
                let (mut steps, mut refused) = (Vec::new(), Vec::new());
                while let Some(step) = reader.next()? {
                    steps.push(match step {
                        $crate::Step::Record(place, record) => {
                            refused.extend(writer.write(&record).err().map(|error| error.to_string()));
                            Ok((place, ($row_of)(&record)))
                        }
                        $crate::Step::Damage(diagnostic) => Err(diagnostic),
                    });
                }
                let passed = reader.for_each(|_| panic!("the end stays the end"))?;
                let layout = format!("{:?}", reader.layout());
                let copy = writer.finish().unwrap_or_else(|error| {
                    refused.push(error.to_string());
                    Vec::new()
                });
                Ok($crate::testing::public::Read { steps, layout, passed, copy, refused })
            }

            fn for_each(input: $crate::Input, options: &$crate::OpenOptions) -> $crate::testing::public::Walked<$row> {
                let mut steps = Vec::new();
                let passed = $format::Reader::new(input, options)?.for_each(|step| {
                    steps.push(match step {
                        $crate::Step::Record(place, record) => Ok((place, ($row_of)(&record))),
                        $crate::Step::Damage(diagnostic) => Err(diagnostic),
                    });
                    Ok(())
                })?;
                Ok((steps, passed))
            }
        }
    };
}

/// A sample of a corpus.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sample {
    /// Its folder and its file name.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Sample {
    /// Reads a sample.
    pub fn read(corpus: &Path, name: &str) -> Self {
        let path = corpus.join(name);
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
        Self { name: name.to_owned(), path, bytes }
    }

    /// The files in these folders of a corpus that have one of these extensions, in order.
    pub fn all(corpus: &Path, folders: &[&str], extensions: &[&str]) -> Vec<Self> {
        let mut found = Vec::new();
        for folder in folders {
            let entries = std::fs::read_dir(corpus.join(folder)).unwrap_or_else(|e| panic!("{folder}: {e}"));
            for path in entries.map(|entry| entry.unwrap_or_else(|e| panic!("{folder}: {e}")).path()) {
                if path.extension().is_some_and(|has| extensions.iter().any(|wanted| has == *wanted)) {
                    let file = path.file_name().unwrap_or_default().display();
                    found
                        .push(Self { name: format!("{folder}/{file}"), ..Self::read(corpus, &path.to_string_lossy()) });
                }
            }
        }
        found.sort();
        found
    }

    /// It, in memory.
    pub fn input(&self) -> Input {
        in_memory(&self.bytes)
    }
}

/// Bytes as an input.
pub fn in_memory(bytes: &[u8]) -> Input {
    Input::from_bytes("sample", bytes.to_vec())
}

impl<R: Clone> Read<R> {
    /// The records with their places.
    pub fn records(&self) -> Vec<(Place, R)> {
        self.steps.iter().filter_map(|step| step.as_ref().ok().cloned()).collect()
    }

    /// The records.
    pub fn rows(&self) -> Vec<R> {
        self.records().into_iter().map(|(_, row)| row).collect()
    }

    /// The damage.
    pub fn damage(&self) -> Vec<Diagnostic> {
        self.steps.iter().filter_map(|step| step.as_ref().err().cloned()).collect()
    }

    /// True when records are lost.
    pub fn has_lost(&self) -> bool {
        self.damage().iter().any(Diagnostic::is_loss)
    }

    /// Offset and number of each record, as the text form of `dump` begins its lines with them.
    pub fn places(&self) -> Vec<String> {
        self.records().iter().map(|(place, _)| format!("{:#x} {}", place.offset, place.seq)).collect()
    }

    /// What the writer made of all records.
    ///
    /// # Panics
    /// When the writer refused one.
    pub fn copy(&self) -> &[u8] {
        assert!(self.refused.is_empty(), "refused: {:?}", self.refused);
        &self.copy
    }
}

/// Reads with `next` to the end and writes each record again.
///
/// # Panics
/// When the reader fails or does not stay at the end.
pub fn read<S: Surface>(input: Input, options: &OpenOptions) -> Read<S::Row> {
    S::read(input, options).unwrap_or_else(|e| panic!("{e}"))
}

/// Asserts that reading a sample through windows of these many bytes and as a file yields what it yields in memory.
pub fn assert_windows_read_alike<S: Surface>(sample: &Sample, options: &OpenOptions, windows: &[usize]) {
    let (name, expected) = (&sample.name, read::<S>(sample.input(), options));
    for &at_once in windows {
        let piped = read::<S>(dripping("sample", &sample.bytes, at_once), options);
        assert!(piped == expected, "{name} by {at_once} bytes");
    }
    let file = Input::open(&sample.path, InputOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(read::<S>(file, options) == expected, "{name} as a file");
}

/// Asserts that `for_each` visits what `next` returns, and that both count alike.
pub fn assert_for_each_is_a_loop<S: Surface>(sample: &Sample, options: &OpenOptions) -> Read<S::Row> {
    let all = read::<S>(sample.input(), options);
    let (steps, passed) = S::for_each(sample.input(), options).unwrap_or_else(|e| panic!("{}: {e}", sample.name));
    assert_eq!(steps, all.steps, "{}", sample.name);
    assert_eq!((passed, passed.records), (all.passed, all.records().len() as u64), "{}", sample.name);
    all
}

/// Asserts that the reader returns as many records as `info` counts, with numbers from 0, and the damage that it
/// reports, and that each can be written; returns both results.
pub fn assert_verbs_agree<S: Surface>(
    format: &dyn Format,
    name: &str,
    make: &dyn Fn() -> Input,
    options: &OpenOptions,
) -> (Read<S::Row>, Exam) {
    let all = read::<S>(make(), options);
    let exam = examine_with(format, options, make);
    assert!(all.refused.is_empty(), "{name}: {:?}", all.refused);
    assert_eq!(all.damage(), exam.info.1, "{name}");
    assert_eq!(all.records().len() as u64, exam.info.0.records, "{name}");
    assert!(all.records().iter().zip(0..).all(|((place, _), seq)| place.seq == seq), "{name}");
    (all, exam)
}

/// Asserts that damage is returned before the records after it, but for damage that is reported late.
pub fn assert_damage_comes_in_order<R: Clone>(name: &str, read: &Read<R>, is_late: impl Fn(&Diagnostic) -> bool) {
    let mut seq = 0;
    for step in &read.steps {
        match step {
            Ok((place, _)) => {
                assert_eq!(place.seq, seq, "{name}");
                seq += 1;
            }
            Err(damage) if is_late(damage) => {}
            Err(damage) => assert_eq!(damage.record, Some(seq), "{name}: {damage}"),
        }
    }
}

/// Cuts a trace at each of many offsets, at most `cuts`, and asserts that no record before the cut is lost or changed:
/// those of `all` that end there or before, by `ends`; and that what was read can be written. `visit` gets the cut, how many these are and what was read.
pub fn assert_cuts_keep_records<S: Surface>(
    name: &str,
    bytes: &[u8],
    options: &OpenOptions,
    (all, ends): (&[(Place, S::Row)], &[u64]),
    cuts: usize,
    mut visit: impl FnMut(usize, usize, &Read<S::Row>),
) {
    truncations(bytes, cuts, |cut, part| {
        let part = read::<S>(in_memory(part), options);
        let complete = ends.iter().filter(|end| **end <= cut as u64).count();
        let found = part.records();
        assert!(found.len() >= complete, "{name} cut at {cut}: {} of {complete}", found.len());
        assert_eq!(found[..complete], all[..complete], "{name} cut at {cut}");
        assert!(part.refused.is_empty(), "{name} cut at {cut}: {:?}", part.refused);
        visit(cut, complete, &part);
    });
}

/// Where the records end that another one follows: at its beginning.
pub fn ends_by_next<R>(records: &[(Place, R)]) -> Vec<u64> {
    records.iter().skip(1).map(|(place, _)| place.offset).collect()
}

/// Asserts that `parse` returns each record at its place, and for every prefix of one says that more is needed but no
/// more than the record has. True when the records follow each other from the first byte to the last.
pub fn assert_parser_agrees<R: Debug + PartialEq, B: Debug>(
    bytes: &[u8],
    records: &[(Place, R)],
    parse: impl Fn(&[u8]) -> Result<(R, usize), Need<B>>,
) -> bool {
    let (mut end, mut has_gaps) = (0, false);
    for (place, row) in records {
        let start = usize::try_from(place.offset).unwrap_or(usize::MAX);
        let window = bytes.get(start..).unwrap_or_else(|| panic!("{place:?} is past the end"));
        let (record, used) = parse(window).unwrap_or_else(|need| panic!("{place:?}: {need:?}"));
        assert_eq!(&record, row, "{place:?}");
        for have in 0..used {
            match parse(&window[..have]) {
                Err(Need::More(need)) => assert!(need > have as u64 && need <= used as u64, "{need} of {used}"),
                other => panic!("{place:?}: {have} of {used} bytes: {other:?}"),
            }
        }
        has_gaps |= start != end;
        end = start + used;
    }
    !has_gaps && end == bytes.len()
}

/// Asserts that a reader refuses an option that its format does not declare.
pub fn assert_refuses_other_options<S: Surface>(option: &'static str, value: &str) {
    let options = OpenOptions { own: Settings::default().with(option, value), ..OpenOptions::default() };
    assert_eq!(S::read(in_memory(b""), &options).err().map(|error| error.kind()), Some(Kind::Usage));
}
