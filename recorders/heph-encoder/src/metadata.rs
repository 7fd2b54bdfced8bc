//! Metadata packets: options of the entire trace.

use crate::METADATA_MAGIC;
use crate::buffer::{Buffer, Error, patch_size};
use crate::event::Event;
use crate::text;

/// Appends the packet that sets the zero of all times, in nanoseconds since 1970.
///
/// # Errors
/// [`Error::Full`].
pub fn epoch<B: Buffer>(buffer: &mut B, ns: u64) -> Result<(), Error> {
    option(buffer, "epoch", &ns.to_be_bytes())
}

/// Appends a packet that sets any option. The format defines `epoch` alone; readers keep others by their size, the
/// runtime's converter stops at them. A name past 65,535 bytes is cut and marked.
///
/// # Errors
/// [`Error`].
pub fn option<B: Buffer>(buffer: &mut B, name: &str, value: &[u8]) -> Result<(), Error> {
    packet(buffer, name, |buffer| buffer.push(value))
}

/// Appends a packet that sets an option to a list of attributes, encoded as those of an event.
///
/// # Errors
/// [`Error`].
pub fn option_of<B: Buffer>(
    buffer: &mut B,
    name: &str,
    attributes: impl FnOnce(&mut Event<'_, B>),
) -> Result<(), Error> {
    packet(buffer, name, |buffer| {
        let mut value = Event::append(buffer);
        attributes(&mut value);
        value.finish()
    })
}

/// All of the packet or nothing.
fn packet<B: Buffer>(buffer: &mut B, name: &str, value: impl FnOnce(&mut B) -> Result<(), Error>) -> Result<(), Error> {
    let start = buffer.as_mut_bytes().len();
    let mut push = || {
        buffer.push(&METADATA_MAGIC.to_be_bytes())?;
        buffer.push(&[0; 4])?;
        text::push(buffer, name)
    };
    let result = push().and_then(|()| value(buffer)).and_then(|()| patch_size(buffer, start));
    if result.is_err() {
        buffer.truncate(start);
    }
    result
}
