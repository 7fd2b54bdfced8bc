//! What receivers count in sections of a thread, compared with what one counts of all of it.

use std::path::Path;

use anytrace_core::testing::{mutations, shared_corpus};
use anytrace_core::{Collect, Input, OpenOptions};

use crate::tools::account::{AccountOptions, Row, account};
use crate::tools::graph::{CallEdge, Pairing, Vertex, graph};
use crate::tools::stack::{Oddities, StackOptions, stack};
use crate::tools::stack_tree::{Roots, Tree};

/// xorshift64 (Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }
}

/// Everything that is counted.
struct Counted {
    rows: Vec<Row>,
    calls: String,
    stacks: Vec<String>,
    graph: (Vec<CallEdge>, Vec<Vertex>),
    oddities: [Oddities; 2],
}

fn counted(bytes: &[u8], threads: usize) -> Counted {
    let options = OpenOptions { threads, ..OpenOptions::default() };
    let input = || Input::from_bytes("x", bytes.to_vec());
    let mut sink = Collect::default();
    let account = account(input(), &options, AccountOptions::default(), None, &mut sink).unwrap();
    let stacks = stack(input(), &options, &StackOptions::default(), &mut sink).unwrap();
    let graph = graph(input(), &options, Pairing::Right, &mut sink).unwrap();
    Counted {
        rows: account.rows,
        calls: format!("{:?}", account.counts),
        stacks: lines(&Tree::of(&stacks, false)),
        oddities: [stacks.oddities, graph.oddities],
        graph: (graph.edges, graph.vertices),
    }
}

/// The stacks of each thread in their order, threads by their numbers.
fn lines(tree: &Tree) -> Vec<String> {
    fn add(tree: &Tree, at: u32, depth: usize, line: &mut String) {
        let node = &tree.nodes[at as usize];
        line.push_str(&format!("\n{depth} {} {:?}", node.function, node.sums));
        node.children.iter().for_each(|&child| add(tree, child, depth + 1, line));
    }
    let of = |(key, roots): &Roots| {
        let mut line = format!("{key:?}");
        roots.iter().for_each(|&root| add(tree, root, 0, &mut line));
        line
    };
    let mut lines: Vec<String> = tree.groups.iter().map(of).collect();
    lines.sort();
    lines
}

fn assert_same(bytes: &[u8], what: &str) {
    let one = counted(bytes, 1);
    for threads in [2, 3, 7] {
        let several = counted(bytes, threads);
        assert_eq!(several.calls, one.calls, "{what}, {threads} threads");
        assert_eq!(several.oddities, one.oddities, "{what}, {threads} threads");
        assert_eq!(several.rows, one.rows, "{what}, {threads} threads");
        assert_eq!(several.graph, one.graph, "{what}, {threads} threads");
        assert_eq!(several.stacks, one.stacks, "{what}, {threads} threads");
    }
}

#[test]
fn every_sample_counts_the_same_in_sections() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut folders = vec![folder.clone(), folder.join("bad"), folder.join("found")];
    folders.extend(shared_corpus("xray").map(|corpus| corpus.join("real")));
    let mut count = 0;
    for folder in folders {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "xray") {
                let bytes = std::fs::read(&path).unwrap();
                assert_same(&bytes, &path.display().to_string());
                if bytes.len() < 6000 {
                    mutations(&bytes, 3, 8, |changed| assert_same(changed, &path.display().to_string()));
                }
                count += 1;
            }
        }
    }
    assert!(count > 40, "{count}");
}

/// How records of a made-up trace are chosen.
#[derive(Debug, Clone, Copy)]
struct Shape {
    functions: u64,
    /// Of 16 records: entries; exits of another function than the innermost; jumps; others than functions.
    entries: u64,
    mismatches: u64,
    jumps: u64,
    others: u64,
}

/// A trace of version 5: threads with buffers of random records. Shares no code with the reader.
fn made_up(random: &mut Random, shape: Shape) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&5_u16.to_le_bytes());
    out.extend_from_slice(&1_u16.to_le_bytes());
    out.extend_from_slice(&3_u32.to_le_bytes());
    out.extend_from_slice(&1_000_000_u64.to_le_bytes());
    out.extend_from_slice(&4096_u64.to_le_bytes());
    out.extend_from_slice(&0_u64.to_le_bytes());
    let mut tsc = 1_000_000;
    let mut open: Vec<u32> = Vec::new();
    for _ in 0..1 + random.below(6) {
        let mut body = Vec::new();
        let metadata = |kind: u8, fields: &[&[u8]], body: &mut Vec<u8>| {
            let end = body.len() + 16;
            body.push(kind << 1 | 1);
            fields.iter().for_each(|field| body.extend_from_slice(field));
            body.resize(end, 0);
        };
        let thread = if random.below(8) == 0 { 2_u32 } else { 1 };
        metadata(0, &[&thread.to_le_bytes()], &mut body);
        metadata(4, &[&1_u64.to_le_bytes(), &0_u32.to_le_bytes()], &mut body);
        metadata(9, &[&77_u32.to_le_bytes()], &mut body);
        metadata(2, &[&1_u16.to_le_bytes(), &u64::to_le_bytes(tsc)], &mut body);
        for _ in 0..random.below(400) {
            if random.below(16) < shape.others {
                match random.below(4) {
                    // A processor, sometimes with a time before.
                    0 => {
                        tsc = (tsc + random.below(50)).saturating_sub(random.below(60));
                        metadata(2, &[&2_u16.to_le_bytes(), &u64::to_le_bytes(tsc)], &mut body);
                    }
                    1 => metadata(3, &[&u64::to_le_bytes(tsc)], &mut body),
                    2 => {
                        metadata(5, &[&4_i32.to_le_bytes(), &1_i32.to_le_bytes()], &mut body);
                        body.extend_from_slice(b"abcd");
                        tsc += 1;
                    }
                    _ => metadata(6, &[&random.below(9).to_le_bytes()], &mut body),
                }
                continue;
            }
            let any = u32::try_from(1 + random.below(shape.functions)).unwrap();
            let (kind, id) = if open.is_empty() || random.below(16) < shape.entries {
                open.push(any);
                (if random.below(5) == 0 { 3 } else { 0 }, any)
            } else {
                let top = open.pop().unwrap();
                let kind = if random.below(16) < shape.jumps { 2 } else { 1 };
                (kind, if random.below(16) < shape.mismatches { any } else { top })
            };
            let delta = u32::try_from(random.below(100)).unwrap();
            tsc += u64::from(delta);
            body.extend_from_slice(&(id << 4 | kind << 1).to_le_bytes());
            body.extend_from_slice(&delta.to_le_bytes());
        }
        let length = body.len() as u64;
        metadata(7, &[&length.to_le_bytes()], &mut out);
        out.extend_from_slice(&body);
    }
    out
}

#[test]
fn made_up_traces_count_the_same_in_sections() {
    let mut random = Random(20_260_427);
    for round in 0..600 {
        let shape = Shape {
            functions: 1 + random.below(12),
            entries: 4 + random.below(9),
            mismatches: random.below(4),
            jumps: random.below(6),
            others: random.below(3),
        };
        let bytes = made_up(&mut random, shape);
        assert_same(&bytes, &format!("round {round}, {shape:?}"));
    }
}
