//! Where stores keep objects, computed from maps that were read from the running system: the pure part
//! of placement oracles.

pub mod ceph;
pub mod ring;
