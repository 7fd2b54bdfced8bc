use super::*;
use crate::table::{Batch, Column};

static TABLE: Table = Table {
    name: "things",
    help: "",
    columns: &[
        Column::new("seq", ColumnType::Int64, ""),
        Column::nullable("name", ColumnType::Name, ""),
        Column::nullable("text", ColumnType::Text, ""),
    ],
};

fn batches(scan: &Scan, fill: impl FnOnce(&mut Rows<'_>)) -> Vec<Batch> {
    let mut taken = Vec::new();
    let mut take = |batch: Batch| -> Result<(), Error> {
        taken.push(batch);
        Ok(())
    };
    let mut rows = Rows::new(&TABLE, scan, &mut take);
    fill(&mut rows);
    rows.finish().unwrap();
    taken
}

fn name_of(batch: &Batch, column: usize, row: usize) -> Option<String> {
    let column = &batch.columns[column];
    let Values::Name { keys, names } = &column.values else { panic!("no names") };
    column.is_valid(row).then(|| names.get(keys[row]).to_owned())
}

#[test]
fn absent_values_are_marked_and_others_are_not() {
    let out = batches(&Scan::default(), |rows| {
        for (seq, name, text) in [(0, Some("a"), None), (1, None, Some("x")), (2, Some("a"), Some(""))] {
            rows.int64(seq);
            rows.name(name);
            rows.text(text);
            rows.end().unwrap();
        }
    });
    assert_eq!(out.len(), 1);
    assert_eq!(out[0].columns[0], BatchColumn { values: Values::Int64(vec![0, 1, 2]), validity: vec![] });
    let names: Vec<_> = (0..3).map(|row| name_of(&out[0], 1, row)).collect();
    assert_eq!(names, [Some("a".to_owned()), None, Some("a".to_owned())]);
    assert_eq!(out[0].columns[2].validity, [false, true, true]);
    let Values::Text(strings) = &out[0].columns[2].values else { panic!("no texts") };
    assert_eq!((0..3).map(|row| strings.get(row)).collect::<Vec<_>>(), [&b""[..], b"x", b""]);
}

#[test]
fn columns_come_in_the_order_asked_for_and_others_are_not_made() {
    let scan = Scan::columns_of(&TABLE, &["text", "seq"]).unwrap();
    let out = batches(&scan, |rows| {
        assert!(rows.wants(0) && !rows.wants(1) && rows.wants(2));
        rows.int64(7);
        rows.raw_name(&b"not asked for"[..]);
        rows.text_with(|| Some("made".to_owned()));
        rows.end().unwrap();
    });
    assert!(matches!(&out[0].columns[..], [
        BatchColumn { values: Values::Text(text), .. },
        BatchColumn { values: Values::Int64(seq), .. },
    ] if text.get(0) == b"made" && seq == &[7]));
    assert_eq!(Scan::columns_of(&TABLE, &["nothing"]).unwrap_err().to_string(), "table things has no column nothing");
}

#[test]
fn a_dictionary_is_shared_until_it_grows_and_starts_again_when_it_is_large() {
    let out = batches(&Scan::default(), |rows| {
        for seq in 0..BATCH_ROWS as i64 * 20 {
            rows.int64(seq);
            let number = if seq < BATCH_ROWS as i64 * 2 { 0 } else { u32::try_from(seq).unwrap() };
            rows.numbered_name(number, || format!("name {number}").into());
            rows.text(None);
            rows.end().unwrap();
        }
    });
    assert_eq!(out.len(), 20);
    let names = |at: usize| match &out[at].columns[1].values {
        Values::Name { names, .. } => Arc::clone(names),
        _ => panic!("no names"),
    };
    assert!(Arc::ptr_eq(&names(0), &names(1)) && !Arc::ptr_eq(&names(1), &names(2)));
    assert!(out.iter().enumerate().all(|(at, _)| names(at).len() <= NAMES_MAX + BATCH_ROWS));
    for (at, batch) in out.iter().enumerate().skip(2) {
        let number = at * BATCH_ROWS + 17;
        assert_eq!(name_of(batch, 1, 17), Some(format!("name {number}")));
    }
}

#[test]
fn long_texts_end_a_batch_early() {
    let long = "x".repeat(BATCH_BYTES / 2);
    let out = batches(&Scan::default(), |rows| {
        for seq in 0..5 {
            rows.int64(seq);
            rows.name(None);
            rows.text(long.as_str());
            rows.end().unwrap();
        }
    });
    assert_eq!(out.iter().map(|batch| batch.rows).collect::<Vec<_>>(), [2, 2, 1]);
}

#[test]
fn many_rows_are_added_column_by_column() {
    let out = batches(&Scan::default(), |rows| {
        let mut left = BATCH_ROWS + 3;
        while left > 0 {
            let count = left.min(rows.room()).min(5000);
            if let Some(Values::Int64(seq)) = rows.values(0) {
                seq.extend((0..count).map(|n| n as i64));
            }
            match count {
                5000 => rows.repeat_name(1, "same", count),
                _ => rows.repeat_none(1, count),
            }
            if let Some(Values::Text(texts)) = rows.values(2) {
                (0..count).for_each(|_| texts.offsets.push(0));
            }
            rows.advance(count).unwrap();
            left -= count;
        }
    });
    assert_eq!(out.iter().map(|batch| batch.rows).collect::<Vec<_>>(), [BATCH_ROWS, 3]);
    let names = [(0, 4999), (0, 5000), (1, 2)].map(|(batch, row)| name_of(&out[batch], 1, row));
    assert_eq!(names, [Some("same".to_owned()), None, None]);
}
