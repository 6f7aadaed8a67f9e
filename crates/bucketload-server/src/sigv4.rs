//! Verifying AWS Signature Version 4: headers, presigned URLs and the seed of streamed payloads
//! (`aws_chunked` checks the chunk signatures).
//!
//! The algorithm follows "Authenticating Requests (AWS Signature Version 4)" of the Amazon S3 API
//! reference. A [`Verifier`] belongs to one thread and caches the HMAC state of the day's signing key,
//! so a check costs the canonical request's hash plus four more blocks.

use bucketload_s3::date;
use bucketload_s3::encode::hex32;
use bucketload_s3::sha256::HmacKey;
use bucketload_s3::sigv4::{ALGORITHM, Hash, Signing, same, signing_key};

use super::canonical::Canonical;
use super::claim::{AuthorizationReader, Claim, PayloadAuth, payload_auth, split_credential};
use super::config::Access;
use super::error::{Code, S3Error, S3Result};
use super::headers::{Headers, Name};
use super::sigv2;
use super::uri::Target;

/// Maximum difference between the request's date and the server's, in seconds.
const MAX_SKEW: u64 = 15 * 60;
/// Maximum lifetime of a presigned URL, in seconds (7 days).
const MAX_EXPIRES: u64 = 7 * 86_400;

/// A key pair for signing requests. `Debug` hides the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyPair {
    /// The access key id, which requests name.
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

/// The state for verifying the chunks of a streamed payload.
#[derive(Clone)]
pub(crate) struct ChunkSigner {
    /// The day's signing key.
    pub(crate) key: HmacKey,
    /// `x-amz-date`.
    pub(crate) timestamp: Box<str>,
    /// The credential scope.
    pub(crate) scope: Box<str>,
    /// The signature of the request's head, which the first chunk's signature chains to.
    pub(crate) seed: Hash,
}

impl ChunkSigner {
    pub(crate) fn signing(&self) -> Signing<'_> {
        Signing {
            key: &self.key,
            timestamp: self.timestamp.as_bytes(),
            scope: self.scope.as_bytes(),
        }
    }
}

/// An authorised request.
pub(crate) struct Verified {
    /// How the signature covers the payload.
    pub(crate) payload: PayloadAuth,
    /// The verification state for signed chunks.
    pub(crate) chunks: Option<Box<ChunkSigner>>,
}

impl From<PayloadAuth> for Verified {
    fn from(payload: PayloadAuth) -> Self {
        Self {
            payload,
            chunks: None,
        }
    }
}

/// Verifies requests against one key pair and region; one per thread.
pub(crate) struct Verifier {
    keys: KeyPair,
    region: String,
    access: Access,
    /// Date (`YYYYMMDD`) and HMAC state of the most recent signing key.
    cached: ([u8; 8], HmacKey),
    reader: AuthorizationReader,
    canonical: Canonical,
}

impl Verifier {
    /// A verifier for requests signed with `keys` for `region`, under the policy `access`.
    pub(crate) fn new(keys: KeyPair, region: String, access: Access) -> Self {
        let cached = (*b"00000000", HmacKey::new(b""));
        Self {
            keys,
            region,
            access,
            cached,
            reader: AuthorizationReader::default(),
            canonical: Canonical::default(),
        }
    }

    /// Verifies the signature of the request with `method`, `target` and `headers` at `now`
    /// (seconds since 1970).
    ///
    /// # Errors
    /// The S3 error for the defect; the module's tests list them.
    pub(crate) fn verify(
        &mut self,
        method: &str,
        target: &mut Target,
        headers: &Headers<'_, '_>,
        now: u64,
    ) -> S3Result<Verified> {
        if self.access == Access::Unchecked {
            let sha256 = headers.bytes(Name::ContentSha256);
            let sha256 = sha256.or_else(|| target.param("X-Amz-Content-Sha256").map(str::as_bytes));
            return Ok(payload_auth(sha256)?.into());
        }
        if let Some(value) = headers.text(Name::Authorization)? {
            if let Some(claim) = value.strip_prefix("AWS ") {
                return self.verify_version_2(claim, method, target, headers, now);
            }
            return self.verify_header(value, method, target, headers, now);
        }
        if target.has("X-Amz-Signature") || target.has("X-Amz-Algorithm") {
            return self.verify_presigned(method, target, headers, now);
        }
        if sigv2::is_presigned(target) {
            sigv2::verify(&self.keys, method, target, headers, now)?;
            return Ok(PayloadAuth::Unsigned.into());
        }
        if self.access == Access::Signed {
            return Err(Code::AccessDenied.into());
        }
        let payload = payload_auth(headers.bytes(Name::ContentSha256))?;
        match payload {
            PayloadAuth::SignedChunks { .. } => Err(S3Error::new(
                Code::InvalidRequest,
                "Signed chunks need a signed request.",
            )),
            payload => Ok(payload.into()),
        }
    }

    fn verify_version_2(
        &self,
        claim: &str,
        method: &str,
        target: &Target,
        headers: &Headers<'_, '_>,
        now: u64,
    ) -> S3Result<Verified> {
        let time = sigv2::verify_header(&self.keys, claim, method, target, headers)?;
        if now.abs_diff(time) > MAX_SKEW {
            return Err(Code::RequestTimeTooSkewed.into());
        }
        match payload_auth(headers.bytes(Name::ContentSha256))? {
            PayloadAuth::SignedChunks { .. } => Err(S3Error::new(
                Code::InvalidRequest,
                "Signed chunks need a signature of version 4.",
            )),
            payload => Ok(payload.into()),
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
        let claim = self.reader.read(value, headers, &mut date_text)?;
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
        self.canonical.cover(claim.signed_headers, headers)?;
        let signature = self.check_signature(&claim, method, target, headers, sha256)?;
        let chunks = matches!(payload, PayloadAuth::SignedChunks { .. }).then(|| {
            Box::new(ChunkSigner {
                key: self.cached.1,
                timestamp: claim.amz_date.into(),
                scope: claim.scope.into(),
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
        self.canonical.cover(claim.signed_headers, headers)?;
        let sha256 = headers
            .bytes(Name::ContentSha256)
            .or_else(|| target.param("X-Amz-Content-Sha256").map(str::as_bytes))
            .unwrap_or(b"UNSIGNED-PAYLOAD")
            .to_vec();
        let payload = payload_auth(Some(&sha256));
        if matches!(payload, Ok(PayloadAuth::SignedChunks { .. })) {
            return Err(S3Error::new(
                Code::InvalidRequest,
                "A presigned URL cannot cover signed chunks.",
            ));
        }
        // A hash that the URL was not signed for breaks the signature, whatever it looks like.
        self.check_signature(&claim, method, target, headers, &sha256)?;
        Ok(payload?.into())
    }

    /// Checks date, key and scope. Returns the request's time in seconds since 1970.
    fn check_claim(&mut self, claim: &Claim<'_>, malformed: Code) -> S3Result<u64> {
        let time = date::parse_basic(claim.amz_date.as_bytes()).ok_or_else(|| {
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
                signing_key(self.keys.secret_key.as_bytes(), &date, &self.region),
            );
        }
        Ok(time)
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
        let digest = self
            .canonical
            .digest(method, target, headers, claim.signed_headers, sha256);
        let signing = Signing {
            key: &self.cached.1,
            timestamp: claim.amz_date.as_bytes(),
            scope: claim.scope.as_bytes(),
        };
        let signature = signing.request(&digest);
        if same(claim.signature.as_bytes(), &hex32(&signature)) {
            Ok(signature)
        } else {
            Err(Code::SignatureDoesNotMatch.into())
        }
    }
}

#[cfg(test)]
#[path = "sigv4_tests.rs"]
mod tests;
