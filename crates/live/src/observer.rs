//! What a caller is informed of while a collection runs.

use anytrace_core::{Diagnostic, Error};

use crate::report::{ListenerReport, SourceName, Summary};

/// Is informed of a collection while it runs. An error ends it.
pub trait Observer {
    /// Everything is open; addresses have the ports the system chose.
    ///
    /// # Errors
    /// Ends the collection.
    fn listening(&mut self, listeners: &[ListenerReport]) -> Result<(), Error>;

    /// An interval is over.
    ///
    /// # Errors
    /// Ends the collection.
    fn summary(&mut self, summary: &Summary) -> Result<(), Error>;

    /// A source sent bytes that are not a packet; the offset counts bytes of that source.
    ///
    /// # Errors
    /// Ends the collection.
    fn damage(&mut self, source: &SourceName, diagnostic: Diagnostic) -> Result<(), Error>;

    /// A sender may not send, or did not say who it is as it must; the first of them are reported, all are counted.
    ///
    /// # Errors
    /// Ends the collection.
    fn unauthorized(&mut self, peer: &str, why: &str) -> Result<(), Error>;

    /// Something is wrong that the collection goes on in spite of.
    ///
    /// # Errors
    /// Ends the collection.
    fn trouble(&mut self, _what: &str) -> Result<(), Error> {
        Ok(())
    }

    /// The disk is full, and nothing more is taken until there is room; or there is room again.
    ///
    /// # Errors
    /// Ends the collection.
    fn storage(&mut self, is_full: bool) -> Result<(), Error>;
}
