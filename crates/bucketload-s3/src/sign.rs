//! The SigV4 signer of one load thread and endpoint.
//!
//! Each part of a signature is computed only as often as it changes:
//!
//! ```text
//! per day      signing key: 4 HMACs, kept as the two states in which its HMACs begin
//! per second   string-to-sign up to the scope: its whole blocks absorbed into the inner state
//! per request  canonical request (4 blocks), rest of the string-to-sign (2), outer hash (1)
//! ```
//!
//! The first block of the canonical request holds the method and the beginning of the path. All objects of a run share
//! these, so the state after the block is kept for each method (`FirstBlock`).

use std::fmt;
use std::ops::Range;

use crate::canonical::{self, CachedStart, Frame, Parts, Ranges, Standing};
use crate::sha256::{HmacKey, Midstate, sha256};
use crate::sigv4::{ALGORITHM, SERVICE, Signature, Signing, TERMINATOR, signing_key};
use crate::{date, encode};

/// Signs requests with one set of credentials for one region.
pub struct Signer {
    access_key: String,
    secret_key: String,
    /// Token of temporary credentials; empty for none.
    token: String,
    region: String,
    /// The second (since 1970) that the fields below are valid for.
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
    /// The last canonical request.
    canonical: Vec<u8>,
    /// For plain requests of each kind ([`Standing`]).
    tails: [Tail; Standing::KINDS],
    first_blocks: [FirstBlock; METHOD_SLOTS],
    starts: [CachedStart; METHOD_SLOTS],
}

/// End of the canonical request of plain requests in this second.
#[derive(Default)]
struct Tail {
    /// The text, including the payload that it is valid for. Empty until the first such request.
    text: Vec<u8>,
    /// Where the header names are in it.
    names: Range<usize>,
}

/// Number of methods with a cache: see [`FirstBlock::slot`].
const METHOD_SLOTS: usize = 8;

/// The first block of the last canonical request of a method, and the state after it.
#[derive(Clone, Copy)]
struct FirstBlock {
    block: [u8; 64],
    state: Midstate,
}

impl FirstBlock {
    /// No canonical request begins with a zero byte.
    const NONE: Self = Self {
        block: [0; 64],
        state: Midstate::NEW,
    };

    /// The cache slot of methods that begin with `letter`: DELETE, GET, HEAD and PUT have one each; POST shares PUT's.
    const fn slot(letter: u8) -> usize {
        (letter ^ (letter >> 3)) as usize % METHOD_SLOTS
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

impl Signer {
    /// A signer for `region`. `token` belongs to temporary credentials; empty for none.
    #[must_use]
    pub fn new(access_key: &str, secret_key: &str, token: &str, region: &str) -> Self {
        Self {
            access_key: access_key.to_owned(),
            secret_key: secret_key.to_owned(),
            token: token.to_owned(),
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
            tails: Default::default(),
            first_blocks: [FirstBlock::NONE; METHOD_SLOTS],
            starts: Default::default(),
        }
    }

    /// Moves to the second `now` (since 1970); returns true if it changed.
    #[inline]
    pub fn at(&mut self, now: u64) -> bool {
        if now == self.second {
            return false;
        }
        self.move_to(now);
        true
    }

    #[cold]
    fn move_to(&mut self, now: u64) {
        self.second = now;
        self.timestamp = date::basic(now);
        self.tails.iter_mut().for_each(|tail| tail.text.clear());
        if self.day != now / 86_400 {
            self.day = now / 86_400;
            let date = &self.timestamp[..8];
            self.scope.clear();
            for part in [
                date,
                self.region.as_bytes(),
                SERVICE.as_bytes(),
                TERMINATOR.as_bytes(),
            ] {
                self.scope.extend_from_slice(part);
                self.scope.push(b'/');
            }
            self.scope.pop();
            self.key = signing_key(self.secret_key.as_bytes(), date, &self.region);
        }
        self.rest.clear();
        for line in [ALGORITHM.as_bytes(), &self.timestamp, &self.scope] {
            self.rest.extend_from_slice(line);
            self.rest.push(b'\n');
        }
        self.prefix = self.key.inner;
        let left = self.prefix.absorb(&self.rest).len();
        self.rest.drain(..self.rest.len() - left);
        self.rest_len = left;
    }

    /// `YYYYMMDDTHHMMSSZ`.
    #[inline]
    #[must_use]
    pub fn timestamp(&self) -> &[u8; 16] {
        &self.timestamp
    }

    /// `YYYYMMDD/REGION/s3/aws4_request`.
    #[must_use]
    pub fn scope(&self) -> &[u8] {
        &self.scope
    }

    /// The access key id.
    #[must_use]
    pub fn access_key(&self) -> &str {
        &self.access_key
    }

    /// Token of temporary credentials; empty for none.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Signs a request sent in the current second to the endpoint described by `frame`. The endpoint must be the same in
    /// every call; timestamp and token of `frame` are filled in here.
    #[inline]
    pub fn sign(&mut self, frame: Frame<'_>, parts: &Parts<'_>) -> (Signature, Ranges) {
        let frame = Frame {
            timestamp: &self.timestamp,
            token: &self.token,
            ..frame
        };
        let path = match parts.key {
            "" => canonical::begin(&mut self.canonical, frame, parts),
            _ => {
                let letter = parts.method.as_bytes().first().copied().unwrap_or(0);
                let start = &mut self.starts[FirstBlock::slot(letter)];
                start.begin(&mut self.canonical, frame, parts)
            }
        };
        let host_has_bucket = frame.virtual_host && !parts.bucket.is_empty();
        let names = if parts.headers.is_empty() && !host_has_bucket {
            // The payload is the last line, and no payload value is a suffix of another.
            let tail = &mut self.tails[parts.standing.number()];
            let known = tail.text.strip_suffix(parts.payload);
            if !known.is_some_and(|rest| rest.ends_with(b"\n")) {
                tail.text.clear();
                tail.names = canonical::end(&mut tail.text, frame, parts);
            }
            let at = self.canonical.len();
            self.canonical.extend_from_slice(&tail.text);
            at + tail.names.start..at + tail.names.end
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
        let known = &mut self.first_blocks[FirstBlock::slot(first[0])];
        if known.block != *first {
            let mut state = Midstate::NEW;
            state.absorb(first);
            *known = FirstBlock {
                block: *first,
                state,
            };
        }
        known.state.finish(rest)
    }

    /// The canonical request of the last signature.
    #[inline]
    #[must_use]
    pub fn canonical(&self) -> &[u8] {
        &self.canonical
    }

    /// Signs the body chunks of the last request.
    #[must_use]
    pub fn signing(&self) -> Signing<'_> {
        Signing {
            key: &self.key,
            timestamp: &self.timestamp,
            scope: &self.scope,
        }
    }
}

#[cfg(test)]
#[path = "sign_tests.rs"]
mod tests;
