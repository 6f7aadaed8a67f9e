//! A blocking client on a raw socket, and servers for the tests.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use bucketload_server::{KeyPair, Server, ServerConfig, ServerHandle};
use bucketload_store::{MemoryOptions, MemoryStore, Store};

use super::signer::{Signer, encode, sha256_hex};

pub(crate) const KEY: &str = "benchaccess";
pub(crate) const SECRET: &str = "benchsecretkey0001";

pub(crate) fn config() -> ServerConfig {
    ServerConfig::new(KeyPair {
        access_key: KEY.into(),
        secret_key: SECRET.into(),
    })
}

pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(MemoryOptions::default()))
}

/// A server over a memory store with the bucket `bucket`, and a client.
pub(crate) fn start() -> (ServerHandle, Client) {
    start_with(config())
}

pub(crate) fn start_with(config: ServerConfig) -> (ServerHandle, Client) {
    let store = memory();
    store.create_bucket("bucket").unwrap();
    let server = Server::start(config, store).unwrap();
    let client = Client::new(&server);
    (server, client)
}

/// How a request is authorised and how the signature covers its payload.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Auth {
    Unsigned,
    Signed,
    Anonymous,
}

pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) auth: Auth,
    pub(crate) host: String,
    /// Whether to add a Content-Length.
    pub(crate) length: bool,
}

pub(crate) fn req(method: &str, path: &str) -> Request {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    Request {
        method: method.into(),
        path: path.into(),
        query: query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(n, v)| (n.to_owned(), v.to_owned()))
            .collect(),
        headers: Vec::new(),
        body: Vec::new(),
        auth: Auth::Unsigned,
        host: "localhost".into(),
        length: method == "PUT" || method == "POST",
    }
}

impl Request {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self.length = true;
        self
    }

    pub(crate) fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// The request target as sent.
    pub(crate) fn target(&self) -> String {
        let pairs: Vec<_> = self
            .query
            .iter()
            .map(|(n, v)| format!("{}={}", encode(n, false), encode(v, false)))
            .collect();
        let mark = if pairs.is_empty() { "" } else { "?" };
        format!("{}{mark}{}", encode(&self.path, true), pairs.join("&"))
    }

    /// Head and body, signed by `signer`.
    pub(crate) fn render(&self, signer: &Signer) -> Vec<u8> {
        let mut headers = self.headers.clone();
        headers.push(("Host".into(), self.host.clone()));
        if self.auth != Auth::Anonymous {
            let given = headers
                .iter()
                .find(|(n, _)| n == "x-amz-content-sha256")
                .map(|(_, v)| v.clone());
            let payload = given.clone().unwrap_or_else(|| match self.auth {
                Auth::Signed => sha256_hex(&self.body),
                _ => "UNSIGNED-PAYLOAD".into(),
            });
            if given.is_none() {
                headers.push(("x-amz-content-sha256".into(), payload.clone()));
            }
            headers.push(("x-amz-date".into(), signer.date.clone()));
            let (names, signature) =
                signer.signature(&self.method, &self.path, &self.query, &headers, &payload);
            let value = format!(
                "AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={names}, Signature={signature}",
                signer.key,
                signer.scope()
            );
            headers.push(("Authorization".into(), value));
        }
        if self.length {
            headers.push(("Content-Length".into(), self.body.len().to_string()));
        }
        let mut out = format!("{} {} HTTP/1.1\r\n", self.method, self.target());
        for (name, value) in headers {
            out += &format!("{name}: {value}\r\n");
        }
        out += "\r\n";
        let mut out = out.into_bytes();
        out.extend(&self.body);
        out
    }
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The text of the first element called `name`.
    pub(crate) fn element(&self, name: &str) -> Option<&str> {
        self.elements(name).into_iter().next()
    }

    /// The texts of all elements called `name`.
    pub(crate) fn elements(&self, name: &str) -> Vec<&str> {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let parts = self.text().split(&open[..]).skip(1);
        parts
            .filter_map(|part| part.split_once(&close[..]).map(|(text, _)| text))
            .collect()
    }

    /// Asserts the status and the S3 error code.
    #[track_caller]
    pub(crate) fn is_error(&self, status: u16, code: &str) {
        assert_eq!(
            (self.status, self.element("Code")),
            (status, Some(code)),
            "{}",
            self.text()
        );
        assert_eq!(self.element("RequestId"), self.header("x-amz-request-id"));
    }

    /// Asserts the status.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(
            self.status,
            status,
            "{}",
            String::from_utf8_lossy(&self.body)
        );
        self
    }
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    pub(crate) signer: Signer,
    /// Received bytes of the next response.
    rest: Vec<u8>,
}

impl Client {
    pub(crate) fn new(server: &ServerHandle) -> Self {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        // A server that hangs fails the test instead of blocking it.
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Self {
            stream,
            signer: Signer::new(KEY, SECRET),
            rest: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, request: &Request) -> Response {
        let bytes = request.render(&self.signer);
        self.stream.write_all(&bytes).unwrap();
        self.receive(request.method == "HEAD")
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Response {
        self.stream.write_all(bytes).unwrap();
        self.receive(false)
    }

    pub(crate) fn put(&mut self, path: &str, body: impl AsRef<[u8]>) -> Response {
        self.send(&req("PUT", path).body(body)).is(200)
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.send(&req("GET", path))
    }

    /// Reads until `self.rest` holds at least `n` bytes. Returns whether it does.
    fn fill(&mut self, n: usize) -> bool {
        let mut buffer = [0; 65_536];
        while self.rest.len() < n {
            match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => return false,
                Ok(got) => self.rest.extend(&buffer[..got]),
            }
        }
        true
    }

    /// Receives a response.
    pub(crate) fn receive(&mut self, to_head: bool) -> Response {
        self.try_receive(to_head).expect("a complete answer")
    }

    /// Receives a response, or the part before the connection ends early.
    pub(crate) fn try_receive(&mut self, to_head: bool) -> Result<Response, Response> {
        let end = loop {
            if let Some(at) = self.rest.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.fill(self.rest.len() + 1) {
                return Err(Response {
                    status: 0,
                    headers: Vec::new(),
                    body: std::mem::take(&mut self.rest),
                });
            }
        };
        let head = String::from_utf8(self.rest.drain(..end).collect()).unwrap();
        let mut lines = head.lines();
        let status: u16 = lines.next().unwrap()[9..12].parse().unwrap();
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(n, v)| (n.to_owned(), v.to_owned()))
            .collect();
        let mut response = Response {
            status,
            headers,
            body: Vec::new(),
        };
        let length = response
            .header("content-length")
            .map_or(0, |v| v.parse().unwrap());
        let length = if to_head || matches!(status, 100 | 204 | 304) {
            0
        } else {
            length
        };
        let complete = self.fill(length);
        response.body = self.rest.drain(..length.min(self.rest.len())).collect();
        if complete {
            Ok(response)
        } else {
            Err(response)
        }
    }

    /// How the server ends the connection: `Ok(true)` for a clean close, `Ok(false)` for a reset.
    pub(crate) fn ended(&mut self) -> bool {
        match self.stream.read(&mut [0; 16]) {
            Ok(0) => true,
            Ok(_) => panic!("unexpected bytes"),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => false,
            Err(e) => panic!("{e}"),
        }
    }
}
