//! Sockets, TLS and heads of HTTP on loopback.

#[path = "../common/mod.rs"]
mod common;
mod plain;
mod tls;
