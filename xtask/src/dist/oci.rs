//! Writes a container image as one archive, without a container engine: in OCI layout, with the list that `docker
//! load` reads.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::tree::{Tree, gzip};
use super::when::SourceTime;
use crate::sh::Result;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// User and group of the image: not root, and unused by distributions.
pub(super) const USER: u32 = 65_532;
/// Working directory of the program and home of its user.
pub(super) const HOME: &str = "work";

/// An image with one layer.
pub(super) struct Image<'a> {
    /// Repository and tag, such as `bucketload:0.1.0`.
    pub(super) name: &'a str,
    /// Machine, by its name in images.
    pub(super) machine: &'a str,
    /// The program to start.
    pub(super) program: &'a str,
    /// Labels, named without their prefix `org.opencontainers.image.`.
    pub(super) labels: &'a [(&'a str, &'a str)],
    /// Its files.
    pub(super) root: &'a Tree,
}

impl Image<'_> {
    /// The bytes of the archive, with all times set to `when`.
    ///
    /// # Errors
    /// A path is too long for a tar file.
    pub(super) fn bytes(&self, when: SourceTime) -> Result<Vec<u8>> {
        let instant = when.rfc3339();
        let layer = self.root.tar("", when.0)?;
        let unpacked = digest(&layer);
        let mut files = Tree::default();
        let layer = blob(&mut files, LAYER, gzip(&layer)?);
        let labels: serde_json::Map<String, Value> = self
            .labels
            .iter()
            .map(|(name, text)| (format!("org.opencontainers.image.{name}"), json!(text)))
            .collect();
        let config = json!({
            "created": instant,
            "architecture": self.machine,
            "os": "linux",
            "config": {
                "User": format!("{USER}:{USER}"),
                "Env": ["PATH=/usr/bin:/bin", format!("HOME=/{HOME}")],
                "Entrypoint": [self.program],
                "WorkingDir": format!("/{HOME}"),
                "Labels": labels,
            },
            "rootfs": { "type": "layers", "diff_ids": [unpacked] },
            "history": [{ "created": instant, "created_by": "bucketload xtask dist" }],
        });
        let config = blob(&mut files, CONFIG, config.to_string().into_bytes());
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": [layer],
        });
        let mut manifest = blob(&mut files, MANIFEST, manifest.to_string().into_bytes());
        let tag = self.name.rsplit(':').next().unwrap_or_default();
        manifest["platform"] = json!({ "architecture": self.machine, "os": "linux" });
        manifest["annotations"] = json!({
            "io.containerd.image.name": format!("docker.io/library/{}", self.name),
            "org.opencontainers.image.ref.name": tag,
        });
        let index = json!({ "schemaVersion": 2, "manifests": [manifest] });
        files.file("index.json", 0o644, index.to_string());
        files.file(
            "oci-layout",
            0o644,
            json!({ "imageLayoutVersion": "1.0.0" }).to_string(),
        );
        let list = json!([{
            "Config": path(&config),
            "RepoTags": [self.name],
            "Layers": [path(&layer)],
        }]);
        files.file("manifest.json", 0o644, list.to_string());
        files.tar("", when.0)
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", super::hex(&Sha256::digest(bytes)))
}

/// Adds a blob under its digest, and returns its descriptor.
fn blob(files: &mut Tree, kind: &str, bytes: Vec<u8>) -> Value {
    let described = json!({
        "mediaType": kind,
        "digest": digest(&bytes),
        "size": bytes.len(),
    });
    files.file(&path(&described), 0o644, bytes);
    described
}

/// Path of the blob of a descriptor.
fn path(described: &Value) -> String {
    let digest = described["digest"].as_str().unwrap_or_default();
    format!("blobs/{}", digest.replace(':', "/"))
}

#[cfg(test)]
mod tests {
    use super::{Image, SourceTime, Tree};
    use serde_json::Value;
    use sha2::{Digest as _, Sha256};
    use std::collections::BTreeMap;
    use std::io::Read as _;

    /// The files of a tar file that [`Tree`] wrote.
    fn untar(mut bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        while bytes[0] != 0 {
            let text = |range: std::ops::Range<usize>| {
                let text = std::str::from_utf8(&bytes[range]).unwrap();
                text.trim_end_matches('\0').to_owned()
            };
            let size = usize::from_str_radix(&text(124..135), 8).unwrap();
            files.insert(text(0..100), bytes[512..512 + size].to_vec());
            bytes = &bytes[512 + size.next_multiple_of(512)..];
        }
        files
    }

    #[test]
    fn every_blob_is_named_by_its_digest_and_found_from_the_index() {
        let mut root = Tree::default();
        root.file("usr/bin/tool", 0o755, "program");
        let image = Image {
            name: "tool:1",
            machine: "amd64",
            program: "/usr/bin/tool",
            labels: &[("licenses", "MIT")],
            root: &root,
        };
        let bytes = image.bytes(SourceTime(5)).unwrap();
        assert_eq!(bytes, image.bytes(SourceTime(5)).unwrap());
        let files = untar(&bytes);
        let json = |name: &str| -> Value { serde_json::from_slice(&files[name]).unwrap() };
        let follow = |described: &Value| -> &Vec<u8> {
            let digest = described["digest"].as_str().unwrap();
            let blob = &files[&format!("blobs/{}", digest.replace(':', "/"))];
            assert_eq!(
                digest,
                format!("sha256:{}", crate::dist::hex(&Sha256::digest(blob)))
            );
            assert_eq!(described["size"], blob.len());
            blob
        };
        assert_eq!(json("oci-layout")["imageLayoutVersion"], "1.0.0");
        let manifest = follow(&json("index.json")["manifests"][0]);
        let manifest: Value = serde_json::from_slice(manifest).unwrap();
        let config: Value = serde_json::from_slice(follow(&manifest["config"])).unwrap();
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/tool");
        assert_eq!(
            config["config"]["Labels"]["org.opencontainers.image.licenses"],
            "MIT"
        );
        let mut layer = Vec::new();
        flate2::read::GzDecoder::new(&follow(&manifest["layers"][0])[..])
            .read_to_end(&mut layer)
            .unwrap();
        let unpacked = format!("sha256:{}", crate::dist::hex(&Sha256::digest(&layer)));
        assert_eq!(config["rootfs"]["diff_ids"][0], unpacked);
        assert_eq!(untar(&layer)["usr/bin/tool"], b"program");
        let docker = &json("manifest.json")[0];
        assert_eq!(docker["RepoTags"][0], "tool:1");
        for path in [&docker["Config"], &docker["Layers"][0]] {
            assert!(files.contains_key(path.as_str().unwrap()), "{path}");
        }
    }
}
