//! How load was spread over endpoints or nodes.

use bucketload_core::stats::balance::windows::{OverTime, TailLink};
use bucketload_core::stats::balance::{Attribution, Indices, Null};
use serde::{Deserialize, Serialize};

use super::Latency;

/// How the load of a phase was spread over its endpoints (window and drain).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndpointBalance {
    /// One entry per endpoint, in the order of the driver's list.
    pub endpoints: Vec<EndpointResult>,
    /// Indices of the requests.
    pub requests: Option<Indices>,
    /// Indices of the object bytes.
    pub bytes: Option<Indices>,
    /// Indices of the time that operations spent at the endpoints.
    pub busy: Option<Indices>,
    /// What chance alone would do, if each request went to any endpoint with equal probability.
    pub null: Option<Null>,
    /// Requests in windows of time.
    pub over_time: Option<OverTime>,
    /// Length of these windows, seconds.
    pub window_s: f64,
    /// How the 99th percentile of the response time goes with the peak factor, window by window.
    pub tail: Option<TailLink>,
}

/// One endpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndpointResult {
    /// Its URL.
    pub name: String,
    /// Operations that ended there, failed ones included.
    pub requests: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Object bytes of operations that succeeded.
    pub bytes: u64,
    /// Time that operations spent there, seconds; several at a time add up.
    pub busy_s: f64,
    /// Service times of operations that succeeded; empty beyond the first 64 endpoints.
    pub service: Latency,
}

/// How the load of a run was spread over the data nodes of the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeBalance {
    /// One entry per node.
    pub nodes: Vec<NodeResult>,
    /// Requests whose key stands in no table.
    pub unknown: u64,
    /// Objects, expected and observed requests by the same indices.
    pub attribution: Attribution,
    /// What chance alone would do under even routing.
    pub null: Option<Null>,
    /// Share of the hottest key in all requests.
    pub hottest_share: f64,
    /// Lower bound of the peak factor that follows from the hottest key and its copies.
    pub one_key_bound: f64,
}

/// One data node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeResult {
    /// Its name.
    pub name: String,
    /// Objects placed on it.
    pub objects: f64,
    /// Requests expected from popularity and placement.
    pub expected: f64,
    /// Requests observed; `None` without a server log.
    pub observed: Option<f64>,
    /// Object bytes expected.
    pub bytes: f64,
}
