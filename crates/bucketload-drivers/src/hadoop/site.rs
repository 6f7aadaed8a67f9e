//! Hadoop's own configuration files, to the extent that an HDFS client needs them.
//!
//! `core-site.xml` and `hdfs-site.xml` of `HADOOP_CONF_DIR` (else of `HADOOP_HOME/etc/hadoop`) are lists
//! of `property` elements with `name` and `value`; the later file takes precedence. A value may refer to
//! another as `${name}`. XML inclusion is not supported.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bucketload_s3::xml;

use crate::http::config::{ConfigError, Source};

/// The files, in reading order.
const FILES: [&str; 2] = ["core-site.xml", "hdfs-site.xml"];

/// The values of all files, each with the name of its file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Site {
    values: HashMap<String, (String, PathBuf)>,
}

impl Site {
    /// Reads the files in the directory that the environment names, if it names one.
    ///
    /// # Errors
    /// When the directory does not exist, or an existing file cannot be read.
    pub(crate) fn discover(env: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let (place, dir) = match (set("HADOOP_CONF_DIR"), set("HADOOP_HOME")) {
            (Some(dir), _) => ("HADOOP_CONF_DIR", PathBuf::from(dir)),
            (None, Some(home)) => ("HADOOP_HOME", Path::new(&home).join("etc/hadoop")),
            (None, None) => return Ok(Self::default()),
        };
        if !dir.is_dir() {
            return Err(ConfigError::new(
                place,
                format!("{} is not a directory", dir.display()),
                "set it to the directory of core-site.xml and hdfs-site.xml, or unset it",
            ));
        }
        let mut site = Self::default();
        for name in FILES {
            let path = dir.join(name);
            match std::fs::read(&path) {
                Ok(text) => site.add(&text, &path)?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    let remedy = "make it readable, or unset HADOOP_CONF_DIR and HADOOP_HOME";
                    return Err(ConfigError::new(
                        path.display().to_string(),
                        error.to_string(),
                        remedy,
                    ));
                }
            }
        }
        Ok(site)
    }

    fn add(&mut self, text: &[u8], path: &Path) -> Result<(), ConfigError> {
        let mut name = String::new();
        xml::leaves(text, |at, text| match *at {
            ["configuration", "property", "name"] => name = text.get().trim().to_owned(),
            ["configuration", "property", "value"] => {
                let value = (text.get().trim().to_owned(), path.to_owned());
                self.values.insert(std::mem::take(&mut name), value);
            }
            _ => {}
        })
        .map_err(|error| {
            let remedy = "write <configuration><property><name>…</name><value>…</value></property>";
            ConfigError::new(path.display().to_string(), error.to_string(), remedy)
        })
    }

    /// The value of `name` and its origin; `None` if it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<(String, Source)> {
        let (value, path) = self.values.get(name)?;
        let source = Source::File(format!("{} {name}", path.display()));
        let value = self.expand(value);
        (!value.is_empty()).then_some((value, source))
    }

    /// Replaces `${name}` with the value of `name`, up to 20 times; unknown names stay.
    fn expand(&self, value: &str) -> String {
        let mut out = value.to_owned();
        for _ in 0..20 {
            let Some(at) = out.find("${") else { break };
            let Some(end) = out[at..].find('}') else {
                break;
            };
            let Some((known, _)) = self.values.get(&out[at + 2..at + end]) else {
                break;
            };
            out.replace_range(at..=at + end, known);
        }
        out
    }

    /// The name nodes of the name service `service`, in order: the values of `KIND.SERVICE.NODE` for each
    /// node in `dfs.ha.namenodes.SERVICE`.
    pub(crate) fn name_nodes(&self, service: &str, kind: &str) -> Option<(Vec<String>, Source)> {
        let (nodes, source) = self.get(&format!("dfs.ha.namenodes.{service}"))?;
        let address = |node: &str| self.get(&format!("{kind}.{service}.{}", node.trim()));
        let found = nodes.split(',').filter_map(address);
        Some((found.map(|(address, _)| address).collect(), source))
    }
}

#[cfg(test)]
impl Site {
    /// The values of one file with `text`.
    pub(crate) fn of(text: &str) -> Self {
        let mut site = Self::default();
        site.add(text.as_bytes(), Path::new("hdfs-site.xml"))
            .unwrap();
        site
    }
}

#[cfg(test)]
mod tests {
    use super::Site;

    #[test]
    fn the_later_file_takes_precedence() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        let path = dir.path().display().to_string();
        let env = |name: &str| (name == "HADOOP_CONF_DIR").then(|| path.clone());
        assert!(Site::discover(&env).unwrap().get("fs.defaultFS").is_none());
        write(
            "core-site.xml",
            "<?xml version=\"1.0\"?><!-- c --><configuration><property><name> fs.defaultFS </name>\
             <value>hdfs://${host}:8020</value><final>true</final></property>\
             <property><name>host</name><value>a</value></property></configuration>",
        );
        write(
            "hdfs-site.xml",
            "<configuration><property><name>host</name><value>b&amp;c</value></property>\
             <property><name>loop</name><value>${loop}</value></property>\
             <property><name>none</name><value></value></property></configuration>",
        );
        let site = Site::discover(&env).unwrap();
        let (value, source) = site.get("fs.defaultFS").unwrap();
        assert_eq!(value, "hdfs://b&c:8020");
        assert!(source.to_string().contains("core-site.xml fs.defaultFS"));
        assert_eq!(site.get("loop").unwrap().0, "${loop}");
        assert!(site.get("none").is_none());
        write("hdfs-site.xml", "<configuration><property>");
        let error = Site::discover(&env).unwrap_err().to_string();
        assert!(error.contains("hdfs-site.xml"), "{error}");
    }

    #[test]
    fn name_services_list_their_name_nodes() {
        let site = Site::of(
            "<configuration><property><name>dfs.ha.namenodes.ns</name><value>n1, n2</value></property>\
             <property><name>dfs.namenode.http-address.ns.n1</name><value>a:1</value></property>\
             <property><name>dfs.namenode.http-address.ns.n2</name><value>b:2</value></property>\
             </configuration>",
        );
        let (nodes, _) = site.name_nodes("ns", "dfs.namenode.http-address").unwrap();
        assert_eq!(nodes, ["a:1", "b:2"]);
        assert!(site.name_nodes("other", "x").is_none());
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let env = |name: &str| (name == "HADOOP_CONF_DIR").then(|| "/nowhere/at/all".to_owned());
        let error = Site::discover(&env).unwrap_err();
        assert_eq!(error.place, "HADOOP_CONF_DIR");
        assert!(Site::discover(&|_| None).is_ok());
    }
}
