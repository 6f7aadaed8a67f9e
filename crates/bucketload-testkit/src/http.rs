//! A small HTTP service on loopback for fakes of storage services: a thread per connection, a function
//! that answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// A request as it was received.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// Method.
    pub method: String,
    /// Path as it stood in the request.
    pub path: String,
    /// Parameters, decoded.
    pub query: Vec<(String, String)>,
    /// Header fields, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl Heard {
    /// Reads the request line and the fields.
    fn parse(head: &str) -> Option<Self> {
        let mut lines = head.lines();
        let mut words = lines.next()?.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let decoded = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        let fields = lines.filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        });
        Some(Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: decoded.collect(),
            headers: fields.collect(),
            body: Vec::new(),
        })
    }

    /// The value of a header field; empty when there is none.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map_or("", |(_, value)| value)
    }

    /// The value of a parameter; empty when there is none.
    pub fn parameter(&self, name: &str) -> &str {
        let found = self.query.iter().find(|(n, _)| n == name);
        found.map_or("", |(_, value)| value)
    }

    /// Whether there is a parameter of that name.
    pub fn has(&self, name: &str) -> bool {
        self.query.iter().any(|(n, _)| n == name)
    }

    /// The bytes of `data` that the request asks for, with status and fields; 416 past the end.
    pub fn range_of(&self, data: &[u8]) -> Said {
        let Some(range) = self.header("range").strip_prefix("bytes=") else {
            return Said::new(200, data);
        };
        let (first, last) = range.split_once('-').unwrap_or((range, ""));
        let first: usize = first.parse().unwrap_or(0);
        if first >= data.len() {
            return Said::new(416, "");
        }
        let last = last
            .parse::<usize>()
            .map_or(data.len(), |n| n + 1)
            .min(data.len());
        let content = format!("bytes {first}-{}/{}", last - 1, data.len());
        Said::new(206, &data[first..last]).with("Content-Range", content)
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Said {
    /// Status code.
    pub status: u16,
    /// Header fields but for the length of the body.
    pub fields: Vec<(String, String)>,
    /// Body; an answer to HEAD is sent without it.
    pub body: Vec<u8>,
}

impl Said {
    /// An answer without further fields.
    pub fn new(status: u16, body: impl AsRef<[u8]>) -> Self {
        Self {
            status,
            fields: Vec::new(),
            body: body.as_ref().to_vec(),
        }
    }

    /// The same with a header field.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.fields.push((name.to_owned(), value.into()));
        self
    }

    /// The same with another body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// The answer's head, with the length of its body.
    pub fn head(&self) -> String {
        let fields = self.fields.iter();
        let fields: String = fields.map(|(n, v)| format!("{n}: {v}\r\n")).collect();
        format!(
            "HTTP/1.1 {} Whatever\r\nContent-Length: {}\r\n{fields}\r\n",
            self.status,
            self.body.len()
        )
    }
}

/// Undoes percent-encoding.
pub fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match digits.and_then(|d| u8::from_str_radix(d, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// `text` as a JSON string with its quotation marks.
pub fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The string member `name` of a flat JSON document, as the drivers write them.
pub fn member(document: &str, name: &str) -> Option<String> {
    let after = document.split(&format!("\"{name}\":\"")).nth(1)?;
    let mut out = String::new();
    let mut chars = after.chars();
    loop {
        match chars.next()? {
            '"' => return Some(out),
            '\\' => out.push(chars.next()?),
            c => out.push(c),
        }
    }
}

/// Starts a service on a port of its own; it ends with the process.
pub fn serve<F>(answer: F) -> SocketAddr
where
    F: Fn(&Heard) -> Said + Send + Sync + 'static,
{
    listen(TcpListener::bind("127.0.0.1:0").unwrap(), answer)
}

/// Starts a service at `listener`.
pub fn listen<F>(listener: TcpListener, answer: F) -> SocketAddr
where
    F: Fn(&Heard) -> Said + Send + Sync + 'static,
{
    let addr = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || talk(stream, &*answer));
        }
    });
    addr
}

fn talk(mut stream: TcpStream, answer: &dyn Fn(&Heard) -> Said) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut held = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let end = loop {
            if let Some(at) = held.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            let n = stream.read(&mut buffer).ok().filter(|n| *n > 0)?;
            held.extend_from_slice(&buffer[..n]);
        };
        let mut heard = Heard::parse(std::str::from_utf8(&held[..end]).ok()?)?;
        let length: usize = heard.header("content-length").parse().unwrap_or(0);
        while held.len() < end + length {
            let n = stream.read(&mut buffer).ok().filter(|n| *n > 0)?;
            held.extend_from_slice(&buffer[..n]);
        }
        heard.body = held[end..end + length].to_vec();
        held.drain(..end + length);
        let said = answer(&heard);
        let mut bytes = said.head().into_bytes();
        if heard.method != "HEAD" {
            bytes.extend_from_slice(&said.body);
        }
        stream.write_all(&bytes).ok()?;
    }
}
