//! Moments in wire order, from any form.

use anytrace_core::{Cursor, Error, Limits};

use crate::wire::basic::walk_basic;
use crate::wire::fdr::FdrWalk;
use crate::wire::moment::{BasicMoments, FdrMoments, Moments};
use crate::wire::record::{Header, Orders};
use crate::wire::yaml::{YamlMoments, walk_yaml};

/// A form with what is needed to walk it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WireForm {
    Fdr(Header, Orders),
    Basic(Header, Orders),
    Yaml,
}

/// Walks from the first byte to the end of the data; returns the number of records and the cursor.
pub(crate) fn walk<M: Moments>(
    cursor: Cursor,
    form: WireForm,
    limits: &Limits,
    moments: &mut M,
) -> Result<(u64, Cursor), Error> {
    match form {
        WireForm::Fdr(header, layout) => {
            FdrWalk::new(cursor, header, layout, limits).walk(&mut FdrMoments::new(moments, header.version))
        }
        WireForm::Basic(header, layout) => {
            let mut moments = BasicMoments::new(moments, header.version);
            let walked = walk_basic(cursor, layout, &mut moments)?;
            moments.finish()?;
            Ok(walked)
        }
        WireForm::Yaml => walk_yaml(cursor, limits, &mut YamlMoments { moments, on_header: |_: &mut M, _: &_| Ok(()) }),
    }
}
