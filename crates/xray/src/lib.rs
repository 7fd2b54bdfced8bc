//! The xray format.
