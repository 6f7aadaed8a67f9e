//! A small HTTP service on loopback for fakes of storage services, with a thread per connection and a function that
//! answers requests; and helpers for their listings and documents.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// A received request.
#[derive(Clone, Debug, Default)]
pub struct HttpRequest {
    /// Method.
    pub method: String,
    /// Path as written in the request.
    pub path: String,
    /// Parameters, decoded.
    pub query: Vec<(String, String)>,
    /// Header fields, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl HttpRequest {
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

    /// The value of a header field; empty if missing.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map_or("", |(_, value)| value)
    }

    /// The value of a parameter; empty if missing.
    pub fn parameter(&self, name: &str) -> &str {
        let found = self.query.iter().find(|(n, _)| n == name);
        found.map_or("", |(_, value)| value)
    }

    /// Whether the request has the parameter `name`.
    pub fn has(&self, name: &str) -> bool {
        self.query.iter().any(|(n, _)| n == name)
    }

    /// The answer with the requested range of `data`, or all of it; 416 past the end.
    pub fn range_of(&self, data: &[u8]) -> HttpResponse {
        let Some(range) = self.header("range").strip_prefix("bytes=") else {
            return HttpResponse::new(200, data);
        };
        let (first, last) = range.split_once('-').unwrap_or((range, ""));
        let first: usize = first.parse().unwrap_or(0);
        if first >= data.len() {
            return HttpResponse::new(416, "");
        }
        let last = last
            .parse::<usize>()
            .map_or(data.len(), |n| n + 1)
            .min(data.len());
        let content = format!("bytes {first}-{}/{}", last - 1, data.len());
        HttpResponse::new(206, &data[first..last]).with("Content-Range", content)
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// Status code.
    pub status: u16,
    /// Header fields except the length of the body.
    pub fields: Vec<(String, String)>,
    /// Body; not sent in an answer to HEAD.
    pub body: Vec<u8>,
}

impl HttpResponse {
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
            "HTTP/1.1 {} Whatever\r\nDate: {}\r\nContent-Length: {}\r\n{fields}\r\n",
            self.status,
            date(),
            self.body.len()
        )
    }
}

/// The current time as RFC 9110 section 5.6.7 writes it.
fn date() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_secs());
    let (days, second) = (now / 86_400, now % 86_400);
    let week = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [
        31,
        28 + u64::from(leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let names = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    format!(
        "{}, {:02} {} {year} {:02}:{:02}:{:02} GMT",
        week[(days % 7) as usize],
        day + 1,
        names[month],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// The entries of a listing of sorted `names` with `prefix`: each name, or the group up to `delimiter` that it belongs
/// to, once. The flag marks groups. An empty delimiter groups nothing.
pub fn grouped<'a>(
    names: impl Iterator<Item = &'a String>,
    prefix: &str,
    delimiter: &str,
) -> Vec<(String, bool)> {
    let mut entries: Vec<(String, bool)> = names
        .filter(|name| name.starts_with(prefix))
        .map(|name| match name[prefix.len()..].find(delimiter) {
            Some(at) if !delimiter.is_empty() => {
                (name[..prefix.len() + at + delimiter.len()].to_owned(), true)
            }
            _ => (name.clone(), false),
        })
        .collect();
    entries.dedup();
    entries
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

/// The string member `name` of a flat JSON document in the drivers' form.
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

/// Starts a service on a free port; it ends with the process.
pub fn serve<F>(answer: F) -> SocketAddr
where
    F: Fn(&HttpRequest) -> HttpResponse + Send + Sync + 'static,
{
    listen(TcpListener::bind("127.0.0.1:0").unwrap(), answer)
}

/// Starts a service at `listener`.
pub fn listen<F>(listener: TcpListener, answer: F) -> SocketAddr
where
    F: Fn(&HttpRequest) -> HttpResponse + Send + Sync + 'static,
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

fn talk(mut stream: TcpStream, answer: &dyn Fn(&HttpRequest) -> HttpResponse) -> Option<()> {
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
        let mut request = HttpRequest::parse(std::str::from_utf8(&held[..end]).ok()?)?;
        let length: usize = request.header("content-length").parse().unwrap_or(0);
        while held.len() < end + length {
            let n = stream.read(&mut buffer).ok().filter(|n| *n > 0)?;
            held.extend_from_slice(&buffer[..n]);
        }
        request.body = held[end..end + length].to_vec();
        held.drain(..end + length);
        let response = answer(&request);
        let mut bytes = response.head().into_bytes();
        if request.method != "HEAD" {
            bytes.extend_from_slice(&response.body);
        }
        stream.write_all(&bytes).ok()?;
    }
}
