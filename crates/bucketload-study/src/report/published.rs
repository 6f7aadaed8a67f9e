//! Values published by others, from a table with a citation per value (`published.csv`).
//!
//! They were measured on other machines, often with other clients and definitions, and are shown next to ours for
//! orientation only: no figure combines both. [`note`] names contradictions within a paper. The results of the CS597 grid
//! are in [`bucketload_results::grid::published`].

use std::sync::OnceLock;

const TABLE: &str = include_str!("published.csv");

/// Names of the sets: what `published` of a study may be.
pub const SETS: [&str; 5] = ["ossperf", "cosbench", "ostorebench", "s3-hpc", "cs597"];

/// A published value.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Name of the set.
    pub set: String,
    /// The quantity, such as `upload`.
    pub quantity: String,
    /// The system.
    pub system: String,
    /// Size in bytes, scenario or row.
    pub key: String,
    /// Method, class or number of nodes; empty for none.
    pub variant: String,
    /// The value.
    pub value: f64,
    /// Its unit; `x` for multiples of the first system.
    pub unit: String,
    /// Doubt about the value; empty for none.
    pub mark: String,
    /// Citation.
    pub source: String,
}

/// All values.
pub fn values() -> &'static [Value] {
    static VALUES: OnceLock<Vec<Value>> = OnceLock::new();
    VALUES.get_or_init(|| TABLE.lines().skip(1).filter_map(parse).collect())
}

/// The values of a set, in the order of the table.
pub fn of(set: &str) -> impl Iterator<Item = &'static Value> {
    values().iter().filter(move |value| value.set == set)
}

fn parse(line: &str) -> Option<Value> {
    let mut fields = split(line).into_iter();
    let mut text = || fields.next();
    Some(Value {
        set: text()?,
        quantity: text()?,
        system: text()?,
        key: text()?,
        variant: text()?,
        value: text()?.parse().ok()?,
        unit: text()?,
        mark: text()?,
        source: text()?,
    })
}

/// The fields of a line; commas inside quotes do not separate.
fn split(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            _ => {
                if let Some(field) = out.last_mut() {
                    field.push(c);
                }
            }
        }
    }
    out
}

/// The system of a set that corresponds to a target, by its name or script; `None` if there is none.
#[must_use]
pub fn system_like(set: &str, target: &str) -> Option<&'static str> {
    let target = target.to_ascii_lowercase();
    let known: &[(&str, &str)] = match set {
        "ossperf" => &[
            ("minio", "MinIO"),
            ("aws", "Amazon S3"),
            ("amazon", "Amazon S3"),
        ],
        "ostorebench" => &[
            ("seaweed", "SeaweedFS"),
            ("weed", "SeaweedFS"),
            ("ceph", "Ceph"),
            ("rgw", "Ceph"),
            ("swift", "Swift"),
        ],
        "s3-hpc" => &[("swift", "OpenStack Swift")],
        _ => &[],
    };
    known
        .iter()
        .find(|(part, _)| target.contains(part))
        .map(|(_, system)| *system)
}

/// The OStoreBench scenario of a workload; `None` for others.
#[must_use]
pub fn scenario(workload: &str) -> Option<&'static str> {
    match workload {
        w if w.starts_with("online-service") => Some("online"),
        w if w.starts_with("big-data-analysis") => Some("analysis"),
        w if w.starts_with("file-backup") => Some("backup"),
        w if w.starts_with("hotspot") => Some("hotspot"),
        _ => None,
    }
}

/// Reference in tables with published values to the full note at the end of the page.
pub const SEE: &str =
    "Published values are from another machine: see \"Published values\" at the end.";

/// How the set's values compare with ours; empty for sets without values.
#[must_use]
pub fn note(set: &str) -> &'static str {
    match set {
        "ossperf" => {
            "Published values are from another machine: MinIO on eight Raspberry Pi 2 behind 100 Mbit/s Ethernet \
             (Table 4) and Amazon S3 over the author's internet line (Table 5), 10 files each, one process of a \
             command-line client per file. At small sizes they mostly show the start of that process."
        }
        "ostorebench" => {
            "Published values are from other machines: four storage nodes with Xeon E5310, 4 GB of memory and \
             1-Gbit Ethernet, three copies; SeaweedFS 1.87, Swift 3.0, Ceph 13.2.10. The published figures follow \
             closed-loop load of a fixed number of workers, although the paper describes arrivals; the column \
             called \"99th percentile\" lies below the mean in 13 of 18 groups and agrees with a standard \
             deviation; the 113 MB/s of SeaweedFS are what one 1-Gbit link carries. Read them for orientation only."
        }
        "s3-hpc" => {
            "The published value is from other machines: MD-Workbench with 4 client nodes of 20 processes on \
             OpenStack Swift through its S3 emulation."
        }
        "cs597" => {
            "Published values are from other machines (virtual machines of type m3.large, at least one table on others), \
             recomputed from the study's raw times because its own tables swap reading and writing and scale some \
             cells. Many show the client's local disk or processes rather than the store. The touch rates of HDFS \
             and probably of CephFS count ten times the files."
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::{SETS, note, of, scenario, system_like, values};

    #[test]
    fn every_value_is_read_and_cited() {
        assert_eq!(values().len(), super::TABLE.lines().count() - 1);
        for value in values() {
            assert!(SETS.contains(&&*value.set), "{value:?}");
            assert!(
                value.value.is_finite() && !value.source.is_empty(),
                "{value:?}"
            );
            assert!(!note(&value.set).is_empty(), "{value:?}");
        }
    }

    #[test]
    fn values_match_the_papers() {
        let ossperf = |quantity: &str, system: &str, key: &str, variant: &str| {
            of("ossperf")
                .find(|v| {
                    (&*v.quantity, &*v.system, &*v.key, &*v.variant)
                        == (quantity, system, key, variant)
                })
                .unwrap()
                .value
        };
        assert_eq!(ossperf("upload", "MinIO", "512", "parallel"), 0.02);
        assert_eq!(ossperf("download", "MinIO", "8388608", "parallel"), 42.35);
        assert_eq!(
            ossperf("upload", "Amazon S3", "1048576", "sequential"),
            3.89
        );
        let online = of("ostorebench").find(|v| v.quantity == "throughput" && v.key == "online");
        assert_eq!(
            online.map(|v| (v.value, &*v.system)),
            Some((10.8, "SeaweedFS"))
        );
        assert_eq!(of("cosbench").count(), 0);
    }

    #[test]
    fn targets_are_recognised_by_name() {
        assert_eq!(system_like("ostorebench", "ceph-rgw"), Some("Ceph"));
        assert_eq!(system_like("ostorebench", "OpenStack Swift"), Some("Swift"));
        assert_eq!(system_like("ossperf", "MinIO, one drive"), Some("MinIO"));
        assert_eq!(system_like("cosbench", "minio"), None);
        assert_eq!(scenario("online-service:acloud"), Some("online"));
        assert_eq!(scenario("get"), None);
    }
}
