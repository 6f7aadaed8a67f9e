//! The `aws-chunked` content encoding: chunks, their signatures and the trailer.
//!
//! ```text
//! 10000;chunk-signature=ad80…\r\n   size in hex; the signature in signed forms only
//! 65536 bytes\r\n
//! 0;chunk-signature=b6c6…\r\n
//! x-amz-checksum-crc32c:sOO8/Q==\r\n      trailer forms only
//! x-amz-trailer-signature:d81f…\r\n       signed trailer form only
//! \r\n
//! ```
//!
//! The decoder takes received bytes and returns slices of payload. The grammar is that of chunked
//! transfer coding, so `bucketload_wire` decodes the framing. Source: "Signature calculations for the
//! authorization header: transferring payload in multiple chunks", Amazon S3 API reference.

use bucketload_s3::encode::{hex32, parse_hex32};
use bucketload_s3::sha256::{Hasher, sha256};
use bucketload_s3::sigv4::{Hash, same};
use bucketload_wire::http::{ChunkedDecoder, Event, HttpError};

use super::error::{Code, S3Error, S3Result};
use super::sigv4::ChunkSigner;

/// Maximum number of trailer lines.
const MAX_TRAILERS: usize = 16;
const TRAILER_SIGNATURE: &str = "x-amz-trailer-signature";

/// Decodes one body.
pub(crate) struct AwsChunked {
    framing: ChunkedDecoder,
    done: bool,
    signer: Option<Signed>,
    /// Whether the request announced a trailer.
    expects_trailer: bool,
    trailers: Vec<(String, String)>,
}

struct Signed {
    signer: Box<ChunkSigner>,
    previous: Hash,
    claimed: Hash,
    hash: Hasher,
}

impl From<HttpError> for S3Error {
    fn from(error: HttpError) -> Self {
        Self::new(Code::InvalidRequest, error.to_string())
    }
}

impl AwsChunked {
    /// A decoder of signed chunks if there is a `signer`, else of unsigned ones.
    pub(crate) fn new(signer: Option<Box<ChunkSigner>>, expects_trailer: bool) -> Self {
        Self {
            framing: ChunkedDecoder::new().with_lf_lines(),
            done: false,
            signer: signer.map(|signer| Signed {
                previous: signer.seed,
                signer,
                claimed: [0; 32],
                hash: Hasher::NEW,
            }),
            expects_trailer,
            trailers: Vec::new(),
        }
    }

    /// Whether the body is complete, trailer included.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// The trailer's lines: name in lower case, and value.
    pub(crate) fn trailers(&self) -> &[(String, String)] {
        &self.trailers
    }

    /// Consumes a piece of `input` and returns its payload. Returns `None` when `input` is used up or
    /// the body is complete; the rest of `input` then belongs to the next request.
    ///
    /// # Errors
    /// `InvalidRequest` for broken framing, `SignatureDoesNotMatch`, `MalformedTrailerError`.
    pub(crate) fn next<'a>(&mut self, input: &mut &'a [u8]) -> S3Result<Option<&'a [u8]>> {
        while !self.done {
            let (n, event) = self.framing.decode(input)?;
            let (used, rest) = input.split_at(n);
            *input = rest;
            match event {
                Event::NeedMore => return Ok(None),
                Event::Chunk { size } => self.chunk_begins(size)?,
                Event::Data { len } => {
                    let data = &used[n - len..];
                    if let Some(signed) = &mut self.signer {
                        signed.hash.update(data);
                    }
                    return Ok(Some(data));
                }
                Event::ChunkEnd => {
                    if let Some(signed) = &mut self.signer {
                        signed.check_chunk()?;
                    }
                }
                Event::End => {
                    self.take_trailers()?;
                    self.done = true;
                }
            }
        }
        Ok(None)
    }

    fn chunk_begins(&mut self, size: u64) -> S3Result<()> {
        let Some(signed) = &mut self.signer else {
            return Ok(());
        };
        let signature = self.framing.extension().strip_prefix(b"chunk-signature=");
        signed.claimed = signature.and_then(parse_hex32).ok_or_else(|| {
            S3Error::new(
                Code::InvalidRequest,
                "A chunk has no valid chunk-signature.",
            )
        })?;
        if size == 0 {
            signed.check_chunk()
        } else {
            Ok(())
        }
    }

    fn take_trailers(&mut self) -> S3Result<()> {
        let bad = |text: &'static str| S3Error::new(Code::MalformedTrailerError, text);
        let mut canonical = Vec::new();
        let mut signature = None;
        for (name, value) in self.framing.trailers() {
            if !self.expects_trailer {
                return Err(bad("The request announces no trailer but has one."));
            }
            let value = std::str::from_utf8(value).map_err(|_| bad("The trailer is not UTF-8."))?;
            let name = name.to_ascii_lowercase();
            if name == TRAILER_SIGNATURE {
                signature = Some(value);
                continue;
            }
            if self.trailers.len() == MAX_TRAILERS {
                return Err(bad("The trailer has more than 16 lines."));
            }
            for part in [name.as_bytes(), b":", value.as_bytes(), b"\n"] {
                canonical.extend_from_slice(part);
            }
            self.trailers.push((name, value.to_owned()));
        }
        match (&self.signer, signature) {
            (Some(signed), Some(claimed)) => signed.check_trailer(&canonical, claimed),
            (Some(_), None) if self.expects_trailer => Err(bad("The trailer has no signature.")),
            _ => Ok(()),
        }
    }
}

impl Signed {
    /// Checks the complete chunk against the signature in its head.
    fn check_chunk(&mut self) -> S3Result<()> {
        let digest = std::mem::replace(&mut self.hash, Hasher::NEW).finish();
        let previous = hex32(&self.previous);
        let signature = self.signer.signing().chunk(&previous, &digest);
        if !same(&signature, &self.claimed) {
            return Err(Code::SignatureDoesNotMatch.into());
        }
        self.previous = signature;
        Ok(())
    }

    fn check_trailer(&self, lines: &[u8], claimed: &str) -> S3Result<()> {
        let previous = hex32(&self.previous);
        let signature = self.signer.signing().trailer(&previous, &sha256(lines));
        match parse_hex32(claimed.as_bytes()) {
            Some(claimed) if same(&claimed, &signature) => Ok(()),
            _ => Err(Code::SignatureDoesNotMatch.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use bucketload_s3::sigv4::signing_key;

    /// The key, date and scope of the examples in the Amazon S3 API reference.
    fn signer(seed: &str) -> Box<ChunkSigner> {
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        Box::new(ChunkSigner {
            key: signing_key(secret.as_bytes(), b"20130524", "us-east-1"),
            timestamp: "20130524T000000Z".into(),
            scope: "20130524/us-east-1/s3/aws4_request".into(),
            seed: parse_hex32(seed.as_bytes()).unwrap(),
        })
    }

    fn decode(decoder: &mut AwsChunked, body: &[u8], piece: usize) -> S3Result<Vec<u8>> {
        let mut out = Vec::new();
        for mut input in body.chunks(piece.max(1)) {
            while let Some(data) = decoder.next(&mut input)? {
                out.extend_from_slice(data);
            }
        }
        Ok(out)
    }

    fn documented(signatures: [&str; 3], tail: &str) -> Vec<u8> {
        let mut body = format!("10000;chunk-signature={}\r\n", signatures[0]).into_bytes();
        body.extend([b'a'; 65_536]);
        body.extend(format!("\r\n400;chunk-signature={}\r\n", signatures[1]).bytes());
        body.extend([b'a'; 1024]);
        body.extend(format!("\r\n0;chunk-signature={}\r\n{tail}\r\n", signatures[2]).bytes());
        body
    }

    #[test]
    fn the_documented_example_verifies() {
        let seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
        let mut body = documented(
            [
                "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
                "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
                "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
            ],
            "",
        );
        // The encoded length that the example states.
        assert_eq!(body.len(), 66_824);
        for piece in [1, 7, 4096, body.len()] {
            let mut decoder = AwsChunked::new(Some(signer(seed)), false);
            assert_eq!(
                decode(&mut decoder, &body, piece).unwrap(),
                vec![b'a'; 66_560]
            );
            assert!(decoder.is_done());
        }
        body[70_000 - 4000] ^= 1;
        let mut decoder = AwsChunked::new(Some(signer(seed)), false);
        let error = decode(&mut decoder, &body, 4096).unwrap_err();
        assert_eq!(error.code, Code::SignatureDoesNotMatch);
    }

    #[test]
    fn the_documented_trailer_verifies() {
        let seed = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e";
        let signatures = [
            "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
            "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
            "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
        ];
        let good = "x-amz-checksum-crc32c:sOO8/Q==\r\n\
            x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n";
        let mut decoder = AwsChunked::new(Some(signer(seed)), true);
        decode(&mut decoder, &documented(signatures, good), 100).unwrap();
        assert!(decoder.is_done());
        assert_eq!(
            decoder.trailers(),
            [("x-amz-checksum-crc32c".into(), "sOO8/Q==".into())]
        );
        for (tail, code) in [
            (good.replace("sOO8", "sOO9"), Code::SignatureDoesNotMatch),
            (good.replace("d81f", "d81e"), Code::SignatureDoesNotMatch),
            (
                "x-amz-checksum-crc32c:sOO8/Q==\r\n".into(),
                Code::MalformedTrailerError,
            ),
        ] {
            let mut decoder = AwsChunked::new(Some(signer(seed)), true);
            let error = decode(&mut decoder, &documented(signatures, &tail), 100).unwrap_err();
            assert_eq!(error.code, code, "{tail}");
        }
    }

    #[test]
    fn unsigned_chunks_and_the_next_request() {
        let body = b"5\r\nhello\r\n6\r\n world\r\n0\r\nX-Amz-Checksum-Crc32: DUoRhQ==\r\n\r\nGET /";
        let mut decoder = AwsChunked::new(None, true);
        let mut input = &body[..];
        let mut out = Vec::new();
        while let Some(data) = decoder.next(&mut input).unwrap() {
            out.extend_from_slice(data);
        }
        assert!(decoder.is_done());
        assert_eq!(out, b"hello world");
        assert_eq!(input, b"GET /");
        assert_eq!(
            decoder.trailers(),
            [("x-amz-checksum-crc32".into(), "DUoRhQ==".into())]
        );
    }

    #[test]
    fn broken_framing_is_refused() {
        for body in [
            &b"x\r\n"[..],
            b"\r\n",
            b"1\r\nab\r\n",
            b"0\r\na:b\r\n\r\n",
            b"12345678901234567\r\n",
        ] {
            let mut decoder = AwsChunked::new(None, false);
            assert!(decode(&mut decoder, body, 3).is_err(), "{body:?}");
        }
        let mut decoder = AwsChunked::new(None, false);
        assert!(decode(&mut decoder, &[b'0'; 5000], 100).is_err());
        let mut decoder = AwsChunked::new(Some(signer(&"0".repeat(64))), false);
        assert!(decode(&mut decoder, b"5\r\nhello\r\n", 100).is_err());
    }

    proptest! {
        #[test]
        fn any_chunking_decodes(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..8),
            piece in 1usize..60,
        ) {
            let mut body = Vec::new();
            for chunk in &chunks {
                body.extend(format!("{:x}\r\n", chunk.len()).bytes());
                body.extend(chunk);
                body.extend(b"\r\n");
            }
            body.extend(b"0\r\n\r\n");
            let mut decoder = AwsChunked::new(None, true);
            prop_assert_eq!(decode(&mut decoder, &body, piece).unwrap(), chunks.concat());
            prop_assert!(decoder.is_done());
        }

        #[test]
        fn any_bytes_are_safe(
            body in prop::collection::vec(any::<u8>(), 0..300), piece in 1usize..60,
            signed: bool, trailer: bool,
        ) {
            let signer = signed.then(|| signer(&"0".repeat(64)));
            let _ = decode(&mut AwsChunked::new(signer, trailer), &body, piece);
        }
    }
}
