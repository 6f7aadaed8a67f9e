//! The containers and objects of the test server: listings, static and dynamic large objects, copies,
//! bulk deletion.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Request, answer};
use crate::http::{HttpResponse, decode, grouped};

/// An object: its bytes or its manifest, and its metadata.
#[derive(Clone, Default)]
pub(crate) struct Object {
    body: Arc<Vec<u8>>,
    /// Paths of the segments of a static large object.
    segments: Vec<String>,
    /// Value of `X-Object-Manifest`.
    prefix: String,
    meta: Vec<(String, String)>,
}

pub(crate) type Containers = BTreeMap<String, (Vec<(String, String)>, BTreeMap<String, Object>)>;

fn md5(bytes: &[u8]) -> String {
    use md5::Digest as _;
    md5::Md5::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// Header fields of a request that are metadata.
fn meta_of(request: &Request) -> Vec<(String, String)> {
    let meta = request
        .fields
        .iter()
        .filter(|(name, _)| name.contains("-meta-"));
    meta.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

pub(crate) fn page(request: &Request, entries: impl Iterator<Item = Value>) -> HttpResponse {
    let limit = request
        .query
        .get("limit")
        .map_or(10_000, |n| n.parse().unwrap());
    let name = |entry: &Value| {
        let name = entry.get("name").or_else(|| entry.get("subdir"));
        name.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let marker = request.query.get("marker").cloned().unwrap_or_default();
    let end = request.query.get("end_marker").cloned().unwrap_or_default();
    let inside = |entry: &Value| name(entry) > marker && (end.is_empty() || name(entry) < end);
    let list: Vec<Value> = entries.filter(inside).take(limit).collect();
    answer(200).body(Value::Array(list).to_string())
}

pub(crate) fn on_container(
    all: &mut Containers,
    container: &str,
    request: &Request,
) -> HttpResponse {
    let known = all.contains_key(container);
    match request.method.as_str() {
        "PUT" => {
            all.entry(container.to_owned())
                .or_default()
                .0
                .extend(meta_of(request));
            answer(if known { 202 } else { 201 })
        }
        _ if !known => answer(404),
        "HEAD" => all[container]
            .0
            .iter()
            .fold(answer(204), |a, (n, v)| a.with(n, v)),
        "DELETE" if !all[container].1.is_empty() => answer(409),
        "DELETE" => {
            all.remove(container);
            answer(204)
        }
        _ => {
            let prefix = request.query.get("prefix").cloned().unwrap_or_default();
            let delimiter = request.query.get("delimiter").cloned().unwrap_or_default();
            let entries = grouped(all[container].1.keys(), &prefix, &delimiter);
            let entries = entries.iter().map(|(name, is_group)| match is_group {
                true => json!({"subdir": name}),
                false => json!({"name": name, "bytes": 0}),
            });
            page(request, entries)
        }
    }
}

/// The bytes of an object, or of its segments if it is a large object.
fn content(all: &Containers, object: &Object) -> Vec<u8> {
    let of = |path: &str| {
        let (container, name) = path.trim_start_matches('/').split_once('/').unwrap();
        all[container].1[name].body.to_vec()
    };
    if !object.segments.is_empty() {
        return object.segments.iter().flat_map(|path| of(path)).collect();
    }
    match object.prefix.split_once('/') {
        None => object.body.to_vec(),
        Some((container, prefix)) => {
            let prefix = decode(prefix);
            let names = all[container]
                .1
                .iter()
                .filter(|(name, _)| name.starts_with(&prefix));
            names
                .flat_map(|(_, segment)| segment.body.to_vec())
                .collect()
        }
    }
}

pub(crate) fn on_object(
    all: &mut Containers,
    container: &str,
    name: &str,
    request: &Request,
) -> HttpResponse {
    if !all.contains_key(container) {
        return answer(404);
    }
    let field = |name: &str| request.fields.get(name).map_or("", String::as_str);
    let known = all[container].1.get(name).cloned();
    match (request.method.as_str(), known) {
        ("PUT", known) => {
            if name.len() > 1024 {
                return answer(400);
            }
            if field("if-none-match") == "*" && known.is_some() {
                return answer(412);
            }
            let mut object = Object {
                body: Arc::new(request.body.clone()),
                prefix: field("x-object-manifest").to_owned(),
                meta: meta_of(request),
                ..Object::default()
            };
            if let Some(source) = request.fields.get("x-copy-from") {
                let (container, name) = source.trim_start_matches('/').split_once('/').unwrap();
                let Some(source) = all.get(container).and_then(|c| c.1.get(&decode(name))) else {
                    return answer(404);
                };
                object.body = Arc::new(content(all, source));
            }
            if request
                .query
                .get("multipart-manifest")
                .is_some_and(|v| v == "put")
            {
                let manifest: Value = serde_json::from_slice(&request.body).unwrap();
                for segment in manifest.as_array().unwrap() {
                    let path = segment["path"].as_str().unwrap();
                    let (container, name) = path.trim_start_matches('/').split_once('/').unwrap();
                    let there = all.get(container).and_then(|c| c.1.get(name));
                    let right = there.is_some_and(|there| {
                        segment["etag"] == md5(&there.body)
                            && segment["size_bytes"] == there.body.len()
                    });
                    if !right {
                        return answer(400);
                    }
                    object.segments.push(path.to_owned());
                }
            }
            let etag = md5(&object.body);
            if !matches!(field("etag"), "") && field("etag") != etag {
                return answer(422);
            }
            all.get_mut(container)
                .unwrap()
                .1
                .insert(name.to_owned(), object);
            answer(201).with("ETag", etag)
        }
        (_, None) => answer(404),
        ("DELETE", _) => {
            all.get_mut(container).unwrap().1.remove(name);
            answer(204)
        }
        (_, Some(object)) => {
            let bytes = content(all, &object);
            let told = object
                .meta
                .iter()
                .fold(answer(200), |a, (n, v)| a.with(n, v));
            let Some((from, to)) = field("range")
                .strip_prefix("bytes=")
                .and_then(|r| r.split_once('-'))
            else {
                return told.body(bytes);
            };
            let from: usize = from.parse().unwrap();
            let to = to
                .parse::<usize>()
                .unwrap()
                .min(bytes.len().saturating_sub(1));
            if from >= bytes.len() {
                return answer(416);
            }
            let range = format!("bytes {from}-{to}/{}", bytes.len());
            HttpResponse {
                status: 206,
                ..told
            }
            .with("Content-Range", range)
            .body(&bytes[from..=to])
        }
    }
}

pub(crate) fn bulk_delete(all: &mut Containers, body: &[u8]) -> HttpResponse {
    let (mut deleted, mut absent) = (0, 0);
    for line in std::str::from_utf8(body).unwrap().lines() {
        let path = line.trim_start_matches('/').split_once('/');
        let (container, name) = path.map(|(c, n)| (decode(c), decode(n))).unwrap();
        match all.get_mut(&container).and_then(|c| c.1.remove(&name)) {
            Some(_) => deleted += 1,
            None => absent += 1,
        }
    }
    let told = json!({"Number Deleted": deleted, "Number Not Found": absent,
        "Response Status": "200 OK", "Response Body": "", "Errors": []});
    // Swift sends blanks while it works.
    answer(200).body(format!("  {told}"))
}
