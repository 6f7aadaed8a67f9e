//! The SigV4 signer of one load thread and endpoint.
//!
//! What does not change is computed once:
//!
//! ```text
//! per day      signing key: 4 HMACs, kept as the two states in which its HMACs begin
//! per second   string-to-sign up to the scope: its whole blocks absorbed into the inner state
//! per request  canonical request (4 blocks), rest of the string-to-sign (2), outer hash (1)
//! ```
//!
//! The first block of the canonical request holds the method and the beginning of the path, which
//! the objects of a run have in common: the state after it is kept for each method ([`Opening`]).

use std::fmt;
use std::ops::Range;

use super::canonical::{self, Frame, Lead, Parts, Ranges};
use super::credentials::Credentials;
use crate::http::encode;
use crate::http::sha256::{HmacKey, Midstate, sha256};

const ALGORITHM: &[u8] = b"AWS4-HMAC-SHA256";
const SERVICE: &[u8] = b"s3";
const TERMINATOR: &[u8] = b"aws4_request";
/// Hexadecimal SHA-256 of nothing.
pub(crate) const EMPTY_SHA256: &[u8; 64] =
    b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A signature in hexadecimal.
pub(crate) type Signature = [u8; 64];

/// Signs requests with one set of credentials for one region.
pub(crate) struct Signer {
    credentials: Credentials,
    region: String,
    /// The second (since 1970) the fields below are for.
    second: u64,
    day: u64,
    timestamp: [u8; 16],
    /// `YYYYMMDD/REGION/s3/aws4_request`.
    scope: Vec<u8>,
    key: HmacKey,
    /// Inner HMAC state after the whole blocks of the string-to-sign's constant part.
    prefix: Midstate,
    /// The rest of the constant part; the digest is appended for each request.
    rest: Vec<u8>,
    rest_len: usize,
    /// Scratch for the canonical request.
    canonical: Vec<u8>,
    /// End of the canonical request of plain requests in this second, and the place of the
    /// headers' names in it; it ends with the payload it is for. Empty when not yet known.
    tail: Vec<u8>,
    tail_names: Range<usize>,
    openings: [Opening; OPENINGS],
    leads: [Lead; OPENINGS],
}

/// Openings kept: see [`Opening::slot`].
const OPENINGS: usize = 8;

/// The first block of the last canonical request of a method, and the state after it.
#[derive(Clone, Copy)]
struct Opening {
    block: [u8; 64],
    state: Midstate,
}

impl Opening {
    /// No canonical request begins with a zero byte.
    const NONE: Self = Self {
        block: [0; 64],
        state: Midstate::NEW,
    };

    /// Where the opening that begins with `letter` is kept: DELETE, GET, HEAD and PUT (which POST
    /// shares) have a place each.
    const fn slot(letter: u8) -> usize {
        (letter ^ (letter >> 3)) as usize % OPENINGS
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

impl Signer {
    pub(crate) fn new(credentials: Credentials, region: &str) -> Self {
        Self {
            credentials,
            region: region.to_owned(),
            second: u64::MAX,
            day: u64::MAX,
            timestamp: [b'0'; 16],
            scope: Vec::new(),
            key: HmacKey::new(&[]),
            prefix: Midstate::NEW,
            rest: Vec::with_capacity(128),
            rest_len: 0,
            canonical: Vec::with_capacity(1024),
            tail: Vec::with_capacity(512),
            tail_names: 0..0,
            openings: [Opening::NONE; OPENINGS],
            leads: Default::default(),
        }
    }

    /// Moves to the second `now` (since 1970); returns whether it is another one.
    #[inline]
    pub(crate) fn at(&mut self, now: u64) -> bool {
        if now == self.second {
            return false;
        }
        self.move_to(now);
        true
    }

    #[cold]
    fn move_to(&mut self, now: u64) {
        self.second = now;
        self.timestamp = timestamp(now);
        self.tail.clear();
        if self.day != now / 86_400 {
            self.day = now / 86_400;
            let date = &self.timestamp[..8];
            self.scope.clear();
            for part in [date, self.region.as_bytes(), SERVICE, TERMINATOR] {
                self.scope.extend_from_slice(part);
                self.scope.push(b'/');
            }
            self.scope.pop();
            self.key = derive_key(&self.credentials, date, &self.region);
        }
        self.rest.clear();
        push_lines(&mut self.rest, &[ALGORITHM, &self.timestamp, &self.scope]);
        self.prefix = self.key.inner;
        let left = self.prefix.absorb(&self.rest).len();
        self.rest.drain(..self.rest.len() - left);
        self.rest_len = left;
    }

    /// `YYYYMMDDTHHMMSSZ`.
    pub(crate) fn timestamp(&self) -> &[u8; 16] {
        &self.timestamp
    }

    /// `YYYYMMDD/REGION/s3/aws4_request`.
    pub(crate) fn scope(&self) -> &[u8] {
        &self.scope
    }

    pub(crate) fn access_key(&self) -> &str {
        &self.credentials.access_key
    }

    pub(crate) fn token(&self) -> &str {
        self.credentials
            .session_token
            .as_ref()
            .map_or("", |t| t.expose())
    }

    /// Signs a request sent in the current second to the endpoint described by `frame`, which is
    /// always the same one; its timestamp and token are filled in here.
    #[inline]
    pub(crate) fn sign(&mut self, frame: Frame<'_>, parts: &Parts<'_>) -> (Signature, Ranges) {
        let token = self
            .credentials
            .session_token
            .as_ref()
            .map_or("", |t| t.expose());
        let frame = Frame {
            timestamp: &self.timestamp,
            token,
            ..frame
        };
        let path = match parts.key {
            "" => canonical::begin(&mut self.canonical, frame, parts),
            _ => {
                let letter = parts.method.as_bytes().first().copied().unwrap_or(0);
                let lead = &mut self.leads[Opening::slot(letter)];
                lead.begin(&mut self.canonical, frame, parts)
            }
        };
        let host_has_bucket = frame.virtual_host && !parts.bucket.is_empty();
        let names = if parts.headers.is_empty() && !host_has_bucket {
            // The payload is the last line, and no payload is the end of another.
            let known = self.tail.strip_suffix(parts.payload);
            if !known.is_some_and(|rest| rest.ends_with(b"\n")) {
                self.tail.clear();
                self.tail_names = canonical::end(&mut self.tail, frame, parts);
            }
            let at = self.canonical.len();
            self.canonical.extend_from_slice(&self.tail);
            at + self.tail_names.start..at + self.tail_names.end
        } else {
            canonical::end(&mut self.canonical, frame, parts)
        };
        let ranges = Ranges { path, names };
        let digest = self.digest();
        self.rest.truncate(self.rest_len);
        self.rest.extend_from_slice(&encode::hex32(&digest));
        let signature = encode::hex32(&self.key.mac_from(self.prefix, &self.rest));
        (signature, ranges)
    }

    /// SHA-256 of the canonical request.
    #[inline]
    fn digest(&mut self) -> [u8; 32] {
        let Some((first, rest)) = self.canonical.split_first_chunk::<64>() else {
            return sha256(&self.canonical);
        };
        let known = &mut self.openings[Opening::slot(first[0])];
        if known.block != *first {
            let mut state = Midstate::NEW;
            state.absorb(first);
            *known = Opening {
                block: *first,
                state,
            };
        }
        known.state.finish(rest)
    }

    /// The canonical request of the last signature.
    pub(crate) fn canonical(&self) -> &[u8] {
        &self.canonical
    }

    /// Signature of a chunk of a signed streaming body: `previous` is the signature before it,
    /// `digest` the SHA-256 of its data.
    pub(crate) fn sign_chunk(&self, previous: &Signature, digest: &[u8; 32]) -> Signature {
        let digest = encode::hex32(digest);
        self.sign_lines(
            b"AWS4-HMAC-SHA256-PAYLOAD",
            previous,
            &[EMPTY_SHA256, &digest],
        )
    }

    /// Signature of the trailer whose canonical form (`name:value\n`) hashes to `digest`.
    pub(crate) fn sign_trailer(&self, previous: &Signature, digest: &[u8; 32]) -> Signature {
        let digest = encode::hex32(digest);
        self.sign_lines(b"AWS4-HMAC-SHA256-TRAILER", previous, &[&digest])
    }

    fn sign_lines(&self, algorithm: &[u8], previous: &Signature, hashes: &[&[u8]]) -> Signature {
        // Longer region names than AWS has would overflow a fixed buffer, so this one may grow.
        thread_local! {
            static LINES: std::cell::RefCell<Vec<u8>> =
                std::cell::RefCell::new(Vec::with_capacity(512));
        }
        LINES.with_borrow_mut(|lines| {
            lines.clear();
            push_lines(lines, &[algorithm, &self.timestamp, &self.scope, previous]);
            push_lines(lines, hashes);
            lines.pop();
            encode::hex32(&self.key.mac(lines))
        })
    }
}

fn push_lines(out: &mut Vec<u8>, lines: &[&[u8]]) {
    for line in lines {
        out.extend_from_slice(line);
        out.push(b'\n');
    }
}

/// The signing key: `HMAC(HMAC(HMAC(HMAC("AWS4" + secret, date), region), service),
/// "aws4_request")`.
fn derive_key(credentials: &Credentials, date: &[u8], region: &str) -> HmacKey {
    let secret = [b"AWS4", credentials.secret_key.expose().as_bytes()].concat();
    [date, region.as_bytes(), SERVICE, TERMINATOR]
        .into_iter()
        .fold(HmacKey::new(&secret), |key, part| {
            HmacKey::new(&key.mac(part))
        })
}

/// `second` (since 1970) as `YYYYMMDDTHHMMSSZ`.
fn timestamp(second: u64) -> [u8; 16] {
    // Beyond the year 9999 only a broken clock can lead.
    let at = i64::try_from(second)
        .ok()
        .and_then(|s| time::OffsetDateTime::from_unix_timestamp(s).ok())
        .unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    let mut out = *b"00000000T000000Z";
    let mut put = |at: usize, digits: usize, mut value: u32| {
        for i in (at..at + digits).rev() {
            out[i] = b'0' + (value % 10) as u8;
            value /= 10;
        }
    };
    put(0, 4, at.year().unsigned_abs());
    put(4, 2, u32::from(u8::from(at.month())));
    put(6, 2, u32::from(at.day()));
    put(9, 2, u32::from(at.hour()));
    put(11, 2, u32::from(at.minute()));
    put(13, 2, u32::from(at.second()));
    out
}

#[cfg(test)]
#[path = "sign_tests.rs"]
mod tests;
