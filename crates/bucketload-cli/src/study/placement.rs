//! The placement of a cell's objects, looked up on servers that the study started while they still have the objects.
//!
//! ```text
//! run --op-log --keep ─► placement STORE DIR ─► report DIR --placement ─► cleanup
//! ```

use std::collections::BTreeMap;

use bucketload_run::StopHandle;

use super::child::{CellRun, follow_up};

/// How to look up the placement of objects.
pub(super) struct PlacementLookup {
    /// Arguments of `bucketload placement`.
    args: Vec<String>,
    /// Whether the lookup works only while the objects exist.
    needs_objects: bool,
}

impl PlacementLookup {
    /// The lookup on the store that the script `server` started; the script printed `lines`.
    pub(super) fn of(server: &str, lines: &BTreeMap<String, String>) -> Option<Self> {
        let line = |name: &str| lines.get(name).map(String::as_str);
        let mut args = vec![server.to_owned()];
        let mut add = |flag: &str, value: Option<&str>| {
            if let Some(value) = value {
                args.push(format!("--{flag}={value}"));
            }
        };
        match server {
            // The ring places every key, whether the object exists or not.
            "swift" => {
                add("ring", Some(line("SWIFT_RING")?));
                add("swift-conf", Some(line("SWIFT_CONF")?));
                let url = line("SWIFT_STORAGE_URL").and_then(|url| url.rsplit_once('/'));
                add("account", url.map(|(_, account)| account));
            }
            // The bucket's marker is deleted with the bucket.
            "ceph" => add("ceph-conf", Some(line("CEPH_CONF")?)),
            "hdfs" => add("endpoint-url", Some(line("ENDPOINT")?)),
            "seaweedfs" => {
                add("filer", Some(line("SEAWEEDFS_FILER_URL")?));
                add("master", line("SEAWEEDFS_MASTER_URL"));
            }
            _ => return None,
        }
        Some(Self {
            args,
            needs_objects: server != "swift",
        })
    }

    /// Whether the cell must keep its objects until they are looked up.
    pub(super) const fn needs_objects(&self) -> bool {
        self.needs_objects
    }

    /// Adds the placement to the run directory of a measured cell, and deletes the objects that the cell kept.
    ///
    /// # Errors
    /// Why there is no placement; the run directory is then unchanged.
    pub(super) fn look_up(&self, run: &CellRun<'_>, stop: &StopHandle) -> Result<(), String> {
        let dir = run.dir.display().to_string();
        let beside = format!("{dir}.placement");
        let ask = |args: Vec<String>| follow_up(&run.dir, &args, run.env, stop);
        let mut asked = vec!["placement".to_owned()];
        asked.extend(self.args.iter().cloned());
        asked.extend([dir.clone(), format!("--out={beside}")]);
        let placed = ask(asked).and_then(|()| {
            // Adds the placement and everything derived from it, or nothing.
            let report = ["report", &dir, "--placement", &beside].map(str::to_owned);
            ask(report.to_vec())
        });
        let _ = std::fs::remove_file(&beside);
        if self.needs_objects {
            let at = ["--target=", "--endpoint-url="];
            let target = run.args.iter();
            let target = target.filter(|arg| at.iter().any(|flag| arg.starts_with(flag)));
            let mut clean = vec!["cleanup".to_owned()];
            clean.extend(target.cloned());
            // The objects would be in the way until the server and its data are removed after the study.
            if let Err(why) = ask(clean) {
                eprintln!("bucketload: {dir}: cannot delete the objects that the cell kept: {why}");
            }
        }
        placed
    }
}

#[cfg(test)]
mod tests {
    use super::PlacementLookup;
    use crate::study::script::lines;

    #[test]
    fn the_lookup_follows_from_what_scripts_print() {
        let swift = lines(
            "SWIFT_STORAGE_URL=http://h/v1/AUTH_t\nSWIFT_RING=/e/object.ring.gz\nSWIFT_CONF=/e/swift.conf\n",
        );
        let oracle = PlacementLookup::of("swift", &swift).unwrap();
        let args = [
            "swift",
            "--ring=/e/object.ring.gz",
            "--swift-conf=/e/swift.conf",
            "--account=AUTH_t",
        ];
        assert_eq!(oracle.args, args);
        assert!(!oracle.needs_objects());
        let ceph = PlacementLookup::of("ceph", &lines("CEPH_CONF=/c/ceph.conf\n")).unwrap();
        assert_eq!(ceph.args, ["ceph", "--ceph-conf=/c/ceph.conf"]);
        assert!(ceph.needs_objects());
        let hdfs = PlacementLookup::of("hdfs", &lines("ENDPOINT=http://n:9870\n")).unwrap();
        assert_eq!(hdfs.args, ["hdfs", "--endpoint-url=http://n:9870"]);
        let weed = "SEAWEEDFS_FILER_URL=http://f\nSEAWEEDFS_MASTER_URL=http://m\n";
        let weed = PlacementLookup::of("seaweedfs", &lines(weed)).unwrap();
        assert_eq!(
            weed.args,
            ["seaweedfs", "--filer=http://f", "--master=http://m"]
        );
        assert!(PlacementLookup::of("minio", &swift).is_none());
        // An older script that does not print where its ring is.
        assert!(PlacementLookup::of("swift", &ceph_lines()).is_none());
    }

    fn ceph_lines() -> std::collections::BTreeMap<String, String> {
        lines("CEPH_CONF=/c/ceph.conf\n")
    }
}
