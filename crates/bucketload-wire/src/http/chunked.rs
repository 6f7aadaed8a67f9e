//! Chunked transfer coding (RFC 9112 section 7.1) as an incremental state machine.
//!
//! The `aws-chunked` content coding has the same grammar with a `chunk-signature` extension on
//! every size line, so one decoder serves both. It never holds body bytes: the caller is told
//! which of the bytes it already has are body.

use super::HttpError;

/// Longest size line with its extensions, in bytes (a SigV4a chunk signature takes about 200).
const MAX_LINE: usize = 1024;
/// Longest trailer section in bytes.
const MAX_TRAILERS: usize = 16 * 1024;

/// What the bytes shown to the decoder are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing more can be decoded: the bytes shown are consumed, show the following ones.
    NeedMore,
    /// A chunk of `size` bytes begins (0: the last). [`ChunkedDecoder::extension`] holds what
    /// followed the size.
    Chunk {
        /// Bytes of the chunk.
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
    /// In a chunk's data, with so many bytes to come.
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

/// Decoder of one body. [`ChunkedDecoder::reset`] prepares it for the next and keeps its memory.
#[derive(Debug)]
pub struct ChunkedDecoder {
    state: State,
    /// The current size line, or the trailer section.
    line: Vec<u8>,
    /// Where the extension begins in a complete size line.
    extension_at: usize,
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
        }
    }

    /// Forgets the former body.
    pub fn reset(&mut self) {
        self.state = State::Size;
        self.line.clear();
        self.extension_at = 0;
    }

    /// Decodes from the start of `bytes`: returns how many of them are consumed and what they
    /// were. Call again with the rest until [`Event::NeedMore`] or [`Event::End`]; bytes after
    /// the end are not consumed.
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
    /// The violation of the grammar, or a line that is too long. The decoder must not be used
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

    /// What followed the size on the current chunk's size line, without the leading `;`, such as
    /// `chunk-signature=…`. Valid from [`Event::Chunk`] on until the chunk's end.
    #[must_use]
    pub fn extension(&self) -> &[u8] {
        match self.state {
            State::Data(_) | State::DataCr | State::LastChunk => &self.line[self.extension_at..],
            _ => &[],
        }
    }

    /// Names and values of the trailer fields, once [`Event::End`] was returned.
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
            return Err(HttpError::Chunk("size is no hexadecimal number"));
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
            Some(_) => return Err(HttpError::Chunk("size is no hexadecimal number")),
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
            if byte != b'\n' {
                line += 1;
                continue;
            }
            let before = i.checked_sub(1).map_or(self.line.last(), |j| bytes.get(j));
            if line == 0 || before != Some(&b'\r') {
                return Err(HttpError::Chunk("trailer line without CRLF"));
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
