//! Who is at the other end.

use std::net::IpAddr;

/// Whose connection it is: those of one machine have a share together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    /// A machine.
    Net(IpAddr),
    /// A process of this one.
    Process(i32),
}
