//! The traces of `xray stack`, opened and put in order.

use std::path::{Path, PathBuf};

use anytrace_xray::tools::stack_files::{Beginning, begin, order};

use super::super::reading::{self, Opened};
use super::StackArguments;
use crate::failure::Failure;
use crate::open;

/// The traces, in the order in which they were recorded unless they are counted one by one or as llvm-xray does.
pub(super) fn in_order(options: &StackArguments) -> Result<Vec<(&Path, Opened)>, Failure> {
    let paths = options.files.iter().map(PathBuf::as_path);
    let inputs = paths.map(|path| Ok((path, reading::open(path, &options.input)?)));
    let mut inputs = inputs.collect::<Result<Vec<_>, Failure>>()?;
    if inputs.len() > 1 && !options.per_file && !options.compat {
        let open = open::open_options(&options.input);
        let beginnings: Vec<Beginning> =
            inputs.iter().map(|(_, opened)| begin(opened.input.head().bytes, &open)).collect();
        let mut places = vec![0; inputs.len()];
        for (place, number) in order(&beginnings).into_iter().enumerate() {
            if let Some(own) = places.get_mut(number) {
                *own = place;
            }
        }
        let mut placed: Vec<_> = places.into_iter().zip(inputs).collect();
        placed.sort_by_key(|(place, _)| *place);
        inputs = placed.into_iter().map(|(_, input)| input).collect();
    }
    Ok(inputs)
}
