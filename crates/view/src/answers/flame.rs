//! The stacks of a window as a tree: time by name under the names around it.

use std::ops::Range;

use anytrace_core::hash::Map;
use serde_json::{Value, json};

use super::rows::{Chosen, Which, in_parallel, row, tracks, window};
use super::{Problem, Reply, Work};
use crate::http::Parameters;
use crate::pyramid::{Reader, Slice, Window};
use crate::store::Store;

/// Nodes of a tree, at most; what would need more counts toward its caller. Each takes about 100 bytes.
const NODES_MAX: usize = 1 << 17;

/// Depths of the tree that are sent.
const DEPTH_MAX: usize = 256;

/// A child is shown if it has at least this share of the root.
const SHARE_MIN: f64 = 0.001;

/// Slices that are read before others may change the store.
const PIECE: usize = 1 << 15;

/// `api/flame`. Times are those inside the window.
pub(super) fn flame(work: &Work<'_>, parameters: &Parameters) -> Result<Reply, Problem> {
    let by_time = match parameters.text("merge") {
        None | Some("heavy" | "") => false,
        Some("time") => true,
        Some(_) => return Err(Problem::new(400, "merge: expected heavy or time")),
    };
    let mut chosen = Vec::new();
    for track in tracks(work, parameters)? {
        let window = window(parameters, track.axis)?;
        chosen.push((track, window));
    }
    // Trees are large: one answer after the other has them.
    let _turn = work.turn()?;
    let mut parts = in_parallel(work.view.options.threads, &chosen, Tree::default, |tree, (track, window)| {
        of_track(work, track, *window, tree)
    })?;
    let mut all = parts.pop().unwrap_or_default();
    while let Some(part) = parts.pop() {
        all.merge(&part);
    }
    let left_out = all.left_out;
    let sources: Vec<_> = work.view.files.iter().map(|file| file.drawn().read().source).collect();
    let unit = crate::axis::unit(&sources).0;
    Ok(Reply::Json(json!({"unit": unit, "left_out": left_out, "root": all.json(work, by_time)})))
}

/// A name under the names around it.
#[derive(Debug, Clone, Copy, Default)]
struct Node {
    parent: usize,
    name: u32,
    /// Time in it, in the unit of the axis.
    total: f64,
    /// Slices that begin in the window.
    count: u64,
    /// Where it was first.
    first: f64,
}

/// Nodes by number; 0 is the root, and a node follows its parent.
struct Tree {
    nodes: Vec<Node>,
    numbers: Map<(usize, u32), usize>,
    /// Slices without a node of their own.
    left_out: u64,
}

impl Default for Tree {
    fn default() -> Self {
        Self { nodes: vec![Node::default()], numbers: Map::default(), left_out: 0 }
    }
}

impl Tree {
    fn child(&mut self, parent: usize, name: u32, first: f64) -> Option<usize> {
        if let Some(&number) = self.numbers.get(&(parent, name)) {
            return Some(number);
        }
        let number = self.nodes.len();
        if number >= NODES_MAX {
            self.left_out += 1;
            return None;
        }
        self.nodes.push(Node { parent, name, total: 0.0, count: 0, first });
        self.numbers.insert((parent, name), number);
        Some(number)
    }

    fn merge(&mut self, other: &Self) {
        self.left_out += other.left_out;
        let mut own = vec![Some(0)];
        for node in other.nodes.iter().skip(1) {
            let parent = own.get(node.parent).copied().flatten();
            let number = parent.and_then(|parent| self.child(parent, node.name, node.first));
            if let Some(mine) = number.and_then(|number| self.nodes.get_mut(number)) {
                mine.total += node.total;
                mine.count += node.count;
                mine.first = mine.first.min(node.first);
            }
            own.push(number);
        }
    }

    /// The tree as nested objects; children by time spent, or in the order in which they came first.
    fn json(mut self, work: &Work<'_>, by_time: bool) -> Value {
        self.numbers = Map::default();
        let children = Children::of(&self.nodes);
        let total =
            |numbers: &[usize]| -> f64 { numbers.iter().filter_map(|one| self.nodes.get(*one)).map(|n| n.total).sum() };
        let all = total(children.of_node(0));
        let count: u64 = self.nodes.iter().map(|node| node.count).sum();
        let shown = Shown { tree: &self, children, least: all * SHARE_MIN, by_time, work };
        json!({"name": "all", "total": all, "self": 0.0, "count": count, "children": shown.children(0, 0)})
    }
}

/// The children of each node, in order.
struct Children {
    /// All of them, those of one node together.
    all: Vec<usize>,
    /// Where those of each node begin; the last number is their end.
    starts: Vec<usize>,
}

impl Children {
    fn of(nodes: &[Node]) -> Self {
        let mut starts = vec![0; nodes.len() + 1];
        for node in nodes.iter().skip(1) {
            if let Some(count) = starts.get_mut(node.parent + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut all = vec![0; nodes.len().saturating_sub(1)];
        for (number, node) in nodes.iter().enumerate().skip(1) {
            if let Some(at) = next.get_mut(node.parent) {
                if let Some(place) = all.get_mut(*at) {
                    *place = number;
                }
                *at += 1;
            }
        }
        Self { all, starts }
    }

    fn of_node(&self, number: usize) -> &[usize] {
        let range = self.starts.get(number).zip(self.starts.get(number + 1));
        range.and_then(|(start, end)| self.all.get(*start..*end)).unwrap_or_default()
    }
}

/// How a tree is shown.
struct Shown<'a> {
    tree: &'a Tree,
    children: Children,
    least: f64,
    by_time: bool,
    work: &'a Work<'a>,
}

impl Shown<'_> {
    fn children(&self, of: usize, depth: usize) -> Vec<Value> {
        let own = self.children.of_node(of);
        let mut nodes: Vec<(usize, Node)> =
            own.iter().filter_map(|number| Some((*number, *self.tree.nodes.get(*number)?))).collect();
        if self.by_time {
            nodes.sort_by(|(_, a), (_, b)| a.first.total_cmp(&b.first).then(a.name.cmp(&b.name)));
        } else {
            nodes.sort_by(|(_, a), (_, b)| b.total.total_cmp(&a.total).then(a.name.cmp(&b.name)));
        }
        let (shown, few): (Vec<_>, Vec<_>) =
            nodes.into_iter().partition(|(_, node)| node.total >= self.least && depth < DEPTH_MAX);
        let mut values: Vec<Value> = shown.into_iter().map(|(number, node)| self.node(number, &node, depth)).collect();
        if !few.is_empty() {
            let (total, count) = few.iter().fold((0.0, 0), |(t, c), (_, node)| (t + node.total, c + node.count));
            let name = format!("({} more)", few.len());
            values.push(
                json!({"name": name, "total": total, "self": total, "count": count, "children": [], "more": true}),
            );
        }
        values
    }

    fn node(&self, number: usize, node: &Node, depth: usize) -> Value {
        let inside = self.children.of_node(number);
        let inside: f64 = inside.iter().filter_map(|one| self.tree.nodes.get(*one)).map(|node| node.total).sum();
        json!({
            "name": &*self.work.view.names.text(node.name),
            "id": node.name,
            "total": node.total,
            "self": (node.total - inside).max(0.0),
            "count": node.count,
            "children": self.children(number, depth + 1),
        })
    }
}

/// A slice whose row below is being read, and its node.
struct Frame {
    end: u64,
    node: Option<usize>,
}

/// The walk through the rows of a track: a slice belongs to the first of the row above that contains it.
struct Walk<'a> {
    chosen: &'a Chosen,
    window: Window,
    tree: &'a mut Tree,
    /// The slices of each row that are not read yet.
    rest: Vec<Range<usize>>,
    /// The slices that contain the next one, outermost first; the first is at depth `base`.
    frames: Vec<Frame>,
    base: usize,
}

/// Adds the slices of a track, and those that have not ended.
fn of_track(work: &Work<'_>, chosen: &Chosen, window: Window, tree: &mut Tree) -> Result<(), Problem> {
    let (rest, open) = {
        let store = chosen.shelf.read();
        let rest = (0..depths(&store, chosen.track)).map(|depth| touched(&store, chosen.track, depth, window));
        let open: Vec<Slice> = store
            .tracks
            .get(chosen.track)
            .map_or(Vec::new(), |lane| lane.unfinished().map(|(_, slice)| slice).collect());
        (rest.collect::<Result<Vec<_>, _>>()?, open)
    };
    let mut walk = Walk { chosen, window, tree, rest, frames: Vec::new(), base: 0 };
    let mut node = Some(0);
    for base in 0..=open.len() {
        walk.base = base;
        walk.frames.push(Frame { end: u64::MAX, node });
        while walk.piece()? {
            work.check()?;
        }
        // What is left of the next row is inside the slice that is open at this depth.
        node = open.get(base).and_then(|slice| walk.add(node, slice));
    }
    Ok(())
}

fn touched(store: &Store, track: usize, depth: usize, window: Window) -> Result<Range<usize>, Problem> {
    let Some(row) = row(store, track, depth) else { return Ok(0..0) };
    super::rows::numbers(&mut Reader::new(row, &store.blobs), row, window, Which::Touch)
}

impl Walk<'_> {
    /// Adds the time of a slice to the node of its name inside another.
    fn add(&mut self, parent: Option<usize>, slice: &Slice) -> Option<usize> {
        let axis = self.chosen.axis;
        let number = self.tree.child(parent?, slice.name, axis.place(slice.start))?;
        let node = self.tree.nodes.get_mut(number)?;
        node.total += axis.length(self.window.overlap(slice));
        node.count += u64::from(self.window.start <= slice.start && slice.start < self.window.end);
        Some(number)
    }

    /// Reads some slices; false when all were read.
    fn piece(&mut self) -> Result<bool, Problem> {
        let store = self.chosen.shelf.read();
        let rows = (0..self.rest.len()).filter_map(|depth| row(&store, self.chosen.track, depth));
        let mut readers: Vec<Reader<'_>> = rows.map(|row| Reader::new(row, &store.blobs)).collect();
        for _ in 0..PIECE {
            let Some(frame) = self.frames.last() else { return Ok(false) };
            let (depth, end, parent) = (self.base + self.frames.len() - 1, frame.end, frame.node);
            let next = match (readers.get_mut(depth), self.rest.get_mut(depth)) {
                (Some(reader), Some(rest)) if rest.start < rest.end => match reader.get(rest.start)? {
                    Some(slice) if slice.end <= end => {
                        rest.start += 1;
                        Some(slice)
                    }
                    _ => None,
                },
                _ => None,
            };
            match next {
                Some(slice) => {
                    let node = self.add(parent, &slice);
                    self.frames.push(Frame { end: slice.end, node });
                }
                None => drop(self.frames.pop()),
            }
        }
        Ok(true)
    }
}

/// How many rows a track has.
fn depths(store: &Store, track: usize) -> usize {
    store.tracks.get(track).map_or(0, |lane| lane.depths.len())
}
