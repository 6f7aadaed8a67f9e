//! A small Swift server for tests: connections, auth v1 and Keystone v3; `store` has the containers and
//! objects. It knows nothing of the driver: it follows the API's documents.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::store::{Containers, bulk_delete, on_container, on_object, page};

/// The server. It ends with the test's process.
pub(crate) struct FakeSwift {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

struct State {
    address: SocketAddr,
    containers: Mutex<Containers>,
    /// Number of the token that is valid.
    token: AtomicU64,
    /// Seconds that a token is said to live.
    lifetime_s: AtomicU64,
    /// Whether signing in is refused.
    locked: AtomicBool,
    /// Times that somebody signed in.
    sign_ins: AtomicU64,
}

pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: Vec<String>,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) fields: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Length that HEAD tells.
    pub(crate) length: Option<usize>,
}

pub(crate) fn answer(status: u16) -> Answer {
    Answer {
        status,
        fields: Vec::new(),
        body: match status {
            400.. => format!("<html><h1>Status {status}</h1></html>").into_bytes(),
            _ => Vec::new(),
        },
        length: None,
    }
}

impl Answer {
    pub(crate) fn field(mut self, name: &str, value: impl Into<String>) -> Self {
        self.fields.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }
}

impl FakeSwift {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            address,
            containers: Mutex::default(),
            token: AtomicU64::new(1),
            lifetime_s: AtomicU64::new(3600),
            locked: AtomicBool::new(false),
            sign_ins: AtomicU64::new(0),
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || drop(serve(&state, stream)));
            }
        });
        Self { address, state }
    }

    /// Makes every token that was given so far invalid.
    pub(crate) fn revoke(&self) {
        self.state.token.fetch_add(1, Ordering::SeqCst);
    }

    /// Refuses to sign anybody in from now on.
    pub(crate) fn lock(&self) {
        self.state.locked.store(true, Ordering::SeqCst);
    }

    pub(crate) fn sign_ins(&self) -> u64 {
        self.state.sign_ins.load(Ordering::SeqCst)
    }

    /// Names of the objects in `container`; `None` when there is no such container.
    pub(crate) fn names(&self, container: &str) -> Option<Vec<String>> {
        let all = self.state.containers.lock().unwrap();
        Some(all.get(container)?.1.keys().cloned().collect())
    }
}

fn serve(state: &State, stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(stream.try_clone()?);
    let mut output = stream;
    while let Some(request) = read(&mut input)? {
        let number = state.sign_ins.load(Ordering::Relaxed);
        let answer = state
            .answer(&request)
            .field("X-Trans-Id", format!("tx{number}"));
        let mut head = format!("HTTP/1.1 {} Text\r\n", answer.status);
        for (name, value) in &answer.fields {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        let length = answer.length.unwrap_or(answer.body.len());
        write!(head, "Content-Length: {length}\r\n\r\n").unwrap();
        let mut bytes = head.into_bytes();
        if request.method != "HEAD" {
            bytes.extend_from_slice(&answer.body);
        }
        output.write_all(&bytes)?;
    }
    Ok(())
}

fn read(input: &mut impl BufRead) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default().to_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut fields = BTreeMap::new();
    loop {
        let mut line = String::new();
        input.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        fields.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = fields
        .get("content-length")
        .map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    };
    Ok(Some(Request {
        method,
        // Account, container, object: an object's name keeps its slashes.
        path: path.splitn(5, '/').skip(1).map(decode).collect(),
        query: query
            .split('&')
            .filter(|q| !q.is_empty())
            .map(pair)
            .collect(),
        fields,
        body,
    }))
}

pub(crate) fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(&after[..2]).unwrap();
            bytes.push(u8::from_str_radix(digits, 16).unwrap());
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).unwrap()
}

impl State {
    fn answer(&self, request: &Request) -> Answer {
        let field = |name: &str| request.fields.get(name).map_or("", String::as_str);
        match request.path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["auth", "v1.0"] => {
                let right =
                    (field("x-auth-user"), field("x-auth-key")) == ("test:tester", "testing");
                self.grant(right, 200, |answer, token| {
                    answer
                        .field("X-Auth-Token", token)
                        .field("X-Storage-Url", self.url())
                        .field(
                            "X-Auth-Token-Expires",
                            self.lifetime_s.load(Ordering::SeqCst).to_string(),
                        )
                })
            }
            ["v3", "auth", "tokens"] => {
                let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
                let user = &asked["auth"]["identity"]["password"]["user"];
                let right = user["name"] == "alice"
                    && user["password"] == "secret"
                    && asked["auth"]["scope"]["project"]["name"] == "bench";
                self.grant(right, 201, |answer, token| {
                    let catalog = json!([{"type": "object-store", "endpoints": [
                        {"interface": "public", "region": "one", "url": self.url()}]}]);
                    let body = json!({"token": {"expires_at": "2999-01-01T00:00:00.000000Z", "catalog": catalog}});
                    answer.field("X-Subject-Token", token).body(body.to_string())
                })
            }
            ["v1", "AUTH_test", ref rest @ ..] => {
                if field("x-auth-token") != self.token() {
                    return answer(401);
                }
                let mut all = self
                    .containers
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                match *rest {
                    [] if request.query.contains_key("bulk-delete") => {
                        bulk_delete(&mut all, &request.body)
                    }
                    [] => page(request, all.keys().map(|name| json!({"name": name}))),
                    [container] => on_container(&mut all, container, request),
                    [container, object] => on_object(&mut all, container, object, request),
                    _ => answer(400),
                }
            }
            _ => answer(404),
        }
    }

    fn url(&self) -> String {
        format!("http://{}/v1/AUTH_test", self.address)
    }

    fn token(&self) -> String {
        format!("AUTH_tk{}", self.token.load(Ordering::SeqCst))
    }

    fn grant(&self, right: bool, status: u16, tell: impl Fn(Answer, String) -> Answer) -> Answer {
        if !right || self.locked.load(Ordering::SeqCst) {
            return answer(401);
        }
        self.sign_ins.fetch_add(1, Ordering::SeqCst);
        tell(answer(status), self.token())
    }
}
