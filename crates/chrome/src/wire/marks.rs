//! Where reading can begin inside a trace: at the first byte of an event. The state is the form of the file, one byte.

use anytrace_core::index::Mark;
use anytrace_core::{Cursor, Error, Place};

use crate::wire::record::Form;

const FORMS: [Form; 3] = [Form::Array, Form::Object, Form::Lines];

/// The mark before an event.
pub(crate) fn mark(at: Place, form: Form) -> Mark {
    Mark { offset: at.offset, seq: at.seq, state: [form as u8].into() }
}

/// Moves to a mark and returns the form of the file.
///
/// # Errors
/// Usage, where the input cannot be read from the middle or no trace has such a mark: an index may be made by anyone.
pub(crate) fn begin(mark: &Mark, cursor: &mut Cursor) -> Result<Form, Error> {
    let form = form(mark).filter(|_| cursor.layers().is_empty() && cursor.seek(mark.offset));
    form.ok_or_else(|| Error::usage(format!("reading cannot begin at byte {:#x}", mark.offset)))
}

fn form(mark: &Mark) -> Option<Form> {
    let [number] = <[u8; 1]>::try_from(&*mark.state).ok()?;
    // Each event before it has at least two bytes.
    FORMS.into_iter().find(|form| *form as u8 == number).filter(|_| mark.seq <= mark.offset / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_as_it_was_written_and_others_are_refused() {
        let at = Place { offset: 40, seq: 4 };
        for one in FORMS {
            assert_eq!(form(&mark(at, one)), Some(one));
        }
        assert_eq!(form(&Mark { state: [3].into(), ..mark(at, Form::Array) }), None);
        assert_eq!(form(&Mark { state: Box::default(), ..mark(at, Form::Array) }), None);
        assert_eq!(form(&mark(Place { offset: 40, seq: 21 }, Form::Lines)), None, "21 events in 40 bytes");
    }
}
