//! OpenStack Swift: the object ring.
//!
//! A partition is the first bits of the MD5 of the object's path, with the cluster's secret prefix and suffix. The ring
//! file lists the devices that hold each partition (Swift documentation, "The Rings"; ring format 1: `R1NG`, version,
//! length of a JSON header, header, one table of device numbers per replica).

use md5::{Digest as _, Md5};
use serde::Deserialize;

/// The fields of a ring file's header that matter.
#[derive(Deserialize)]
struct Header {
    devs: Vec<Option<Device>>,
    part_shift: u32,
    #[serde(default)]
    replica_count: Option<u32>,
    #[serde(default)]
    byteorder: Option<String>,
}

#[derive(Deserialize)]
struct Device {
    ip: String,
    port: u16,
    device: String,
}

/// A ring: the devices that hold each partition.
#[derive(Clone, Debug)]
pub struct Ring {
    /// Names of the devices by number, `IP:PORT/DEVICE`; empty for numbers without a device.
    names: Vec<String>,
    part_shift: u32,
    /// For each replica, the device of each partition; the last table may be shorter.
    replicas: Vec<Vec<u16>>,
}

impl Ring {
    /// Parses the contents of a ring file after decompression.
    ///
    /// # Errors
    /// The problem with the file.
    pub fn parse(file: &[u8]) -> Result<Self, String> {
        let rest = file
            .strip_prefix(b"R1NG")
            .ok_or("it is not a ring file of format 1 (`R1NG`)")?;
        let cut = || "it ends early".to_owned();
        let (version, rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
        if u16::from_be_bytes(*version) != 1 {
            return Err(format!(
                "ring format {} is not supported, only 1",
                u16::from_be_bytes(*version)
            ));
        }
        let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (header, mut tables) = rest.split_at_checked(length).ok_or_else(cut)?;
        let header: Header = serde_json::from_slice(header)
            .map_err(|e| format!("its header cannot be read: {e}"))?;
        if !(1..=32).contains(&header.part_shift) {
            return Err(format!("a shift of {} is impossible", header.part_shift));
        }
        let little = header.byteorder.as_deref() != Some("big");
        let partitions = 1usize << (32 - header.part_shift);
        let mut replicas = Vec::new();
        while !tables.is_empty()
            && header
                .replica_count
                .is_none_or(|n| replicas.len() < n as usize)
        {
            let (table, rest) = tables.split_at((2 * partitions).min(tables.len()));
            let device = |pair: &[u8; 2]| match little {
                true => u16::from_le_bytes(*pair),
                false => u16::from_be_bytes(*pair),
            };
            let (pairs, odd) = table.as_chunks::<2>();
            if !odd.is_empty() {
                return Err(cut());
            }
            replicas.push(pairs.iter().map(device).collect());
            tables = rest;
        }
        if replicas
            .first()
            .is_none_or(|table: &Vec<u16>| table.len() < partitions)
        {
            return Err(cut());
        }
        let name = |device: Option<Device>| {
            device.map_or_else(String::new, |d| format!("{}:{}/{}", d.ip, d.port, d.device))
        };
        Ok(Self {
            names: header.devs.into_iter().map(name).collect(),
            part_shift: header.part_shift,
            replicas,
        })
    }

    /// The devices that hold `account`/`container`/`object` in a cluster with `hash`.
    pub fn devices<'a>(
        &'a self,
        hash: &HashPath,
        account: &str,
        container: &str,
        object: &str,
    ) -> impl Iterator<Item = &'a str> {
        let partition = hash.partition(account, container, object, self.part_shift);
        self.replicas.iter().filter_map(move |table| {
            let name = self.names.get(usize::from(*table.get(partition)?))?;
            (!name.is_empty()).then_some(name.as_str())
        })
    }
}

/// The cluster's secrets that are part of a path's hash.
#[derive(Clone, PartialEq, Eq)]
pub struct HashPath {
    prefix: String,
    suffix: String,
}

impl HashPath {
    /// Parses the section `swift-hash` of a `swift.conf`.
    ///
    /// # Errors
    /// When it has neither prefix nor suffix.
    pub fn parse(swift_conf: &str) -> Result<Self, String> {
        let mut found = Self {
            prefix: String::new(),
            suffix: String::new(),
        };
        let mut inside = false;
        for line in swift_conf.lines().map(str::trim) {
            if line.starts_with('[') {
                inside = line == "[swift-hash]";
            } else if inside && let Some((name, value)) = line.split_once('=') {
                match name.trim() {
                    "swift_hash_path_prefix" => found.prefix = value.trim().to_owned(),
                    "swift_hash_path_suffix" => found.suffix = value.trim().to_owned(),
                    _ => {}
                }
            }
        }
        match found.prefix.is_empty() && found.suffix.is_empty() {
            true => Err("its section [swift-hash] has no swift_hash_path_prefix or _suffix".into()),
            false => Ok(found),
        }
    }

    fn partition(&self, account: &str, container: &str, object: &str, shift: u32) -> usize {
        let mut md5 = Md5::new();
        for part in [
            &self.prefix,
            "/",
            account,
            "/",
            container,
            "/",
            object,
            &self.suffix,
        ] {
            md5.update(part.as_bytes());
        }
        let digest = md5.finalize();
        let first = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
        // With a shift of 32 there is a single partition.
        first.checked_shr(shift).unwrap_or(0) as usize
    }
}

#[cfg(test)]
mod tests {
    use md5::{Digest as _, Md5};

    use super::{HashPath, Ring};

    /// A ring of four partitions on three devices, of which the second was removed.
    fn file(replica2: &[u16]) -> Vec<u8> {
        let header = br#"{"byteorder": "little", "devs": [
            {"id": 0, "ip": "10.0.0.1", "port": 6200, "device": "d1", "weight": 100.0}, null,
            {"id": 2, "ip": "10.0.0.2", "port": 6200, "device": "d2"}],
            "part_shift": 30, "replica_count": 2, "version": 5}"#;
        let mut file = b"R1NG\0\x01".to_vec();
        file.extend_from_slice(&(header.len() as u32).to_be_bytes());
        file.extend_from_slice(header);
        for device in [0u16, 2, 0, 2].iter().chain(replica2) {
            file.extend_from_slice(&device.to_le_bytes());
        }
        file
    }

    fn hash() -> HashPath {
        HashPath::parse("[swift-constraints]\nswift_hash_path_suffix = no\n[swift-hash]\nswift_hash_path_prefix = a\nswift_hash_path_suffix=b\n").unwrap()
    }

    #[test]
    fn partitions_are_the_first_bits_of_the_md5() {
        let digest = Md5::digest("a/AUTH_x/c/ob");
        let first = u32::from_be_bytes(*digest.first_chunk().unwrap());
        for shift in [1, 24, 30, 31] {
            assert_eq!(
                hash().partition("AUTH_x", "c", "o", shift),
                (first >> shift) as usize
            );
        }
        assert_eq!(hash().partition("AUTH_x", "c", "o", 32), 0);
    }

    #[test]
    fn devices_are_named_by_replica() {
        let ring = Ring::parse(&file(&[2, 0, 2, 0])).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for i in 0..100 {
            let devices: Vec<_> = ring
                .devices(&hash(), "AUTH_x", "c", &i.to_string())
                .collect();
            assert_eq!(devices.len(), 2);
            assert_ne!(devices[0], devices[1]);
            seen.insert(devices[0].to_owned());
        }
        assert_eq!(
            seen.into_iter().collect::<Vec<_>>(),
            ["10.0.0.1:6200/d1", "10.0.0.2:6200/d2"]
        );
        // The last table of a ring with a fraction of a replica is shorter.
        let partial = Ring::parse(&file(&[2])).unwrap();
        let counts: Vec<usize> = (0..100)
            .map(|i| {
                partial
                    .devices(&hash(), "AUTH_x", "c", &i.to_string())
                    .count()
            })
            .collect();
        assert!(counts.contains(&1) && counts.contains(&2));
    }

    #[test]
    fn other_files_are_refused() {
        for (file, word) in [
            (b"hello".to_vec(), "R1NG"),
            (b"R1NG\0\x02\0\0\0\0".to_vec(), "format 2"),
            (b"R1NG\0\x01\0\0\0\x09{}".to_vec(), "ends early"),
            (file(&[])[..file(&[]).len() - 2].to_vec(), "ends early"),
        ] {
            let error = Ring::parse(&file).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
        assert!(HashPath::parse("[swift-hash]\n").is_err());
    }
}
