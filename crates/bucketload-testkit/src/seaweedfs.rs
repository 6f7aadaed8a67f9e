//! A fake of SeaweedFS that follows its wiki ("Filer Server API", "Master Server API", "Volume Server API") to
//! the extent that the driver needs: a filer over a tree in memory, and a master with volume servers.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use crate::http::{HttpRequest, HttpResponse, decode, listen, quoted};

/// The filer's tree: absolute paths, folders without a trailing slash.
type Tree = BTreeMap<String, Node>;

#[derive(Clone, Debug, Default)]
struct Node {
    folder: bool,
    data: Vec<u8>,
    tags: BTreeMap<String, String>,
}

/// State of master and volume servers.
#[derive(Debug, Default)]
struct Blobs {
    /// Files by volume and the rest of the file ID.
    files: BTreeMap<(u32, String), Vec<u8>>,
    /// Volumes of a collection.
    collections: BTreeMap<String, Vec<u32>>,
    assigned: u64,
    requests: Vec<String>,
}

/// The running services.
#[derive(Clone)]
pub struct FakeSeaweed {
    /// Address of the filer.
    pub filer: SocketAddr,
    /// Address of the master.
    pub master: SocketAddr,
    blobs: Arc<Mutex<Blobs>>,
}

/// Number of volume servers.
const SERVERS: usize = 3;

fn refuse(status: u16, text: &str) -> HttpResponse {
    HttpResponse::new(status, format!("{{\"error\":{}}}", quoted(text)))
}

impl FakeSeaweed {
    /// Starts filer, master and volume servers.
    pub fn start() -> Self {
        let any = || TcpListener::bind("127.0.0.1:0").unwrap();
        Self::start_at(any(), any())
    }

    /// Starts filer and master on the given listeners, and the volume servers.
    pub fn start_at(filer: TcpListener, master: TcpListener) -> Self {
        let tree = Mutex::new(Tree::new());
        let root = Node {
            folder: true,
            ..Node::default()
        };
        tree.lock().unwrap().insert("/buckets".to_owned(), root);
        let filer = listen(filer, move |request| {
            filer_answer(&mut tree.lock().unwrap(), request)
        });
        let blobs = Arc::<Mutex<Blobs>>::default();
        let servers: Vec<SocketAddr> = (0..SERVERS)
            .map(|server| {
                let blobs = Arc::clone(&blobs);
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                listen(listener, move |request| {
                    volume_answer(&mut blobs.lock().unwrap(), server, request)
                })
            })
            .collect();
        let shared = Arc::clone(&blobs);
        let master = listen(master, move |request| {
            master_answer(&mut shared.lock().unwrap(), &servers, request)
        });
        Self {
            filer,
            master,
            blobs,
        }
    }

    /// Requests to master and volume servers so far.
    pub fn requests(&self) -> Vec<String> {
        self.blobs.lock().unwrap().requests.clone()
    }

    /// Number of files on all volume servers.
    pub fn files(&self) -> usize {
        self.blobs.lock().unwrap().files.len()
    }
}

/// The volume server of `volume`.
fn home(volume: u32) -> usize {
    volume as usize % SERVERS
}

/// Answers a request to the master.
fn master_answer(blobs: &mut Blobs, servers: &[SocketAddr], request: &HttpRequest) -> HttpResponse {
    blobs
        .requests
        .push(format!("{} {}", request.method, request.path));
    let collection = request.parameter("collection").to_owned();
    match request.path.as_str() {
        "/dir/assign" => {
            let next = 5 + 4 * blobs.collections.len() as u32;
            let volumes = blobs.collections.entry(collection);
            let volumes = volumes.or_insert_with(|| (next..next + 4).collect());
            blobs.assigned += 1;
            let volume = volumes[blobs.assigned as usize % volumes.len()];
            let cookie = (blobs.assigned as u32).wrapping_mul(0x9e37_79b9);
            let key = format!("{:x}", blobs.assigned);
            let pad = if key.len() % 2 == 1 { "0" } else { "" };
            HttpResponse::new(
                200,
                format!(
                    r#"{{"fid":"{volume},{pad}{key}{cookie:08x}","url":"{0}","publicUrl":"{0}","count":1}}"#,
                    servers[home(volume)]
                ),
            )
        }
        "/dir/lookup" => match request.parameter("volumeId").parse::<u32>() {
            // The filer's files are in volumes 1 to 4.
            Ok(volume)
                if volume <= 4 || blobs.collections.values().any(|v| v.contains(&volume)) =>
            {
                HttpResponse::new(
                    200,
                    format!(
                        r#"{{"volumeOrFileId":"{volume}","locations":[{{"url":"{0}","publicUrl":"{0}"}}]}}"#,
                        servers[home(volume)]
                    ),
                )
            }
            _ => HttpResponse::new(
                404,
                r#"{"volumeOrFileId":"0","error":"volume id 0 not found"}"#,
            ),
        },
        "/dir/status" => {
            let layouts = blobs.collections.keys();
            let layouts: Vec<String> = layouts
                .map(|name| format!(r#"{{"collection":{},"replication":"000"}}"#, quoted(name)))
                .collect();
            let text = layouts.join(",");
            HttpResponse::new(
                200,
                format!(
                    r#"{{"Topology":{{"Free":5,"Max":9,"Layouts":[{text}]}},"Version":"fake"}}"#
                ),
            )
        }
        "/col/delete" => match blobs.collections.remove(&collection) {
            Some(volumes) => {
                blobs
                    .files
                    .retain(|(volume, _), _| !volumes.contains(volume));
                HttpResponse::new(204, "")
            }
            None => refuse(400, &format!("collection {collection} does not exist")),
        },
        _ => refuse(404, "no such page"),
    }
}

/// Answers a request to a volume server.
fn volume_answer(blobs: &mut Blobs, server: usize, request: &HttpRequest) -> HttpResponse {
    blobs
        .requests
        .push(format!("{} {}", request.method, request.path));
    let Some((volume, rest)) = request.path[1..].split_once(',') else {
        return refuse(400, "no file ID");
    };
    let Ok(volume) = volume.parse::<u32>() else {
        return refuse(400, "no volume");
    };
    if home(volume) != server {
        return refuse(404, "volume is elsewhere");
    }
    let name = (volume, rest.to_owned());
    match (request.method.as_str(), blobs.files.get(&name)) {
        ("PUT", _) => {
            let text = format!(r#"{{"size":{},"eTag":"0"}}"#, request.body.len());
            blobs.files.insert(name, request.body.clone());
            HttpResponse::new(201, text)
        }
        (_, None) => HttpResponse::new(404, ""),
        ("GET" | "HEAD", Some(data)) => request.range_of(data),
        ("DELETE", Some(data)) => {
            let text = format!(r#"{{"size":{}}}"#, data.len());
            blobs.files.remove(&name);
            HttpResponse::new(202, text)
        }
        _ => HttpResponse::new(405, ""),
    }
}

/// Answers a request to the filer.
fn filer_answer(tree: &mut Tree, request: &HttpRequest) -> HttpResponse {
    let whole = decode(&request.path);
    let path = whole.trim_end_matches('/').to_owned();
    let node = tree.get(&path).cloned();
    match (request.method.as_str(), node) {
        ("PUT", Some(_)) if request.has("tagging") => {
            let tags = request
                .headers
                .iter()
                .filter(|(n, _)| n.starts_with("seaweed-"));
            let tags: Vec<_> = tags.cloned().collect();
            let node = tree.entry(path).or_default();
            node.tags.extend(tags);
            HttpResponse::new(202, "")
        }
        ("DELETE", Some(_)) if request.has("tagging") => {
            tree.entry(path).or_default().tags.clear();
            HttpResponse::new(202, "")
        }
        (_, None) if request.has("tagging") => HttpResponse::new(404, ""),
        ("PUT", node) => write(tree, request, &path, node),
        ("POST", node) if request.has("mv.from") => rename(tree, request, path, node),
        ("POST", Some(_)) => refuse(500, &format!("dir {path} already exists")),
        ("POST", None) if whole.ends_with('/') => {
            let node = Node {
                folder: true,
                ..Node::default()
            };
            tree.insert(path, node);
            HttpResponse::new(201, "{}")
        }
        ("DELETE", None) => HttpResponse::new(204, ""),
        ("DELETE", Some(_)) => {
            let below = format!("{path}/");
            let full = tree.keys().any(|p| p.starts_with(&below));
            // Like a filer with `-recursiveDelete`: deletes everything unless the request forbids it.
            match (full, request.parameter("recursive")) {
                (true, "false") => refuse(500, &format!("fail to delete non-empty folder: {path}")),
                _ => {
                    tree.retain(|p, _| *p != path && !p.starts_with(&below));
                    HttpResponse::new(204, "")
                }
            }
        }
        (_, None) => HttpResponse::new(404, ""),
        ("GET", Some(_)) if request.has("metadata") => {
            // One chunk in a volume that depends on the path.
            let volume = 1 + path.len() % 4;
            let text = format!(r#"{{"chunks":[{{"file_id":"{volume},0163703763","size":1}}]}}"#);
            HttpResponse::new(200, text)
        }
        ("GET" | "HEAD", Some(node)) if node.folder => match request.header("accept") {
            "application/json" => list(tree, request, &path),
            _ => HttpResponse::new(200, "<html>a folder</html>"),
        },
        ("GET" | "HEAD", Some(node)) => {
            let response = request.range_of(&node.data);
            let tags = node.tags.values().cloned();
            tags.fold(response, |response, value| {
                response.with("Seaweed-Bucketload", value)
            })
        }
        _ => HttpResponse::new(405, ""),
    }
}

/// Creates the folders above `path`.
fn parents(tree: &mut Tree, path: &str) -> Result<(), HttpResponse> {
    for (at, _) in path.match_indices('/').skip(1) {
        let node = tree.entry(path[..at].to_owned()).or_insert_with(|| Node {
            folder: true,
            ..Node::default()
        });
        if !node.folder {
            return Err(refuse(409, &format!("{} is a file", &path[..at])));
        }
    }
    Ok(())
}

fn write(tree: &mut Tree, request: &HttpRequest, path: &str, node: Option<Node>) -> HttpResponse {
    if path.split('/').any(|name| name.len() > 255) {
        return HttpResponse::new(414, "");
    }
    if node.as_ref().is_some_and(|node| node.folder) {
        return refuse(
            500,
            &format!("existing {path} should be a file, it already exists"),
        );
    }
    if let Err(response) = parents(tree, path) {
        return response;
    }
    let mut node = node.unwrap_or_default();
    if request.parameter("op") != "append" {
        node = Node::default();
    }
    node.data.extend_from_slice(&request.body);
    // Like an old filer that keeps only the beginning.
    if path.ends_with("/bucket/short") {
        node.data.pop();
    }
    let text = format!(r#"{{"name":"x","size":{}}}"#, node.data.len());
    tree.insert(path.to_owned(), node);
    HttpResponse::new(201, text)
}

fn rename(
    tree: &mut Tree,
    request: &HttpRequest,
    path: String,
    node: Option<Node>,
) -> HttpResponse {
    let from = request.parameter("mv.from").to_owned();
    let Some(source) = tree.get(&from).cloned() else {
        let text = format!("failed to get src entry '{from}', err: filer: no entry is found");
        return refuse(400, &text);
    };
    if node.is_some_and(|node| node.folder) {
        return refuse(400, "cannot overwrite");
    }
    if let Err(response) = parents(tree, &path) {
        return response;
    }
    tree.remove(&from);
    tree.insert(path, source);
    HttpResponse::new(204, "")
}

/// A page of a folder, sorted by name.
fn list(tree: &Tree, request: &HttpRequest, path: &str) -> HttpResponse {
    let most: usize = request.parameter("limit").parse().unwrap_or(100);
    let start = request
        .parameter("namePattern")
        .trim_end_matches('*')
        .to_owned();
    let below = format!("{path}/");
    let mut entries: Vec<(&str, &Node)> = tree
        .iter()
        .filter_map(|(path, node)| Some((path.strip_prefix(&below)?, node)))
        .filter(|(name, _)| !name.contains('/') && name.starts_with(&start))
        .filter(|(name, _)| *name > request.parameter("lastFileName"))
        .collect();
    entries.sort_by_key(|(name, _)| *name);
    let more = entries.len() > most;
    entries.truncate(most);
    let shown: Vec<String> = entries
        .iter()
        .map(|(name, node)| {
            let mode: u64 = if node.folder { 1 << 31 | 0o755 } else { 0o660 };
            let full = quoted(&format!("{below}{name}"));
            format!(r#"{{"FullPath":{full},"Mtime":"2026-01-01T00:00:00Z","Mode":{mode},"FileSize":{}}}"#, node.data.len())
        })
        .collect();
    let shown = match shown.is_empty() {
        true => "null".to_owned(),
        false => format!("[{}]", shown.join(",")),
    };
    let text = format!(
        r#"{{"Path":{},"Entries":{shown},"Limit":{most},"ShouldDisplayLoadMore":{more}}}"#,
        quoted(path)
    );
    HttpResponse::new(200, text)
}
