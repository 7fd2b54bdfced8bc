//! The apitrace format.
