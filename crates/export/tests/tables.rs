//! Tables as files, byte for byte. `UPDATE_GOLDENS=1` rewrites them; `cargo xtask consumers` has the real readers read
//! these and larger ones, and compare every value.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod made;

use std::io::{self, Write};
use std::path::PathBuf;

use anytrace_core::table::{RowSink, Table};
use anytrace_core::{Error, Kind};
use anytrace_export::arrow::{ArrowWriter, Limits as ArrowLimits};
use anytrace_export::parquet::{Limits as ParquetLimits, ParquetWriter};
use made::Made;

#[test]
fn small_tables_are_written_as_accepted() {
    for made in made::all().iter().filter(|made| ["empty", "ends", "absent"].contains(&made.name)) {
        for (extension, written) in [
            ("parquet", made::parquet(made, ParquetLimits::default())),
            ("arrow", made::arrow(made, ArrowLimits::default())),
        ] {
            let name = format!("tests/golden/{}.{extension}", made.name);
            let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
            if std::env::var_os("UPDATE_GOLDENS").is_some() {
                std::fs::write(&path, &written).unwrap();
            }
            let wanted = std::fs::read(&path).unwrap();
            assert!(written == wanted, "{}: UPDATE_GOLDENS=1 rewrites it", path.display());
        }
    }
}

#[test]
fn files_do_not_depend_on_the_size_of_batches() {
    let rows = made::random(900);
    let of_batches = |batch_rows| {
        let made = Made { name: "", table: &made::TYPES, batches: made::typed(&rows, batch_rows) };
        let limits = ParquetLimits { dictionary_bytes: 1 << 20, ..made::small() };
        (made::parquet(&made, limits), made::arrow(&made, ArrowLimits::default()))
    };
    let together = of_batches(rows.len());
    for batch_rows in [1, 7, 250, 400] {
        let (parquet, arrow) = of_batches(batch_rows);
        assert!(parquet == together.0, "{batch_rows} rows");
        assert!(arrow == together.1, "{batch_rows} rows");
    }
}

#[test]
fn buffers_of_arrow_files_begin_at_multiples_of_64() {
    let made = &made::all()[1];
    let file = made::arrow(made, ArrowLimits::default());
    // A continuation begins the schema, the rows, each dictionary and the end.
    let messages: Vec<_> = (0..file.len() / 4).filter(|at| file[at * 4..].starts_with(&[0xff; 4])).collect();
    let starts = messages.iter().filter(|at| *at * 4 % 64 == 0).count();
    assert!(starts >= 5, "{messages:?}");
}

#[test]
fn a_name_that_repeats_is_in_the_file_once_however_many_there_are() {
    // More bytes than a dictionary may have, of few names.
    let long: Vec<_> = (0..3).map(|number| format!("{number}{}", "x".repeat(1000))).collect();
    let cells: Vec<_> = (0..500).map(|row| long[row % 3].clone().into()).collect();
    let table = Table { name: "long", help: "", columns: &made::NAMES.columns[1..] };
    let column = made::values(anytrace_core::table::ColumnType::Name, &cells);
    let batch = anytrace_core::table::Batch { rows: 500, columns: vec![column] };
    let mut writer = ParquetWriter::with_limits(Vec::new(), &table, None, made::small()).unwrap();
    writer.write(&batch).unwrap();
    assert!(writer.finish().unwrap().len() < 1200);
}

#[test]
fn too_many_names_for_an_arrow_file_are_an_error_that_says_what_to_do() {
    let limits = ArrowLimits { dictionary_bytes: 100, ..ArrowLimits::default() };
    let mut writer = ArrowWriter::with_limits(Vec::new(), &made::NAMES, None, limits).unwrap();
    let errors: Vec<Error> = made::growing().iter().filter_map(|batch| writer.write(batch).err()).collect();
    assert_eq!(errors[0].kind(), Kind::Limit);
    let said = errors[0].to_string();
    assert!(said.contains("most of them in column name") && said.contains("--to parquet"), "{said}");
}

#[test]
fn columns_are_those_asked_for() {
    let seq = Box::leak(Box::new(Table { name: "seq", help: "", columns: &made::NAMES.columns[..1] }));
    let mut batches = made::growing();
    batches.iter_mut().for_each(|batch| batch.columns.truncate(1));
    let whole = Made { name: "", table: seq, batches: batches.clone() };
    let mut parquet = ParquetWriter::new(Vec::new(), &made::NAMES, Some(&[0])).unwrap();
    let mut arrow = ArrowWriter::new(Vec::new(), &made::NAMES, Some(&[0])).unwrap();
    for batch in batches {
        parquet.rows(batch.clone()).unwrap();
        arrow.rows(batch).unwrap();
    }
    assert!(parquet.finish().unwrap() == made::parquet(&whole, ParquetLimits::default()));
    assert!(arrow.finish().unwrap() == made::arrow(&whole, ArrowLimits::default()));
    assert_eq!(ParquetWriter::new(Vec::new(), &made::NAMES, Some(&[2])).err().unwrap().kind(), Kind::Usage);
}

/// Takes some bytes, then fails.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_that_fails_at_any_byte_is_an_error() {
    let made = &made::all()[1];
    let parquet = |room| -> Result<(), Error> {
        let mut writer = ParquetWriter::new(Full(room), made.table, None)?;
        made.batches.iter().try_for_each(|batch| writer.write(batch))?;
        writer.finish().map(drop)
    };
    let arrow = |room| -> Result<(), Error> {
        let mut writer = ArrowWriter::new(Full(room), made.table, None)?;
        made.batches.iter().try_for_each(|batch| writer.write(batch))?;
        writer.finish().map(drop)
    };
    let bytes = made::parquet(made, ParquetLimits::default()).len();
    assert!(parquet(bytes).is_ok());
    assert!(
        (0..bytes).all(|room| parquet(room).is_err_and(|error| error.io_kind() == Some(io::ErrorKind::StorageFull)))
    );
    let bytes = made::arrow(made, ArrowLimits::default()).len();
    assert!(arrow(bytes).is_ok());
    assert!((0..bytes).all(|room| arrow(room).is_err_and(|error| error.io_kind() == Some(io::ErrorKind::StorageFull))));
}

#[test]
fn a_row_group_ends_where_it_takes_too_much_memory() {
    // Few names that repeat, larger than a row group may be: plain, each row would have its own.
    let names = std::sync::Arc::new(made::dictionary((0..8).map(|number| format!("{number}{}", "x".repeat(400)))));
    let table = Table { name: "long", help: "", columns: &made::NAMES.columns[1..] };
    let limits = ParquetLimits { group_bytes: 2000, dictionary_bytes: 100, ..made::small() };
    let mut writer = ParquetWriter::with_limits(Vec::new(), &table, None, limits).unwrap();
    for from in [0, 4] {
        let keys = (0..400).map(|row| row % 4 + from).collect();
        let values = anytrace_core::table::Values::Name { keys, names: names.clone() };
        let column = anytrace_core::table::BatchColumn { values, validity: vec![] };
        writer.write(&anytrace_core::table::Batch { rows: 400, columns: vec![column] }).unwrap();
    }
    let file = writer.finish().unwrap();
    // Two row groups, each with four names.
    let is_name = |at: &usize| file[*at..].starts_with(b"\x04name");
    assert_eq!((0..file.len()).filter(is_name).count(), 3, "the schema and each row group name the column");
    assert!(file.len() < 1500, "{}", file.len());
}
