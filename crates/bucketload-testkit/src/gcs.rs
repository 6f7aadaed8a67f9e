//! A fake of Google Cloud Storage's JSON API that follows its reference to the extent that the driver needs:
//! buckets, media and resumable uploads, reads, metadata, listings, rewrite, compose and batches.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use crate::http::{HttpRequest, HttpResponse, decode, grouped, member, quoted, serve};

/// An object.
#[derive(Clone, Debug, Default)]
struct Object {
    data: Vec<u8>,
    metadata: BTreeMap<String, String>,
}

impl Object {
    /// Differs for other contents, and is never 0.
    fn generation(&self) -> u64 {
        let byte = |hash: u64, byte: &u8| hash.wrapping_mul(31).wrapping_add(u64::from(*byte));
        self.data.iter().fold(1, byte).max(1)
    }
}

#[derive(Debug, Default)]
struct State {
    buckets: BTreeMap<String, BTreeMap<String, Object>>,
    /// Open uploads: bucket, name, bytes.
    uploads: BTreeMap<String, (String, String, Vec<u8>)>,
    /// Number of rewrite requests. Every other one is answered with a token.
    rewrites: u32,
    requests: Vec<String>,
}

/// The service.
#[derive(Clone)]
pub struct FakeGcs {
    /// Address of the service.
    pub addr: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl FakeGcs {
    /// Starts the service; `allow` checks the `Authorization` field.
    pub fn start(allow: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        let addr = serve(move |request| {
            let state = &mut *shared.lock().unwrap();
            let who = request.header("authorization");
            state
                .requests
                .push(format!("{} {} {who}", request.method, request.path));
            match allow(who) {
                true => answer(state, request),
                false => refuse(401, "authError", "Invalid Credentials"),
            }
        });
        Self { addr, state }
    }

    /// Requests so far: method, path and authorization.
    pub fn requests(&self) -> Vec<String> {
        self.state.lock().unwrap().requests.clone()
    }

    /// Names of the objects in `bucket`.
    pub fn names(&self, bucket: &str) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let objects = state.buckets.get(bucket);
        objects.map_or_else(Vec::new, |o| o.keys().cloned().collect())
    }
}

fn refuse(status: u16, reason: &str, message: &str) -> HttpResponse {
    let text = format!(
        r#"{{"error":{{"code":{status},"message":{},"errors":[{{"reason":"{reason}"}}]}}}}"#,
        quoted(message)
    );
    HttpResponse::new(status, text).with("Content-Type", "application/json")
}

fn absent() -> HttpResponse {
    refuse(404, "notFound", "No such object or bucket")
}

fn answer(state: &mut State, request: &HttpRequest) -> HttpResponse {
    if request.path == "/batch/storage/v1" {
        return batch(state, request);
    }
    let (upload, path) = match request.path.strip_prefix("/upload") {
        Some(path) => (true, path),
        None => (false, request.path.as_str()),
    };
    let Some(rest) = path.strip_prefix("/storage/v1/b") else {
        return HttpResponse::new(404, "Not Found");
    };
    let parts: Vec<String> = rest.split('/').skip(1).map(decode).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match (request.method.as_str(), parts.as_slice()) {
        ("POST", []) => make_bucket(state, request),
        ("GET", []) => {
            let items = state.buckets.keys();
            let items: Vec<String> = items
                .map(|n| format!("{{\"name\":{}}}", quoted(n)))
                .collect();
            HttpResponse::new(200, format!("{{\"items\":[{}]}}", items.join(",")))
        }
        (method, [bucket]) => {
            let Some(objects) = state.buckets.get(*bucket) else {
                return absent();
            };
            match (method, objects.is_empty()) {
                ("DELETE", false) => refuse(409, "conflict", "The bucket is not empty"),
                ("DELETE", true) => {
                    state.buckets.remove(*bucket);
                    HttpResponse::new(204, "")
                }
                _ => HttpResponse::new(200, "{}"),
            }
        }
        (_, [bucket, ..]) if !state.buckets.contains_key(*bucket) => absent(),
        (method, [bucket, "o"]) if upload => uploaded(state, request, method, bucket),
        ("GET", [bucket, "o"]) => list(&state.buckets[*bucket], request),
        ("POST", [bucket, "o", name, "rewriteTo", "b", to, "o", target]) => {
            let Some(object) = state.buckets[*bucket].get(*name).cloned() else {
                return absent();
            };
            state.rewrites += 1;
            if state.rewrites % 2 == 1 {
                return HttpResponse::new(200, r#"{"done":false,"rewriteToken":"go/on="}"#);
            }
            if request.parameter("rewriteToken") != "go/on=" {
                return refuse(400, "invalid", "no token");
            }
            let bucket = state.buckets.get_mut(*to);
            bucket.map(|objects| objects.insert((*target).to_owned(), object));
            HttpResponse::new(200, r#"{"done":true}"#)
        }
        ("POST", [bucket, "o", name, "compose"]) => compose(state, request, bucket, name),
        (method, [bucket, "o", name]) => object(state, request, method, bucket, name),
        _ => HttpResponse::new(405, ""),
    }
}

fn make_bucket(state: &mut State, request: &HttpRequest) -> HttpResponse {
    let name = member(&String::from_utf8_lossy(&request.body), "name");
    match name {
        Some(_) if request.parameter("project").is_empty() => refuse(400, "required", "project"),
        Some(name) if state.buckets.contains_key(&name) => refuse(409, "conflict", "yours"),
        Some(name) => {
            state.buckets.insert(name, BTreeMap::new());
            HttpResponse::new(200, "{}")
        }
        None => refuse(400, "required", "name"),
    }
}

fn uploaded(state: &mut State, request: &HttpRequest, method: &str, bucket: &str) -> HttpResponse {
    let name = request.parameter("name").to_owned();
    if name.len() > 1024 {
        return refuse(400, "invalid", "The specified object name is not valid.");
    }
    let objects = state.buckets.get_mut(bucket).unwrap();
    match (method, request.parameter("uploadType")) {
        ("POST", "media") => {
            let generation = objects.get(&name).map_or(0, Object::generation);
            let wanted = request.parameter("ifGenerationMatch");
            if !wanted.is_empty() && wanted != generation.to_string() {
                return refuse(412, "conditionNotMet", "there is another one");
            }
            let mut data = request.body.clone();
            // Simulates a store that keeps less than was sent.
            if name == "short" {
                data.pop();
            }
            let text = format!(r#"{{"kind":"storage#object","size":"{}"}}"#, data.len());
            let object = Object {
                data,
                ..Object::default()
            };
            objects.insert(name, object);
            HttpResponse::new(200, text)
        }
        ("POST", "resumable") => {
            let id = format!("u{}", state.uploads.len());
            let url = format!(
                "http://{}/upload/storage/v1/b/{bucket}/o?uploadType=resumable&upload_id={id}",
                request.header("host")
            );
            let upload = (bucket.to_owned(), name, Vec::new());
            state.uploads.insert(id, upload);
            HttpResponse::new(200, "").with("Location", url)
        }
        ("DELETE", "resumable") => match state.uploads.remove(request.parameter("upload_id")) {
            Some(_) => HttpResponse::new(499, ""),
            None => absent(),
        },
        ("PUT", "resumable") => chunk(state, request),
        _ => refuse(400, "invalid", "uploadType"),
    }
}

/// Receives a chunk of a resumable upload.
fn chunk(state: &mut State, request: &HttpRequest) -> HttpResponse {
    let id = request.parameter("upload_id").to_owned();
    let Some((bucket, name, mut data)) = state.uploads.remove(&id) else {
        return absent();
    };
    let range = request.header("content-range");
    let total = range
        .rsplit('/')
        .next()
        .and_then(|n| n.parse::<usize>().ok());
    data.extend_from_slice(&request.body);
    if total == Some(data.len()) {
        let object = Object {
            data,
            ..Object::default()
        };
        state.buckets.get_mut(&bucket).unwrap().insert(name, object);
        return HttpResponse::new(200, r#"{"kind":"storage#object"}"#);
    }
    if !request.body.len().is_multiple_of(256 * 1024) {
        return refuse(400, "invalid", "no multiple of 256 KiB");
    }
    // Simulates a store that keeps less than was sent.
    if name.ends_with("forgetful") {
        data.truncate(request.body.len() / 2);
    }
    let have = data.len();
    state.uploads.insert(id, (bucket, name, data));
    HttpResponse::new(308, "").with("Range", format!("bytes=0-{}", have - 1))
}

fn compose(state: &mut State, request: &HttpRequest, bucket: &str, target: &str) -> HttpResponse {
    let text = String::from_utf8_lossy(&request.body).into_owned();
    let names: Vec<String> = text
        .split("{\"name\"")
        .skip(1)
        .filter_map(|rest| member(&format!("\"name\"{rest}"), "name"))
        .collect();
    let objects = state.buckets.get_mut(bucket).unwrap();
    if names.is_empty() || names.len() > 32 {
        return refuse(400, "invalid", "1 to 32 sources");
    }
    let mut data = Vec::new();
    for name in names {
        match objects.get(&name) {
            Some(object) => data.extend_from_slice(&object.data),
            None => return absent(),
        }
    }
    let object = Object {
        data,
        ..Object::default()
    };
    objects.insert(target.to_owned(), object);
    HttpResponse::new(200, "{}")
}

fn object(
    state: &mut State,
    request: &HttpRequest,
    method: &str,
    bucket: &str,
    name: &str,
) -> HttpResponse {
    let objects = state.buckets.get_mut(bucket).unwrap();
    let Some(object) = objects.get_mut(name) else {
        return match request.parameter("alt") {
            "media" => HttpResponse::new(404, format!("No such object: {bucket}/{name}")),
            _ => absent(),
        };
    };
    match method {
        "GET" if request.parameter("alt") == "media" => request
            .range_of(&object.data)
            .with("x-goog-generation", object.generation().to_string()),
        "GET" if request.parameter("fields") == "size" => HttpResponse::new(
            200,
            format!("{{\n  \"size\": \"{}\"\n}}", object.data.len()),
        ),
        "GET" => {
            let entries = object.metadata.iter();
            let entries: Vec<String> = entries
                .map(|(k, v)| format!("{}:{}", quoted(k), quoted(v)))
                .collect();
            HttpResponse::new(200, format!("{{\"metadata\":{{{}}}}}", entries.join(",")))
        }
        "PATCH" => {
            match member(&String::from_utf8_lossy(&request.body), "bucketload") {
                Some(value) => object.metadata.insert("bucketload".to_owned(), value),
                None => object.metadata.remove("bucketload"),
            };
            HttpResponse::new(200, "{}")
        }
        "DELETE" => {
            objects.remove(name);
            HttpResponse::new(204, "")
        }
        _ => HttpResponse::new(405, ""),
    }
}

/// Objects: list. The token of the next page is the last entry.
fn list(objects: &BTreeMap<String, Object>, request: &HttpRequest) -> HttpResponse {
    let (prefix, delimiter) = (request.parameter("prefix"), request.parameter("delimiter"));
    let most = request
        .parameter("maxResults")
        .parse()
        .unwrap_or(1000)
        .min(1000);
    let from = request.parameter("pageToken");
    let mut entries = grouped(objects.keys(), prefix, delimiter);
    entries.retain(|(name, _)| name.as_str() > from);
    let more = entries.len() > most;
    entries.truncate(most);
    let token = match (more, entries.last()) {
        (true, Some((last, _))) => format!("\"nextPageToken\":{},", quoted(last)),
        _ => String::new(),
    };
    let pick = |group: bool| entries.iter().filter(move |(_, g)| *g == group);
    let items: Vec<String> = pick(false)
        .map(|(name, _)| format!("{{\"name\":{},\"size\":\"1\"}}", quoted(name)))
        .collect();
    let groups: Vec<String> = pick(true).map(|(name, _)| quoted(name)).collect();
    let text = format!(
        "{{{token}\"prefixes\":[{}],\"items\":[{}]}}",
        groups.join(","),
        items.join(",")
    );
    HttpResponse::new(200, text)
}

/// Performs a batch: each part is a request, and each part of the answer an answer.
fn batch(state: &mut State, request: &HttpRequest) -> HttpResponse {
    let text = String::from_utf8_lossy(&request.body).into_owned();
    let mut out = String::new();
    for part in text.split("--==bucketload==\r\n").skip(1) {
        let Some((_, inner)) = part.split_once("\r\n\r\n") else {
            return refuse(400, "parseError", "no request");
        };
        let mut words = inner.split(' ');
        let inner = HttpRequest {
            method: words.next().unwrap_or_default().to_owned(),
            path: words.next().unwrap_or_default().to_owned(),
            ..HttpRequest::default()
        };
        let response = answer(state, &inner);
        out += "--b\r\nContent-Type: application/http\r\n\r\n";
        out += &response.head();
        out += &String::from_utf8_lossy(&response.body);
        out += "\r\n";
    }
    HttpResponse::new(200, out + "--b--\r\n").with("Content-Type", "multipart/mixed; boundary=b")
}
