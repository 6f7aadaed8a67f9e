//! The digests that a request body is checked against: the payload hash in its signature, and at most
//! one additional checksum, given in a header or in the trailer.

use bucketload_s3::sigv4::Hash;
use sha2::{Digest as _, Sha256};

use super::checksum::{
    ALGORITHMS, Sum, check_value, from_headers, from_name, header, mismatch, several_checksums,
};
use super::error::{Code, S3Error, S3Result};
use super::headers::{Headers, Name};
use bucketload_store::{Checksum, ChecksumAlgorithm};

/// The digests computed while a body passes, and their expected values.
#[derive(Default)]
pub(crate) struct Checks {
    // Boxed: most requests have neither, and the states are large.
    sha256: Option<Box<(Sha256, Hash)>>,
    sum: Option<Box<Sum>>,
    /// The expected checksum, if a header gives it.
    announced: Option<String>,
    in_trailer: bool,
}

impl Checks {
    /// The checks that the headers ask for. `payload` is the hash in the signature.
    ///
    /// # Errors
    /// `InvalidRequest` for contradictory headers.
    pub(crate) fn new(headers: &Headers<'_, '_>, payload: Option<Hash>) -> S3Result<Self> {
        let mut checks = Self::of_payload(payload);
        let trailer = match headers.text(Name::Trailer)? {
            Some(names) => Some(trailer_algorithm(names)?),
            None => None,
        };
        let algorithm = match (from_headers(headers)?, trailer) {
            (Some(_), Some(_)) => {
                return Err(several_checksums());
            }
            (Some(checksum), None) => {
                checks.announced = Some(checksum.value);
                Some(checksum.algorithm)
            }
            (None, Some(trailer)) => {
                checks.in_trailer = true;
                Some(trailer)
            }
            // Clients of MinIO let the server compute it.
            (None, None) => match headers.text(Name::ChecksumAlgorithm)? {
                Some(named) => Some(from_name(named)?),
                None => None,
            },
        };
        if let Some(named) = headers.text(Name::SdkChecksumAlgorithm)?
            && algorithm != Some(from_name(named)?)
        {
            return Err(S3Error::new(
                Code::InvalidRequest,
                "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were found.",
            ));
        }
        checks.add_sum(algorithm);
        Ok(checks)
    }

    /// Checks the payload hash only.
    pub(crate) fn of_payload(payload: Option<Hash>) -> Self {
        Self {
            sha256: payload.map(|hash| Box::new((Sha256::new(), hash))),
            ..Self::default()
        }
    }

    /// Whether an additional checksum is computed.
    pub(crate) fn has_sum(&self) -> bool {
        self.sum.is_some()
    }

    /// The algorithm of the additional checksum.
    pub(crate) fn algorithm(&self) -> Option<ChecksumAlgorithm> {
        self.sum.as_ref().map(|sum| sum.algorithm())
    }

    /// Computes an additional checksum with `algorithm`.
    pub(crate) fn add_sum(&mut self, algorithm: Option<ChecksumAlgorithm>) {
        self.sum = algorithm.map(|algorithm| Box::new(Sum::new(algorithm)));
    }

    /// Whether there is nothing to check.
    pub(crate) fn is_empty(&self) -> bool {
        self.sha256.is_none() && self.sum.is_none()
    }

    /// Adds a piece of payload.
    pub(crate) fn update(&mut self, data: &[u8]) {
        if let Some(state) = &mut self.sha256 {
            state.0.update(data);
        }
        if let Some(sum) = &mut self.sum {
            sum.update(data);
        }
    }

    /// Compares the digests after the last piece; `trailers` are the body's trailer lines. Returns the
    /// additional checksum to store with the object.
    ///
    /// # Errors
    /// `XAmzContentSHA256Mismatch`, `BadDigest`, `MalformedTrailerError`.
    pub(crate) fn finish(self, trailers: &[(String, String)]) -> S3Result<Option<Checksum>> {
        if let Some((sha256, announced)) = self.sha256.map(|state| *state)
            && Hash::from(sha256.finalize()) != announced
        {
            return Err(Code::XAmzContentSHA256Mismatch.into());
        }
        let Some(sum) = self.sum.map(|sum| sum.finish()) else {
            return Ok(None);
        };
        let algorithm = sum.algorithm;
        let announced = if self.in_trailer {
            let line = trailers.iter().find(|(name, _)| name == header(algorithm));
            let (_, value) = line.ok_or_else(|| {
                S3Error::new(
                    Code::MalformedTrailerError,
                    "The trailer lacks the checksum that x-amz-trailer announced.",
                )
            })?;
            Some(check_value(algorithm, value)?)
        } else {
            self.announced.as_deref()
        };
        if announced.is_some_and(|announced| announced != sum.value) {
            return Err(mismatch(algorithm));
        }
        Ok(Some(sum))
    }
}

fn trailer_algorithm(names: &str) -> S3Result<ChecksumAlgorithm> {
    let known = ALGORITHMS
        .iter()
        .find(|row| row.2.text().eq_ignore_ascii_case(names.trim()));
    known.map(|row| row.0).ok_or_else(|| {
        S3Error::new(
            Code::InvalidRequest,
            "The value specified in the x-amz-trailer header is not supported.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::headers::list;
    use bucketload_store::ChecksumKind;

    fn checks(headers: &[(&str, &str)]) -> S3Result<Checks> {
        Checks::new(&Headers::new(&list(headers))?, None)
    }

    #[test]
    fn header_and_trailer_checksums_are_compared() {
        let good = ("x-amz-checksum-crc32", "y/Q5Jg==");
        let mut c = checks(&[good, ("x-amz-sdk-checksum-algorithm", "CRC32")]).unwrap();
        c.update(b"123456789");
        let sum = c.finish(&[]).unwrap().unwrap();
        assert_eq!(
            (sum.algorithm, sum.kind, sum.value.as_str()),
            (ChecksumAlgorithm::Crc32, ChecksumKind::FullObject, good.1)
        );
        let mut c = checks(&[good]).unwrap();
        c.update(b"12345678");
        assert_eq!(c.finish(&[]).unwrap_err().code, Code::BadDigest);

        let trailer = ("x-amz-trailer", "x-amz-checksum-crc32");
        for (value, outcome) in [
            (Some("y/Q5Jg=="), None),
            (Some("y/Q5JA=="), Some(Code::BadDigest)),
            (Some("nonsense"), Some(Code::InvalidRequest)),
            (None, Some(Code::MalformedTrailerError)),
        ] {
            let mut c = checks(&[trailer]).unwrap();
            c.update(b"123456789");
            let lines: Vec<_> = value
                .map(|v| ("x-amz-checksum-crc32".to_owned(), v.to_owned()))
                .into_iter()
                .collect();
            assert_eq!(c.finish(&lines).err().map(|e| e.code), outcome, "{value:?}");
        }
    }

    #[test]
    fn contradictory_headers_are_refused() {
        let good = ("x-amz-checksum-crc32", "y/Q5Jg==");
        for bad in [
            &[good, ("x-amz-checksum-crc32c", "y/Q5Jg==")][..],
            &[good, ("x-amz-trailer", "x-amz-checksum-crc32")],
            &[good, ("x-amz-sdk-checksum-algorithm", "SHA1")],
            &[("x-amz-sdk-checksum-algorithm", "SHA1")],
            &[("x-amz-checksum-crc32", "y/Q5")],
            &[("x-amz-trailer", "x-other")],
        ] {
            assert_eq!(
                checks(bad).err().unwrap().code,
                Code::InvalidRequest,
                "{bad:?}"
            );
        }
    }
}
