//! Frames as small pictures.

use serde_json::{Value, json};

use super::page::{Page, text};
use super::{Problem, Reply, Work};
use crate::http::Parameters;
use crate::pyramid::Reader;
use crate::strip::Shown;

/// What spans of a trace with frames call the end of one.
const END_OF_FRAME: &str = "end of frame";

/// The pictures of one file, where a program that replays it is at hand.
pub(super) fn block(page: &Page<'_>) -> Option<Value> {
    let view = page.work.view;
    let program = view.options.replayer.as_deref()?;
    let is_one = page.file.state().format.is_some_and(|format| format.has_frames());
    if !is_one || !page.file.can_be_read_again() {
        return None;
    }
    let number = view.files.iter().position(|file| std::ptr::eq(file, page.file))?;
    Some(match page.file.strip.shown(program, &page.file.path(), view.stopper()) {
        Shown::Failed(problem) => text(&format!("The frames cannot be shown as pictures: {problem}")),
        Shown::Making => json!({"kind": "pictures", "title": "Pictures", "making": true, "pictures": []}),
        Shown::Frames(frames) => {
            let ends = ends_of_frames(page).unwrap_or_default();
            let picture = |frame: &u64| {
                let at = usize::try_from(*frame).ok();
                let end = at.and_then(|at| ends.get(at)).copied();
                let start = at.and_then(|at| at.checked_sub(1)).and_then(|at| ends.get(at)).copied().unwrap_or(0);
                let link = end.map(
                    |end| json!({"start": page.axis.place(start), "end": page.axis.place(end), "track": Value::Null}),
                );
                json!({"source": format!("api/picture?file={number}&frame={frame}"), "text": format!("frame {frame}"), "link": link})
            };
            let pictures: Vec<Value> = frames.iter().map(picture).collect();
            json!({"kind": "pictures", "title": "Pictures", "making": false, "pictures": pictures})
        }
    })
}

/// The times at which frames end, in order.
fn ends_of_frames(page: &Page<'_>) -> std::io::Result<Vec<u64>> {
    let shelf = page.file.shelf();
    let store = shelf.read();
    let mut ends = Vec::new();
    for depth in store.tracks.iter().flat_map(|lane| &lane.depths) {
        let mut reader = Reader::new(&depth.instants, &store.blobs);
        let mut at = 0;
        while at < depth.instants.len() {
            let slices = reader.from(at)?;
            if slices.is_empty() {
                break;
            }
            at += slices.len();
            ends.extend(slices.iter().map(|slice| (slice.start, slice.name)));
        }
    }
    let names = &page.work.view.names;
    ends.retain(|(_, name)| &*names.text(*name) == END_OF_FRAME);
    ends.sort_unstable();
    Ok(ends.into_iter().map(|(end, _)| end).collect())
}

/// `api/picture`.
pub(super) fn picture(work: &Work<'_>, parameters: &Parameters) -> Result<Reply, Problem> {
    let (file, frame): (usize, u64) = (parameters.required("file")?, parameters.required("frame")?);
    let file = work.view.files.get(file).ok_or_else(Problem::missing)?;
    Ok(Reply::Bytes("image/png", file.strip.picture(frame).ok_or_else(Problem::missing)?))
}
