//! Whether imbalance is caused by the workload or by the system.
//!
//! ```text
//! objects per node ── how evenly the data is placed
//! expected requests: key popularity × placement / copies ── imbalance caused by the workload alone
//! observed requests ── any excess is caused by the system's routing and caching
//! ```

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::Indices;
use crate::driver::PlacementOracle;

/// Loads of a store's nodes, counted key by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeLoads {
    /// Requests per node.
    pub requests: Vec<f64>,
    /// Object bytes per node.
    pub bytes: Vec<f64>,
    /// Requests whose key or node is unknown.
    pub unknown: u64,
}

impl NodeLoads {
    /// Zero load on `nodes` nodes.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        Self {
            requests: vec![0.0; nodes],
            bytes: vec![0.0; nodes],
            unknown: 0,
        }
    }

    /// Adds one request of `bytes` bytes, spread evenly over `copies`. It counts as unknown if there are no
    /// copies or an index is not below the number of nodes.
    pub fn add(&mut self, copies: &[u32], bytes: u64) {
        let nodes = self.requests.len();
        if copies.is_empty() || copies.iter().any(|&node| node as usize >= nodes) {
            self.unknown += 1;
            return;
        }
        let share = 1.0 / copies.len() as f64;
        for &node in copies {
            self.requests[node as usize] += share;
            self.bytes[node as usize] += share * bytes as f64;
        }
    }

    /// The loads of requests whose nodes are known, as (node, bytes): a server log joined on the key.
    pub fn observed(nodes: usize, requests: impl IntoIterator<Item = (u32, u64)>) -> Self {
        let mut loads = Self::new(nodes);
        for (node, bytes) in requests {
            loads.add(&[node], bytes);
        }
        loads
    }

    /// The load that requests on keys, as (key, bytes), are expected to put on the nodes that hold the keys,
    /// if each of the first `read_copies` copies answers equally often (0 = all copies).
    pub fn expected<'a>(
        oracle: &dyn PlacementOracle,
        bucket: &str,
        read_copies: usize,
        requests: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Self {
        let mut loads = Self::new(oracle.nodes());
        let mut copies = Vec::new();
        for (key, bytes) in requests {
            oracle.copies(bucket, key, &mut copies);
            if read_copies > 0 {
                copies.truncate(read_copies);
            }
            loads.add(&copies, bytes);
        }
        loads
    }
}

/// Nodes by key, from a table: placements looked up elsewhere, or a server log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacementTable {
    names: Vec<String>,
    copies: HashMap<String, Vec<u32>>,
}

impl PlacementTable {
    /// Records that `node` holds a copy of `key`.
    pub fn insert(&mut self, key: &str, node: &str) {
        let index = match self.names.iter().position(|name| name == node) {
            Some(index) => index,
            None => {
                self.names.push(node.to_owned());
                self.names.len() - 1
            }
        };
        let copies = self.copies.entry(key.to_owned()).or_default();
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        if !copies.contains(&index) {
            copies.push(index);
        }
    }

    /// The nodes' names.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Copies per node.
    #[must_use]
    pub fn objects(&self) -> Vec<f64> {
        let mut objects = vec![0.0; self.names.len()];
        for node in self.copies.values().flatten() {
            objects[*node as usize] += 1.0;
        }
        objects
    }
}

impl PlacementOracle for PlacementTable {
    fn nodes(&self) -> usize {
        self.names.len()
    }

    fn copies(&self, _bucket: &str, key: &str, copies: &mut Vec<u32>) {
        copies.clear();
        copies.extend(self.copies.get(key).into_iter().flatten());
    }
}

/// The same indices for the data, for the requests expected from the workload alone, and for the observed
/// requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// Objects per node.
    pub objects: Option<Indices>,
    /// Requests expected from key popularity and placement.
    pub expected: Option<Indices>,
    /// Requests observed.
    pub observed: Option<Indices>,
    /// Peak factor of the expected requests: caused by the workload.
    pub by_workload: Option<f64>,
    /// Observed divided by expected peak factor: caused by the system's routing and caching; 1 = none.
    pub by_system: Option<f64>,
}

impl Attribution {
    /// Compares loads per node; pass an empty slice for an unknown load.
    #[must_use]
    pub fn of(objects: &[f64], expected: &[f64], observed: &[f64]) -> Self {
        let (expected, observed) = (Indices::of(expected), Indices::of(observed));
        Self {
            objects: Indices::of(objects),
            expected,
            observed,
            by_workload: expected.map(|e| e.peak),
            by_system: observed.zip(expected).map(|(o, e)| o.peak / e.peak),
        }
    }
}

/// Lower bound of the peak factor due to one key: if the hottest key has share `share` of all requests and
/// `copies` nodes (at least 1) serve it, the busiest of `nodes` nodes has at least `nodes * share / copies`
/// times the mean load.
#[must_use]
pub fn one_key_bound(nodes: usize, share: f64, copies: usize) -> f64 {
    (nodes as f64 * share / copies.max(1) as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::{Attribution, NodeLoads, PlacementTable, one_key_bound};
    use crate::driver::PlacementOracle;
    use crate::generate::rng::mix64;

    /// Places keys by hash on `nodes` nodes, with the next nodes as further copies.
    struct Hashed {
        nodes: u32,
        copies: u32,
    }

    impl PlacementOracle for Hashed {
        fn nodes(&self) -> usize {
            self.nodes as usize
        }

        fn copies(&self, _: &str, key: &str, copies: &mut Vec<u32>) {
            let hash = key.bytes().fold(7, |h, b| mix64(h ^ u64::from(b)));
            let first = (hash % u64::from(self.nodes)) as u32;
            copies.clear();
            copies.extend((0..self.copies).map(|i| (first + i) % self.nodes));
        }
    }

    #[test]
    fn the_workload_explains_a_hot_node_and_copies_halve_it() {
        assert!((one_key_bound(6, 0.53, 1) - 3.18).abs() < 0.01);
        assert_eq!(one_key_bound(6, 0.01, 1), 1.0);
        let keys: Vec<String> = (0..3000).map(|i| format!("k{i}")).collect();
        // One key takes half of the requests.
        let requests = || {
            keys.iter()
                .flat_map(|k| [(keys[0].as_str(), 10), (k.as_str(), 10)])
        };
        let one = Hashed {
            nodes: 6,
            copies: 1,
        };
        let expected = NodeLoads::expected(&one, "b", 0, requests());
        assert_eq!(expected.requests.iter().sum::<f64>(), 6000.0);
        assert_eq!(expected.bytes.iter().sum::<f64>(), 60_000.0);
        let expected_peak = Attribution::of(&[], &expected.requests, &[])
            .by_workload
            .unwrap();
        // Bound 3, plus the node's even share of the other half: 0.5.
        assert!((3.3..3.7).contains(&expected_peak), "{expected_peak}");
        assert!(expected_peak >= one_key_bound(6, 0.5, 1));
        // A system that reads either of two copies does half as badly, and is not to blame.
        let two = Hashed {
            nodes: 6,
            copies: 2,
        };
        let spread = NodeLoads::expected(&two, "b", 0, requests());
        let primary = NodeLoads::expected(&two, "b", 1, requests());
        assert_eq!(primary, expected);
        let found = Attribution::of(&[], &spread.requests, &expected.requests);
        assert!(
            (1.6..2.0).contains(&found.by_workload.unwrap()),
            "{found:?}"
        );
        // If it then reads only the first copy, the system is the cause.
        assert!((1.7..2.1).contains(&found.by_system.unwrap()), "{found:?}");
    }

    #[test]
    fn observed_nodes_and_tables_are_joined() {
        let loads = NodeLoads::observed(2, [(0, 5), (1, 6), (1, 7), (9, 1)]);
        assert_eq!(
            (loads.requests.as_slice(), loads.unknown),
            ([1.0, 2.0].as_slice(), 1)
        );
        assert_eq!(loads.bytes, [5.0, 13.0]);
        let mut table = PlacementTable::default();
        for (key, node) in [("a", "n1"), ("a", "n2"), ("b", "n2"), ("b", "n2")] {
            table.insert(key, node);
        }
        assert_eq!(table.names(), ["n1", "n2"]);
        assert_eq!(table.objects(), [1.0, 2.0]);
        let loads = NodeLoads::expected(&table, "", 0, [("a", 10), ("b", 10), ("c", 10)]);
        assert_eq!(
            (loads.requests.as_slice(), loads.unknown),
            ([0.5, 1.5].as_slice(), 1)
        );
    }
}
