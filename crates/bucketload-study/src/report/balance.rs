//! How the load of a run was spread over data nodes (its operation log joined by key with `placement.csv`) or over
//! endpoints, and why this cannot be shown for a target.

use std::collections::BTreeSet;
use std::path::Path;

use bucketload_core::stats::balance::Indices;
use bucketload_results::analyze;
use bucketload_results::result::{NodeBalance, RunResult};

use super::groups::Group;
use super::read::Files;
use crate::model::Placement;

/// Name of the file in a cell with the store's placement: lines `key,node`.
pub const PLACEMENT: &str = "placement.csv";
/// Name of the file in a cell with the requests that the store's nodes served: lines `key,node`.
const SERVED: &str = "served.csv";

/// Load per node or endpoint of one run, or of one of its phases.
#[derive(Clone, Debug, PartialEq)]
pub struct Balance {
    /// The unit over which the load is spread: `data node` or `endpoint`.
    pub unit: &'static str,
    /// Name of the phase; empty for the run as a whole.
    pub phase: String,
    /// Whether the loads were observed; otherwise they are computed from popularity and placement.
    pub observed: bool,
    /// Name, requests and objects (0 for endpoints) of each.
    pub loads: Vec<(String, f64, f64)>,
    /// Indices of the requests.
    pub indices: Option<Indices>,
}

impl Balance {
    fn of_nodes(phase: &str, nodes: &NodeBalance) -> Self {
        let loads: Vec<(String, f64, f64)> = nodes
            .nodes
            .iter()
            .map(|n| (n.name.clone(), n.observed.unwrap_or(n.expected), n.objects))
            .collect();
        let requests: Vec<f64> = loads.iter().map(|(_, requests, _)| *requests).collect();
        Self {
            unit: "data node",
            phase: phase.to_owned(),
            observed: nodes.nodes.iter().all(|node| node.observed.is_some()),
            indices: Indices::of(&requests),
            loads,
        }
    }
}

/// The load of the run in `dir`: separately for each measuring phase if there are several and the loads were not observed.
///
/// # Errors
/// Says what is wrong with its placement or operation log.
pub(super) fn of(dir: &Path, result: &RunResult) -> Result<Vec<Balance>, String> {
    let placement = dir.join(PLACEMENT);
    if placement.is_file() {
        let served = Some(dir.join(SERVED)).filter(|path| path.is_file());
        return from_nodes(dir, &placement, served.as_deref()).map_err(|e| e.to_string());
    }
    let endpoints = result
        .measured()
        .find_map(|phase| phase.endpoints.as_ref())
        .map(|endpoints| Balance {
            unit: "endpoint",
            phase: String::new(),
            observed: true,
            loads: endpoints
                .endpoints
                .iter()
                .map(|e| (e.name.clone(), e.requests as f64, 0.0))
                .collect(),
            indices: endpoints.requests,
        });
    Ok(endpoints.into_iter().collect())
}

fn from_nodes(
    dir: &Path,
    placement: &Path,
    served: Option<&Path>,
) -> Result<Vec<Balance>, bucketload_results::ResultsError> {
    let table = analyze::read_placement(placement)?;
    if let Some(served) = served {
        // The nodes' own records do not name phases.
        let served = analyze::read_served(served, &table)?;
        let nodes = analyze::nodes(dir, &table, Some(&served))?;
        return Ok(vec![Balance::of_nodes("", &nodes)]);
    }
    let phases = analyze::nodes_by_phase(dir, &table)?;
    let one = phases.len() == 1;
    let named = phases
        .iter()
        .map(|(phase, nodes)| Balance::of_nodes(if one { "" } else { phase }, nodes));
    Ok(named.collect())
}

/// Gives the nodes of several runs common names, and sorts them. A cluster that is restarted for each repetition gets
/// other ports, which are part of its nodes' names. Of `ADDRESS/DEVICE`, the device remains if that is unique; otherwise
/// nodes are numbered.
pub(super) fn align(balances: &mut [Balance]) {
    for balance in balances.iter_mut() {
        balance.loads.sort_by(|a, b| natural(&a.0, &b.0));
    }
    let names = |balance: &Balance| -> Vec<String> {
        balance
            .loads
            .iter()
            .map(|(name, _, _)| name.clone())
            .collect()
    };
    let alike = |balances: &[Balance]| {
        let mut all = balances.iter().map(names);
        let first = all.next();
        all.all(|other| Some(other) == first)
    };
    let sizes: BTreeSet<usize> = balances.iter().map(|b| b.loads.len()).collect();
    let units: BTreeSet<&str> = balances.iter().map(|b| b.unit).collect();
    if alike(balances) || sizes.len() > 1 || units.len() > 1 {
        return;
    }
    let mut short = balances.to_vec();
    for balance in &mut short {
        for (name, _, _) in &mut balance.loads {
            if let Some((_, device)) = name.rsplit_once('/') {
                *name = device.to_owned();
            }
        }
        balance.loads.sort_by(|a, b| natural(&a.0, &b.0));
    }
    let distinct = |balance: &Balance| {
        let set: BTreeSet<&str> = balance.loads.iter().map(|(name, _, _)| &**name).collect();
        set.len() == balance.loads.len()
    };
    if short.iter().all(distinct) && alike(&short) {
        balances.clone_from_slice(&short);
        return;
    }
    for balance in balances {
        let unit = balance.unit;
        for (i, (name, _, _)) in balance.loads.iter_mut().enumerate() {
            *name = format!("{unit} {}", i + 1);
        }
    }
}

/// `osd.2` before `osd.10`: shorter names first.
fn natural(a: &str, b: &str) -> std::cmp::Ordering {
    (a.len(), a).cmp(&(b.len(), b))
}

/// Why the load balance of a group cannot be shown; `None` if it can.
pub(super) fn why_not(files: &Files, group: &Group) -> Option<String> {
    let nodes = group.extra.balance.iter().map(|b| b.loads.len()).max();
    let facts = files.facts.get(&group.target);
    let placement = facts.map_or(Placement::Unknown, |facts| facts.placement);
    let single = "a single node, nothing to balance".to_owned();
    Some(match (nodes, &group.extra.unplaced) {
        (Some(2..), _) => return None,
        _ if group.runs.is_empty() => group.why_none().to_owned(),
        (Some(1), _) => single,
        (_, Some(why)) => format!("the placement of its objects could not be looked up: {why}"),
        (_, None) if placement == Placement::OneNode => single,
        (_, None) => format!(
            "the placement of its objects is unknown; {PLACEMENT} in the cells' directories can state it"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::{Balance, align};

    fn balance(names: &[&str]) -> Balance {
        Balance {
            unit: "data node",
            phase: String::new(),
            observed: false,
            loads: names
                .iter()
                .zip(1..)
                .map(|(name, i)| ((*name).to_owned(), f64::from(i), 1.0))
                .collect(),
            indices: None,
        }
    }

    fn aligned(runs: &[&[&str]]) -> Vec<Vec<(String, f64)>> {
        let mut all: Vec<Balance> = runs.iter().map(|names| balance(names)).collect();
        align(&mut all);
        let loads = all
            .into_iter()
            .map(|b| b.loads.into_iter().map(|(n, r, _)| (n, r)).collect());
        loads.collect()
    }

    fn named(pairs: &[(&str, f64)]) -> Vec<(String, f64)> {
        pairs
            .iter()
            .map(|(name, load)| ((*name).to_owned(), *load))
            .collect()
    }

    #[test]
    fn nodes_of_repetitions_have_common_names() {
        let osds = aligned(&[&["osd.10", "osd.2"], &["osd.2", "osd.10"]]);
        assert_eq!(osds[0], named(&[("osd.2", 2.0), ("osd.10", 1.0)]));
        assert_eq!(osds[1], named(&[("osd.2", 1.0), ("osd.10", 2.0)]));
        // Each repetition has other ports.
        let rings = aligned(&[&["h:1/d2", "h:1/d1"], &["h:2/d1", "h:2/d2"]]);
        assert_eq!(rings[0], named(&[("d1", 2.0), ("d2", 1.0)]));
        assert_eq!(rings[1], named(&[("d1", 1.0), ("d2", 2.0)]));
        let data = aligned(&[&["h:20", "h:10"], &["h:30", "h:40"]]);
        assert_eq!(
            data[0],
            named(&[("data node 1", 2.0), ("data node 2", 1.0)])
        );
        assert_eq!(
            data[1],
            named(&[("data node 1", 1.0), ("data node 2", 2.0)])
        );
        // A device name alone would not distinguish two machines.
        let machines = aligned(&[&["a:1/d1", "b:1/d1"], &["a:2/d1", "b:2/d1"]]);
        assert_eq!(
            machines[1],
            named(&[("data node 1", 1.0), ("data node 2", 2.0)])
        );
        // If the number of nodes differs, names are kept.
        let other = aligned(&[&["n1"], &["n1", "n2"]]);
        assert_eq!(other[0], named(&[("n1", 1.0)]));
    }
}
