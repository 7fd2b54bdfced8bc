//! Names, times and tracks in objects for programs.

use serde_json::{Value, json};

use crate::directory::Directory;

/// A name as text: what is not UTF-8 is replaced.
pub fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// A time since the trace's origin, in the unit of the object; negative before it.
pub(super) fn since(time: u64, directory: &Directory) -> i64 {
    let source = directory.source();
    let length = source.unit.number(u128::from(time.abs_diff(source.origin)));
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    if time < source.origin { -length } else { length }
}

pub(super) fn put_thread(object: &mut Value, index: u32, directory: &Directory) {
    if let Some(thread) = directory.threads().get(index as usize) {
        object["process"] = json!(thread.process);
        if let Some(name) = &thread.process_name {
            object["process_name"] = json!(name);
        }
        object["thread"] = json!(thread.thread);
        object["thread_name"] = json!(thread.name);
    }
}

pub(super) fn put_track(object: &mut Value, track: u32, directory: &Directory) {
    put_thread(object, directory.thread_of(track), directory);
    object["lane"] = json!(directory.track(track).map_or(0, |track| track.lane));
}
