//! The cacheray format.
