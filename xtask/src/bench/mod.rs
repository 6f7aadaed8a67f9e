//! Peer benchmarks: what the client costs beside wrk, iperf3 and loops that do nothing else.

pub(crate) mod floor;
