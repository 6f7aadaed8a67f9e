//! Signature Version 4, written literally as in the specification, with strings and sorted maps.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

pub(crate) fn sha256_hex(data: &[u8]) -> String {
    hex(&Sha256::digest(data))
}

fn hmac(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}

/// Percent-encodes as the specification requires.
pub(crate) fn encode(text: &str, slash: bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(byte as char)
            }
            b'/' if slash => out.push('/'),
            byte => out += &format!("%{byte:02X}"),
        }
    }
    out
}

/// `YYYYMMDDTHHMMSSZ` for the time `offset` seconds from now.
pub(crate) fn amz_date(offset: i64) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs() as i64
        + offset;
    let (mut days, rest) = (now / 86_400, now % 86_400);
    let mut year = 1970;
    let leap = |y: i64| y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
    while days >= 365 + i64::from(leap(year)) {
        days -= 365 + i64::from(leap(year));
        year += 1;
    }
    let lengths = [
        31,
        28 + i64::from(leap(year)),
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
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (h, m, s) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year}{:02}{:02}T{h:02}{m:02}{s:02}Z", month + 1, days + 1)
}

/// Signs requests with a key pair, region and date.
#[derive(Clone)]
pub(crate) struct Signer {
    pub(crate) key: String,
    pub(crate) secret: String,
    pub(crate) region: String,
    pub(crate) date: String,
}

impl Signer {
    pub(crate) fn new(key: &str, secret: &str) -> Self {
        Self {
            key: key.into(),
            secret: secret.into(),
            region: "us-east-1".into(),
            date: amz_date(0),
        }
    }

    pub(crate) fn scope(&self) -> String {
        format!("{}/{}/s3/aws4_request", &self.date[..8], self.region)
    }

    pub(crate) fn sign(&self, text: &str) -> String {
        let mut key = format!("AWS4{}", self.secret).into_bytes();
        for part in [&self.date[..8], &self.region, "s3", "aws4_request"] {
            key = hmac(&key, part.as_bytes());
        }
        hex(&hmac(&key, text.as_bytes()))
    }

    /// Signed header names and signature of a request.
    pub(crate) fn signature(
        &self,
        method: &str,
        path: &str,
        query: &[(String, String)],
        headers: &[(String, String)],
        payload: &str,
    ) -> (String, String) {
        let mut pairs: Vec<_> = query
            .iter()
            .map(|(n, v)| (encode(n, false), encode(v, false)))
            .collect();
        pairs.sort();
        let query: Vec<_> = pairs.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let map: BTreeMap<_, _> = headers
            .iter()
            .map(|(n, v)| (n.to_lowercase(), v.trim().to_owned()))
            .collect();
        let lines: String = map.iter().map(|(n, v)| format!("{n}:{v}\n")).collect();
        let names = map.keys().cloned().collect::<Vec<_>>().join(";");
        let canonical = format!(
            "{method}\n{}\n{}\n{lines}\n{names}\n{payload}",
            encode(path, true),
            query.join("&")
        );
        let text = format!(
            "AWS4-HMAC-SHA256\n{}\n{}\n{}",
            self.date,
            self.scope(),
            sha256_hex(canonical.as_bytes())
        );
        let signature = self.sign(&text);
        (names, signature)
    }

    /// A body in signed chunks, with a signed trailer if there is one.
    pub(crate) fn signed_chunks(
        &self,
        seed: &str,
        chunks: &[&[u8]],
        trailer: Option<(&str, &str)>,
    ) -> Vec<u8> {
        let (mut previous, mut body) = (seed.to_owned(), Vec::new());
        let scope = self.scope();
        let all: Vec<&[u8]> = chunks.iter().copied().chain([&b""[..]]).collect();
        for chunk in all {
            let text = format!(
                "AWS4-HMAC-SHA256-PAYLOAD\n{}\n{scope}\n{previous}\n{}\n{}",
                self.date,
                sha256_hex(b""),
                sha256_hex(chunk)
            );
            previous = self.sign(&text);
            body.extend(format!("{:x};chunk-signature={previous}\r\n", chunk.len()).bytes());
            if !chunk.is_empty() {
                body.extend(chunk);
                body.extend(b"\r\n");
            }
        }
        if let Some((name, value)) = trailer {
            let hash = sha256_hex(format!("{name}:{value}\n").as_bytes());
            let text = format!(
                "AWS4-HMAC-SHA256-TRAILER\n{}\n{scope}\n{previous}\n{hash}",
                self.date
            );
            body.extend(
                format!(
                    "{name}:{value}\r\nx-amz-trailer-signature:{}\r\n",
                    self.sign(&text)
                )
                .bytes(),
            );
        }
        body.extend(b"\r\n");
        body
    }
}
