//! Splits a byte stream into lines or JSON objects, in constant memory and for any input.
//!
//! A line or object above 4 MiB is reported as too long and skipped. A truncated JSON object (a line ends inside a
//! string, or a line begins with `{` before the object is complete) is reported as truncated, and reading continues
//! with the next object.

use std::io::{self, BufRead};

use crate::formats::Framing;
use crate::parsed::DropReason;

/// Maximum length of a line or object, bytes.
const MAX_FRAME: usize = 4 << 20;

/// Names of arrays in an object whose elements are the records.
const WRAPPERS: [&[u8]; 2] = [b"Records", b"log_entries"];

/// A frame, or the reason why a piece of input is not a frame, with the bytes that were kept.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line without its line end, or an object.
    Whole(&'a [u8]),
    /// A piece that is not a valid frame.
    Broken(DropReason, &'a [u8]),
}

/// Splits a stream into frames.
pub struct Frames<R> {
    input: R,
    framing: Framing,
    buffer: Vec<u8>,
    scanner: Scanner,
    state: ParseState,
    /// Whether the records are elements of an array in an object.
    wrapped: bool,
}

/// The parser's state in a stream of JSON objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParseState {
    /// Before an object.
    Between,
    /// After the opening brace of an object that truncated the previous one.
    Pending,
    /// Inside an object.
    Inside,
    /// Inside invalid input, up to the line end.
    Garbage,
    /// After the array of records, in the rest of the enclosing object.
    Tail,
}

/// The effect of a byte on the current object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Continue,
    Complete,
    Cut,
    /// The object is truncated, and this byte begins the next one.
    CutAndBegin,
}

/// Tracks the structure of JSON.
#[derive(Debug, Default)]
struct Scanner {
    /// Open braces and brackets inside the current object.
    depth: usize,
    in_string: bool,
    escaped: bool,
    line_start: bool,
    /// Start of the current string in the buffer.
    string_start: usize,
    /// Start and end of the last string in the buffer.
    last_string: (usize, usize),
}

impl Scanner {
    /// The state after an opening brace.
    fn inside() -> Self {
        Self {
            depth: 1,
            ..Self::default()
        }
    }

    fn step(&mut self, byte: u8, at: usize) -> Step {
        if self.in_string {
            match byte {
                b'\n' => return Step::Cut,
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => {
                    self.in_string = false;
                    self.last_string = (self.string_start, at);
                }
                _ => {}
            }
            return Step::Continue;
        }
        let line_start = std::mem::replace(&mut self.line_start, byte == b'\n');
        match byte {
            b'{' if line_start => return Step::CutAndBegin,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    return Step::Complete;
                }
            }
            b'"' => {
                self.in_string = true;
                self.string_start = at + 1;
            }
            _ => {}
        }
        Step::Continue
    }
}

impl<R: BufRead> Frames<R> {
    /// Makes the frames of `input`.
    pub fn new(input: R, framing: Framing) -> Self {
        Self {
            input,
            framing,
            buffer: Vec::new(),
            scanner: Scanner::default(),
            state: ParseState::Between,
            wrapped: false,
        }
    }

    /// The next frame; `None` at the end of the input.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn next_frame(&mut self) -> io::Result<Option<Frame<'_>>> {
        match self.framing {
            Framing::Lines => self.line(),
            Framing::Json => self.object(),
        }
    }

    fn line(&mut self) -> io::Result<Option<Frame<'_>>> {
        self.buffer.clear();
        let mut too_long = false;
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                if self.buffer.is_empty() {
                    return Ok(None);
                }
                break;
            }
            let end = memchr::memchr(b'\n', chunk);
            let taken = end.map_or(chunk.len(), |at| at + 1);
            if self.buffer.len() + taken <= MAX_FRAME {
                self.buffer.extend_from_slice(&chunk[..taken]);
            } else {
                too_long = true;
            }
            self.input.consume(taken);
            if end.is_some() {
                if self.buffer.trim_ascii().is_empty() && !too_long {
                    // Empty lines are skipped.
                    self.buffer.clear();
                    continue;
                }
                break;
            }
        }
        let line = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(Some(if too_long {
            Frame::Broken(DropReason::TooLong, line)
        } else {
            Frame::Whole(line)
        }))
    }

    fn object(&mut self) -> io::Result<Option<Frame<'_>>> {
        self.buffer.clear();
        if self.state == ParseState::Pending {
            self.begin();
        }
        let mut too_long = false;
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return Ok(match self.state {
                    ParseState::Inside => {
                        self.state = ParseState::Between;
                        Some(Frame::Broken(DropReason::Truncated, &self.buffer))
                    }
                    ParseState::Garbage => {
                        self.state = ParseState::Between;
                        Some(Frame::Broken(DropReason::Malformed, &self.buffer))
                    }
                    _ => None,
                });
            }
            let (mut taken, mut step) = (0, Step::Continue);
            while taken < chunk.len() && step == Step::Continue {
                let byte = chunk[taken];
                taken += 1;
                if matches!(self.state, ParseState::Inside | ParseState::Garbage) {
                    if self.buffer.len() < MAX_FRAME {
                        self.buffer.push(byte);
                    } else {
                        too_long = true;
                    }
                }
                match self.state {
                    ParseState::Between | ParseState::Pending => match byte {
                        b'{' => {
                            self.state = ParseState::Inside;
                            self.buffer.push(b'{');
                            self.scanner = Scanner::inside();
                        }
                        b']' if self.wrapped => {
                            self.state = ParseState::Tail;
                            self.scanner = Scanner::inside();
                        }
                        b'[' | b']' | b'}' | b',' | b' ' | b'\t' | b'\r' | b'\n' => {}
                        _ => {
                            self.state = ParseState::Garbage;
                            self.buffer.push(byte);
                        }
                    },
                    ParseState::Garbage => {
                        if byte == b'\n' {
                            step = Step::Cut;
                        }
                    }
                    ParseState::Tail => {
                        step = self.scanner.step(byte, 0);
                        if step != Step::Continue {
                            self.wrapped = false;
                            self.state = ParseState::Between;
                            if step == Step::CutAndBegin {
                                self.buffer.push(b'{');
                                self.state = ParseState::Inside;
                                self.scanner = Scanner::inside();
                            }
                            step = Step::Continue;
                        }
                    }
                    ParseState::Inside => {
                        let at = self.buffer.len() - 1;
                        step = self.scanner.step(byte, at);
                        let (start, end) = self.scanner.last_string;
                        if byte == b'['
                            && self.scanner.depth == 2
                            && !self.scanner.in_string
                            && WRAPPERS.contains(&&self.buffer[start.min(end)..end])
                        {
                            // The object only wraps the records, so it is dropped.
                            self.buffer.clear();
                            self.state = ParseState::Between;
                            self.wrapped = true;
                        }
                    }
                }
            }
            self.input.consume(taken);
            if step != Step::Continue {
                let garbage = self.state == ParseState::Garbage;
                self.state = ParseState::Between;
                if step == Step::CutAndBegin {
                    self.buffer.pop();
                    self.state = ParseState::Pending;
                }
                return Ok(Some(match step {
                    Step::Complete if too_long => Frame::Broken(DropReason::TooLong, &self.buffer),
                    Step::Complete => Frame::Whole(&self.buffer),
                    _ if garbage => Frame::Broken(DropReason::Malformed, &self.buffer),
                    _ => Frame::Broken(DropReason::Truncated, &self.buffer),
                }));
            }
        }
    }

    /// Begins an object whose brace was read together with the end of the previous one.
    fn begin(&mut self) {
        self.state = ParseState::Inside;
        self.buffer.push(b'{');
        self.scanner = Scanner::inside();
    }
}

#[cfg(test)]
mod tests {
    use super::{Frame, Frames};
    use crate::formats::Framing;
    use crate::parsed::DropReason;

    fn all(text: &str, framing: Framing, capacity: usize) -> Vec<String> {
        let input = std::io::BufReader::with_capacity(capacity, text.as_bytes());
        let mut frames = Frames::new(input, framing);
        let mut out = Vec::new();
        while let Some(frame) = frames.next_frame().unwrap() {
            out.push(match frame {
                Frame::Whole(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
                Frame::Broken(DropReason::Truncated, bytes) => format!("cut {}", bytes.len()),
                Frame::Broken(reason, _) => reason.name().to_owned(),
            });
        }
        out
    }

    #[test]
    fn lines() {
        for capacity in [1, 3, 4096] {
            assert_eq!(
                all("a b\r\n\n  \nc", Framing::Lines, capacity),
                ["a b", "c"]
            );
        }
        let long = "x".repeat(5 << 20) + "\nnext\n";
        assert_eq!(all(&long, Framing::Lines, 8192), ["too-long", "next"]);
    }

    #[test]
    fn objects_bare_listed_and_wrapped() {
        let whole = [r#"{"a":"}\"{","b":[{"c":1}]}"#, r#"{"d":2}"#];
        let [a, d] = whole;
        for text in [
            format!("{a}\n{d}\n"),
            format!("[{a},\n{d}"),
            format!("{{\"Records\":[{a},{d}]}}"),
            format!("{{ \"x\": 1, \"log_entries\": [\n  {a},\n  {d} ],\n \"sum\": {{\"y\": 2}} }}"),
        ] {
            for capacity in [1, 7, 4096] {
                assert_eq!(all(&text, Framing::Json, capacity), whole, "{text}");
            }
        }
    }

    #[test]
    fn a_truncated_object_costs_one_frame() {
        for (text, expected) in [
            ("{\"a\":\"x\n{\"b\":1}\n", &["cut 8", "{\"b\":1}"][..]),
            ("{\"a\":1,\n{\"b\":1}\n", &["cut 8", "{\"b\":1}"]),
            (
                "{\"b\":1}\nnonsense\n{\"c\":1}",
                &["{\"b\":1}", "malformed", "{\"c\":1}"],
            ),
            ("{\"b\":1}\n{\"c\":", &["{\"b\":1}", "cut 5"]),
        ] {
            for capacity in [1, 4096] {
                assert_eq!(all(text, Framing::Json, capacity), expected, "{text}");
            }
        }
    }
}
