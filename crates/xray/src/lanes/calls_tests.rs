use proptest::prelude::*;

use super::*;

/// What the visitor received, in short: `+1` a call of function 1 begins, `-1@9` it ends at 9, followed by the names of
/// its flags.
#[derive(Default)]
struct Received(Vec<String>);

fn words(flags: EdgeFlags) -> String {
    flags.words().map(|word| format!(" {word}")).collect()
}

impl CallVisitor for Received {
    fn begin(&mut self, thread: usize, frame: &Frame, depth: usize, _moment: &Moment<'_>) -> Result<(), Error> {
        self.0.push(format!("{thread}:{depth} +{}{}", frame.function, words(frame.flags)));
        Ok(())
    }
    fn end(&mut self, thread: usize, frame: &Frame, depth: usize, end: &End) -> Result<(), Error> {
        self.0.push(format!("{thread}:{depth} -{}@{}{}", frame.function, end.tsc, words(end.flags)));
        Ok(())
    }
    fn orphan(&mut self, thread: usize, moment: &Moment<'_>) -> Result<(), Error> {
        self.0.push(format!("{thread} orphan {}", moment.function));
        Ok(())
    }
}

fn moment(kind: MomentKind, function: u32, tsc: u64) -> Moment<'static> {
    let at = Place { offset: 0, seq: tsc };
    let (name, arguments, data, buffer) = (&[][..], &[][..], &[][..], 0);
    Moment { kind, function, name, arguments, cpu: 0, thread: 7, process: 0, tsc, data, at, buffer }
}

/// `+1` enters, `-1` leaves, `~1` leaves by a jump, `e` is an event; times are 1, 2, and so on.
fn follow(line: &str, options: CallOptions) -> (Vec<String>, CallCounts) {
    let (mut calls, mut received) = (Calls::new(options), Received::default());
    for (word, tsc) in line.split(' ').zip(1..) {
        let (sign, number) = word.split_at(1);
        let kind = match sign {
            "+" => MomentKind::Function(FunctionKind::Enter),
            "-" => MomentKind::Function(FunctionKind::Exit),
            "~" => MomentKind::Function(FunctionKind::TailExit),
            _ => MomentKind::Custom,
        };
        calls.moment(&moment(kind, number.parse().unwrap_or(0), tsc), &mut received).unwrap();
    }
    calls.finish(&mut received).unwrap();
    (received.0, *calls.counts())
}

const CHAINS: CallOptions = CallOptions { mismatch: Mismatch::Deduce, tail_chains: true };

#[test]
fn an_exit_of_an_outer_call_ends_those_inside() {
    let (received, counts) = follow("+1 +2 +3 -1", CallOptions::default());
    assert_eq!(received[3..], ["0:2 -3@4 deduced", "0:1 -2@4 deduced", "0:0 -1@4"]);
    assert_eq!(counts, CallCounts { deduced: 2, ..CallCounts::default() });
}

#[test]
fn an_exit_of_no_open_call_is_an_orphan() {
    let (received, counts) = follow("-4 +1 -5 -1", CallOptions::default());
    assert_eq!(received, ["0 orphan 4", "0:0 +1", "0 orphan 5", "0:0 -1@4"]);
    assert_eq!(counts, CallCounts { orphans: 2, ..CallCounts::default() });
}

#[test]
fn skipping_leaves_the_stack_as_it_is() {
    let skip = CallOptions { mismatch: Mismatch::Skip, ..CallOptions::default() };
    let (received, counts) = follow("+1 +2 -1 -2 -1", skip);
    assert_eq!(received, ["0:0 +1", "0:1 +2", "0 orphan 1", "0:1 -2@4", "0:0 -1@5"]);
    assert_eq!(counts, CallCounts { skipped: 1, ..CallCounts::default() });
}

#[test]
fn calls_open_at_the_end_end_with_the_last_record() {
    let (received, counts) = follow("+1 +2 e", CallOptions::default());
    assert_eq!(received[2..], ["0:1 -2@3 unfinished", "0:0 -1@3 unfinished"]);
    assert_eq!(counts, CallCounts { unfinished: 2, ..CallCounts::default() });
}

#[test]
fn a_tail_exit_is_an_exit() {
    let (received, counts) = follow("+1 ~1 +2 -2", CallOptions::default());
    assert_eq!(received, ["0:0 +1", "0:0 -1@2 tail", "0:0 +2", "0:0 -2@4"]);
    assert_eq!(counts.tails, 1);
}

#[test]
fn chains_of_jumps_enclose_the_calls_they_jumped_to() {
    let (received, _) = follow("+9 +1 ~1 +2 ~2 +3 -3 -9", CHAINS);
    let chain = [
        "0:0 +9",
        "0:1 +1",
        "0:2 +2 chained",
        "0:3 +3 chained",
        "0:3 -3@7",
        "0:2 -2@7 tail",
        "0:1 -1@7 tail",
        "0:0 -9@8",
    ];
    assert_eq!(received, chain);
}

#[test]
fn a_jump_to_nothing_known_ends_the_call_there() {
    let (received, _) = follow("+9 +1 ~1 -9", CHAINS);
    assert_eq!(received, ["0:0 +9", "0:1 +1", "0:1 -1@3 tail", "0:0 -9@4"]);
    // An event in between does not belong to a jump.
    let (received, _) = follow("+1 ~1 e +2 -2", CHAINS);
    assert_eq!(received, ["0:0 +1", "0:0 -1@2 tail", "0:0 +2", "0:0 -2@5"]);
    let (received, _) = follow("+1 ~1", CHAINS);
    assert_eq!(received, ["0:0 +1", "0:0 -1@2 tail"]);
}

#[test]
fn a_function_that_jumps_to_itself_is_a_chain_too() {
    let (received, _) = follow("+1 ~1 +1 ~1 +1 -1", CHAINS);
    assert_eq!(received[3..], ["0:2 -1@6", "0:1 -1@6 tail", "0:0 -1@6 tail"]);
}

#[test]
fn an_exception_through_a_chain_ends_all_of_it() {
    let (received, counts) = follow("+9 +1 ~1 +2 -9", CHAINS);
    assert_eq!(received[3..], ["0:2 -2@5 deduced", "0:1 -1@5 tail", "0:0 -9@5"]);
    assert_eq!(counts.deduced, 1);
}

#[test]
fn a_buffer_that_begins_before_the_previous_one_does_not_continue_it() {
    let (mut calls, mut received) = (Calls::new(CallOptions::default()), Received::default());
    let enter = |tsc, buffer| Moment { buffer, ..moment(MomentKind::Function(FunctionKind::Enter), 1, tsc) };
    for (tsc, buffer) in [(10, 0), (20, 0), (15, 1), (5, 2)] {
        calls.moment(&enter(tsc, buffer), &mut received).unwrap();
    }
    // Buffer 1 overlaps buffer 0 and continues it; buffer 2 is from an earlier time.
    let depth = |n: usize| received.0[n].clone();
    assert_eq!((depth(2), depth(3), depth(6)), ("0:2 +1".into(), "0:2 -1@15 unfinished".into(), "0:0 +1".into()));
    assert_eq!((calls.counts().backward, calls.counts().unfinished), (2, 3));
}

#[test]
fn a_stack_beyond_the_limit_is_passed_over_and_comes_back() {
    let deep = DEPTH_MAX + 3;
    let (mut calls, mut ended) = (Calls::new(CallOptions::default()), Count::default());
    for _ in 0..deep {
        calls.moment(&moment(MomentKind::Function(FunctionKind::Enter), 1, 1), &mut ended).unwrap();
    }
    for _ in 0..deep {
        calls.moment(&moment(MomentKind::Function(FunctionKind::Exit), 1, 2), &mut ended).unwrap();
    }
    calls.finish(&mut ended).unwrap();
    assert_eq!((ended.begins, ended.ends), (DEPTH_MAX as u64, DEPTH_MAX as u64));
    assert_eq!(*calls.counts(), CallCounts { too_deep: 6, ..CallCounts::default() });
}

#[test]
fn searching_deep_stacks_in_vain_stays_affordable() {
    let (mut calls, mut ended) = (Calls::new(CallOptions::default()), Count::default());
    for _ in 0..DEPTH_MAX {
        calls.moment(&moment(MomentKind::Function(FunctionKind::Enter), 1, 1), &mut ended).unwrap();
    }
    for _ in 0..100_000 {
        calls.moment(&moment(MomentKind::Function(FunctionKind::Exit), 2, 2), &mut ended).unwrap();
    }
    assert_eq!(calls.counts().orphans, 100_000);
}

#[derive(Default)]
struct Count {
    begins: u64,
    ends: u64,
    open: Vec<Vec<Frame>>,
}

impl CallVisitor for Count {
    fn begin(&mut self, thread: usize, frame: &Frame, depth: usize, moment: &Moment<'_>) -> Result<(), Error> {
        self.begins += 1;
        self.open.resize(self.open.len().max(thread + 1), Vec::new());
        assert_eq!((self.open[thread].len(), frame.enter), (depth, moment.tsc));
        self.open[thread].push(*frame);
        Ok(())
    }
    fn end(&mut self, thread: usize, frame: &Frame, depth: usize, _end: &End) -> Result<(), Error> {
        self.ends += 1;
        let begun = self.open[thread].pop().unwrap();
        assert_eq!((begun.function, begun.enter, self.open[thread].len()), (frame.function, frame.enter, depth));
        Ok(())
    }
}

/// The obvious version without chains: one list per thread, searched from its end.
fn oracle(records: &[(u8, u32, u32)]) -> CallCounts {
    let (mut stacks, mut counts) = (HashMap::<u32, Vec<u32>>::new(), CallCounts::default());
    for &(kind, function, thread) in records {
        let stack = stacks.entry(thread).or_default();
        match kind {
            0 => stack.push(function),
            3 => {}
            _ => match stack.iter().rposition(|&open| open == function) {
                Some(at) => {
                    counts.deduced += (stack.len() - at - 1) as u64;
                    counts.tails += u64::from(kind == 2);
                    stack.truncate(at);
                }
                None => counts.orphans += 1,
            },
        }
    }
    counts.unfinished = stacks.values().map(|stack| stack.len() as u64).sum();
    counts
}

proptest! {
    #[test]
    fn every_call_that_begins_ends_once_and_in_order(
        records in prop::collection::vec((0..4_u8, 0..4_u32, 0..3_u32), 0..200),
        tail_chains in any::<bool>(),
    ) {
        let mut calls = Calls::new(CallOptions { tail_chains, ..CallOptions::default() });
        let mut counted = Count::default();
        for (&(kind, function, thread), tsc) in records.iter().zip(0..) {
            let kind = match kind {
                0 => MomentKind::Function(FunctionKind::Enter),
                1 => MomentKind::Function(FunctionKind::Exit),
                2 => MomentKind::Function(FunctionKind::TailExit),
                _ => MomentKind::Typed(1),
            };
            calls.moment(&Moment { thread, ..moment(kind, function, tsc) }, &mut counted).unwrap();
        }
        calls.finish(&mut counted).unwrap();
        prop_assert!(counted.open.iter().all(Vec::is_empty));
        prop_assert_eq!(counted.begins, counted.ends);
        if !tail_chains {
            prop_assert_eq!(*calls.counts(), oracle(&records));
        }
    }
}
