//! Outputs of memory accesses: their names, and a constructor for each.
//!
//! Each is an [`AccessSink`](anytrace_core::AccessSink) that writes as accesses arrive and ends with [`AccessWriter::finish`], which returns what
//! the form could not express. Memory does not grow with the trace.

use std::io::Write;

use crate::access_text::AccessText;
pub use crate::access_text::AccessWriter;
use crate::cacheray::CacherayRecords;
pub use crate::cacheray::records as cacheray_records;
use crate::din::Din;
use crate::lackey::Lackey;

/// A row of the table of outputs.
pub struct AccessOutput {
    /// What `convert --to` takes.
    pub name: &'static str,
    /// Extension its files usually have.
    pub extension: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Begins an output.
    pub open: for<'a> fn(&'a mut (dyn Write + Send)) -> Box<dyn AccessWriter + 'a>,
}

/// Every output of accesses, by name.
pub static OUTPUTS: [AccessOutput; 4] = [
    AccessOutput {
        name: "cacheray",
        extension: "cacheray",
        help: "cacheray's records of reads and writes; code addresses beside it, where instructions are known",
        open: |out| Box::new(AccessText::new(out, CacherayRecords::default())),
    },
    AccessOutput {
        name: "din",
        extension: "din",
        help: "Dinero's traditional form: kind and address (dineroIV -informat d)",
        open: |out| Box::new(AccessText::new(out, Din::traditional())),
    },
    AccessOutput {
        name: "lackey",
        extension: "lackey",
        help: "accesses as Valgrind's lackey prints them: kind, address and size",
        open: |out| Box::new(AccessText::new(out, Lackey::default())),
    },
    AccessOutput {
        name: "xdin",
        extension: "xdin",
        help: "Dinero IV's extended form: kind, address and size (dineroIV -informat D)",
        open: |out| Box::new(AccessText::new(out, Din::extended())),
    },
];

/// The output of a name.
pub fn by_name(name: &str) -> Option<&'static AccessOutput> {
    OUTPUTS.iter().find(|output| output.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_an_output_of_nothing_is_empty() {
        assert!(OUTPUTS.is_sorted_by_key(|output| output.name));
        for output in &OUTPUTS {
            assert!(std::ptr::eq(by_name(output.name).unwrap(), output));
            let mut out = Vec::new();
            assert_eq!((output.open)(&mut out).finish().unwrap(), Vec::<String>::new());
            assert!(out.is_empty());
        }
        assert!(by_name("chrome").is_none());
    }
}
