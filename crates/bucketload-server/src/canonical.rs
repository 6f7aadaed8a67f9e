//! The canonical request of Signature Version 4: the signed headers and the digest.

use bucketload_s3::encode::push_key;
use bucketload_s3::sha256::sha256;
use bucketload_s3::sigv4::Hash;

use super::error::{Code, S3Error, S3Result};
use super::headers::{Headers, Name};
use super::uri::Target;

/// Builds canonical requests in reused buffers.
#[derive(Debug, Default)]
pub(super) struct Canonical {
    text: Vec<u8>,
    /// Number of the signed name and position of the header, for each signed header.
    names: Vec<(usize, usize)>,
}

impl Canonical {
    /// Makes sure that `host` and every `x-amz-` header are signed and that every signed header is
    /// present, and records their positions.
    ///
    /// # Errors
    /// `AccessDenied`.
    pub(super) fn cover(&mut self, signed: &str, headers: &Headers<'_, '_>) -> S3Result<()> {
        let denied = |text: &'static str| Err(S3Error::new(Code::AccessDenied, text));
        let all = headers.all();
        self.names.clear();
        let (mut has_host, mut covered) = (false, 0);
        // Splits bytes, not `str`: the searcher behind `str::split` costs more than it saves here.
        for (number, name) in signed.as_bytes().split(|&c| c == b';').enumerate() {
            has_host |= name == b"host";
            let before = self.names.len();
            for (position, header) in all.iter().enumerate() {
                if header.name.as_bytes().eq_ignore_ascii_case(name) {
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

    /// The SHA-256 of the canonical request. Call [`Canonical::cover`] first.
    pub(super) fn digest(
        &mut self,
        method: &str,
        target: &mut Target,
        headers: &Headers<'_, '_>,
        signed: &str,
        payload: &[u8],
    ) -> Hash {
        let out = &mut self.text;
        out.clear();
        out.extend_from_slice(method.as_bytes());
        out.push(b'\n');
        push_key(out, target.path());
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
        out.extend_from_slice(signed.as_bytes());
        out.push(b'\n');
        out.extend_from_slice(payload);
        sha256(out)
    }
}

/// Whether S3 requires the header to be signed if present. The payload hash need not be: it is part of
/// every canonical request anyway.
fn must_be_signed(name: &str) -> bool {
    name.len() > 6
        && name.as_bytes()[..6].eq_ignore_ascii_case(b"x-amz-")
        && !name.eq_ignore_ascii_case(Name::ContentSha256.text())
}

/// Appends `value` with every run of spaces collapsed into one.
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
