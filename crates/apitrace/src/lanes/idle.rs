//! Calls of `glGetError` that found no error. The format's own tool hides them like calls that only query.

use crate::lanes::calls::Call;
use crate::lanes::dictionary::{Dictionary, Named};
use crate::lanes::wire::{Detail, Value, Wire};

/// True for the function whose calls may be idle.
pub(crate) fn may_be_idle(function: &Named) -> bool {
    function.name() == b"glGetError" && function.count() == 0
}

/// True when a call returns nothing but zero, whatever the type. Enumerations of the old form are looked up.
#[cold]
pub(crate) fn is_idle(call: &Call<'_>, has_enum_values: bool, dictionary: &Dictionary) -> bool {
    let mut returned = None;
    for details in [call.enter, call.leave] {
        let mut wire = Wire::new(details, has_enum_values);
        loop {
            match wire.detail() {
                Detail::Return => {
                    let mut value = wire.value();
                    // Of a pair, the machine value counts.
                    if value == Value::Repr {
                        wire.skip_value(&|id| dictionary.members(id));
                        value = wire.value();
                    }
                    returned = Some(value);
                    // An error is a plain value. Compound values are not errors.
                    if matches!(value, Value::Array(_) | Value::Struct(_) | Value::Repr) {
                        break;
                    }
                }
                Detail::Flags(_) | Detail::Thread(_) => {}
                // It has no arguments. Backtraces come before the return value.
                Detail::Backtrace(count) => {
                    for _ in 0..count.min(details.len() as u64) {
                        wire.uint();
                    }
                }
                Detail::End | Detail::Argument(_) => break,
            }
        }
    }
    match returned {
        Some(Value::Null | Value::Bool(false)) => true,
        Some(Value::Negative(value) | Value::Unsigned(value) | Value::Bitmask(_, value)) => value == 0,
        Some(Value::Pointer(value)) => value == 0,
        Some(Value::Float(value)) => value.trunc() == 0.0,
        Some(Value::Double(value)) => value.trunc() == 0.0,
        Some(Value::Enum(_, Some(value))) => value.magnitude == 0,
        Some(Value::Enum(id, None)) => dictionary.enumeration(id).is_some_and(|names| names.value(None) == 0),
        _ => false,
    }
}
