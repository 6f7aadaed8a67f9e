//! A small Azure Blob service in memory that verifies every signature and checksum, with different
//! implementations than the driver's.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bucketload_testkit::http::{decode, grouped};
use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use sha2::Sha256;

use crate::support::{Answer, Received};

pub(crate) const ACCOUNT: &str = "fakeaccount";
pub(crate) const KEY: &str = "ZmFrZSBrZXkgb2YgYSBmYWtlIGFjY291bnQ=";
/// The only accepted shared access signature.
pub(crate) const SAS: &str = "sv=2022-11-02&sp=rwdlacx&se=2999-01-01T00%3A00%3A00Z&sig=good%2B";

#[derive(Clone, Default)]
struct Blob {
    append: bool,
    content: Vec<u8>,
    tags: Vec<u8>,
}

impl Blob {
    /// Differs for other contents.
    fn tag(&self) -> String {
        let byte = |hash: u64, byte: &u8| hash.wrapping_mul(31).wrapping_add(u64::from(*byte));
        format!("\"0x{:X}\"", self.content.iter().fold(1, byte))
    }
}

#[derive(Default)]
struct Container {
    blobs: BTreeMap<String, Blob>,
    /// Blocks by blob and name.
    blocks: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
}

/// The service's state.
#[derive(Clone, Default)]
pub(crate) struct FakeAzure {
    containers: Rc<RefCell<BTreeMap<String, Container>>>,
    /// Number of block lists still to refuse.
    pub(crate) refuse_lists: Rc<Cell<u32>>,
    /// How far the service's clock is ahead, in seconds.
    pub(crate) ahead: Rc<Cell<i64>>,
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

fn mac(text: &str) -> String {
    let key = STANDARD.decode(KEY).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(text.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

/// CRC-64/NVME, byte by byte.
fn crc64(bytes: &[u8]) -> u64 {
    let step = |crc: u64| (crc >> 1) ^ ((crc & 1) * 0x9a6c_9329_ac4b_c9b5);
    let table: [u64; 256] = std::array::from_fn(|i| (0..8).fold(i as u64, |crc, _| step(crc)));
    !bytes.iter().fold(!0, |crc: u64, b| {
        (crc >> 8) ^ table[usize::from(crc as u8 ^ b)]
    })
}

fn query(target: &str) -> BTreeMap<String, String> {
    let text = target.split_once('?').map_or("", |(_, q)| q);
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(n, v)| (n.to_owned(), decode(v))).collect()
}

/// The string to sign for a received request.
fn string_to_sign(r: &Received) -> String {
    let field = |name: &str| r.header(name).unwrap_or("").to_owned();
    let mut out = format!("{}\n", r.method);
    for name in [
        "Content-Encoding",
        "Content-Language",
        "Content-Length",
        "Content-MD5",
        "Content-Type",
        "Date",
        "If-Modified-Since",
        "If-Match",
        "If-None-Match",
        "If-Unmodified-Since",
        "Range",
    ] {
        let value = field(name);
        out += if value == "0" { "" } else { &value };
        out += "\n";
    }
    let own = r.headers.iter().map(|(n, v)| (n.to_lowercase(), v));
    let own: BTreeMap<_, _> = own.filter(|(n, _)| n.starts_with("x-ms-")).collect();
    for (name, value) in own {
        out += &format!("{name}:{value}\n");
    }
    out += &format!("/{ACCOUNT}{}", r.target.split('?').next().unwrap());
    for (name, value) in query(&r.target) {
        out += &format!("\n{name}:{value}");
    }
    out
}

fn authorised(r: &Received) -> bool {
    match r.header("Authorization") {
        Some(text) => text == format!("SharedKey {ACCOUNT}:{}", mac(&string_to_sign(r))),
        None => r.target.ends_with(SAS),
    }
}

/// Whether the signature in a URL permits reading it.
fn readable(url: &str) -> bool {
    if url.ends_with(SAS) {
        return true;
    }
    let path = url.split_once("://").unwrap().1.split('?').next().unwrap();
    // Host, account, container and blob.
    let name = decode(path.splitn(3, '/').nth(2).unwrap());
    let q = query(url);
    let text = format!(
        "r\n\n{}\n/blob/{ACCOUNT}/{name}\n\n\n\n{}\nb\n\n\n\n\n\n\n",
        q["se"], q["sv"]
    );
    q["sig"] == mac(&text)
}

impl FakeAzure {
    /// Answers one request. `Responder` also calls this before it has received the body.
    pub(crate) fn answer(&self, r: &Received) -> Answer {
        let length = r.header("content-length").unwrap_or("0");
        if length.parse() != Ok(r.body.len()) {
            return Answer::ok("");
        }
        let answered = match authorised(r) {
            true => self.dispatch(r),
            false => Err((403, "AuthenticationFailed")),
        };
        answered.unwrap_or_else(|(status, code)| self.refusal(r, status, code))
    }

    fn refusal(&self, r: &Received, status: u16, code: &str) -> Answer {
        let seconds = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64 + self.ahead.get();
        let date = time::OffsetDateTime::from_unix_timestamp(seconds).unwrap();
        let (day, month) = (date.weekday().to_string(), date.month().to_string());
        let fields = format!(
            "x-ms-error-code: {code}\r\nx-ms-request-id: id-1\r\nDate: {}, {:02} {} {} {:02}:{:02}:{:02} GMT\r\n",
            &day[..3],
            date.day(),
            &month[..3],
            date.year(),
            date.hour(),
            date.minute(),
            date.second(),
        );
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code>\
             <Message>because\nRequestId:1</Message></Error>"
        );
        let body = if r.method == "HEAD" { "" } else { &body };
        Answer::with_fields(status, &fields, body)
    }

    fn dispatch(&self, r: &Received) -> Result<Answer, (u16, &'static str)> {
        let path = r.target.split('?').next().unwrap();
        let mut names = path.trim_start_matches('/').splitn(3, '/').map(decode);
        assert_eq!(names.next().as_deref(), Some(ACCOUNT));
        let container = names.next().unwrap_or_default();
        let key = names.next().unwrap_or_default();
        let q = query(&r.target);
        let get = |name: &str| q.get(name).map_or("", String::as_str);
        let mut all = self.containers.borrow_mut();
        if container.is_empty() {
            let each = all
                .keys()
                .map(|n| format!("<Container><Name>{n}</Name></Container>"));
            let each: String = each.collect();
            return Ok(document(&format!(
                "<Containers>{each}</Containers><NextMarker/>"
            )));
        }
        if (r.method.as_str(), get("comp")) == ("PUT", "") && key.is_empty() {
            if all.contains_key(&container) {
                return Err((409, "ContainerAlreadyExists"));
            }
            all.insert(container, Container::default());
            return Ok(Answer::status(201, ""));
        }
        let place = all.get_mut(&container).ok_or((404, "ContainerNotFound"))?;
        if key.is_empty() {
            return match (r.method.as_str(), get("comp")) {
                ("HEAD", "") => Ok(Answer::ok("")),
                ("DELETE", "") => {
                    all.remove(&container);
                    Ok(Answer::status(202, ""))
                }
                ("GET", "list") => Ok(list(place, &q)),
                ("POST", "batch") => Ok(batch(place, r)),
                other => panic!("{other:?} on a container"),
            };
        }
        if key.chars().count() > 1024 {
            return Err((400, "InvalidResourceName"));
        }
        let appended = place.blobs.get(&key).is_some_and(|blob| blob.append);
        match (r.method.as_str(), get("comp")) {
            ("PUT", "block" | "blocklist") if appended => Err((409, "InvalidBlobType")),
            ("PUT", "block") => {
                checked(r)?;
                assert!(!r.body.is_empty());
                let blocks = place.blocks.entry(key).or_default();
                blocks.insert(get("blockid").to_owned(), r.body.clone());
                Ok(Answer::status(201, ""))
            }
            ("PUT", comp) => {
                let absent = !place.blobs.contains_key(&key);
                if r.header("If-None-Match") == Some("*") && !absent {
                    return Err((409, "BlobAlreadyExists"));
                }
                let tag = place.blobs.get(&key).map(Blob::tag);
                if r.header("If-Match")
                    .is_some_and(|one| Some(one) != tag.as_deref())
                {
                    return Err((412, "ConditionNotMet"));
                }
                self.put(place, key, comp, r)
            }
            ("DELETE", "") => {
                place.blobs.remove(&key).ok_or((404, "BlobNotFound"))?;
                Ok(Answer::status(202, ""))
            }
            (method, comp) => {
                let blob = place.blobs.get(&key).ok_or((404, "BlobNotFound"))?;
                let mut answer = read(method, comp, blob, r)?;
                let line = answer
                    .bytes
                    .windows(2)
                    .position(|two| two == b"\r\n")
                    .unwrap()
                    + 2;
                let tag = format!("ETag: {}\r\n", blob.tag());
                answer.bytes.splice(line..line, tag.into_bytes());
                Ok(answer)
            }
        }
    }

    fn put(
        &self,
        place: &mut Container,
        key: String,
        comp: &str,
        r: &Received,
    ) -> Result<Answer, (u16, &'static str)> {
        match comp {
            "blocklist" => {
                if self.refuse_lists.get() > 0 {
                    self.refuse_lists.set(self.refuse_lists.get() - 1);
                    return Err((503, "ServerBusy"));
                }
                let text = std::str::from_utf8(&r.body).unwrap();
                let names = text.split("<Uncommitted>").skip(1);
                let mut content = Vec::new();
                let blocks = place.blocks.remove(&key).unwrap_or_default();
                for name in names.map(|n| n.split('<').next().unwrap()) {
                    content.extend(blocks.get(name).ok_or((400, "InvalidBlockList"))?);
                }
                let blob = Blob {
                    content,
                    ..Blob::default()
                };
                place.blobs.insert(key, blob);
            }
            "tags" => {
                let blob = place.blobs.get_mut(&key).ok_or((404, "BlobNotFound"))?;
                blob.tags.clone_from(&r.body);
                return Ok(Answer::raw("HTTP/1.1 204 No Content\r\n\r\n"));
            }
            "appendblock" => {
                checked(r)?;
                let blob = place.blobs.get_mut(&key).ok_or((404, "BlobNotFound"))?;
                if !blob.append {
                    return Err((409, "InvalidBlobType"));
                }
                blob.content.extend_from_slice(&r.body);
            }
            _ => {
                checked(r)?;
                let mut blob = Blob {
                    content: r.body.clone(),
                    ..Blob::default()
                };
                match (r.header("x-ms-copy-source"), r.header("x-ms-blob-type")) {
                    (Some(url), None) => {
                        if !readable(url) {
                            return Err((403, "CannotVerifyCopySource"));
                        }
                        let source = url
                            .split('?')
                            .next()
                            .unwrap()
                            .splitn(6, '/')
                            .nth(5)
                            .unwrap();
                        let source = place.blobs.get(&decode(source));
                        blob = source.ok_or((404, "CannotVerifyCopySource"))?.clone();
                    }
                    (None, Some("AppendBlob")) => blob.append = true,
                    (None, Some("BlockBlob")) => {}
                    other => panic!("a blob of no type: {other:?}"),
                }
                place.blocks.remove(&key);
                place.blobs.insert(key, blob);
            }
        }
        Ok(Answer::with_fields(201, "x-ms-request-id: id-1\r\n", ""))
    }
}

fn checked(r: &Received) -> Result<(), (u16, &'static str)> {
    let md5 = STANDARD.encode(Md5::digest(&r.body));
    let crc = STANDARD.encode(crc64(&r.body).to_le_bytes());
    match (r.header("Content-MD5"), r.header("x-ms-content-crc64")) {
        (Some(sum), _) if sum != md5 => Err((400, "Md5Mismatch")),
        (_, Some(sum)) if sum != crc => Err((400, "Crc64Mismatch")),
        _ => Ok(()),
    }
}

fn read(
    method: &str,
    comp: &str,
    blob: &Blob,
    r: &Received,
) -> Result<Answer, (u16, &'static str)> {
    let size = blob.content.len();
    if comp == "tags" {
        return Ok(Answer::ok(&blob.tags));
    }
    if method == "HEAD" {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n");
        return Ok(Answer::raw(head));
    }
    let Some(range) = r.header("x-ms-range") else {
        return Ok(Answer::with_fields(
            200,
            "x-ms-request-id: id-1\r\n",
            &blob.content,
        ));
    };
    let (from, to) = range
        .strip_prefix("bytes=")
        .unwrap()
        .split_once('-')
        .unwrap();
    let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
    if from >= size {
        return Err((416, "InvalidRange"));
    }
    let to = to.min(size - 1);
    let fields = format!("Content-Range: bytes {from}-{to}/{size}\r\n");
    Ok(Answer::with_fields(206, &fields, &blob.content[from..=to]))
}

fn document(inner: &str) -> Answer {
    // The service starts its documents with a byte order mark.
    Answer::ok(format!(
        "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\
         <EnumerationResults ServiceEndpoint=\"http://h/\">{inner}</EnumerationResults>"
    ))
}

fn list(place: &Container, q: &BTreeMap<String, String>) -> Answer {
    let get = |name: &str| q.get(name).map_or("", String::as_str);
    let (prefix, delimiter) = (get("prefix"), get("delimiter"));
    let mut keys: BTreeSet<&String> = place.blobs.keys().collect();
    if get("include").contains("uncommittedblobs") {
        keys.extend(place.blocks.keys());
    }
    let most = get("maxresults").parse().unwrap_or(5000);
    let mut rest = grouped(keys.into_iter(), prefix, delimiter)
        .into_iter()
        .filter(|(name, _)| name.as_str() > get("marker"));
    let page: Vec<_> = rest.by_ref().take(most).collect();
    let next = match (rest.next(), page.last()) {
        (Some(_), Some((last, _))) => escape(last),
        _ => String::new(),
    };
    let each = page.iter().map(|(name, group)| {
        let tag = if *group { "BlobPrefix" } else { "Blob" };
        let properties = "<Properties><Content-Length>1</Content-Length></Properties>";
        format!("<{tag}><Name>{}</Name>{properties}</{tag}>", escape(name))
    });
    let each: String = each.collect();
    document(&format!(
        "<Blobs>{each}</Blobs><NextMarker>{next}</NextMarker>"
    ))
}

fn batch(place: &mut Container, r: &Received) -> Answer {
    let kind = r.header("Content-Type").unwrap();
    let boundary = kind.strip_prefix("multipart/mixed; boundary=").unwrap();
    let text = std::str::from_utf8(&r.body).unwrap();
    let (parts, _) = text.split_once(&format!("--{boundary}--\r\n")).unwrap();
    let mut out = String::new();
    for part in parts.split(&format!("--{boundary}\r\n")).skip(1) {
        let (_, request) = part.split_once("\r\n\r\n").unwrap();
        let mut lines = request.trim_end().split("\r\n");
        let mut words = lines.next().unwrap().split(' ');
        let inner = Received {
            method: words.next().unwrap().to_owned(),
            target: words.next().unwrap().to_owned(),
            headers: lines
                .map(|line| line.split_once(": ").unwrap())
                .map(|(n, v)| (n.to_owned(), v.to_owned()))
                .collect(),
            ..Received::default()
        };
        assert!(inner.header("x-ms-version").is_none());
        let path = inner.target.split('?').next().unwrap();
        let key = decode(path.splitn(4, '/').nth(3).unwrap());
        let status = match (authorised(&inner), place.blobs.remove(&key)) {
            (false, _) => "403 No\r\nx-ms-error-code: AuthenticationFailed",
            (true, Some(_)) => "202 Accepted",
            (true, None) => "404 Not there\r\nx-ms-error-code: BlobNotFound",
        };
        out += &format!(
            "--answers\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 {status}\r\n\r\n"
        );
    }
    let kind = "Content-Type: multipart/mixed; boundary=answers\r\n";
    Answer::with_fields(202, kind, out + "--answers--\r\n")
}
