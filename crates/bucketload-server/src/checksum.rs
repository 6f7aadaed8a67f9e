//! Additional checksums: their names, their computation, and the checksums of multipart objects.
//! `checks` compares them with request bodies.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use crc_fast::CrcAlgorithm;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use super::error::{Code, S3Error, S3Result};
use super::headers::{Headers, Name};
use bucketload_store::{Checksum, ChecksumAlgorithm, ChecksumKind};

use ChecksumAlgorithm::{Crc32, Crc32c, Crc64Nvme, Sha1 as AlgoSha1, Sha256 as AlgoSha256};

/// Each algorithm with its name in requests and XML, its header, and its length in bytes.
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

/// The algorithm's name in requests and in XML.
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

/// The checksum in the request's headers, if any. Drops the number of parts at the end of a composite
/// checksum (`-N`): some clients send it, some do not.
///
/// # Errors
/// `InvalidRequest` for more than one checksum, or for a value of the wrong length.
pub(crate) fn from_headers(headers: &Headers<'_, '_>) -> S3Result<Option<Checksum>> {
    let mut found = None;
    for &(algorithm, _, header, _) in &ALGORITHMS {
        let Some(value) = headers.text(header)? else {
            continue;
        };
        if found.is_some() {
            return Err(several_checksums());
        }
        found = Some(Checksum {
            algorithm,
            kind: ChecksumKind::FullObject,
            value: check_value(algorithm, without_count(value))?.to_owned(),
        });
    }
    Ok(found)
}

/// The error for a request with more than one checksum.
pub(super) fn several_checksums() -> S3Error {
    S3Error::new(
        Code::InvalidRequest,
        "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
    )
}

/// A checksum's value without its number of parts.
pub(crate) fn without_count(value: &str) -> &str {
    match value.split_once('-') {
        Some((sum, count)) if count.bytes().all(|c| c.is_ascii_digit()) => sum,
        _ => value,
    }
}

/// Makes sure that `value` has the form of a checksum by `algorithm`.
pub(super) fn check_value(algorithm: ChecksumAlgorithm, value: &str) -> S3Result<&str> {
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

/// A checksum being computed.
pub(crate) struct Sum {
    algorithm: ChecksumAlgorithm,
    digest: Digest,
}

enum Digest {
    /// 32 or 64 bits wide.
    Crc(crc_fast::Digest),
    Sha1(Sha1),
    Sha256(Sha256),
}

impl Sum {
    /// Starts a sum by `algorithm`.
    pub(crate) fn new(algorithm: ChecksumAlgorithm) -> Self {
        let digest = match algorithm {
            AlgoSha1 => Digest::Sha1(Sha1::new()),
            AlgoSha256 => Digest::Sha256(Sha256::new()),
            crc => Digest::Crc(crc_fast::Digest::new(crc_algorithm(crc))),
        };
        Self { algorithm, digest }
    }

    /// How it is computed.
    pub(crate) const fn algorithm(&self) -> ChecksumAlgorithm {
        self.algorithm
    }

    /// Adds `data`.
    pub(crate) fn update(&mut self, data: &[u8]) {
        match &mut self.digest {
            Digest::Crc(crc) => crc.update(data),
            Digest::Sha1(sha) => sha.update(data),
            Digest::Sha256(sha) => sha.update(data),
        }
    }

    /// The checksum of all data added.
    pub(crate) fn finish(self) -> Checksum {
        let value = match self.digest {
            Digest::Crc(crc) => crc_value(crc.finalize(), self.algorithm),
            Digest::Sha1(sha) => BASE64.encode(sha.finalize()),
            Digest::Sha256(sha) => BASE64.encode(sha.finalize()),
        };
        Checksum {
            algorithm: self.algorithm,
            kind: ChecksumKind::FullObject,
            value,
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

fn crc_value(crc: u64, algorithm: ChecksumAlgorithm) -> String {
    BASE64.encode(&crc.to_be_bytes()[8 - row(algorithm).3..])
}

/// The error for content that does not have the announced checksum.
pub(crate) fn mismatch(algorithm: ChecksumAlgorithm) -> S3Error {
    let text = format!(
        "The {} you specified did not match the calculated checksum.",
        name(algorithm)
    );
    S3Error::new(Code::BadDigest, text)
}

/// The checksum of an object made of `parts`, each given by its size in bytes and its checksum.
///
/// A full-object CRC is combined from the parts' CRCs. A composite checksum is the checksum of the
/// parts' raw checksums, followed by the number of parts. `None` if a part lacks the checksum.
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
        ChecksumKind::FullObject => crc_value(combined, algorithm),
        ChecksumKind::Composite => format!("{}-{}", sum.finish().value, parts.len()),
    };
    Some(Checksum {
        algorithm,
        kind,
        value,
    })
}

/// The checksum algorithm and kind that a multipart upload announces.
///
/// # Errors
/// `InvalidRequest` for combinations that S3 does not support.
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

    fn full(algorithm: ChecksumAlgorithm, data: &[u8]) -> Checksum {
        let mut sum = Sum::new(algorithm);
        sum.update(data);
        sum.finish()
    }

    /// Check values from the CRC catalogue and FIPS 180, in base64.
    #[test]
    fn known_values() {
        let value = |algorithm, data: &[u8]| full(algorithm, data).value;
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

    proptest! {
        #[test]
        fn combined_crcs_equal_those_of_the_whole(
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
