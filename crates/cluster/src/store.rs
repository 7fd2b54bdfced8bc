//! Objects of a store: read by ranges, written in parts.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use anytrace_core::{Error, RangeRead};
use anytrace_query::Place;
use futures::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt};
use tokio::runtime::Handle;

/// Bytes that are asked for at once where the reader goes on from one range to the next.
const AHEAD_BYTES: u64 = 4 << 20;

/// Bytes that are asked for where nobody knows how many are needed.
const LEAST_BYTES: u64 = 256 << 10;

/// Bytes of a part of an object that is written. A store takes 10,000 parts: 320 GB.
const WRITTEN_BYTES: usize = 32 << 20;

/// Begins the name of an object.
const SCHEME: &str = "s3://";

/// The bucket and the key of an object; `None` for the name of a file.
pub(crate) fn parts(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix(SCHEME)?;
    Some(rest.split_once('/').unwrap_or((rest, "")))
}

/// The stores that were used.
#[derive(Debug)]
pub(crate) struct Stores {
    known: Mutex<HashMap<String, Arc<dyn ObjectStore>>>,
    runtime: Handle,
}

impl Stores {
    /// Stores that are waited for in the runtime of the caller.
    pub(crate) fn new() -> Self {
        Self { known: Mutex::default(), runtime: Handle::current() }
    }

    /// The store of a bucket. Credentials, region and endpoint come from the environment (`AWS_*`).
    fn of(&self, bucket: &str) -> Result<Arc<dyn ObjectStore>, Error> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = known.get(bucket) {
            return Ok(Arc::clone(store));
        }
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
        let endpoints = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
        if let Some(endpoint) = endpoints.iter().find_map(|name| std::env::var(name).ok()) {
            let is_plain = endpoint.starts_with("http://");
            builder = builder.with_endpoint(endpoint).with_allow_http(is_plain);
        }
        let store = builder.build().map_err(|error| Error::usage(format!("{SCHEME}{bucket}: {error}")))?;
        let store: Arc<dyn ObjectStore> = Arc::new(store);
        known.insert(bucket.to_owned(), Arc::clone(&store));
        Ok(store)
    }

    /// Length and time of an object.
    pub(crate) fn meta(&self, bucket: &str, key: &str) -> Result<ObjectMeta, Error> {
        let store = self.of(bucket)?;
        let key = key_of(bucket, key)?;
        wait(&self.runtime, async move { store.head(&key).await }).map_err(|error| failed(bucket, &error))
    }

    /// An object of which about the bytes before `until` are read.
    pub(crate) fn open(&self, bucket: &str, key: &str, until: Option<u64>) -> Result<Arc<Object>, Error> {
        let meta = self.meta(bucket, key)?;
        let store = self.of(bucket)?;
        let until = until.unwrap_or(meta.size);
        let (key, length, runtime) = (meta.location, meta.size, self.runtime.clone());
        Ok(Arc::new(Object { store, key, length, until, runtime, ahead: Mutex::default() }))
    }

    /// All bytes of an object, if there is one of at most so many.
    pub(crate) fn bytes(&self, bucket: &str, key: &str, most: u64) -> Result<Option<(ObjectMeta, Vec<u8>)>, Error> {
        let store = self.of(bucket)?;
        let key = key_of(bucket, key)?;
        let got = wait(&self.runtime, async move {
            let got = match store.get(&key).await {
                Err(object_store::Error::NotFound { .. }) => return Ok(None),
                got => got?,
            };
            let meta = got.meta.clone();
            if meta.size > most {
                return Ok(Some((meta, Vec::new())));
            }
            Ok(Some((meta, got.bytes().await?.to_vec())))
        });
        got.map_err(|error: object_store::Error| failed(bucket, &error))
    }

    /// Begins an object, which is not there before its end.
    pub(crate) fn create(&self, bucket: &str, key: &str, is_replaced: bool) -> Result<NewObject, Error> {
        let name = format!("{SCHEME}{bucket}/{key}");
        if key.is_empty() || key.ends_with('/') {
            return Err(Error::usage(format!("{name}: expected {SCHEME}BUCKET/KEY")));
        }
        let (store, key) = (self.of(bucket)?, key_of(bucket, key)?);
        let there = {
            let (store, key) = (Arc::clone(&store), key.clone());
            wait(&self.runtime, async move { store.head(&key).await })
        };
        match there {
            Ok(_) if !is_replaced => return Err(Error::usage(format!("{name} is there; --force replaces it"))),
            Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(failed(bucket, &error)),
        }
        let runtime = self.runtime.clone();
        Ok(NewObject { store, key, name, upload: None, waiting: Vec::new(), runtime })
    }

    /// The keys that begin with a prefix, in order.
    pub(crate) fn list(&self, bucket: &str, prefix: &str) -> Result<Vec<String>, Error> {
        let store = self.of(bucket)?;
        // A store lists by folders; what else the prefix says is for the caller.
        let folder = prefix.rsplit_once('/').map(|(folder, _)| Path::from(folder));
        let listed = wait(&self.runtime, async move {
            store.list(folder.as_ref()).map_ok(|meta| meta.location.to_string()).try_collect::<Vec<_>>().await
        });
        let mut keys = listed.map_err(|error| failed(bucket, &error))?;
        keys.retain(|key| key.starts_with(prefix));
        keys.sort_unstable();
        Ok(keys)
    }
}

fn key_of(bucket: &str, key: &str) -> Result<Path, Error> {
    Path::parse(key).map_err(|error| Error::usage(format!("{SCHEME}{bucket}/{key}: {error}")))
}

fn failed(bucket: &str, error: &object_store::Error) -> Error {
    Error::usage(format!("{SCHEME}{bucket}: {error}"))
}

/// Waits for a store: in a thread of a runtime, or in one that a reader of traces started.
fn wait<T>(runtime: &Handle, future: impl Future<Output = T>) -> T {
    match Handle::try_current() {
        Ok(_) => tokio::task::block_in_place(|| runtime.block_on(future)),
        Err(_) => runtime.block_on(future),
    }
}

/// An object that is read by ranges: the next ones are asked for together.
#[derive(Debug)]
pub(crate) struct Object {
    store: Arc<dyn ObjectStore>,
    key: Path,
    length: u64,
    until: u64,
    runtime: Handle,
    ahead: Mutex<Ahead>,
}

/// Bytes that were asked for, and where they begin.
#[derive(Debug, Default)]
struct Ahead {
    offset: u64,
    bytes: Vec<u8>,
}

impl Object {
    /// Where a range that begins at an offset ends.
    fn end(&self, offset: u64) -> u64 {
        let wanted = self.until.saturating_sub(offset).clamp(LEAST_BYTES, AHEAD_BYTES);
        offset.saturating_add(wanted).min(self.length)
    }
}

impl RangeRead for Object {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if offset >= self.length || buffer.is_empty() {
            return Ok(0);
        }
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let at = offset.checked_sub(ahead.offset).and_then(|at| usize::try_from(at).ok());
        let is_there = at.is_some_and(|at| at < ahead.bytes.len());
        let at = if let (Some(at), true) = (at, is_there) {
            at
        } else {
            let range = offset..self.end(offset);
            let got = wait(&self.runtime, self.store.get_range(&self.key, range)).map_err(io::Error::other)?;
            *ahead = Ahead { offset, bytes: got.to_vec() };
            0
        };
        let there = ahead.bytes.get(at..).unwrap_or_default();
        let length = there.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..length), there.get(..length)) {
            to.copy_from_slice(from);
        }
        Ok(length)
    }
}

/// An object that is being written. It appears when all of it is stored.
pub(crate) struct NewObject {
    store: Arc<dyn ObjectStore>,
    key: Path,
    name: String,
    /// Where there was more than one part.
    upload: Option<Box<dyn MultipartUpload>>,
    /// What is not yet sent.
    waiting: Vec<u8>,
    runtime: Handle,
}

impl NewObject {
    fn failed(&self, error: &object_store::Error) -> io::Error {
        io::Error::other(format!("{}: {error}", self.name))
    }

    /// Sends what waits as a part.
    fn send(&mut self) -> io::Result<()> {
        if self.upload.is_none() {
            let begun = wait(&self.runtime, self.store.put_multipart(&self.key));
            self.upload = Some(begun.map_err(|error| self.failed(&error))?);
        }
        let part = std::mem::take(&mut self.waiting);
        match self.upload.as_mut().map(|upload| wait(&self.runtime, upload.put_part(part.into()))) {
            Some(Err(error)) => Err(self.failed(&error)),
            Some(Ok(())) | None => Ok(()),
        }
    }
}

impl Write for NewObject {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = WRITTEN_BYTES.saturating_sub(self.waiting.len());
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.waiting.extend_from_slice(taken);
        if self.waiting.len() == WRITTEN_BYTES {
            self.send()?;
        }
        Ok(taken.len())
    }

    /// Parts but the last have one size: nothing is sent early.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Place for NewObject {
    fn commit(mut self: Box<Self>) -> io::Result<()> {
        if self.upload.is_some() && !self.waiting.is_empty() {
            self.send()?;
        }
        let stored = match self.upload.as_mut() {
            Some(upload) => wait(&self.runtime, upload.complete()).map(drop),
            None => {
                let bytes = std::mem::take(&mut self.waiting);
                wait(&self.runtime, self.store.put(&self.key, bytes.into())).map(drop)
            }
        };
        stored.map_err(|error| self.failed(&error))?;
        self.upload = None;
        Ok(())
    }
}

impl Drop for NewObject {
    fn drop(&mut self) {
        if let Some(mut upload) = self.upload.take() {
            // A store charges for the parts of an upload that nobody ends.
            if let Err(error) = wait(&self.runtime, upload.abort()) {
                log::warn!("{}: parts that were written cannot be removed: {error}", self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_an_object_or_of_a_file() {
        assert_eq!(parts("s3://b/a/b.xray"), Some(("b", "a/b.xray")));
        assert_eq!(parts("s3://b"), Some(("b", "")));
        assert_eq!(parts("/s3/x"), None);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn ranges_are_read_together_and_not_far_beyond_the_part() {
        let store = Arc::new(object_store::memory::InMemory::new());
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
        store.put(&Path::from("a"), bytes.clone().into()).await.unwrap();
        let (key, length, runtime) = (Path::from("a"), 1_000_000, Handle::current());
        let object = Object { store, key, length, until: 600_000, runtime, ahead: Mutex::default() };
        assert_eq!((object.end(0), object.end(599_999), object.end(900_000)), (600_000, 862_143, 1_000_000));
        let read = tokio::task::spawn_blocking(move || {
            let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
            loop {
                match object.read_at(all.len() as u64, &mut buffer).unwrap() {
                    0 => return all,
                    length => all.extend_from_slice(&buffer[..length]),
                }
            }
        });
        assert_eq!(read.await.unwrap(), bytes);
    }

    fn stores(store: &Arc<object_store::memory::InMemory>) -> Stores {
        let stores = Stores::new();
        stores.known.lock().unwrap().insert("b".to_owned(), Arc::clone(store) as Arc<dyn ObjectStore>);
        stores
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_object_appears_when_all_of_it_is_stored() {
        let store = Arc::new(object_store::memory::InMemory::new());
        let stores = stores(&store);
        for length in [0, 10, WRITTEN_BYTES, WRITTEN_BYTES + 1, 2 * WRITTEN_BYTES + 7] {
            let bytes: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
            let mut object = stores.create("b", "day/out", true).unwrap();
            object.write_all(&bytes).unwrap();
            Box::new(object).commit().unwrap();
            let found = store.get(&Path::from("day/out")).await.unwrap().bytes().await.unwrap();
            assert!(found == bytes, "{length}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_object_that_is_not_ended_is_not_there_and_none_is_replaced_silently() {
        let store = Arc::new(object_store::memory::InMemory::new());
        let stores = stores(&store);
        let mut object = stores.create("b", "out", false).unwrap();
        object.write_all(&vec![1; WRITTEN_BYTES + 1]).unwrap();
        drop(object);
        assert!(store.head(&Path::from("out")).await.is_err());
        Box::new(stores.create("b", "out", false).unwrap()).commit().unwrap();
        let refused = stores.create("b", "out", false).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains("s3://b/out is there; --force replaces it"), "{refused}");
        for no_key in ["", "day/"] {
            assert!(stores.create("b", no_key, true).is_err(), "{no_key}");
        }
    }
}
