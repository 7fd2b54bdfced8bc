use std::collections::BTreeMap;

use super::*;

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Complete paths in an ordered map: the same order as in the runs.
type Slow = BTreeMap<Vec<u32>, StackSums>;

fn random_sums(state: &mut u64) -> StackSums {
    let ticks = random(state) % 1_000_000;
    match random(state) % 4 {
        0 => StackSums::default(),
        1 => StackSums { leaf_count: 1, leaf_sum: ticks, count: 1, sum: ticks, self_sum: ticks },
        2 => StackSums { leaf_count: 0, leaf_sum: 0, count: 1, sum: ticks, self_sum: ticks / 2 },
        _ => StackSums { leaf_count: 3, leaf_sum: 9, count: random(state), sum: u64::MAX - 5, self_sum: ticks },
    }
}

fn add_tables(runs: &mut StackRuns, slow: &mut Slow, state: &mut u64, tables: usize) {
    for _ in 0..tables {
        let (mut table, mut sums) = (StackTable::default(), Vec::new());
        let mut path: Vec<u32> = Vec::new();
        let mut stack = ROOT;
        for _ in 0..random(state) % 400 {
            if random(state).is_multiple_of(3) || path.len() > 45 {
                path.pop();
                stack = table.parent(stack);
            } else {
                path.push(random(state) as u32 % if path.is_empty() { 2 } else { 5 });
                stack = table.intern(stack, path[path.len() - 1]);
                sums.resize(table.len(), StackSums::default());
                let more = random_sums(state);
                sums[stack as usize].add(&more);
                slow.entry(path.clone()).or_default().add(&more);
            }
        }
        // Roots have no counts of their own here.
        runs.add(&table, &sums).unwrap();
    }
}

fn paths(runs: &StackRuns, root: u32) -> Vec<(Vec<u32>, StackSums)> {
    let (mut path, mut out) = (vec![root], Vec::new());
    let mut ordinals: Vec<u64> = Vec::new();
    runs.for_each(Some(root), &mut |node| {
        path.truncate(node.depth as usize + 1);
        assert_eq!(path.len(), node.depth as usize + 1);
        path.push(node.name);
        ordinals.truncate(node.depth as usize);
        assert!(ordinals.last().is_none_or(|outer| *outer < node.ordinal), "callers appear before callees");
        ordinals.push(node.ordinal);
        out.push((path.clone(), node.sums));
        Ok(())
    })
    .unwrap();
    out
}

#[test]
fn runs_add_up_to_complete_paths_in_a_map() {
    let mut state = 11;
    for tables in [0, 1, 2, 7, 40, 600] {
        let (mut runs, mut slow) = (StackRuns::new(None), Slow::new());
        add_tables(&mut runs, &mut slow, &mut state, tables);
        for root in 0..2 {
            let expected: Vec<_> = slow
                .iter()
                .filter(|(path, _)| path[0] == root && path.len() > 1)
                .map(|(p, s)| (p.clone(), *s))
                .collect();
            assert_eq!(paths(&runs, root), expected, "{tables} tables");
        }
    }
}

#[test]
fn absorbed_runs_are_added_to_roots_of_another_name() {
    let mut state = 5;
    let (mut a, mut b, mut slow) = (StackRuns::new(None), StackRuns::new(None), Slow::new());
    add_tables(&mut a, &mut slow, &mut state, 3);
    let mut other = Slow::new();
    add_tables(&mut b, &mut other, &mut state, 3);
    for (mut path, sums) in other {
        path[0] = 1 - path[0];
        slow.entry(path).or_default().add(&sums);
    }
    a.absorb(b, |root| 1 - root);
    let expected: Vec<_> =
        slow.iter().filter(|(path, _)| path[0] == 1 && path.len() > 1).map(|(p, s)| (p.clone(), *s)).collect();
    assert_eq!(paths(&a, 1), expected);
}

#[test]
fn all_roots_together_are_added_up() {
    let mut state = 9;
    let (mut runs, mut slow) = (StackRuns::new(None), Slow::new());
    add_tables(&mut runs, &mut slow, &mut state, 9);
    let mut together = Slow::new();
    for (path, sums) in slow.into_iter().filter(|(path, _)| path.len() > 1) {
        together.entry(path[1..].to_vec()).or_default().add(&sums);
    }
    let (mut path, mut got) = (Vec::new(), Vec::new());
    runs.for_each(None, &mut |node| {
        path.truncate(node.depth as usize);
        path.push(node.name);
        got.push((path.clone(), node.sums));
        Ok(())
    })
    .unwrap();
    assert_eq!(got, together.into_iter().collect::<Vec<_>>());
}

#[test]
fn runs_that_do_not_fit_into_memory_are_read_back_from_a_file() {
    let make: MakeFile = || {
        let path = std::env::temp_dir().join(format!("anytrace-stack-runs-{}", std::process::id()));
        let file = File::options().create(true).truncate(true).read(true).write(true).open(&path)?;
        std::fs::remove_file(path)?;
        Ok(file)
    };
    let mut store = Store { memory: vec![1; MEMORY_BYTES_MAX - 2], file: None, file_bytes: 0 };
    let bytes: Vec<u8> = (0..20_000_u32).map(|n| n as u8).collect();
    let start = store.append(&bytes, Some(make)).unwrap();
    let second = store.append(b"end", Some(make)).unwrap();
    let (mut back, mut at) = (Vec::new(), start);
    while at < second + 3 {
        at += store.read(at, second + 3, &mut back).unwrap() as u64;
    }
    assert!(store.file.is_some() && back.strip_suffix(b"end") == Some(&bytes[..]));
}
