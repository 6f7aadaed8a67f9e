//! Generators: random streams, arrival processes, sizes, key popularity. Each is a pure function
//! of the seed and a counter, so any part of a workload can be recomputed anywhere.

pub mod rng;
