//! A small Swift server for tests with auth v1 and Keystone v3; `store` has the containers and objects. It follows
//! the API's documentation and does not depend on the driver.

mod store;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::http::{HttpRequest, HttpResponse, decode, listen};
use store::{Containers, bulk_delete, on_container, on_object, page};

/// The server. It ends with the test's process.
pub struct FakeSwift {
    /// Address of the server.
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    address: SocketAddr,
    containers: Mutex<Containers>,
    /// Number of the valid token.
    token: AtomicU64,
    /// Announced lifetime of a token, in seconds.
    lifetime_s: AtomicU64,
    /// Whether the server refuses logins.
    locked: AtomicBool,
    /// Number of logins.
    sign_ins: AtomicU64,
}

pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: Vec<String>,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) fields: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// An answer, with the service's page if it is a refusal.
pub(crate) fn answer(status: u16) -> HttpResponse {
    let page = match status {
        400.. => format!("<html><h1>Status {status}</h1></html>"),
        _ => String::new(),
    };
    HttpResponse::new(status, page)
}

impl FakeSwift {
    /// Starts the server.
    pub fn start() -> Self {
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
        listen(listener, move |request| {
            let number = shared.sign_ins.load(Ordering::Relaxed);
            let answer = shared.answer(&Request::of(request));
            answer.with("X-Trans-Id", format!("tx{number}"))
        });
        Self { address, state }
    }

    /// Invalidates every token issued so far.
    pub fn revoke(&self) {
        self.state.token.fetch_add(1, Ordering::SeqCst);
    }

    /// Refuses logins from now on.
    pub fn lock(&self) {
        self.state.locked.store(true, Ordering::SeqCst);
    }

    /// Number of logins.
    pub fn sign_ins(&self) -> u64 {
        self.state.sign_ins.load(Ordering::SeqCst)
    }

    /// Names of the objects in `container`; `None` if it does not exist.
    pub fn names(&self, container: &str) -> Option<Vec<String>> {
        let all = self.state.containers.lock().unwrap();
        Some(all.get(container)?.1.keys().cloned().collect())
    }
}

impl Request {
    fn of(request: &HttpRequest) -> Self {
        Self {
            method: request.method.clone(),
            // Account, container, object: an object's name keeps its slashes.
            path: request.path.splitn(5, '/').skip(1).map(decode).collect(),
            query: request.query.iter().cloned().collect(),
            fields: request.headers.iter().cloned().collect(),
            body: request.body.clone(),
        }
    }
}

impl State {
    fn answer(&self, request: &Request) -> HttpResponse {
        let field = |name: &str| request.fields.get(name).map_or("", String::as_str);
        match request.path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["auth", "v1.0"] => {
                let right =
                    (field("x-auth-user"), field("x-auth-key")) == ("test:tester", "testing");
                self.grant(right, 200, |answer, token| {
                    answer
                        .with("X-Auth-Token", token)
                        .with("X-Storage-Url", self.url())
                        .with(
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
                    answer.with("X-Subject-Token", token).body(body.to_string())
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

    fn grant(
        &self,
        right: bool,
        status: u16,
        tell: impl Fn(HttpResponse, String) -> HttpResponse,
    ) -> HttpResponse {
        if !right || self.locked.load(Ordering::SeqCst) {
            return answer(401);
        }
        self.sign_ins.fetch_add(1, Ordering::SeqCst);
        tell(answer(status), self.token())
    }
}
