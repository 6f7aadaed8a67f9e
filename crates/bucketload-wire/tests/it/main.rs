//! Sockets, TLS and HTTP heads on loopback.

#[path = "../common/mod.rs"]
mod common;
mod plain;
mod tls;
