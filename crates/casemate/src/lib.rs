//! The casemate format.
