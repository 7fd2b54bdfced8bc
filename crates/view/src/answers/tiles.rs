//! What is drawn in a window.

use super::rows::{Chosen, drawn_tracks};
use super::{Problem, Reply, Work};
use crate::axis::Axis;
use crate::http::Parameters;
use crate::pyramid::{INSTANT, Item, Slice, Window, items};
use crate::store::Lane;
use crate::store::Store;

/// The first number of an answer.
const MAGIC: u32 = 0x3154_5641;

/// Pixels of the widest window.
const PIXELS_MAX: u32 = 1 << 15;

/// Items of an answer.
const ITEMS_MAX: usize = 1 << 21;

/// Flag of an answer: more will come.
const INCOMPLETE: u32 = 1;

/// Flag of an item: it begins before the window.
const BEGINS_BEFORE: u32 = 4;

/// `api/tiles`.
pub(super) fn tiles(work: &Work<'_>, parameters: &Parameters) -> Result<Reply, Problem> {
    let (start, end): (f64, f64) = (parameters.required("start")?, parameters.required("end")?);
    let pixels = parameters.number::<u32>("px")?.unwrap_or(1600).clamp(1, PIXELS_MAX);
    if !start.is_finite() || !end.is_finite() || end < start {
        return Err(Problem::new(400, "start and end: expected two numbers in order"));
    }
    let version = super::trace::version(work.view);
    let is_complete = work.view.is_complete();
    let mut tiles = Tiles { out: vec![0; 16], count: 0, items: Vec::new() };
    for chosen in drawn_tracks(work, parameters)? {
        work.check()?;
        let window = Window { start: chosen.axis.time(start), end: chosen.axis.time_up(end) };
        let pixel = crate::axis::to_u64((end - start) / f64::from(pixels) / chosen.axis.scale);
        tiles.track(&chosen, window, pixel)?;
        if tiles.count > ITEMS_MAX {
            return Err(Problem::new(413, "too many items: ask for fewer tracks or pixels"));
        }
    }
    let flags = if is_complete { 0 } else { INCOMPLETE };
    let count = u32::try_from(tiles.count).unwrap_or(u32::MAX);
    #[expect(clippy::cast_possible_truncation, reason = "the low bits of a number that grows")]
    let head = [MAGIC, count, version as u32, flags];
    for (place, number) in tiles.out.chunks_exact_mut(4).zip(head) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    Ok(Reply::Bytes("application/octet-stream", tiles.out))
}

struct Tiles {
    out: Vec<u8>,
    count: usize,
    /// Items of one row.
    items: Vec<Item>,
}

impl Tiles {
    fn track(&mut self, chosen: &Chosen, window: Window, pixel: u64) -> Result<(), Problem> {
        let store = chosen.shelf.read();
        let Some(lane) = store.tracks.get(chosen.track) else { return Ok(()) };
        let open: Vec<_> = lane.unfinished().collect();
        for depth in 0..lane.depth() {
            self.items.clear();
            self.row(&store, lane, depth, (window, pixel))?;
            let unfinished = open.get(depth).map(|(_, slice)| slice);
            self.items.extend(unfinished.filter(|slice| slice.start <= window.end).map(of_slice));
            self.items.sort_by_key(|item| (item.start, item.end));
            for item in std::mem::take(&mut self.items) {
                self.push(chosen.id, depth, &item, (chosen.axis, window));
            }
        }
        Ok(())
    }

    fn row(&mut self, store: &Store, lane: &Lane, depth: usize, (window, pixel): (Window, u64)) -> Result<(), Problem> {
        if let Some(rows) = lane.depths.get(depth) {
            items((&rows.slices, 0), &store.blobs, window, pixel, &mut self.items)?;
            items((&rows.instants, INSTANT), &store.blobs, window, pixel, &mut self.items)?;
        }
        Ok(())
    }

    fn push(&mut self, track: u64, depth: usize, item: &Item, (axis, window): (Axis, Window)) {
        self.count += 1;
        let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let before = if item.start < window.start { BEGINS_BEFORE } else { 0 };
        let out = &mut self.out;
        out.extend(number(track).to_le_bytes());
        out.extend(number(depth as u64).to_le_bytes());
        for place in [axis.place(item.start), axis.place(item.end), axis.length(item.busy)] {
            out.extend(place.to_le_bytes());
        }
        for word in [number(item.count), item.name, u32::from(item.flags) | before, item.longest_name] {
            out.extend(word.to_le_bytes());
        }
    }
}

/// A slice that has not ended, as an item.
fn of_slice(slice: &Slice) -> Item {
    Item {
        start: slice.start,
        end: slice.end,
        busy: slice.length(),
        count: 1,
        name: slice.name,
        longest_name: slice.name,
        flags: slice.flags,
    }
}
