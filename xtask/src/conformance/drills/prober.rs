//! A client of our own that watches a server during a drill: one small GET after another over a plain HTTP connection, with
//! nothing of the program under test. It also lists a bucket, and signs its URLs itself (Signature Version 4 in the query).

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

use crate::server::Server;
use crate::sh::{Result, ensure};

/// Objects that are read in turn: stores that divide objects do not lose all of them at once.
const OBJECTS: usize = 16;
/// Pause between two GETs, and after one that failed.
const PAUSE: Duration = Duration::from_millis(5);
/// Longest wait for an answer, after which the connection is given up.
const PATIENCE: Duration = Duration::from_secs(20);
/// A GET that takes longer is part of the outage, seconds.
const SLOW_S: f64 = 0.25;
/// Bucket of the objects.
const BUCKET: &str = "probe";

/// Where a server is, and how its clients sign.
#[derive(Clone)]
pub(super) struct Place {
    address: SocketAddr,
    access: String,
    secret: String,
}

impl Place {
    pub(super) fn of(server: &Server) -> Result<Self> {
        let url = server.get("AWS_ENDPOINT_URL")?;
        let address = url.trim_start_matches("http://").parse();
        Ok(Self {
            address: address.map_err(|e| format!("{url}: {e}"))?,
            access: server.get("AWS_ACCESS_KEY_ID")?.to_owned(),
            secret: server.get("AWS_SECRET_ACCESS_KEY")?.to_owned(),
        })
    }

    /// The head of a signed request; `query` has its fields in order of their names.
    fn head(&self, method: &str, path: &str, query: &[(&str, &str)], more: &str) -> Result<String> {
        let now = OffsetDateTime::now_utc();
        let day = format!(
            "{:04}{:02}{:02}",
            now.year(),
            u8::from(now.month()),
            now.day()
        );
        let instant = format!(
            "{day}T{:02}{:02}{:02}Z",
            now.hour(),
            now.minute(),
            now.second()
        );
        let scope = format!("{day}/us-east-1/s3/aws4_request");
        let credential = format!("{}/{scope}", self.access);
        let mut fields = vec![
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", &credential),
            ("X-Amz-Date", &instant),
            ("X-Amz-Expires", "3600"),
            ("X-Amz-SignedHeaders", "host"),
        ];
        fields.extend(query);
        // Capitals come first, as in the order of bytes.
        fields.sort_unstable();
        let fields = fields
            .iter()
            .map(|(name, value)| format!("{name}={}", encoded(value)));
        let query = fields.collect::<Vec<_>>().join("&");
        let host = self.address;
        let request = format!("{method}\n{path}\n{query}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD");
        let text = format!(
            "AWS4-HMAC-SHA256\n{instant}\n{scope}\n{}",
            hex(&Sha256::digest(request))
        );
        let mut key = format!("AWS4{}", self.secret).into_bytes();
        for part in [&*day, "us-east-1", "s3", "aws4_request", &*text] {
            key = mac(&key, part)?;
        }
        let signature = hex(&key);
        Ok(format!(
            "{method} {path}?{query}&X-Amz-Signature={signature} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"
        ))
    }

    /// Sends one request over a connection of its own; returns status and body.
    fn ask(
        &self,
        method: &str,
        path: &str,
        query: &[(&str, &str)],
        body: &str,
    ) -> Result<(u16, String)> {
        let more = format!("Content-Length: {}\r\nConnection: close\r\n", body.len());
        let head = self.head(method, path, query, &more)?;
        let exchange = || -> std::io::Result<Vec<u8>> {
            let mut stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(format!("{head}{body}").as_bytes())?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer)?;
            Ok(answer)
        };
        let answer = exchange().map_err(|e| format!("{method} {path}: {e}"))?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| format!("{method} {path}: {answer}"))?;
        let chunked = head
            .to_ascii_lowercase()
            .contains("transfer-encoding: chunked");
        Ok((
            status,
            if chunked {
                joined(body)
            } else {
                body.to_owned()
            },
        ))
    }

    /// Every key of `bucket`.
    pub(super) fn keys(&self, bucket: &str) -> Result<Vec<String>> {
        let mut keys: Vec<String> = Vec::new();
        loop {
            let after = keys.last().cloned().unwrap_or_default();
            let mut query = vec![("list-type", "2"), ("max-keys", "1000")];
            if !after.is_empty() {
                query.push(("start-after", &after));
            }
            let (status, body) = self.ask("GET", &format!("/{bucket}"), &query, "")?;
            ensure(status == 200, || {
                format!("listing {bucket}: {status} {body}")
            })?;
            let before = keys.len();
            let found = body
                .split("<Key>")
                .skip(1)
                .filter_map(|rest| rest.split("</Key>").next());
            keys.extend(found.map(str::to_owned));
            if !body.contains("<IsTruncated>true") || keys.len() == before {
                return Ok(keys);
            }
        }
    }
}

fn mac(key: &[u8], text: &str) -> Result<Vec<u8>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|e| e.to_string())?;
    mac.update(text.as_bytes());
    Ok(mac.finalize().into_bytes().to_vec())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Percent-encodes a value of a query.
fn encoded(text: &str) -> String {
    let byte = |b: u8| match b {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(b).to_string()
        }
        b => format!("%{b:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The chunks of a chunked body.
fn joined(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(chunk) = rest.get(..size).filter(|chunk| !chunk.is_empty()) else {
            break;
        };
        whole.push_str(chunk);
        body = rest[size..].trim_start_matches("\r\n");
    }
    whole
}

/// A GET: its start and end (seconds since 1970), and whether it was answered with the object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    start_s: f64,
    end_s: f64,
    ok: bool,
}

/// The loop, in a thread.
pub(super) struct Prober {
    thread: JoinHandle<Result<Vec<Probe>>>,
    done: Arc<AtomicBool>,
}

impl Prober {
    /// Writes the objects and begins to read them.
    pub(super) fn start(place: &Place) -> Result<Self> {
        let (status, body) = place.ask("PUT", &format!("/{BUCKET}"), &[], "")?;
        // A second try finds the bucket of the first.
        ensure(status == 200 || status == 409, || {
            format!("PUT /{BUCKET}: {status} {body}")
        })?;
        for i in 0..OBJECTS {
            let (status, body) = place.ask("PUT", &format!("/{BUCKET}/{i}"), &[], "probe")?;
            ensure(status == 200, || {
                format!("PUT /{BUCKET}/{i}: {status} {body}")
            })?;
        }
        let heads = (0..OBJECTS).map(|i| place.head("GET", &format!("/{BUCKET}/{i}"), &[], ""));
        let heads = heads.collect::<Result<Vec<_>>>()?;
        let (address, done) = (place.address, Arc::new(AtomicBool::new(false)));
        let ended = Arc::clone(&done);
        let thread = std::thread::spawn(move || {
            let (mut probes, mut connection) = (Vec::new(), None);
            for head in heads.iter().cycle() {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                let start_s = now_s()?;
                let got = get(&mut connection, address, head);
                let ok = matches!(got, Ok(true));
                if !ok {
                    connection = None;
                }
                probes.push(Probe {
                    start_s,
                    end_s: now_s()?,
                    ok,
                });
                std::thread::sleep(PAUSE);
            }
            Ok(probes)
        });
        Ok(Self { thread, done })
    }

    /// Ends the loop and returns what it saw.
    pub(super) fn end(self) -> Result<Vec<Probe>> {
        self.done.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| "the prober panicked".to_owned())?
    }
}

/// The outage in `probes` that begins after `broken_s` and lasts until after `mended_s`: from the end of the last good GET
/// before it to the end of the first good one with which `hold_s` begin in which none fails or is slow. `None` if nothing was
/// amiss, or it did not end.
pub(super) fn outage(
    probes: &[Probe],
    broken_s: f64,
    mended_s: f64,
    hold_s: f64,
) -> Option<(f64, f64)> {
    let amiss = |probe: &Probe| !probe.ok || probe.end_s - probe.start_s > SLOW_S;
    let first = probes
        .iter()
        .position(|probe| probe.end_s >= broken_s && amiss(probe))?;
    let from = first
        .checked_sub(1)
        .map_or(probes[first].start_s, |before| probes[before].end_s);
    // A GET that was slow and succeeded shows by its end that the server is back.
    let well = |i: usize| {
        let end_s = probes[i].end_s;
        let held = probes[i + 1..]
            .iter()
            .take_while(|probe| probe.start_s < end_s + hold_s);
        probes[i].ok && end_s >= mended_s && !held.into_iter().any(amiss)
    };
    let back = (first..probes.len()).find(|i| well(*i))?;
    Some((from, probes[back].end_s))
}

fn now_s() -> Result<f64> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since
        .map(|time| time.as_secs_f64())
        .map_err(|e| e.to_string())
}

/// Reads an object over the kept connection, or a new one; true if the server answered with it.
fn get(
    connection: &mut Option<TcpStream>,
    address: SocketAddr,
    head: &str,
) -> std::io::Result<bool> {
    let stream = match connection {
        Some(stream) => stream,
        None => {
            let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            connection.insert(stream)
        }
    };
    stream.write_all(head.as_bytes())?;
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let n = stream.read(&mut buffer)?;
        if n == 0 {
            return Ok(false);
        }
        bytes.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        if !head.starts_with("http/1.1 200 ") {
            return Ok(false);
        }
        if body == "probe" {
            if head.contains("connection: close") {
                *connection = None;
            }
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, Probe, encoded, joined, outage};

    fn probes(all: &[(f64, f64, bool)]) -> Vec<Probe> {
        let probe = |&(start_s, end_s, ok): &(f64, f64, bool)| Probe { start_s, end_s, ok };
        all.iter().map(probe).collect()
    }

    #[test]
    fn an_outage_ends_where_nothing_fails_any_more() {
        let all = [
            (1.0, 1.1, true),
            (2.0, 2.0, false),
            (3.0, 3.1, true),
            (4.0, 4.0, false),
            (5.0, 5.1, true),
            (6.0, 6.1, true),
        ];
        assert_eq!(outage(&probes(&all), 1.5, 2.5, 3.0), Some((1.1, 5.1)));
        // For a second only, it was over before.
        assert_eq!(outage(&probes(&all), 1.5, 2.5, 0.5), Some((1.1, 3.1)));
        // A server that was paused answers late.
        let paused = [(1.0, 1.1, true), (1.2, 7.0, true), (7.1, 7.2, true)];
        assert_eq!(outage(&probes(&paused), 1.5, 6.5, 3.0), Some((1.1, 7.0)));
        assert_eq!(outage(&probes(&all[4..]), 4.5, 5.0, 3.0), None);
    }

    #[test]
    fn queries_are_signed_and_bodies_joined() {
        assert_eq!(encoded("a/b c~"), "a%2Fb%20c~");
        assert_eq!(joined("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), "abcde");
        let place = Place {
            address: "127.0.0.1:9000".parse().unwrap(),
            access: "AK".to_owned(),
            secret: "SK".to_owned(),
        };
        let head = place.head("GET", "/b", &[("list-type", "2")], "").unwrap();
        assert!(
            head.starts_with("GET /b?X-Amz-Algorithm=")
                && head.contains("&list-type=2&X-Amz-Signature=")
        );
    }
}
