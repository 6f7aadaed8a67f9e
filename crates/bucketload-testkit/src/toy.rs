//! A server of the toy API (`bucketload_drivers::toy`), with buckets in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Mutex;

use crate::http::{Heard, Said, decode, serve};

type Bucket = BTreeMap<String, Vec<u8>>;

/// Starts the server on a port of its own; it ends with the process.
pub fn start() -> SocketAddr {
    let buckets = Mutex::new(BTreeMap::<String, Bucket>::new());
    serve(move |heard| answer(&mut buckets.lock().unwrap(), heard))
}

fn answer(buckets: &mut BTreeMap<String, Bucket>, heard: &Heard) -> Said {
    let path = heard.path.trim_start_matches('/');
    let (name, key) = path.split_once('/').unwrap_or((path, ""));
    let (name, key) = (decode(name), decode(key));
    if (heard.method.as_str(), key.is_empty()) == ("PUT", true) {
        return match buckets.contains_key(&name) {
            true => Said::new(409, "there is such a bucket"),
            false => {
                buckets.insert(name, Bucket::new());
                Said::new(204, "")
            }
        };
    }
    let Some(bucket) = buckets.get_mut(&name) else {
        return Said::new(404, "there is no such bucket");
    };
    match (heard.method.as_str(), key.is_empty()) {
        ("GET", true) => list(bucket, heard),
        ("DELETE", true) if !bucket.is_empty() => Said::new(409, "the bucket is not empty"),
        ("DELETE", true) => {
            buckets.remove(&name);
            Said::new(204, "")
        }
        ("PUT", false) if key.len() > 1024 => Said::new(400, "the key is too long"),
        ("PUT", false) => {
            bucket.insert(key, heard.body.clone());
            Said::new(204, "")
        }
        ("GET" | "HEAD", false) => match bucket.get(&key) {
            Some(data) => heard.range_of(data),
            None => Said::new(404, "there is no such object"),
        },
        ("DELETE", false) => {
            bucket.remove(&key);
            Said::new(204, "")
        }
        _ => Said::new(405, "there is no such request"),
    }
}

fn list(bucket: &Bucket, heard: &Heard) -> Said {
    let [prefix, delimiter, after] =
        ["prefix", "delimiter", "after"].map(|name| heard.parameter(name));
    let most = match heard.parameter("count").parse() {
        Ok(0) | Err(_) => 1000,
        Ok(count) => count,
    };
    let matching = bucket.keys().filter_map(|key| {
        let rest = key.strip_prefix(prefix)?;
        let end = rest.find(delimiter).filter(|_| !delimiter.is_empty());
        Some(match end {
            Some(end) => (
                key[..prefix.len() + end + delimiter.len()].to_owned(),
                "group",
            ),
            None => (key.clone(), "key"),
        })
    });
    let all: BTreeSet<(String, &str)> =
        matching.filter(|(name, _)| name.as_str() > after).collect();
    let mut page = String::new();
    for (name, kind) in all.iter().take(most) {
        page += &format!("{kind} {}\n", encoded(name));
    }
    if let Some((last, _)) = all
        .iter()
        .take(most)
        .next_back()
        .filter(|_| all.len() > most)
    {
        page += &format!("next {}\n", encoded(last));
    }
    Said::new(200, page)
}

/// Every byte but letters, digits and slashes percent-encoded.
fn encoded(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'/';
    let bytes = text.bytes();
    bytes
        .map(|b| match plain(b) {
            true => char::from(b).to_string(),
            false => format!("%{b:02X}"),
        })
        .collect()
}
