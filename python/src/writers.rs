//! Writers of traces: files that appear, complete, when they are closed.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anytrace_cacheray::{Body, Kind, Layout, Record, Tag, Width, Writer as CacherayWriter};
use anytrace_core::{Endian, Error};
use anytrace_heph::{EventWriter, Header, Writer as HephWriter};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

use crate::failure::Failure;
use crate::output::Output;
use crate::work::Stop;

/// A writer until it is closed or discarded.
struct Open<W>(Mutex<Option<W>>);

impl<W> Open<W> {
    fn new(writer: W) -> Self {
        Self(Mutex::new(Some(writer)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<W>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, write: impl FnOnce(&mut W) -> Result<T, Failure>) -> Result<T, Failure> {
        self.lock().as_mut().map_or_else(|| Err(Failure::usage("the writer is closed")), write)
    }
}

/// What a Heph file needs beside its writer.
struct Heph {
    writer: HephWriter<Output>,
    /// The next counter of each stream.
    counters: HashMap<u32, u32>,
}

/// A Heph trace that is being written.
#[pyclass(frozen, module = "anytrace._anytrace")]
pub(crate) struct HephFile(Open<Heph>);

#[pymethods]
impl HephFile {
    #[new]
    fn new(path: PathBuf, epoch_ns: Option<u64>, force: bool) -> Result<Self, Failure> {
        let mut writer = HephWriter::new(Output::create(&path, force, &Stop::default())?);
        if let Some(epoch) = epoch_ns {
            writer.epoch(epoch).map_err(Failure::Bare)?;
        }
        Ok(Self(Open::new(Heph { writer, counters: HashMap::new() })))
    }

    /// Writes an event.
    #[expect(clippy::too_many_arguments, reason = "the keywords of a Python method")]
    fn event(
        &self,
        description: &str,
        start_ns: u64,
        end_ns: u64,
        stream: u32,
        substream: u64,
        counter: Option<u32>,
        attributes: Vec<(String, Bound<'_, PyAny>)>,
    ) -> Result<(), Failure> {
        let values = attributes.iter().map(|(name, value)| Ok((name.as_str(), Value::of(name, value)?)));
        let values = values.collect::<Result<Vec<_>, Failure>>()?;
        self.0.with(|heph| {
            let next = heph.counters.entry(stream).or_default();
            let counter = counter.unwrap_or(*next);
            let header = Header { stream, counter, substream, start_ns, end_ns };
            let event = heph.writer.event(&header, description);
            let event = values.iter().fold(event, |event, (name, value)| value.put(name, event));
            event.finish().map_err(Failure::Bare)?;
            *next = counter.wrapping_add(1);
            Ok(())
        })
    }

    /// Writes an option of the trace.
    fn option(&self, name: &str, value: &[u8]) -> Result<(), Failure> {
        self.0.with(|heph| heph.writer.option(name, value).map_err(Failure::Bare))
    }

    /// Gives the file its name, or leaves nothing of it.
    fn close(&self, is_kept: bool) -> Result<(), Failure> {
        match self.0.lock().take() {
            Some(heph) if is_kept => heph.writer.finish().map_err(Failure::Bare)?.commit(),
            _ => Ok(()),
        }
    }
}

/// A value of an attribute.
enum Value {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    Unsigneds(Vec<u64>),
    Signeds(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Vec<String>),
}

impl Value {
    fn of(name: &str, value: &Bound<'_, PyAny>) -> Result<Self, Failure> {
        let unfit = || Failure::usage(format!("attribute {name}: expected int, float, str or a list of one of them"));
        if let Some(one) = Self::scalar(value) {
            return Ok(one);
        }
        let items: Vec<Bound<'_, PyAny>> = value.extract().map_err(|_| unfit())?;
        let items: Vec<Self> = items.iter().map(Self::scalar).collect::<Option<_>>().ok_or_else(unfit)?;
        Self::array(items).ok_or_else(unfit)
    }

    fn scalar(value: &Bound<'_, PyAny>) -> Option<Self> {
        if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyInt>() {
            let unsigned = value.extract().map(Self::Unsigned);
            return unsigned.or_else(|_| value.extract().map(Self::Signed)).ok();
        }
        if value.is_instance_of::<PyFloat>() {
            return value.extract().map(Self::Float).ok();
        }
        if value.is_instance_of::<PyString>() {
            return value.extract().map(Self::Text).ok();
        }
        None
    }

    /// An array has values of one type; a negative number makes all of them signed, a fraction all of them floats.
    fn array(items: Vec<Self>) -> Option<Self> {
        let all = |is: fn(&Self) -> bool| items.iter().all(is);
        if all(|one| matches!(one, Self::Unsigned(_))) {
            return items.iter().map(Self::unsigned).collect::<Option<_>>().map(Self::Unsigneds);
        }
        if all(|one| matches!(one, Self::Unsigned(_) | Self::Signed(_))) {
            return items.iter().map(Self::signed).collect::<Option<_>>().map(Self::Signeds);
        }
        if all(|one| matches!(one, Self::Unsigned(_) | Self::Signed(_) | Self::Float(_))) {
            return items.iter().map(Self::float).collect::<Option<_>>().map(Self::Floats);
        }
        let text = |one| if let Self::Text(text) = one { Some(text) } else { None };
        items.into_iter().map(text).collect::<Option<_>>().map(Self::Texts)
    }

    fn unsigned(&self) -> Option<u64> {
        if let Self::Unsigned(n) = self { Some(*n) } else { None }
    }

    fn signed(&self) -> Option<i64> {
        match self {
            Self::Unsigned(n) => i64::try_from(*n).ok(),
            Self::Signed(n) => Some(*n),
            _ => None,
        }
    }

    fn float(&self) -> Option<f64> {
        match self {
            Self::Unsigned(n) => Some(*n as f64),
            Self::Signed(n) => Some(*n as f64),
            Self::Float(x) => Some(*x),
            _ => None,
        }
    }

    fn put<'w>(&self, name: &str, event: EventWriter<'w, Output>) -> EventWriter<'w, Output> {
        match self {
            Self::Unsigned(n) => event.unsigned(name, *n),
            Self::Signed(n) => event.signed(name, *n),
            Self::Float(x) => event.float(name, *x),
            Self::Text(text) => event.text(name, text),
            Self::Unsigneds(values) => event.unsigneds(name, values),
            Self::Signeds(values) => event.signeds(name, values),
            Self::Floats(values) => event.floats(name, values),
            Self::Texts(values) => event.texts(name, &values.iter().map(String::as_str).collect::<Vec<_>>()),
        }
    }
}

/// A cacheray trace that is being written.
#[pyclass(frozen, module = "anytrace._anytrace")]
pub(crate) struct CacherayFile(Open<CacherayWriter<Output>>);

#[pymethods]
impl CacherayFile {
    #[new]
    fn new(path: PathBuf, endian: &str, pointer_bytes: u8, force: bool) -> Result<Self, Failure> {
        let endian = match endian {
            "little" => Endian::Little,
            "big" => Endian::Big,
            _ => return Err(Failure::usage(format!("endian={endian}: expected little or big"))),
        };
        let width = Width::from_bytes(pointer_bytes)
            .ok_or_else(|| Failure::usage(format!("pointer_bytes={pointer_bytes}: expected 4 or 8")))?;
        let out = Output::create(&path, force, &Stop::default())?;
        Ok(Self(Open::new(CacherayWriter::with_layout(out, &Layout { endian, width }))))
    }

    /// Writes a read or a write.
    fn access(
        &self,
        is_write: bool,
        address: u64,
        size: u8,
        thread: u64,
        atomic: bool,
        unaligned: bool,
    ) -> Result<(), Failure> {
        let kind = if is_write { Kind::Write } else { Kind::Read };
        self.write(&Record { tag: Tag::new(kind, atomic, unaligned), address, thread, body: Body::Access { size } })
    }

    /// Gives a region a type.
    fn add(&self, address: u64, name: &[u8], elemsize: u32, elemcount: u32, thread: u64) -> Result<(), Failure> {
        if name.contains(&0) {
            return Err(Failure::usage("a type's name cannot contain NUL"));
        }
        let body = Body::Add { elemsize, elemcount, name };
        self.write(&Record { tag: Tag::new(Kind::RttaAdd, false, false), address, thread, body })
    }

    /// Ends a region's type.
    fn remove(&self, address: u64, thread: u64) -> Result<(), Failure> {
        self.write(&Record { tag: Tag::new(Kind::RttaRemove, false, false), address, thread, body: Body::Remove })
    }

    /// Gives the file its name, or leaves nothing of it.
    fn close(&self, is_kept: bool) -> Result<(), Failure> {
        match self.0.lock().take() {
            Some(writer) if is_kept => writer.finish().map_err(Failure::Bare)?.commit(),
            _ => Ok(()),
        }
    }
}

impl CacherayFile {
    fn write(&self, record: &Record<'_>) -> Result<(), Failure> {
        self.0.with(|writer| writer.write(record).map_err(|error: Error| Failure::Bare(error)))
    }
}
