//! The functions that SQL on traces has besides those of DataFusion.

mod addresses;
mod attributes;
mod stacks;
mod values;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::functions_aggregate::percentile_cont::percentile_cont_udaf;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature};
use datafusion::prelude::SessionContext;

use crate::input::TraceFile;

/// What a function does with columns of equal length.
type Call = Arc<dyn Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync>;

/// A function of rows.
struct Function {
    name: &'static str,
    signature: Signature,
    returns: DataType,
    call: Call,
    /// The files in which it looks things up.
    #[cfg_attr(not(feature = "codec"), allow(dead_code, reason = "only plans that are sent name them"))]
    files: Vec<Arc<TraceFile>>,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Function").field("name", &self.name).finish_non_exhaustive()
    }
}

// There is one function of each name in a session.
impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = arguments.args.iter().all(|one| matches!(one, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let made = (self.call)(&arrays)?;
        if is_constant {
            return Ok(ColumnarValue::Scalar(datafusion::scalar::ScalarValue::try_from_array(&made, 0)?));
        }
        Ok(ColumnarValue::Array(made))
    }
}

/// Makes the functions known; those that look things up do so in these files.
pub(crate) fn register(context: &SessionContext, files: &[Arc<TraceFile>]) {
    for function in all(files) {
        context.register_udf(ScalarUDF::new_from_impl(function));
    }
    let percentile = percentile_cont_udaf();
    context.register_udaf(percentile.as_ref().clone().with_aliases(["percentile"]));
}

fn all(files: &[Arc<TraceFile>]) -> [Function; 7] {
    [
        values::bucket(),
        values::hex(),
        values::duration(),
        attributes::attr(),
        stacks::stack_path(files),
        addresses::symbol(files),
        addresses::line(files),
    ]
}

/// The function of this name.
#[cfg(feature = "codec")]
pub(crate) fn named(name: &str, files: &[Arc<TraceFile>]) -> Option<ScalarUDF> {
    all(files).into_iter().find(|function| function.name == name).map(ScalarUDF::new_from_impl)
}

/// The files of one of these functions; `None` for any other.
#[cfg(feature = "codec")]
pub(crate) fn files_of(function: &ScalarUDF) -> Option<&[Arc<TraceFile>]> {
    let function: &dyn std::any::Any = function.inner().as_ref();
    function.downcast_ref::<Function>().map(|function| function.files.as_slice())
}
