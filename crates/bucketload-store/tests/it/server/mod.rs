//! The S3 server over raw sockets, with a signer that shares no code with it.

mod access;
mod appends;
mod archives;
mod auth;
mod buckets;
mod checksums;
mod client;
mod encryption;
mod faults;
mod forms;
mod framing;
mod listing;
mod lock;
mod multipart;
mod objects;
mod quirks;
mod signer;
mod stores;
mod tls;
mod versions;
