//! A server of the toy API (`bucketload_drivers::toy`), with buckets in memory.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;

use crate::http::{HttpRequest, HttpResponse, decode, grouped, serve};

type Bucket = BTreeMap<String, Vec<u8>>;

/// Starts the server on a free port; it ends with the process.
pub fn start() -> SocketAddr {
    let buckets = Mutex::new(BTreeMap::<String, Bucket>::new());
    serve(move |request| answer(&mut buckets.lock().unwrap(), request))
}

fn answer(buckets: &mut BTreeMap<String, Bucket>, request: &HttpRequest) -> HttpResponse {
    let path = request.path.trim_start_matches('/');
    let (name, key) = path.split_once('/').unwrap_or((path, ""));
    let (name, key) = (decode(name), decode(key));
    if (request.method.as_str(), key.is_empty()) == ("PUT", true) {
        return match buckets.contains_key(&name) {
            true => HttpResponse::new(409, "the bucket exists"),
            false => {
                buckets.insert(name, Bucket::new());
                HttpResponse::new(204, "")
            }
        };
    }
    let Some(bucket) = buckets.get_mut(&name) else {
        return HttpResponse::new(404, "the bucket does not exist");
    };
    match (request.method.as_str(), key.is_empty()) {
        ("GET", true) => list(bucket, request),
        ("DELETE", true) if !bucket.is_empty() => HttpResponse::new(409, "the bucket is not empty"),
        ("DELETE", true) => {
            buckets.remove(&name);
            HttpResponse::new(204, "")
        }
        ("PUT", false) if key.len() > 1024 => HttpResponse::new(400, "the key is too long"),
        ("PUT", false) => {
            bucket.insert(key, request.body.clone());
            HttpResponse::new(204, "")
        }
        ("GET" | "HEAD", false) => match bucket.get(&key) {
            Some(data) => request.range_of(data),
            None => HttpResponse::new(404, "the object does not exist"),
        },
        ("DELETE", false) => {
            bucket.remove(&key);
            HttpResponse::new(204, "")
        }
        _ => HttpResponse::new(405, "unknown request"),
    }
}

fn list(bucket: &Bucket, request: &HttpRequest) -> HttpResponse {
    let [prefix, delimiter, after] =
        ["prefix", "delimiter", "after"].map(|name| request.parameter(name));
    let most = match request.parameter("count").parse() {
        Ok(0) | Err(_) => 1000,
        Ok(count) => count,
    };
    let mut entries = grouped(bucket.keys(), prefix, delimiter);
    entries.retain(|(name, _)| name.as_str() > after);
    let more = entries.len() > most;
    entries.truncate(most);
    let mut page = String::new();
    for (name, is_group) in &entries {
        let kind = if *is_group { "group" } else { "key" };
        page += &format!("{kind} {}\n", encoded(name));
    }
    if let Some((last, _)) = entries.last().filter(|_| more) {
        page += &format!("next {}\n", encoded(last));
    }
    HttpResponse::new(200, page)
}

/// Percent-encodes every byte except letters, digits and slashes.
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
