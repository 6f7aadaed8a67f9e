//! The fault line between real sockets: an echo server behind it, clients before it.

mod faults;
mod line;
