//! Additional checksums: their names, their computation while bytes pass, and those of multipart
//! objects.
//!
//! [`Checks`] is what one request body is checked against: the payload hash of its signature and at
//! most one additional checksum, announced by a header or in the trailer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use crc_fast::CrcAlgorithm;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use super::error::{Code, S3Error, S3Result};
use super::headers::{Headers, Name};
use super::sigv4::Hash;
use crate::{Checksum, ChecksumAlgorithm, ChecksumKind};

use ChecksumAlgorithm::{Crc32, Crc32c, Crc64Nvme, Sha1 as AlgoSha1, Sha256 as AlgoSha256};

/// Every algorithm with its name in requests and XML, its header, and its length in bytes.
pub(crate) const ALGORITHMS: [(ChecksumAlgorithm, &str, Name, usize); 5] = [
    (Crc32, "CRC32", Name::ChecksumCrc32, 4),
    (Crc32c, "CRC32C", Name::ChecksumCrc32c, 4),
    (Crc64Nvme, "CRC64NVME", Name::ChecksumCrc64nvme, 8),
    (AlgoSha1, "SHA1", Name::ChecksumSha1, 20),
    (AlgoSha256, "SHA256", Name::ChecksumSha256, 32),
];

fn row(algorithm: ChecksumAlgorithm) -> &'static (ChecksumAlgorithm, &'static str, Name, usize) {
    &ALGORITHMS[match algorithm {
        Crc32 => 0,
        Crc32c => 1,
        Crc64Nvme => 2,
        AlgoSha1 => 3,
        AlgoSha256 => 4,
    }]
}

/// The algorithm's name in requests and, after `Checksum`, in XML.
pub(crate) fn name(algorithm: ChecksumAlgorithm) -> &'static str {
    row(algorithm).1
}

/// The header that carries the algorithm's value.
pub(crate) fn header(algorithm: ChecksumAlgorithm) -> &'static str {
    row(algorithm).2.text()
}

/// The name of `kind` in headers and XML.
pub(crate) fn kind_name(kind: ChecksumKind) -> &'static str {
    match kind {
        ChecksumKind::FullObject => "FULL_OBJECT",
        ChecksumKind::Composite => "COMPOSITE",
    }
}

/// The algorithm called `name`, in any case.
///
/// # Errors
/// `InvalidRequest` for an unknown name.
pub(crate) fn from_name(name: &str) -> S3Result<ChecksumAlgorithm> {
    let found = ALGORITHMS
        .iter()
        .find(|row| row.1.eq_ignore_ascii_case(name));
    found.map(|row| row.0).ok_or_else(|| {
        S3Error::new(
            Code::InvalidRequest,
            "Checksum algorithm provided is unsupported. Please try again with any of the valid types: \
             [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]",
        )
    })
}

/// The checksum that the request's headers carry, if any.
///
/// # Errors
/// `InvalidRequest` for more than one or for a value of the wrong length.
pub(crate) fn from_headers(headers: &Headers<'_, '_>) -> S3Result<Option<Checksum>> {
    let mut found = None;
    for &(algorithm, _, header, _) in &ALGORITHMS {
        let Some(value) = headers.text(header)? else {
            continue;
        };
        if found.is_some() {
            return Err(S3Error::new(
                Code::InvalidRequest,
                "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
            ));
        }
        found = Some(Checksum {
            algorithm,
            kind: ChecksumKind::FullObject,
            value: check_value(algorithm, value)?.to_owned(),
        });
    }
    Ok(found)
}

/// Makes sure that `value` can be a checksum by `algorithm`.
fn check_value(algorithm: ChecksumAlgorithm, value: &str) -> S3Result<&str> {
    let &(_, _, header, length) = row(algorithm);
    if BASE64
        .decode(value)
        .is_ok_and(|bytes| bytes.len() == length)
    {
        Ok(value)
    } else {
        let text = format!("Value for {} header is invalid.", header.text());
        Err(S3Error::new(Code::InvalidRequest, text))
    }
}

/// A checksum in the making.
pub(crate) enum Sum {
    /// 32 or 64 bits wide.
    Crc {
        digest: crc_fast::Digest,
        bytes: usize,
    },
    Sha1(Sha1),
    Sha256(Sha256),
}

impl Sum {
    /// Starts a sum by `algorithm`.
    pub(crate) fn new(algorithm: ChecksumAlgorithm) -> Self {
        match algorithm {
            AlgoSha1 => Self::Sha1(Sha1::new()),
            AlgoSha256 => Self::Sha256(Sha256::new()),
            crc => Self::Crc {
                digest: crc_fast::Digest::new(crc_algorithm(crc)),
                bytes: row(crc).3,
            },
        }
    }

    /// Adds `data`.
    pub(crate) fn update(&mut self, data: &[u8]) {
        match self {
            Self::Crc { digest, .. } => digest.update(data),
            Self::Sha1(sha) => sha.update(data),
            Self::Sha256(sha) => sha.update(data),
        }
    }

    /// The value in base64.
    pub(crate) fn value(self) -> String {
        match self {
            Self::Crc { digest, bytes } => crc_value(digest.finalize(), bytes),
            Self::Sha1(sha) => BASE64.encode(sha.finalize()),
            Self::Sha256(sha) => BASE64.encode(sha.finalize()),
        }
    }
}

fn crc_algorithm(algorithm: ChecksumAlgorithm) -> CrcAlgorithm {
    match algorithm {
        Crc32c => CrcAlgorithm::Crc32Iscsi,
        Crc64Nvme => CrcAlgorithm::Crc64Nvme,
        _ => CrcAlgorithm::Crc32IsoHdlc,
    }
}

fn crc_value(crc: u64, bytes: usize) -> String {
    BASE64.encode(&crc.to_be_bytes()[8 - bytes..])
}

/// What a request body has to satisfy, and what is computed while it passes.
#[derive(Default)]
pub(crate) struct Checks {
    // Boxed: most requests have neither, and the states are large.
    sha256: Option<Box<(Sha256, Hash)>>,
    sum: Option<Box<(ChecksumAlgorithm, Sum)>>,
    /// The value given by a header; with `None` the trailer gives it.
    announced: Option<String>,
    in_trailer: bool,
}

impl Checks {
    /// The checks that the request's head asks for. `payload` is the hash in its signature.
    ///
    /// # Errors
    /// `InvalidRequest` for headers that contradict each other.
    pub(crate) fn new(headers: &Headers<'_, '_>, payload: Option<Hash>) -> S3Result<Self> {
        let mut checks = Self::of_payload(payload);
        let trailer = match headers.text(Name::Trailer)? {
            Some(names) => Some(trailer_algorithm(names)?),
            None => None,
        };
        let algorithm = match (from_headers(headers)?, trailer) {
            (Some(_), Some(_)) => {
                return Err(S3Error::new(
                    Code::InvalidRequest,
                    "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
                ));
            }
            (Some(checksum), None) => {
                checks.announced = Some(checksum.value);
                Some(checksum.algorithm)
            }
            (None, trailer) => {
                checks.in_trailer = trailer.is_some();
                trailer
            }
        };
        if let Some(named) = headers.text(Name::SdkChecksumAlgorithm)?
            && algorithm != Some(from_name(named)?)
        {
            return Err(S3Error::new(
                Code::InvalidRequest,
                "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were found.",
            ));
        }
        checks.sum = algorithm.map(|algorithm| Box::new((algorithm, Sum::new(algorithm))));
        Ok(checks)
    }

    /// Checks of a payload hash alone.
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

    /// Computes a checksum by `algorithm` that the request does not announce.
    pub(crate) fn add_sum(&mut self, algorithm: Option<ChecksumAlgorithm>) {
        self.sum = algorithm.map(|algorithm| Box::new((algorithm, Sum::new(algorithm))));
    }

    /// Whether nothing looks at the bytes.
    pub(crate) fn is_empty(&self) -> bool {
        self.sha256.is_none() && self.sum.is_none()
    }

    /// Adds a piece of payload.
    pub(crate) fn update(&mut self, data: &[u8]) {
        if let Some(state) = &mut self.sha256 {
            state.0.update(data);
        }
        if let Some(state) = &mut self.sum {
            state.1.update(data);
        }
    }

    /// Compares, after the last piece; `trailers` are those of the body. Returns the additional
    /// checksum to keep with the object.
    ///
    /// # Errors
    /// `XAmzContentSHA256Mismatch`, `BadDigest`, `MalformedTrailerError`.
    pub(crate) fn finish(self, trailers: &[(String, String)]) -> S3Result<Option<Checksum>> {
        if let Some((sha256, announced)) = self.sha256.map(|state| *state)
            && Hash::from(sha256.finalize()) != announced
        {
            return Err(Code::XAmzContentSHA256Mismatch.into());
        }
        let Some((algorithm, sum)) = self.sum.map(|state| *state) else {
            return Ok(None);
        };
        let value = sum.value();
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
        if announced.is_some_and(|announced| announced != value) {
            return Err(mismatch(algorithm));
        }
        Ok(Some(Checksum {
            algorithm,
            kind: ChecksumKind::FullObject,
            value,
        }))
    }
}

/// The answer to content that does not have the announced checksum.
pub(crate) fn mismatch(algorithm: ChecksumAlgorithm) -> S3Error {
    let text = format!(
        "The {} you specified did not match the calculated checksum.",
        name(algorithm)
    );
    S3Error::new(Code::BadDigest, text)
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

/// The checksum of an object made of `parts`: size in bytes and checksum of each.
///
/// A full-object CRC is combined from the parts' CRCs; a composite one is the checksum over the
/// parts' raw values, followed by their number. `None` where a part lacks the checksum.
pub(crate) fn of_parts(
    algorithm: ChecksumAlgorithm,
    kind: ChecksumKind,
    parts: &[(u64, Option<&Checksum>)],
) -> Option<Checksum> {
    let mut combined = 0;
    let mut sum = Sum::new(algorithm);
    for (number, (size, checksum)) in parts.iter().enumerate() {
        let checksum = checksum.filter(|c| c.algorithm == algorithm)?;
        let raw = BASE64.decode(&checksum.value).ok()?;
        if kind == ChecksumKind::FullObject {
            let crc = raw.iter().fold(0, |n, &byte| n << 8 | u64::from(byte));
            combined = if number == 0 {
                crc
            } else {
                crc_fast::checksum_combine(crc_algorithm(algorithm), combined, crc, *size)
            };
        } else {
            sum.update(&raw);
        }
    }
    let value = match kind {
        ChecksumKind::FullObject => crc_value(combined, row(algorithm).3),
        ChecksumKind::Composite => format!("{}-{}", sum.value(), parts.len()),
    };
    Some(Checksum {
        algorithm,
        kind,
        value,
    })
}

/// Algorithm and kind that a multipart upload announces.
///
/// # Errors
/// `InvalidRequest` for combinations that S3 does not have.
pub(crate) fn of_upload(
    headers: &Headers<'_, '_>,
) -> S3Result<Option<(ChecksumAlgorithm, ChecksumKind)>> {
    let kind = headers.text(Name::ChecksumType)?;
    let Some(algorithm) = headers.text(Name::ChecksumAlgorithm)? else {
        return match kind {
            None => Ok(None),
            Some(_) => Err(S3Error::new(
                Code::InvalidRequest,
                "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.",
            )),
        };
    };
    let algorithm = from_name(algorithm)?;
    let sha = matches!(algorithm, AlgoSha1 | AlgoSha256);
    let kind = match kind {
        None if algorithm == Crc64Nvme => ChecksumKind::FullObject,
        None => ChecksumKind::Composite,
        Some("FULL_OBJECT") if !sha => ChecksumKind::FullObject,
        Some("COMPOSITE") if algorithm != Crc64Nvme => ChecksumKind::Composite,
        Some(_) => {
            let text = format!(
                "The checksum type cannot be used with the {} checksum algorithm.",
                name(algorithm)
            );
            return Err(S3Error::new(Code::InvalidRequest, text));
        }
    };
    Ok(Some((algorithm, kind)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(algorithm: ChecksumAlgorithm, data: &[u8]) -> String {
        let mut sum = Sum::new(algorithm);
        sum.update(data);
        sum.value()
    }

    fn full(algorithm: ChecksumAlgorithm, data: &[u8]) -> Checksum {
        Checksum {
            algorithm,
            kind: ChecksumKind::FullObject,
            value: value(algorithm, data),
        }
    }

    /// Check values of the CRC catalogue and of FIPS 180, in base64.
    #[test]
    fn known_values() {
        let check = b"123456789";
        assert_eq!(
            value(Crc32, check),
            BASE64.encode(0xcbf4_3926u32.to_be_bytes())
        );
        assert_eq!(
            value(Crc32c, check),
            BASE64.encode(0xe306_9283u32.to_be_bytes())
        );
        assert_eq!(
            value(Crc64Nvme, check),
            BASE64.encode(0xae8b_1486_0a79_9888u64.to_be_bytes())
        );
        assert_eq!(value(AlgoSha1, b"abc"), "qZk+NkcGgWq6PiVxeFDCbJzQ2J0=");
        assert_eq!(
            value(AlgoSha256, b"abc"),
            "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="
        );
    }

    fn checks(headers: &[(&'static str, &'static str)]) -> S3Result<Checks> {
        let all: Vec<_> = headers
            .iter()
            .map(|(name, value)| httparse::Header {
                name,
                value: value.as_bytes(),
            })
            .collect();
        Checks::new(&Headers::new(&all)?, None)
    }

    #[test]
    fn header_and_trailer_checksums_are_compared() {
        let good = ("x-amz-checksum-crc32", "y/Q5Jg==");
        let mut c = checks(&[good, ("x-amz-sdk-checksum-algorithm", "CRC32")]).unwrap();
        c.update(b"123456789");
        assert_eq!(c.finish(&[]).unwrap(), Some(full(Crc32, b"123456789")));
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
    fn contradicting_headers_are_refused() {
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

    proptest! {
        #[test]
        fn combined_crcs_are_those_of_the_whole(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 1..6),
        ) {
            for algorithm in [Crc32, Crc32c, Crc64Nvme] {
                let sums: Vec<_> = parts.iter().map(|part| full(algorithm, part)).collect();
                let rows: Vec<_> =
                    parts.iter().zip(&sums).map(|(part, sum)| (part.len() as u64, Some(sum))).collect();
                let whole = of_parts(algorithm, ChecksumKind::FullObject, &rows).unwrap();
                prop_assert_eq!(whole, full(algorithm, &parts.concat()));
            }
        }
    }
}
