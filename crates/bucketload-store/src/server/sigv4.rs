//! AWS Signature Version 4, the verifying side: headers, presigned URLs and the seed of streamed
//! payloads (chunk signatures are checked in `aws_chunked`).
//!
//! The algorithm follows "Authenticating Requests (AWS Signature Version 4)" of the Amazon S3 API
//! reference. A [`Verifier`] belongs to one thread and keeps the HMAC state of the day's signing key, so that a check
//! costs the canonical request's hash and four more blocks.

use sha2::{Digest, Sha256};

use super::clock;
use super::error::{Code, S3Error, S3Result};
use super::headers::{Headers, Name};
use super::sigv2;
use super::uri::{self, Target};

/// How far the request's date may be from the server's, in seconds.
const MAX_SKEW: u64 = 15 * 60;
/// Longest life of a presigned URL, in seconds (7 days).
const MAX_EXPIRES: u64 = 7 * 86_400;
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// A 32-byte digest or signature.
pub(crate) type Hash = [u8; 32];

/// A key pair that may sign requests. `Debug` hides the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyPair {
    /// The access key id, as it stands in requests.
    pub access_key: String,
    /// The secret access key.
    pub secret_key: String,
}

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyPair")
            .field("access_key", &self.access_key)
            .finish_non_exhaustive()
    }
}

/// How the payload is covered by the signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadAuth {
    /// Not covered.
    Unsigned,
    /// Its SHA-256 is the given one.
    Sha256(Hash),
    /// `aws-chunked` with a signature on each chunk, and on the trailer if there is one.
    SignedChunks { trailer: bool },
    /// `aws-chunked` without signatures, with a trailer.
    UnsignedChunks,
}

/// HMAC-SHA256 with the key's two blocks absorbed beforehand.
#[derive(Clone)]
pub(crate) struct HmacKey {
    inner: Sha256,
    outer: Sha256,
}

impl HmacKey {
    /// Absorbs `key` (RFC 2104).
    pub(crate) fn new(key: &[u8]) -> Self {
        let mut block = [0; 64];
        if key.len() > 64 {
            block[..32].copy_from_slice(&Sha256::digest(key));
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        let (mut inner, mut outer) = (Sha256::new(), Sha256::new());
        inner.update(block.map(|b| b ^ 0x36));
        outer.update(block.map(|b| b ^ 0x5c));
        Self { inner, outer }
    }

    /// The MAC of the concatenated `parts`.
    pub(crate) fn mac(&self, parts: &[&[u8]]) -> Hash {
        let mut inner = self.inner.clone();
        for part in parts {
            inner.update(part);
        }
        let mut outer = self.outer.clone();
        outer.update(inner.finalize());
        outer.finalize().into()
    }
}

/// The key that signs requests of `date` (`YYYYMMDD`) in `region`.
pub(crate) fn signing_key(secret: &str, date: &str, region: &str) -> HmacKey {
    let start = [b"AWS4", secret.as_bytes()].concat();
    let mut key = HmacKey::new(&start).mac(&[date.as_bytes()]);
    for part in [region, "s3", "aws4_request"] {
        key = HmacKey::new(&key).mac(&[part.as_bytes()]);
    }
    HmacKey::new(&key)
}

/// Lower-case hexadecimal digits of `hash`.
pub(crate) fn to_hex(hash: &Hash) -> [u8; 64] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut out = [0; 64];
    for (pair, byte) in out.chunks_exact_mut(2).zip(hash) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 15)];
    }
    out
}

/// Reads 64 lower-case hexadecimal digits.
pub(crate) fn from_hex(text: &[u8]) -> Option<Hash> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let mut hash = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(hash)
}

/// Compares in time that does not depend on where the two differ.
pub(crate) fn same(a: &Hash, b: &Hash) -> bool {
    a.iter().zip(b).fold(0, |diff, (x, y)| diff | (x ^ y)) == 0
}

/// What a good signature hands on to the checks of a streamed payload.
#[derive(Clone)]
pub(crate) struct ChunkSigner {
    /// The day's signing key.
    pub(crate) key: HmacKey,
    /// `x-amz-date`, a newline, the credential scope, a newline.
    pub(crate) prefix: Box<str>,
    /// The signature before the first chunk's: that of the request's head.
    pub(crate) seed: Hash,
}

/// The outcome of a check.
pub(crate) struct Verified {
    /// How the payload is covered.
    pub(crate) payload: PayloadAuth,
    /// For signed chunks: what checks them.
    pub(crate) chunks: Option<Box<ChunkSigner>>,
}

/// Checks requests against one key pair and region; one per thread.
pub(crate) struct Verifier {
    keys: KeyPair,
    region: String,
    anonymous: bool,
    /// Date (`YYYYMMDD`) and HMAC state of the signing key used last.
    cached: ([u8; 8], HmacKey),
    canonical: Vec<u8>,
    /// Positions of the headers to sign, by signed name; kept to be used again.
    names: Vec<(usize, usize)>,
}

/// The five parts of a credential and what comes with it.
struct Claim<'a> {
    access_key: &'a str,
    /// `YYYYMMDD/region/s3/aws4_request`.
    scope: &'a str,
    date: &'a str,
    signed_headers: &'a str,
    signature: &'a str,
    amz_date: &'a str,
    /// Seconds that a presigned URL lives.
    expires: Option<u64>,
}

impl Verifier {
    /// A verifier of requests signed by `keys` for `region`. `anonymous` lets requests without a
    /// signature pass.
    pub(crate) fn new(keys: KeyPair, region: String, anonymous: bool) -> Self {
        let cached = (*b"00000000", HmacKey::new(b""));
        Self {
            keys,
            region,
            anonymous,
            cached,
            canonical: Vec::new(),
            names: Vec::new(),
        }
    }

    /// Checks the signature of a request whose head is `method`, `target` and `headers`, at `now`
    /// (seconds since 1970).
    ///
    /// # Errors
    /// The S3 error that tells what is wrong with it; see the module's tests for the list.
    pub(crate) fn verify(
        &mut self,
        method: &str,
        target: &mut Target,
        headers: &Headers<'_, '_>,
        now: u64,
    ) -> S3Result<Verified> {
        if let Some(value) = headers.text(Name::Authorization)? {
            return self.verify_header(value, method, target, headers, now);
        }
        if target.has("X-Amz-Signature") || target.has("X-Amz-Algorithm") {
            return self.verify_presigned(method, target, headers, now);
        }
        if sigv2::is_presigned(target) {
            sigv2::verify(&self.keys, method, target, headers, now)?;
            return Ok(Verified {
                payload: PayloadAuth::Unsigned,
                chunks: None,
            });
        }
        if !self.anonymous {
            return Err(Code::AccessDenied.into());
        }
        let payload = payload_auth(headers.bytes(Name::ContentSha256))?;
        match payload {
            PayloadAuth::SignedChunks { .. } => Err(S3Error::new(
                Code::InvalidRequest,
                "Signed chunks need a signed request.",
            )),
            payload => Ok(Verified {
                payload,
                chunks: None,
            }),
        }
    }

    fn verify_header(
        &mut self,
        value: &str,
        method: &str,
        target: &mut Target,
        headers: &Headers<'_, '_>,
        now: u64,
    ) -> S3Result<Verified> {
        let mut date_text = [0; 16];
        let claim = parse_authorization(value, headers, &mut date_text)?;
        let sha256 = headers.bytes(Name::ContentSha256).ok_or_else(|| {
            S3Error::new(
                Code::InvalidRequest,
                "Missing required header for this request: x-amz-content-sha256",
            )
        })?;
        let payload = payload_auth(Some(sha256))?;
        let time = self.check_claim(&claim, Code::AuthorizationHeaderMalformed)?;
        if now.abs_diff(time) > MAX_SKEW {
            return Err(Code::RequestTimeTooSkewed.into());
        }
        self.check_coverage(claim.signed_headers, headers)?;
        let signature = self.check_signature(&claim, method, target, headers, sha256)?;
        let chunks = matches!(payload, PayloadAuth::SignedChunks { .. }).then(|| {
            Box::new(ChunkSigner {
                key: self.cached.1.clone(),
                prefix: [claim.amz_date, "\n", claim.scope, "\n"].concat().into(),
                seed: signature,
            })
        });
        Ok(Verified { payload, chunks })
    }

    fn verify_presigned(
        &mut self,
        method: &str,
        target: &mut Target,
        headers: &Headers<'_, '_>,
        now: u64,
    ) -> S3Result<Verified> {
        let malformed =
            |text: &'static str| S3Error::new(Code::AuthorizationQueryParametersError, text);
        let need = |name: &str| {
            target.param(name).map(str::to_owned).ok_or_else(|| {
                malformed(
                    "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, \
                     X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.",
                )
            })
        };
        let (algorithm, credential) = (need("X-Amz-Algorithm")?, need("X-Amz-Credential")?);
        let (signature, amz_date) = (need("X-Amz-Signature")?, need("X-Amz-Date")?);
        let (signed_headers, expires) = (need("X-Amz-SignedHeaders")?, need("X-Amz-Expires")?);
        if algorithm != ALGORITHM {
            return Err(malformed(
                "X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\".",
            ));
        }
        let expires = super::headers::parse_u64(expires.as_bytes())
            .filter(|&seconds| (1..=MAX_EXPIRES).contains(&seconds))
            .ok_or_else(|| malformed("X-Amz-Expires must be between 1 and 604800 seconds."))?;
        let (access_key, scope, date) = split_credential(&credential).ok_or_else(|| {
            malformed("X-Amz-Credential must be ACCESS-KEY/YYYYMMDD/REGION/s3/aws4_request.")
        })?;
        let claim = Claim {
            access_key,
            scope,
            date,
            signed_headers: &signed_headers,
            signature: &signature,
            amz_date: &amz_date,
            expires: Some(expires),
        };
        let time = self.check_claim(&claim, Code::AuthorizationQueryParametersError)?;
        if time > now + MAX_SKEW {
            return Err(S3Error::new(
                Code::AccessDenied,
                "Request is not valid yet.",
            ));
        }
        if now > time + claim.expires.unwrap_or(0) {
            return Err(S3Error::new(Code::AccessDenied, "Request has expired."));
        }
        self.check_coverage(claim.signed_headers, headers)?;
        let sha256 = headers
            .bytes(Name::ContentSha256)
            .or_else(|| target.param("X-Amz-Content-Sha256").map(str::as_bytes))
            .unwrap_or(b"UNSIGNED-PAYLOAD")
            .to_vec();
        let payload = payload_auth(Some(&sha256))?;
        if matches!(payload, PayloadAuth::SignedChunks { .. }) {
            return Err(S3Error::new(
                Code::InvalidRequest,
                "A presigned URL cannot cover signed chunks.",
            ));
        }
        self.check_signature(&claim, method, target, headers, &sha256)?;
        Ok(Verified {
            payload,
            chunks: None,
        })
    }

    /// Checks date, key and scope; returns the request's time in seconds since 1970.
    fn check_claim(&mut self, claim: &Claim<'_>, malformed: Code) -> S3Result<u64> {
        let time = clock::parse_amz_date(claim.amz_date.as_bytes()).ok_or_else(|| {
            S3Error::new(
                Code::AccessDenied,
                "AWS authentication requires a valid Date or x-amz-date header.",
            )
        })?;
        let mut scope = claim.scope.splitn(4, '/');
        let (_, region) = (scope.next(), scope.next().unwrap_or_default());
        if region != self.region {
            let mut error = S3Error::new(
                malformed,
                format!(
                    "The region '{region}' is wrong; expecting '{}'.",
                    self.region
                ),
            );
            error.region = Some(self.region.as_str().into());
            return Err(error);
        }
        if scope.next() != Some("s3") || scope.next() != Some("aws4_request") {
            return Err(S3Error::new(
                malformed,
                "The credential scope must end in /s3/aws4_request.",
            ));
        }
        if !claim.amz_date.starts_with(claim.date) {
            return Err(S3Error::new(
                malformed,
                "The date of the credential scope is not the date of the request.",
            ));
        }
        if claim.access_key != self.keys.access_key {
            return Err(Code::InvalidAccessKeyId.into());
        }
        if claim.date.as_bytes() != self.cached.0 {
            let mut date = [0; 8];
            date.copy_from_slice(claim.date.as_bytes());
            self.cached = (
                date,
                signing_key(&self.keys.secret_key, claim.date, &self.region),
            );
        }
        Ok(time)
    }

    /// Makes sure that `host` and every `x-amz-` header are signed, and that every signed header
    /// is there; remembers where they stand.
    fn check_coverage(&mut self, signed: &str, headers: &Headers<'_, '_>) -> S3Result<()> {
        let denied = |text: &'static str| Err(S3Error::new(Code::AccessDenied, text));
        let all = headers.all();
        self.names.clear();
        let (mut has_host, mut covered) = (false, 0);
        for (number, name) in signed.split(';').enumerate() {
            has_host |= name == "host";
            let before = self.names.len();
            for (position, header) in all.iter().enumerate() {
                if header.name.eq_ignore_ascii_case(name) {
                    self.names.push((number, position));
                    covered += usize::from(must_be_signed(header.name));
                }
            }
            if self.names.len() == before {
                return denied("A header that is signed is missing from the request.");
            }
            if self.names.len() > all.len() {
                return denied("A header is named twice in the list of signed headers.");
            }
        }
        if !has_host {
            return denied("The host header must be signed.");
        }
        if covered
            < all
                .iter()
                .filter(|header| must_be_signed(header.name))
                .count()
        {
            return denied("There were headers present in the request which were not signed.");
        }
        Ok(())
    }

    /// Computes the signature and compares it with the claimed one.
    fn check_signature(
        &mut self,
        claim: &Claim<'_>,
        method: &str,
        target: &mut Target,
        headers: &Headers<'_, '_>,
        sha256: &[u8],
    ) -> S3Result<Hash> {
        let out = &mut self.canonical;
        out.clear();
        out.extend_from_slice(method.as_bytes());
        out.push(b'\n');
        uri::encode(out, target.path(), true);
        out.push(b'\n');
        target.canonical_query(out);
        out.push(b'\n');
        let mut last = usize::MAX;
        for &(number, position) in &self.names {
            let header = &headers.all()[position];
            if number == last {
                out.pop();
                out.push(b',');
            } else {
                out.extend(header.name.bytes().map(|c| c.to_ascii_lowercase()));
                out.push(b':');
                last = number;
            }
            push_collapsed(out, header.value.trim_ascii());
            out.push(b'\n');
        }
        out.push(b'\n');
        out.extend_from_slice(claim.signed_headers.as_bytes());
        out.push(b'\n');
        out.extend_from_slice(sha256);
        let digest = to_hex(&Sha256::digest(&out[..]).into());
        let signature = self.cached.1.mac(&[
            ALGORITHM.as_bytes(),
            b"\n",
            claim.amz_date.as_bytes(),
            b"\n",
            claim.scope.as_bytes(),
            b"\n",
            &digest,
        ]);
        match from_hex(claim.signature.as_bytes()) {
            Some(claimed) if same(&claimed, &signature) => Ok(signature),
            _ => Err(Code::SignatureDoesNotMatch.into()),
        }
    }
}

/// Headers that S3 wants signed wherever they stand in a request. The payload hash is part of every
/// canonical request anyway.
fn must_be_signed(name: &str) -> bool {
    name.len() > 6
        && name.as_bytes()[..6].eq_ignore_ascii_case(b"x-amz-")
        && !name.eq_ignore_ascii_case(Name::ContentSha256.text())
}

/// Appends `value` with every run of blanks made one.
fn push_collapsed(out: &mut Vec<u8>, value: &[u8]) {
    if !value.windows(2).any(|pair| pair == b"  ") {
        out.extend_from_slice(value);
        return;
    }
    let mut blank = false;
    for &byte in value {
        if byte != b' ' || !blank {
            out.push(byte);
        }
        blank = byte == b' ';
    }
}

fn version_2() -> S3Error {
    S3Error::new(
        Code::InvalidRequest,
        "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.",
    )
}

/// Splits `ACCESS-KEY/YYYYMMDD/REGION/s3/aws4_request` into key, scope and date.
fn split_credential(credential: &str) -> Option<(&str, &str, &str)> {
    // The access key may itself hold slashes: count from the right.
    let (at, _) = credential.rmatch_indices('/').nth(3)?;
    let scope = &credential[at + 1..];
    let date = scope
        .get(..8)
        .filter(|date| date.bytes().all(|c| c.is_ascii_digit()))?;
    (scope.as_bytes()[8] == b'/').then_some((&credential[..at], scope, date))
}

fn parse_authorization<'a>(
    value: &'a str,
    headers: &Headers<'_, 'a>,
    date_text: &'a mut [u8; 16],
) -> S3Result<Claim<'a>> {
    let malformed = |text: &'static str| S3Error::new(Code::AuthorizationHeaderMalformed, text);
    if value.starts_with("AWS ") {
        return Err(version_2());
    }
    let rest = value.strip_prefix(ALGORITHM).ok_or_else(|| {
        S3Error::new(
            Code::InvalidArgument,
            "Unsupported Authorization Type: only AWS4-HMAC-SHA256 is served.",
        )
    })?;
    let (mut credential, mut signed_headers, mut signature) = (None, None, None);
    for part in rest.split(',') {
        match part.trim().split_once('=') {
            Some(("Credential", value)) => credential = Some(value),
            Some(("SignedHeaders", value)) => signed_headers = Some(value),
            Some(("Signature", value)) => signature = Some(value),
            _ => return Err(malformed("The authorization header holds an unknown part.")),
        }
    }
    let (Some(credential), Some(signed_headers), Some(signature)) =
        (credential, signed_headers, signature)
    else {
        return Err(malformed(
            "The authorization header needs Credential, SignedHeaders and Signature.",
        ));
    };
    let (access_key, scope, date) = split_credential(credential).ok_or_else(|| {
        malformed("The credential must be ACCESS-KEY/YYYYMMDD/REGION/s3/aws4_request.")
    })?;
    let amz_date = match headers.text(Name::AmzDate)? {
        Some(date) => date,
        None => http_date_as_amz(headers.bytes(Name::Date), date_text)?,
    };
    Ok(Claim {
        access_key,
        scope,
        date,
        signed_headers,
        signature,
        amz_date,
        expires: None,
    })
}

/// The `Date` header in the form of `x-amz-date`, for clients that send only the former.
fn http_date_as_amz<'a>(date: Option<&[u8]>, out: &'a mut [u8; 16]) -> S3Result<&'a str> {
    let missing = || {
        S3Error::new(
            Code::AccessDenied,
            "AWS authentication requires a valid Date or x-amz-date header.",
        )
    };
    let time = date.and_then(clock::parse_http_date).ok_or_else(missing)?;
    let mut iso = Vec::with_capacity(24);
    clock::iso_date(&mut iso, time, 0);
    iso.retain(|c| !b"-:".contains(c));
    out[..15].copy_from_slice(&iso[..15]);
    out[15] = b'Z';
    std::str::from_utf8(out).map_err(|_| missing())
}

/// Reads `x-amz-content-sha256`.
fn payload_auth(value: Option<&[u8]>) -> S3Result<PayloadAuth> {
    Ok(match value {
        None | Some(b"UNSIGNED-PAYLOAD") => PayloadAuth::Unsigned,
        Some(b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD") => PayloadAuth::SignedChunks { trailer: false },
        Some(b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER") => PayloadAuth::SignedChunks { trailer: true },
        Some(b"STREAMING-UNSIGNED-PAYLOAD-TRAILER") => PayloadAuth::UnsignedChunks,
        Some(hex) => PayloadAuth::Sha256(from_hex(hex).ok_or_else(|| {
            S3Error::new(
                Code::InvalidArgument,
                "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, \
                 STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER, STREAMING-UNSIGNED-PAYLOAD-TRAILER or a SHA-256 in lower-case hex.",
            )
        })?),
    })
}

#[cfg(test)]
#[path = "sigv4_tests.rs"]
mod tests;
