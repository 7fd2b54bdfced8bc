//! A line of values in a window.

use serde_json::{Value, json};

use super::{Problem, Reply, Work};
use crate::http::Parameters;
use crate::view::View;

/// Points of the widest window.
const PIXELS_MAX: u32 = 1 << 14;

/// The lines of all files: the number of each names it.
pub(super) fn list(view: &View) -> Vec<Value> {
    let mut all = Vec::new();
    for (file, one) in view.files.iter().enumerate() {
        let shelf = one.shelf();
        for series in shelf.read().counters.all() {
            let track = series.track.map(|track| view.track_id(file, track as usize));
            all.push(json!({"id": all.len(), "name": series.name, "track": track, "file": file}));
        }
    }
    all
}

/// `api/counter`.
pub(super) fn counter(work: &Work<'_>, parameters: &Parameters) -> Result<Reply, Problem> {
    let (start, end): (f64, f64) = (parameters.required("start")?, parameters.required("end")?);
    if !start.is_finite() || !end.is_finite() || end < start {
        return Err(Problem::new(400, "start and end: expected two numbers in order"));
    }
    let pixels = parameters.number::<u32>("px")?.unwrap_or(1600).clamp(1, PIXELS_MAX);
    let mut id: usize = parameters.required("id")?;
    for (file, axis) in work.view.files.iter().zip(work.axes()) {
        let shelf = file.shelf();
        let store = shelf.read();
        let all = store.counters.all();
        let Some(series) = all.get(id) else {
            id -= all.len();
            continue;
        };
        let pixel = crate::axis::to_u64((end - start) / f64::from(pixels) / axis.scale);
        let points = series.within(axis.time(start), axis.time_up(end), pixel);
        return Ok(Reply::Json(json!({
            "t": points.iter().map(|point| axis.place(point.time)).collect::<Vec<_>>(),
            "min": points.iter().map(|point| point.low).collect::<Vec<_>>(),
            "max": points.iter().map(|point| point.high).collect::<Vec<_>>(),
            "last": points.iter().map(|point| point.last).collect::<Vec<_>>(),
        })));
    }
    Err(Problem::missing())
}
