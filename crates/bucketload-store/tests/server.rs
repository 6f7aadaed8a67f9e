//! The S3 server over raw sockets, with a signer that shares no code with it.

#[path = "server/auth.rs"]
mod auth;
#[path = "server/buckets.rs"]
mod buckets;
#[path = "server/checksums.rs"]
mod checksums;
#[path = "server/client.rs"]
mod client;
#[path = "server/faults.rs"]
mod faults;
#[path = "server/framing.rs"]
mod framing;
#[path = "server/listing.rs"]
mod listing;
#[path = "server/multipart.rs"]
mod multipart;
#[path = "server/objects.rs"]
mod objects;
#[path = "server/signer.rs"]
mod signer;
#[path = "server/stores.rs"]
mod stores;
#[path = "server/tls.rs"]
mod tls;
