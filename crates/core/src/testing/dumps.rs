//! What must hold of a dump that is made of parts, whatever the bytes.

use crate::index::{Index, dump};
use crate::{
    Collect, DumpForm, DumpOptions, Error, Format, Input, NameMatch, OpenOptions, Selection, TimeBound, TimeRange,
};

/// Text and diagnostics of a dump, or why there is none.
type Dumped = Result<(String, Vec<String>), String>;

/// Dumps a trace with an index and without one, in both forms and with selections of all kinds: output and diagnostics
/// are the same, in the same order. Returns how many dumps the index served.
///
/// # Panics
/// Where they differ.
pub(super) fn examine_dumps(format: &dyn Format, bytes: &[u8], index: &Index) -> usize {
    let info = format
        .open(Input::from_bytes("dump", bytes.to_vec()), &OpenOptions::default())
        .and_then(|trace| trace.info(&mut Collect::default()));
    let Ok(info) = info else { return 0 };
    let mut served = 0;
    for form in [DumpForm::Text, DumpForm::Jsonl] {
        for (name, select) in selections(info.records, &index.threads, info.time.as_ref()) {
            let options = || DumpOptions { form, offsets: true, selection: select(), ..DumpOptions::default() };
            let wanted = without(format, bytes, &options());
            // A thread per part is slow where parts are small.
            for threads in if name == "everything" { vec![1, 3] } else { vec![1] } {
                let Some(found) = with(format, bytes, options(), index, threads) else { continue };
                served += 1;
                assert!(found == wanted, "{form:?} of {name} with an index: {found:?}, without: {wanted:?}");
            }
        }
    }
    served
}

fn dumped(printed: Result<(), Error>, text: Vec<u8>, reports: Collect) -> Dumped {
    printed.map_err(|error| error.to_string())?;
    Ok((String::from_utf8_lossy(&text).into_owned(), reports.0.iter().map(ToString::to_string).collect()))
}

fn without(format: &dyn Format, bytes: &[u8], options: &DumpOptions) -> Dumped {
    let (mut out, mut sink) = (Vec::new(), Collect::default());
    let trace = format.open(Input::from_bytes("dump", bytes.to_vec()), &OpenOptions::default());
    let printed = trace.and_then(|trace| trace.dump(options, &mut out, &mut sink)).map(|_| ());
    dumped(printed, out, sink)
}

/// `None` where the format does not dump this in parts.
fn with(format: &dyn Format, bytes: &[u8], mut options: DumpOptions, index: &Index, threads: usize) -> Option<Dumped> {
    let open = || Ok(Input::from_bytes("dump", bytes.to_vec()));
    let how = OpenOptions { threads, ..OpenOptions::default() };
    let needs = match format.dump_needs(&options, index, &open, &how) {
        Ok(needs) => needs?,
        Err(error) => return Some(Err(error.to_string())),
    };
    options.selection.start = needs.start;
    let parts = index.needed(&needs, if threads > 1 { 4096 } else { u64::MAX });
    let (mut out, mut sink) = (Vec::new(), Collect::default());
    let printed = dump(format, &open, &how, &options, parts, &mut out, &mut sink);
    Some(dumped(printed, out, sink))
}

type Select = Box<dyn Fn() -> Selection>;

/// Selections of records at the start, in the middle and at the end, of threads, times and names.
fn selections(records: u64, threads: &[i64], time: Option<&TimeRange>) -> Vec<(String, Select)> {
    let mut made: Vec<(String, Select)> = vec![("everything".to_owned(), Box::new(Selection::default))];
    let (middle, open) = (records / 2, u64::MAX);
    for range in [0..0, 0..2, middle..middle, middle..middle + 3, middle..open, records..open, 0..middle] {
        let select = move || Selection { records: Some(range.clone()), ..Selection::default() };
        made.push((format!("records {:?}", select().records), Box::new(select)));
    }
    let ids = threads.iter().map(|thread| thread.cast_unsigned());
    for id in ids.take(3).chain([0]) {
        let late = Some(middle..open);
        made.push((format!("thread {id}"), Box::new(move || Selection { threads: vec![id], ..Selection::default() })));
        made.push((
            format!("late records of thread {id}"),
            Box::new(move || Selection { threads: vec![id], records: late.clone(), ..Selection::default() }),
        ));
    }
    for (from, to) in time.map(times).unwrap_or_default() {
        let select = move || Selection { time: Some((from, to)), ..Selection::default() };
        made.push((format!("times {from:?} to {to:?}"), Box::new(select)));
    }
    let name = || -> Option<NameMatch> { Some(Box::new(|name: &[u8]| name.first().is_some_and(|byte| byte % 2 == 1))) };
    made.push(("names".to_owned(), Box::new(move || Selection { name: name(), ..Selection::default() })));
    made
}

/// Times in the trace's own unit, and times since its start.
fn times(range: &TimeRange) -> Vec<(TimeBound, TimeBound)> {
    use TimeBound::{Nanoseconds, Native, Open};
    let length = range.end.saturating_sub(range.start);
    let middle = range.start + length / 2;
    vec![
        (Native(middle), Native(middle.saturating_add(length / 10 + 1))),
        (Native(middle), Open),
        (Open, Native(middle)),
        (Native(range.end), Open),
        (Nanoseconds(0), Nanoseconds(length / 10 + 1)),
        (Nanoseconds(length / 2), Open),
    ]
}
