//! A name node and a data node in memory, to the extent that the driver needs. They behave like Hadoop 3.4:
//! `100 Continue` before every write, a connection per operation at the data node, exceptions as JSON with
//! status 403.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::http::decode;

/// How the cluster behaves; the default is a healthy cluster.
#[derive(Clone, Debug, Default)]
pub struct Behaviour {
    /// Redirect with 307 instead of JSON, like name nodes before 3.0.
    pub redirect: bool,
    /// Answer every request with a `StandbyException`.
    pub standby: bool,
    /// Refuse writes.
    pub safe_mode: bool,
    /// Serve files longer than this as empty.
    pub empty_above: Option<usize>,
    /// Redirect to this URL instead of the data node.
    pub send_to: Option<String>,
}

/// Paths and their content; `None` for directories.
pub type Tree = BTreeMap<String, Option<Vec<u8>>>;

/// State that both servers share.
pub struct State {
    /// The files.
    pub tree: Mutex<Tree>,
    /// The current behaviour.
    pub behaviour: Mutex<Behaviour>,
    /// Request lines that the name node received.
    pub requests: Mutex<Vec<String>>,
    data: String,
}

/// The running servers. Their threads end with the process.
pub struct FakeWebHdfs {
    /// State to set and inspect during a test.
    pub state: Arc<State>,
    /// `http://127.0.0.1:PORT` of the name node.
    pub url: String,
}

struct Request {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    length: usize,
}

impl Request {
    fn get(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }
}

impl FakeWebHdfs {
    /// Starts both servers.
    pub fn start(behaviour: Behaviour) -> Self {
        let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (name, data) = (bind(), bind());
        let url = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State {
            tree: Mutex::new(BTreeMap::from([("/".to_owned(), None)])),
            behaviour: Mutex::new(behaviour),
            requests: Mutex::default(),
            data: url(&data),
        });
        let fake = Self {
            url: url(&name),
            state: Arc::clone(&state),
        };
        serve(name, Arc::clone(&state), name_node);
        serve(data, state, data_node);
        fake
    }
}

fn serve(listener: TcpListener, state: Arc<State>, answer: fn(&State, TcpStream)) {
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let state = Arc::clone(&state);
            std::thread::spawn(move || answer(&state, stream));
        }
    });
}

/// Reads a head; `None` at the end of the stream.
fn read_head(reader: &mut BufReader<TcpStream>) -> Option<(Request, String)> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let path = decode(path.strip_prefix("/webhdfs/v1")?);
    let query = query.split('&').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        Some((name.to_owned(), decode(value)))
    });
    let mut request = Request {
        method,
        path: if path.is_empty() {
            "/".to_owned()
        } else {
            path
        },
        query: query.collect(),
        length: 0,
    };
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok()?;
        let field = field.trim().to_ascii_lowercase();
        if field.is_empty() {
            return Some((request, line));
        }
        if let Some(length) = field.strip_prefix("content-length:") {
            request.length = length.trim().parse().unwrap();
        }
    }
}

fn send(stream: &mut impl Write, status: u16, fields: &str, body: &str) {
    let length = body.len();
    let text = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{fields}\r\n{body}");
    let _ = stream.write_all(text.as_bytes());
}

type Answer = Result<String, (u16, &'static str, String)>;

fn exception((status, class, message): (u16, &'static str, String)) -> (u16, String) {
    let name = class.rsplit('.').next().unwrap();
    let document = serde_json::json!({"RemoteException":
        {"exception": name, "javaClassName": class, "message": message}});
    (status, document.to_string())
}

fn name_node(state: &State, mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some((request, line)) = read_head(&mut reader) {
        state.requests.lock().unwrap().push(line.trim().to_owned());
        let op = request.get("op").to_owned();
        match perform(state, &request) {
            Ok(body) if body.starts_with("http") && !state.behaviour.lock().unwrap().redirect => {
                let document = serde_json::json!({ "Location": body }).to_string();
                send(&mut stream, 200, "", &document);
            }
            Ok(location) if location.starts_with("http") => {
                send(&mut stream, 307, &format!("Location: {location}\r\n"), "");
            }
            Ok(body) => send(&mut stream, 200, "", &body),
            Err((status, ..)) if request.method == "HEAD" => send(&mut stream, status, "", ""),
            Err(error) => {
                let (status, body) = exception(error);
                send(
                    &mut stream,
                    status,
                    "Content-Type: application/json\r\n",
                    &body,
                );
            }
        }
        // Only who looks whether somebody answers names no operation.
        let looks = request.method == "HEAD";
        assert!(looks || !op.is_empty(), "a request without an operation");
    }
}

fn absent(path: &str) -> (u16, &'static str, String) {
    let message = format!("File does not exist: {path}");
    (404, "java.io.FileNotFoundException", message)
}

fn status_of(name: &str, content: &Option<Vec<u8>>) -> serde_json::Value {
    serde_json::json!({"pathSuffix": name, "length": content.as_ref().map_or(0, Vec::len),
        "type": if content.is_some() { "FILE" } else { "DIRECTORY" }})
}

/// Names in a directory, in the order of a name node.
fn names(tree: &Tree, dir: &str) -> Vec<String> {
    let front = if dir == "/" {
        "/".to_owned()
    } else {
        format!("{dir}/")
    };
    let inside = tree.keys().filter_map(|path| path.strip_prefix(&front));
    let mut names: Vec<String> = inside
        .filter(|rest| !rest.is_empty() && !rest.contains('/'))
        .map(str::to_owned)
        .collect();
    names.sort_by_key(|name| name.bytes().map(|b| b as i8).collect::<Vec<_>>());
    names
}

fn make_dirs(tree: &mut Tree, path: &str) -> Result<(), (u16, &'static str, String)> {
    let mut at = String::new();
    for segment in path.split('/').skip(1).filter(|s| !s.is_empty()) {
        at = format!("{at}/{segment}");
        if let Some(Some(_)) = tree.insert(at.clone(), tree.get(&at).cloned().flatten()) {
            let class = "org.apache.hadoop.fs.ParentNotDirectoryException";
            return Err((403, class, format!("{at} (is not a directory)")));
        }
    }
    Ok(())
}

fn perform(state: &State, request: &Request) -> Answer {
    let behaviour = state.behaviour.lock().unwrap().clone();
    if behaviour.standby {
        let class = "org.apache.hadoop.ipc.StandbyException";
        return Err((
            403,
            class,
            "Operation category READ is not supported".to_owned(),
        ));
    }
    let mut tree = state.tree.lock().unwrap();
    let path = request.path.as_str();
    let op = request.get("op");
    if behaviour.safe_mode && !matches!(op, "GETFILESTATUS" | "LISTSTATUS_BATCH") {
        let class = "org.apache.hadoop.hdfs.server.namenode.SafeModeException";
        return Err((403, class, "Name node is in safe mode.".to_owned()));
    }
    if path.split('/').any(|segment| segment.contains(':')) {
        let class = "org.apache.hadoop.fs.InvalidPathException";
        return Err((400, class, format!("Invalid path name {path}")));
    }
    let there = tree.get(path).cloned();
    let to_data = || {
        let front = behaviour
            .send_to
            .clone()
            .unwrap_or_else(|| state.data.clone());
        let encode = |text: &str| {
            let byte = |b: u8| match b {
                b'/' | b'-' | b'.' | b'_' => char::from(b).to_string(),
                b if b.is_ascii_alphanumeric() => char::from(b).to_string(),
                b => format!("%{b:02X}"),
            };
            text.bytes().map(byte).collect::<String>()
        };
        let query = request
            .query
            .iter()
            .map(|(k, v)| format!("{k}={}", encode(v)));
        let query: Vec<String> = query.collect();
        Ok(format!(
            "{front}/webhdfs/v1{}?{}",
            encode(path),
            query.join("&")
        ))
    };
    match (op, request.method.as_str()) {
        ("GETFILESTATUS", "GET") => {
            let content = there.ok_or_else(|| absent(path))?;
            Ok(serde_json::json!({"FileStatus": status_of("", &content)}).to_string())
        }
        ("LISTSTATUS_BATCH", "GET") => {
            let after = request.get("startAfter").to_owned();
            let order = |s: &str| s.bytes().map(|b| b as i8).collect::<Vec<_>>();
            let all = match there.ok_or_else(|| absent(path))? {
                None => names(&tree, path),
                Some(_) => vec![String::new()],
            };
            let left: Vec<&String> = all
                .iter()
                .filter(|name| after.is_empty() || order(name) > order(&after))
                .collect();
            let front = path.trim_end_matches('/');
            let page: Vec<_> = left
                .iter()
                .take(4)
                .map(|name| {
                    let full = format!("{front}/{name}");
                    status_of(name, &tree[full.trim_end_matches('/')])
                })
                .collect();
            let remaining = left.len() - page.len();
            Ok(
                serde_json::json!({"DirectoryListing": {"remainingEntries": remaining,
                "partialListing": {"FileStatuses": {"FileStatus": page}}}})
                .to_string(),
            )
        }
        ("GETSTATUS", "GET") => Ok(serde_json::json!({
            "FsStatus": {"used": 4_000_u64, "remaining": 6_u64 << 30, "capacity": 10_u64 << 30}
        })
        .to_string()),
        // No page of a name node.
        ("", "HEAD") => Err(absent(path)),
        ("MKDIRS", "PUT") => {
            make_dirs(&mut tree, path)?;
            Ok(serde_json::json!({"boolean": true}).to_string())
        }
        ("DELETE", "DELETE") => {
            if !names(&tree, path).is_empty() {
                let class = "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException";
                return Err((403, class, format!("{path} is non empty")));
            }
            let gone = tree.remove(path).is_some();
            Ok(serde_json::json!({"boolean": gone}).to_string())
        }
        ("RENAME", "PUT") => {
            let content = there.ok_or_else(|| {
                let message = format!("rename source {path} is not found.");
                (404, "java.io.FileNotFoundException", message)
            })?;
            let target = request.get("destination").to_owned();
            let parent = target.rsplit_once('/').unwrap().0.to_owned();
            if !tree.contains_key(&parent) {
                let message = format!("rename destination parent {parent} not found.");
                return Err((404, "java.io.FileNotFoundException", message));
            }
            tree.remove(path);
            tree.insert(target, content);
            Ok(String::new())
        }
        ("SETTIMES", "PUT") => match there {
            Some(_) => Ok(String::new()),
            None => Err(absent(path)),
        },
        ("GETFILEBLOCKLOCATIONS", "GET") => {
            there.ok_or_else(|| absent(path))?;
            Ok(serde_json::json!({"BlockLocations": {"BlockLocation": [
                {"names": ["127.0.0.1:1", "127.0.0.1:2"]}, {"names": ["127.0.0.1:2"]}]}})
            .to_string())
        }
        ("OPEN", "GET") => match there {
            Some(Some(content)) => {
                let offset: usize = request.get("offset").parse().unwrap_or(0);
                if offset >= content.len() && offset > 0 {
                    let message =
                        format!("Offset={offset} out of the range [0, {})", content.len());
                    return Err((403, "java.io.IOException", message));
                }
                to_data()
            }
            _ => Err(absent(path)),
        },
        ("APPEND", "POST") if there.is_none() => Err(absent(path)),
        ("CREATE", "PUT") | ("APPEND", "POST") => to_data(),
        (op, method) => panic!("{method} {op} is no operation"),
    }
}

fn data_node(state: &State, mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let Some((request, _)) = read_head(&mut reader) else {
        return;
    };
    let behaviour = state.behaviour.lock().unwrap().clone();
    let close = "Connection: close\r\n";
    if request.method == "GET" {
        let content = state.tree.lock().unwrap()[&request.path].clone().unwrap();
        let from: usize = request.get("offset").parse().unwrap_or(0);
        let most: usize = request.get("length").parse().unwrap_or(usize::MAX);
        let part = match behaviour.empty_above {
            Some(most) if content.len() > most => &[][..],
            _ => &content[from..content.len().min(from.saturating_add(most))],
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{close}\r\n",
            part.len()
        );
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(part);
        return;
    }
    let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
    let path = request.path.clone();
    {
        let mut tree = state.tree.lock().unwrap();
        let parent = path.rsplit_once('/').unwrap().0.to_owned();
        let exists = matches!(tree.get(&path), Some(Some(_)));
        let refusal = if request.get("overwrite") == "false" && exists {
            let class = "org.apache.hadoop.fs.FileAlreadyExistsException";
            Some((403, class, format!("{path} for client 1 already exists")))
        } else {
            make_dirs(&mut tree, &parent).err()
        };
        if let Some(refusal) = refusal {
            let (status, body) = exception(refusal);
            send(&mut stream, status, close, &body);
            // Read a body that was sent already, so the answer is not lost with a reset.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = std::io::copy(&mut reader, &mut std::io::sink());
            return;
        }
        if request.method == "PUT" {
            tree.insert(path.clone(), Some(Vec::new()));
        }
    }
    let mut body = vec![0; request.length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    if let Some(Some(content)) = state.tree.lock().unwrap().get_mut(&path) {
        content.extend_from_slice(&body);
    }
    let status = if request.method == "PUT" { 201 } else { 200 };
    send(&mut stream, status, close, "");
}
