//! Chunked transfer coding (RFC 9112 section 7.1) as an incremental state machine.
//!
//! The `aws-chunked` content coding has the same grammar with a `chunk-signature` extension on
//! every size line, so one decoder serves both. The decoder never holds body bytes: it tells the
//! caller which of the caller's bytes are body.

use super::HttpError;

/// Longest size line with its extensions, in bytes (a SigV4a chunk signature takes about 200).
const MAX_LINE: usize = 1024;
/// Longest trailer section in bytes.
const MAX_TRAILERS: usize = 16 * 1024;

/// The result of one decoding step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// All bytes shown are consumed. Show the following ones next.
    NeedMore,
    /// A chunk begins. [`ChunkedDecoder::extension`] holds what followed the size.
    Chunk {
        /// Size of the chunk in bytes; 0 for the last chunk.
        size: u64,
    },
    /// The last `len` of the consumed bytes are body.
    Data {
        /// Number of body bytes.
        len: usize,
    },
    /// A chunk's data is complete.
    ChunkEnd,
    /// The body is complete, trailers included.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In a size line.
    Size,
    /// In a chunk's data, with this many bytes still to come.
    Data(u64),
    /// Before the CR that ends a chunk's data.
    DataCr,
    /// Between that CR and its LF.
    DataLf,
    /// After the size line of the last chunk.
    LastChunk,
    /// In the trailer section; the count is the length of the current line so far.
    Trailers(usize),
    End,
}

const NO_CRLF: HttpError = HttpError::Chunk("trailer line without CRLF");

/// Decodes one body. [`ChunkedDecoder::reset`] prepares it for the next body and keeps its memory.
#[derive(Debug)]
pub struct ChunkedDecoder {
    state: State,
    /// The current size line, or the trailer section.
    line: Vec<u8>,
    /// Position of the extension in a complete size line.
    extension_at: usize,
    /// Whether a line of the trailer may end with LF CR LF.
    lf_lines: bool,
}

impl Default for ChunkedDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl ChunkedDecoder {
    /// A decoder at the start of a body.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: State::Size,
            line: Vec::new(),
            extension_at: 0,
            lf_lines: false,
        }
    }

    /// Accepts lines of the trailer that end with LF CR LF, as MinIO's clients send them.
    #[must_use]
    pub fn with_lf_lines(self) -> Self {
        Self {
            lf_lines: true,
            ..self
        }
    }

    /// Forgets the previous body.
    pub fn reset(&mut self) {
        self.state = State::Size;
        self.line.clear();
        self.extension_at = 0;
    }

    /// Decodes from the start of `bytes`. Returns how many of them are consumed and what they were.
    /// Call again with the rest until [`Event::NeedMore`] or [`Event::End`]; bytes after the end are
    /// not consumed.
    ///
    /// ```
    /// use bucketload_wire::http::{ChunkedDecoder, Event};
    ///
    /// let mut input = b"3\r\nabc\r\n0\r\n\r\n".as_slice();
    /// let (mut decoder, mut body) = (ChunkedDecoder::new(), Vec::new());
    /// loop {
    ///     let (n, event) = decoder.decode(input)?;
    ///     match event {
    ///         Event::Data { len } => body.extend_from_slice(&input[n - len..n]),
    ///         Event::End => break,
    ///         _ => {}
    ///     }
    ///     input = &input[n..];
    /// }
    /// assert_eq!(body, b"abc");
    /// # Ok::<(), bucketload_wire::http::HttpError>(())
    /// ```
    ///
    /// # Errors
    /// A violation of the grammar, or a line that is too long. The decoder must not be used any
    /// further then.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<(usize, Event), HttpError> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let (n, event) = match self.state {
                State::Size => self.size_line(rest)?,
                State::Data(0) => {
                    self.state = State::DataCr;
                    (0, Some(Event::ChunkEnd))
                }
                State::Data(left) if !rest.is_empty() => {
                    let len = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    self.state = State::Data(left - len as u64);
                    (len, Some(Event::Data { len }))
                }
                State::DataCr => self.line_end(rest, b'\r', State::DataLf)?,
                State::DataLf => {
                    self.line.clear();
                    self.line_end(rest, b'\n', State::Size)?
                }
                State::LastChunk => {
                    self.line.clear();
                    self.state = State::Trailers(0);
                    (0, None)
                }
                State::Trailers(line) => self.trailer_section(rest, line)?,
                State::End => (0, Some(Event::End)),
                State::Data(_) => (0, Some(Event::NeedMore)),
            };
            used += n;
            if let Some(event) = event {
                return Ok((used, event));
            }
        }
    }

    /// The rest of the current chunk's size line after `;`, such as `chunk-signature=…`. Valid from
    /// [`Event::Chunk`] until the chunk's end.
    #[must_use]
    pub fn extension(&self) -> &[u8] {
        match self.state {
            State::Data(_) | State::DataCr | State::LastChunk => &self.line[self.extension_at..],
            _ => &[],
        }
    }

    /// Names and values of the trailer fields. Empty before [`Event::End`].
    pub fn trailers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let section = match self.state {
            State::End => self.line.as_slice(),
            _ => &[],
        };
        section.split(|&b| b == b'\n').filter_map(|line| {
            let colon = line.iter().position(|&b| b == b':')?;
            let name = std::str::from_utf8(&line[..colon]).ok()?;
            Some((name.trim_ascii(), line[colon + 1..].trim_ascii()))
        })
    }

    fn size_line(&mut self, bytes: &[u8]) -> Result<(usize, Option<Event>), HttpError> {
        let Some(end) = bytes.iter().position(|&b| b == b'\n') else {
            self.keep(bytes, MAX_LINE, "size line too long")?;
            return Ok((bytes.len(), Some(Event::NeedMore)));
        };
        self.keep(&bytes[..end], MAX_LINE, "size line too long")?;
        if self.line.pop() != Some(b'\r') {
            return Err(HttpError::Chunk("size line without CRLF"));
        }
        let line = self.line.as_slice();
        let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        if digits == 0 || digits > 16 {
            return Err(HttpError::Chunk("size is not a hexadecimal number"));
        }
        let size = line[..digits].iter().fold(0u64, |n, &digit| {
            n << 4 | u64::from((digit as char).to_digit(16).unwrap_or(0))
        });
        let rest = &line[digits..];
        let blanks = rest.iter().take_while(|b| matches!(b, b' ' | b'\t'));
        let blanks = blanks.count();
        self.extension_at = match rest.get(blanks) {
            None => line.len(),
            Some(b';') => digits + blanks + 1,
            Some(_) => return Err(HttpError::Chunk("size is not a hexadecimal number")),
        };
        self.state = if size == 0 {
            State::LastChunk
        } else {
            State::Data(size)
        };
        Ok((end + 1, Some(Event::Chunk { size })))
    }

    /// Expects one byte of the line end after a chunk's data.
    fn line_end(
        &mut self,
        bytes: &[u8],
        want: u8,
        next: State,
    ) -> Result<(usize, Option<Event>), HttpError> {
        match bytes.first() {
            None => Ok((0, Some(Event::NeedMore))),
            Some(&byte) if byte == want => {
                self.state = next;
                Ok((1, None))
            }
            Some(_) => Err(HttpError::Chunk("data without CRLF")),
        }
    }

    fn trailer_section(
        &mut self,
        bytes: &[u8],
        mut line: usize,
    ) -> Result<(usize, Option<Event>), HttpError> {
        for (i, &byte) in bytes.iter().enumerate() {
            let before = i.checked_sub(1).map_or(self.line.last(), |j| bytes.get(j));
            let before = before.filter(|_| line > 0);
            match (before, byte) {
                (Some(b'\r'), b'\n') => {}
                (Some(b'\n'), b'\r') => {
                    line += 1;
                    continue;
                }
                (Some(b'\n'), _) => return Err(NO_CRLF),
                (Some(_), b'\n') if self.lf_lines => {
                    line += 1;
                    continue;
                }
                (_, b'\n') => return Err(NO_CRLF),
                _ => {
                    line += 1;
                    continue;
                }
            }
            if line == 1 {
                self.keep(&bytes[..=i], MAX_TRAILERS, "trailers too long")?;
                self.state = State::End;
                return Ok((i + 1, Some(Event::End)));
            }
            line = 0;
        }
        self.keep(bytes, MAX_TRAILERS, "trailers too long")?;
        self.state = State::Trailers(line);
        Ok((bytes.len(), Some(Event::NeedMore)))
    }

    fn keep(&mut self, bytes: &[u8], limit: usize, what: &'static str) -> Result<(), HttpError> {
        if self.line.len() + bytes.len() > limit {
            return Err(HttpError::Chunk(what));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ChunkedDecoder, Event, MAX_LINE, MAX_TRAILERS};
    use crate::http::HttpError;

    /// Everything a decoder reports about one body.
    #[derive(Debug, Default, PartialEq)]
    struct Decoded {
        body: Vec<u8>,
        chunks: Vec<(u64, Vec<u8>)>,
        trailers: Vec<(String, Vec<u8>)>,
        /// Number of bytes consumed, once the end was found.
        end: Option<usize>,
    }

    /// Decodes `input` in pieces that end at the given positions.
    fn decode(input: &[u8], cuts: &[usize]) -> Result<Decoded, HttpError> {
        decode_by(ChunkedDecoder::new(), input, cuts)
    }

    fn decode_by(
        mut decoder: ChunkedDecoder,
        input: &[u8],
        cuts: &[usize],
    ) -> Result<Decoded, HttpError> {
        let mut decoded = Decoded::default();
        let mut cuts = cuts.to_vec();
        cuts.sort_unstable();
        cuts.push(input.len());
        let mut at = 0;
        for cut in cuts {
            while at <= cut {
                let (n, event) = decoder.decode(&input[at..cut])?;
                match event {
                    Event::NeedMore => {
                        at += n;
                        assert_eq!(at, cut, "everything shown is consumed");
                        break;
                    }
                    Event::Chunk { size } => {
                        decoded.chunks.push((size, decoder.extension().to_vec()));
                    }
                    Event::Data { len } => {
                        decoded.body.extend_from_slice(&input[at + n - len..at + n]);
                    }
                    Event::ChunkEnd => assert!(decoder.extension().len() <= MAX_LINE),
                    Event::End => {
                        let trailers = decoder.trailers();
                        decoded.trailers = trailers
                            .map(|(name, value)| (name.to_owned(), value.to_vec()))
                            .collect();
                        decoded.end = Some(at + n);
                        return Ok(decoded);
                    }
                }
                at += n;
            }
        }
        Ok(decoded)
    }

    #[test]
    fn a_line_of_the_trailer_may_end_with_lf_crlf() {
        let lenient = || ChunkedDecoder::new().with_lf_lines();
        let input = b"0\r\na: 1\n\r\nb: 2\r\n\r\nnext";
        for cuts in [&[][..], &[7], &[8], &[9], &[10]] {
            let decoded = decode_by(lenient(), input, cuts).unwrap();
            let want = [
                ("a".to_owned(), b"1".to_vec()),
                ("b".to_owned(), b"2".to_vec()),
            ];
            assert_eq!((decoded.end, &decoded.trailers[..]), (Some(18), &want[..]));
        }
        for bad in [
            &b"0\r\na: 1\nb: 2\r\n\r\n"[..],
            b"0\r\n\n\r\n",
            b"0\r\na: 1\n\n\r\n",
        ] {
            assert!(decode_by(lenient(), bad, &[]).is_err());
        }
    }

    #[test]
    fn the_decoder_reads_extensions_and_trailers() {
        let input = b"4;chunk-signature=abc\r\nwiki\r\n5\r\npedia\r\n0;chunk-signature=d\r\n\
            x-amz-checksum-crc32:AAAA==\r\nx-amz-trailer-signature: e \r\n\r\nnext";
        let decoded = decode(input, &[]).unwrap();
        assert_eq!(decoded.body, b"wikipedia");
        assert_eq!(
            decoded.chunks,
            [
                (4, b"chunk-signature=abc".to_vec()),
                (5, Vec::new()),
                (0, b"chunk-signature=d".to_vec())
            ]
        );
        assert_eq!(
            decoded.trailers,
            [
                ("x-amz-checksum-crc32".to_owned(), b"AAAA==".to_vec()),
                ("x-amz-trailer-signature".to_owned(), b"e".to_vec())
            ]
        );
        assert_eq!(decoded.end, Some(input.len() - 4));
    }

    #[test]
    fn violations_are_refused() {
        for wrong in [
            "\r\n",
            "x\r\n",
            "4\n",
            "-1\r\n",
            "4 4\r\n",
            "11112222333344445\r\n",
            "4\r\nwikiX",
            "4\r\nwiki\rX",
            "4\r\nwiki\n",
            "0\r\na: b\n\r\n",
            "0\r\n\n",
        ] {
            let decoded = decode(wrong.as_bytes(), &[]);
            assert!(matches!(decoded, Err(HttpError::Chunk(_))), "{wrong:?}");
        }
        let line = format!("4;{}", "x".repeat(MAX_LINE));
        assert!(decode(line.as_bytes(), &[]).is_err());
        let trailers = format!("0\r\na: {}", "x".repeat(MAX_TRAILERS));
        assert!(decode(trailers.as_bytes(), &[]).is_err());
        assert!(decode(b"ffffffffffffffff\r\nx", &[]).is_ok());
    }

    #[test]
    fn a_reset_decoder_is_like_new() {
        let mut decoder = ChunkedDecoder::new();
        assert!(decoder.decode(b"5;e\r\n").is_ok());
        decoder.reset();
        assert_eq!(decoder.extension(), b"");
        assert_eq!(decoder.decode(b"0\r\n"), Ok((3, Event::Chunk { size: 0 })));
        assert_eq!(decoder.decode(b"\r\n"), Ok((2, Event::End)));
        assert_eq!(decoder.trailers().count(), 0);
    }

    fn encoded() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
        let chunk = (prop::collection::vec(any::<u8>(), 1..60), "[a-z=;]{0,9}");
        let trailer = ("[a-z-]{1,12}", "[ -~]{0,20}");
        (
            prop::collection::vec(chunk, 0..6),
            prop::collection::vec(trailer, 0..3),
        )
            .prop_map(|(chunks, trailers)| {
                let (mut body, mut wire) = (Vec::new(), Vec::new());
                for (data, extension) in chunks {
                    let semicolon = if extension.is_empty() { "" } else { ";" };
                    let line = format!("{:x}{semicolon}{extension}\r\n", data.len());
                    wire.extend_from_slice(line.as_bytes());
                    wire.extend_from_slice(&data);
                    wire.extend_from_slice(b"\r\n");
                    body.extend_from_slice(&data);
                }
                wire.extend_from_slice(b"0\r\n");
                for (name, value) in trailers {
                    wire.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
                }
                wire.extend_from_slice(b"\r\n");
                (body, wire)
            })
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_result(
            (body, wire) in encoded(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let whole = decode(&wire, &[]).unwrap();
            prop_assert_eq!(&whole.body, &body);
            prop_assert_eq!(whole.end, Some(wire.len()));
            let cuts: Vec<_> = cuts.iter().map(|cut| cut.index(wire.len())).collect();
            prop_assert_eq!(decode(&wire, &cuts).unwrap(), whole);
            let bytewise: Vec<_> = (0..wire.len()).collect();
            prop_assert_eq!(decode(&wire, &bytewise).unwrap().body, body);
        }

        #[test]
        fn the_outcome_does_not_depend_on_the_split(
            wire in prop::collection::vec(
                prop::sample::select(b"0123af;\r\n\r\n: x".to_vec()), 0..60),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let cuts: Vec<_> = cuts.iter().map(|cut| cut.index(wire.len() + 1)).collect();
            prop_assert_eq!(decode(&wire, &cuts), decode(&wire, &[]));
        }
    }
}
