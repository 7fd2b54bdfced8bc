//! What fields are called, where type data know them.

use std::collections::BTreeMap;
use std::sync::Arc;

use anytrace_analysis::elements::TypeTable;
use anytrace_analysis::json::FieldNames;

/// Names of fields as type data have them; without them no field has one.
pub(super) fn field_names(table: &TypeTable) -> FieldNames {
    let known = table.types().iter().filter_map(|one| Some((one.name.as_ref()?, one.layout.as_ref()?)));
    let layouts: BTreeMap<_, _> = known.map(|(name, layout)| (name.clone().into_bytes(), Arc::clone(layout))).collect();
    Box::new(move |name, offset, bytes| {
        let called = layouts.get(name)?.describe(offset, u64::from(bytes));
        Some(called).filter(|name| !name.is_empty())
    })
}
