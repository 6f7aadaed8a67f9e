//! Load balance over endpoints or nodes.

use bucketload_core::stats::balance::windows::{OverTime, TailLink};
use bucketload_core::stats::balance::{Attribution, Indices, Null};
use serde::{Deserialize, Serialize};

use super::Latency;

/// Balance of a phase's load over its endpoints (window and drain).
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
    /// Expectation from chance alone, if each request went to any endpoint with equal probability.
    pub null: Option<Null>,
    /// Requests in time windows.
    pub over_time: Option<OverTime>,
    /// Length of these windows, seconds.
    pub window_s: f64,
    /// Correlation of the 99th percentile of the response time with the peak factor, over the windows.
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
    /// Time that operations spent there, seconds; concurrent operations add up.
    pub busy_s: f64,
    /// Service times of operations that succeeded; empty beyond the first 64 endpoints.
    pub service: Latency,
}

/// Balance of a run's load over the data nodes of the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeBalance {
    /// One entry per node.
    pub nodes: Vec<NodeResult>,
    /// Requests for keys without a placement.
    pub unknown: u64,
    /// The same indices for objects, expected requests and observed requests.
    pub attribution: Attribution,
    /// Expectation from chance alone under even routing.
    pub null: Option<Null>,
    /// Share of all requests that went to the hottest key.
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
