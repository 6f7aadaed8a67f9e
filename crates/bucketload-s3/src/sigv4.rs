//! Signature Version 4: the signing key and the texts it signs ("Authenticating Requests (AWS Signature Version
//! 4)", Amazon S3 API Reference).

use crate::encode::hex32;
use crate::sha256::HmacKey;

/// The algorithm's name in requests.
pub const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The service in a credential scope.
pub const SERVICE: &str = "s3";
/// The end of a credential scope.
pub const TERMINATOR: &str = "aws4_request";
/// Hexadecimal SHA-256 of an empty body.
pub const EMPTY_SHA256: &[u8; 64] =
    b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A 32-byte digest or signature.
pub type Hash = [u8; 32];
/// A signature in hexadecimal.
pub type Signature = [u8; 64];

/// The key that signs requests of `date` (`YYYYMMDD`) in `region`:
/// `HMAC(HMAC(HMAC(HMAC("AWS4" + secret, date), region), service), "aws4_request")`.
#[must_use]
pub fn signing_key(secret: &[u8], date: &[u8], region: &str) -> HmacKey {
    let secret = [b"AWS4", secret].concat();
    [
        date,
        region.as_bytes(),
        SERVICE.as_bytes(),
        TERMINATOR.as_bytes(),
    ]
    .into_iter()
    .fold(HmacKey::new(&secret), |key, part| {
        HmacKey::new(&key.mac(part))
    })
}

/// The inputs that all signatures of one second share.
#[derive(Clone, Copy)]
pub struct Signing<'a> {
    /// The day's key.
    pub key: &'a HmacKey,
    /// `YYYYMMDDTHHMMSSZ`.
    pub timestamp: &'a [u8],
    /// `YYYYMMDD/REGION/s3/aws4_request`.
    pub scope: &'a [u8],
}

impl Signing<'_> {
    /// The signature of a request whose canonical form hashes to `digest`.
    #[must_use]
    pub fn request(&self, digest: &Hash) -> Hash {
        self.lines("", &[&hex32(digest)])
    }

    /// The signature of a chunk of a signed streaming body. `previous` is the preceding signature, `digest` the SHA-256
    /// of the chunk's data.
    #[must_use]
    pub fn chunk(&self, previous: &Signature, digest: &Hash) -> Hash {
        let digest = hex32(digest);
        self.lines("-PAYLOAD", &[previous, b"\n", EMPTY_SHA256, b"\n", &digest])
    }

    /// The signature of the trailer whose canonical form (`name:value\n`) hashes to `digest`.
    #[must_use]
    pub fn trailer(&self, previous: &Signature, digest: &Hash) -> Hash {
        self.lines("-TRAILER", &[previous, b"\n", &hex32(digest)])
    }

    fn lines(&self, kind: &str, rest: &[&[u8]]) -> Hash {
        let head = [
            ALGORITHM.as_bytes(),
            kind.as_bytes(),
            b"\n",
            self.timestamp,
            b"\n",
            self.scope,
            b"\n",
        ];
        self.key.mac_parts(head.iter().chain(rest).copied())
    }
}

/// True if both are equal; compares in constant time.
#[must_use]
pub fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |diff, (x, y)| diff | (x ^ y)) == 0
}
