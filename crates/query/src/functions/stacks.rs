//! `stack_path(stack)`: the names of a stack.

use std::sync::{Arc, OnceLock};

use anytrace_core::hash::Map;
use anytrace_core::index::Part;
use anytrace_core::table::{Batch, STACKS, Scan, Values};
use anytrace_core::{Collect, Error, tables};
use datafusion::arrow::array::{AsArray, StringArray};
use datafusion::arrow::datatypes::{DataType, UInt64Type};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Signature, Volatility};

use super::Function;
use crate::input::TraceFile;

/// Stacks by their number: the one around, and the last name.
type Stacks = Map<u64, (Option<u64>, Arc<str>)>;

/// Names that are shown of one stack, the innermost.
const NAMES_MAX: usize = 1000;

pub(super) fn stack_path(files: &[Arc<TraceFile>]) -> Function {
    let files = files.to_vec();
    // Read when the first row asks for it, once for a session.
    let stacks: OnceLock<Result<Stacks, String>> = OnceLock::new();
    Function {
        name: "stack_path",
        files: files.clone(),
        signature: Signature::exact(vec![DataType::UInt64], Volatility::Immutable),
        returns: DataType::Utf8,
        call: Arc::new(move |arguments| {
            let known = stacks.get_or_init(|| read(&files).map_err(|error| error.to_string()));
            let known = known.as_ref().map_err(|error| DataFusionError::Execution(error.clone()))?;
            let numbers = arguments[0].as_primitive::<UInt64Type>();
            let made: StringArray = numbers.iter().map(|number| path(known, number?)).collect();
            Ok(Arc::new(made))
        }),
    }
}

fn read(files: &[Arc<TraceFile>]) -> Result<Stacks, Error> {
    let mut stacks = Stacks::default();
    for file in files {
        let Some(format) = file.format.filter(|format| format.has_spans()) else { continue };
        let mut take = |batch: Batch| {
            add(&mut stacks, &batch);
            Ok(())
        };
        let scan = Scan::columns_of(&STACKS, &["stack", "parent", "name"])?;
        let options = file.span_options(format)?;
        // The scan of the rows themselves reports the damage.
        let mut damage = Collect::default();
        tables::read(
            format,
            file.trace(format, Part::default())?,
            STACKS.name,
            &scan,
            &options,
            &mut take,
            &mut damage,
        )?;
    }
    Ok(stacks)
}

fn add(stacks: &mut Stacks, batch: &Batch) {
    let [numbers, parents, names] = batch.columns.as_slice() else { return };
    let (Values::UInt64(numbers), Values::UInt64(around), Values::Name { keys, names: texts }) =
        (&numbers.values, &parents.values, &names.values)
    else {
        return;
    };
    for row in 0..batch.rows {
        let parent = parents.is_valid(row).then(|| around[row]);
        stacks.entry(numbers[row]).or_insert_with(|| (parent, texts.get(keys[row]).into()));
    }
}

/// The names from the outermost to the innermost, with `;` between them.
fn path(stacks: &Stacks, number: u64) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    let mut at = Some(number);
    while let Some((around, name)) = at.and_then(|at| stacks.get(&at)) {
        if names.len() == NAMES_MAX {
            names.push("…");
            break;
        }
        names.push(name);
        at = *around;
    }
    names.reverse();
    (!names.is_empty()).then(|| names.join(";"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_with_the_outermost_name_and_a_circle_ends() {
        let mut stacks = Stacks::default();
        stacks.insert(1, (None, "main".into()));
        stacks.insert(2, (Some(1), "work".into()));
        stacks.insert(9, (Some(9), "circle".into()));
        assert_eq!(path(&stacks, 2).as_deref(), Some("main;work"));
        assert_eq!(path(&stacks, 3), None);
        assert_eq!(path(&stacks, 9).map(|path| path.matches(';').count()), Some(NAMES_MAX));
    }
}
