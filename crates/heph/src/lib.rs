//! The heph format.
