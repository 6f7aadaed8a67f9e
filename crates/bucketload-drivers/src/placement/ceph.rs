//! Placement in Ceph, from the monitors' map of placement groups and radosgw's names of RADOS objects.
//!
//! Asking the monitors about one object takes a process and a connection, so this module computes the groups. It also
//! asks about the first few objects, and a difference is an error.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::groups::{RJENKINS, group_of, head_object};
use serde_json::Value;

use bucketload_target::{CephStore, Locate, OnCopy, OpenError};

/// Number of objects that are also looked up by the monitors.
const CHECKED: usize = 3;

/// The map of a pool.
pub(crate) struct Ceph {
    tools: Tools,
    pool: String,
    marker: String,
    groups: u32,
    /// Names of the OSDs that hold each group; the first one serves reads.
    holders: HashMap<u32, Vec<String>>,
    all_copies: bool,
    unchecked: usize,
}

/// Runs the cluster's command-line tools.
struct Tools {
    conf: Option<PathBuf>,
}

impl Tools {
    fn json(&self, tool: &str, args: &[&str]) -> Result<Value, OpenError> {
        let mut command = Command::new(tool);
        if let Some(conf) = &self.conf {
            command.arg("-c").arg(conf);
        }
        let what = format!("{tool} {}", args.join(" "));
        let out = command
            .args(args)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| OpenError::usage(format!("{what}: {e}; install Ceph's tools")))?;
        if !out.status.success() {
            let said = String::from_utf8_lossy(&out.stderr);
            let last = said.lines().rfind(|line| !line.trim().is_empty());
            return Err(OpenError::target(format!(
                "{what}: {} ({}); is --ceph-conf right?",
                out.status,
                last.unwrap_or("no reason was given").trim()
            )));
        }
        serde_json::from_slice(&out.stdout)
            .map_err(|e| OpenError::target(format!("{what}: its output cannot be read: {e}")))
    }
}

/// Reads the maps of the cluster.
pub(crate) fn open(args: &CephStore, bucket: &str) -> Result<Ceph, OpenError> {
    let conf = args.conf.clone();
    let tools = Tools {
        conf: conf.or_else(|| std::env::var_os("CEPH_CONF").map(PathBuf::from)),
    };
    let pools = tools.json("ceph", &["osd", "pool", "ls", "detail", "-f", "json"])?;
    let named = |pool: &&Value| pool["pool_name"] == args.pool.as_str();
    let all = pools.as_array().map_or(&[][..], Vec::as_slice);
    let Some(pool) = all.iter().find(named) else {
        let names: Vec<_> = all
            .iter()
            .filter_map(|pool| pool["pool_name"].as_str())
            .collect();
        return Err(OpenError::usage(format!(
            "--pool: there is no pool `{}`; there are {}",
            args.pool,
            names.join(", ")
        )));
    };
    if pool["object_hash"]
        .as_u64()
        .is_some_and(|hash| hash != RJENKINS)
    {
        return Err(OpenError::usage(format!(
            "--pool: `{}` does not use rjenkins, the only supported hash function",
            args.pool
        )));
    }
    let number = |value: &Value, what: &str| {
        let number = value.as_u64().and_then(|n| u32::try_from(n).ok());
        number.ok_or_else(|| OpenError::target(format!("ceph: a pool without {what}")))
    };
    let id = number(&pool["pool_id"], "pool_id")?;
    let groups = number(&pool["pg_num"], "pg_num")?;
    let dump = tools.json("ceph", &["pg", "dump", "pgs_brief", "-f", "json"])?;
    let holders = holders(&dump, id);
    if holders.len() != groups as usize {
        return Err(OpenError::target(format!(
            "ceph pg dump: it lists {} of the {groups} groups of pool `{}`; is the cluster healthy?",
            holders.len(),
            args.pool
        )));
    }
    let marker = match &args.marker {
        Some(marker) => marker.clone(),
        None => {
            let bucket = format!("--bucket={bucket}");
            let stats = tools.json("radosgw-admin", &["bucket", "stats", &bucket])?;
            let marker = stats["marker"].as_str().unwrap_or_default();
            if marker.is_empty() {
                return Err(OpenError::target(
                    "radosgw-admin bucket stats: no marker; name it with --marker",
                ));
            }
            marker.to_owned()
        }
    };
    Ok(Ceph {
        tools,
        pool: args.pool.clone(),
        marker,
        groups,
        holders,
        all_copies: args.all_copies,
        unchecked: CHECKED,
    })
}

/// The OSDs of the groups of pool `id`.
fn holders(dump: &Value, id: u32) -> HashMap<u32, Vec<String>> {
    // Older releases print the list itself.
    let list = dump["pg_stats"].as_array().or_else(|| dump.as_array());
    let one = |group: &Value| {
        let (pool, group_id) = group["pgid"].as_str()?.split_once('.')?;
        if pool.parse() != Ok(id) {
            return None;
        }
        let primary = group["acting_primary"].as_i64()?;
        let acting = group["acting"].as_array()?.iter().filter_map(Value::as_i64);
        let others = acting.filter(|osd| *osd != primary);
        // A missing OSD has the largest 32-bit number.
        let real = |osd: &i64| (0..i64::from(i32::MAX)).contains(osd);
        let osds = std::iter::once(primary).chain(others).filter(real);
        let names = osds.map(|osd| format!("osd.{osd}")).collect();
        Some((u32::from_str_radix(group_id, 16).ok()?, names))
    };
    list.into_iter().flatten().filter_map(one).collect()
}

impl Locate for Ceph {
    fn locate(
        &mut self,
        _bucket: &str,
        keys: &[String],
        on_copy: OnCopy<'_>,
    ) -> Result<(), OpenError> {
        for (i, key) in keys.iter().enumerate() {
            let name = head_object(&self.marker, key);
            let group = group_of(name.as_bytes(), self.groups);
            let holders = self.holders.get(&group).map_or(&[][..], Vec::as_slice);
            if self.unchecked > 0 {
                self.unchecked -= 1;
                let args = ["osd", "map", &self.pool, &name, "-f", "json"];
                let map = self.tools.json("ceph", &args)?;
                let primary = map["acting_primary"]
                    .as_i64()
                    .map(|osd| format!("osd.{osd}"));
                if primary.as_ref() != holders.first() {
                    return Err(OpenError::target(format!(
                        "ceph osd map says that {primary:?} serves `{name}`, the map of groups says \
                         {:?}; if the cluster is moving data, try again when it is done",
                        holders.first()
                    )));
                }
            }
            let wanted = match self.all_copies {
                false => 1,
                true => usize::MAX,
            };
            holders.iter().take(wanted).for_each(|osd| on_copy(i, osd));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::holders;

    #[test]
    fn groups_of_the_pool_have_their_primary_first() {
        let groups = json!([
            {"pgid": "6.0", "acting": [2, 0, 1], "acting_primary": 0},
            {"pgid": "6.1f", "acting": [1, 2_147_483_647], "acting_primary": 1},
            {"pgid": "7.0", "acting": [5], "acting_primary": 5},
        ]);
        for dump in [
            json!({"pg_ready": true, "pg_stats": groups}),
            groups.clone(),
        ] {
            let holders = holders(&dump, 6);
            assert_eq!(holders.len(), 2);
            assert_eq!(holders[&0], ["osd.0", "osd.2", "osd.1"]);
            assert_eq!(holders[&0x1f], ["osd.1"]);
        }
    }
}
