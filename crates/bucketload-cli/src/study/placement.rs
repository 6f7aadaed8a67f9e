//! Where the objects of a cell lie: asked of servers that the study started, while they still hold them.
//!
//! ```text
//! run --op-log --keep ─► placement STORE DIR ─► report DIR --placement ─► cleanup
//! ```

use std::collections::BTreeMap;

use bucketload_run::StopHandle;

use super::child::{Call, more};

/// Who is asked.
pub(super) struct Oracle {
    /// Arguments of `bucketload placement`.
    args: Vec<String>,
    /// Whether it knows only of objects that are there.
    needs_objects: bool,
}

impl Oracle {
    /// The oracle of the store that the script `server` has started, which printed `lines`.
    pub(super) fn of(server: &str, lines: &BTreeMap<String, String>) -> Option<Self> {
        let line = |name: &str| lines.get(name).map(String::as_str);
        let mut args = vec![server.to_owned()];
        let mut add = |flag: &str, value: Option<&str>| {
            if let Some(value) = value {
                args.push(format!("--{flag}={value}"));
            }
        };
        match server {
            // The ring says where every key belongs, whether it is there or not.
            "swift" => {
                add("ring", Some(line("SWIFT_RING")?));
                add("swift-conf", Some(line("SWIFT_CONF")?));
                let url = line("SWIFT_STORAGE_URL").and_then(|url| url.rsplit_once('/'));
                add("account", url.map(|(_, account)| account));
            }
            // The bucket's marker goes with the bucket.
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

    /// Whether the cell must keep its objects until they were looked up.
    pub(super) const fn needs_objects(&self) -> bool {
        self.needs_objects
    }

    /// Puts the placement into the run directory of a cell that was measured, and deletes what the cell kept.
    ///
    /// # Errors
    /// Why there is no placement. The run directory is as it was then.
    pub(super) fn look_up(&self, call: &Call<'_>, stop: &StopHandle) -> Result<(), String> {
        let dir = call.dir.display().to_string();
        let beside = format!("{dir}.placement");
        let ask = |args: Vec<String>| more(&call.dir, &args, call.env, stop);
        let mut asked = vec!["placement".to_owned()];
        asked.extend(self.args.iter().cloned());
        asked.extend([dir.clone(), format!("--out={beside}")]);
        let placed = ask(asked).and_then(|()| {
            // Takes it over whole or not at all, with all that follows from it.
            let report = ["report", &dir, "--placement", &beside].map(str::to_owned);
            ask(report.to_vec())
        });
        let _ = std::fs::remove_file(&beside);
        if self.needs_objects {
            let at = ["--target=", "--endpoint-url="];
            let target = call.args.iter();
            let target = target.filter(|arg| at.iter().any(|flag| arg.starts_with(flag)));
            let mut clean = vec!["cleanup".to_owned()];
            clean.extend(target.cloned());
            // The server ends with the study and its data with it; until then they would be in the way.
            if let Err(why) = ask(clean) {
                eprintln!("bucketload: {dir}: what the cell kept could not be deleted: {why}");
            }
        }
        placed
    }
}

#[cfg(test)]
mod tests {
    use super::Oracle;
    use crate::study::script::lines;

    #[test]
    fn stores_of_several_nodes_are_asked_by_what_their_scripts_print() {
        let swift = lines(
            "SWIFT_STORAGE_URL=http://h/v1/AUTH_t\nSWIFT_RING=/e/object.ring.gz\nSWIFT_CONF=/e/swift.conf\n",
        );
        let oracle = Oracle::of("swift", &swift).unwrap();
        let args = [
            "swift",
            "--ring=/e/object.ring.gz",
            "--swift-conf=/e/swift.conf",
            "--account=AUTH_t",
        ];
        assert_eq!(oracle.args, args);
        assert!(!oracle.needs_objects());
        let ceph = Oracle::of("ceph", &lines("CEPH_CONF=/c/ceph.conf\n")).unwrap();
        assert_eq!(ceph.args, ["ceph", "--ceph-conf=/c/ceph.conf"]);
        assert!(ceph.needs_objects());
        let hdfs = Oracle::of("hdfs", &lines("ENDPOINT=http://n:9870\n")).unwrap();
        assert_eq!(hdfs.args, ["hdfs", "--endpoint-url=http://n:9870"]);
        let weed = "SEAWEEDFS_FILER_URL=http://f\nSEAWEEDFS_MASTER_URL=http://m\n";
        let weed = Oracle::of("seaweedfs", &lines(weed)).unwrap();
        assert_eq!(
            weed.args,
            ["seaweedfs", "--filer=http://f", "--master=http://m"]
        );
        assert!(Oracle::of("minio", &swift).is_none());
        // An older script that does not print where its ring is.
        assert!(Oracle::of("swift", &ceph_lines()).is_none());
    }

    fn ceph_lines() -> std::collections::BTreeMap<String, String> {
        lines("CEPH_CONF=/c/ceph.conf\n")
    }
}
