//! Cuts a stream of bytes into lines or JSON objects, in constant memory and whatever the bytes.
//!
//! A line or object above 4 MiB is reported as too long and skipped. A JSON object that is cut off
//! (its string meets a line end, or the next line begins with `{` before it is complete) is
//! reported as truncated, and reading goes on with the next one.

use std::io::{self, BufRead};

use crate::formats::Framing;
use crate::parsed::Reason;

/// Longest line or object, bytes.
const LONGEST: usize = 4 << 20;

/// Names of arrays whose elements are the records, when they stand in an object.
const WRAPPERS: [&[u8]; 2] = [b"Records", b"log_entries"];

/// A frame, or why a stretch of input is none, with its bytes as far as they were kept.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line without its end, or an object.
    Whole(&'a [u8]),
    /// What could not be cut.
    Broken(Reason, &'a [u8]),
}

/// The frames of a stream.
pub struct Frames<R> {
    input: R,
    framing: Framing,
    buffer: Vec<u8>,
    scanner: Scanner,
    place: Place,
    /// Whether the records are elements of an array in an object.
    wrapped: bool,
}

/// Where in a stream of JSON objects reading stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before an object.
    Between,
    /// Behind the brace of an object that cut the one before.
    Pending,
    /// In an object.
    Inside,
    /// In what is no JSON, up to the line end.
    Garbage,
    /// Behind the array of records, in the rest of the object around it.
    Tail,
}

/// What a byte of JSON does to the object being collected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Go,
    Complete,
    Cut,
    /// Cut, and this byte begins the next object.
    CutAndBegin,
}

/// Follows the structure of JSON.
#[derive(Debug, Default)]
struct Scanner {
    /// Open braces and brackets inside the current object.
    depth: usize,
    in_string: bool,
    escaped: bool,
    line_start: bool,
    /// Start in the buffer of the current string.
    string_start: usize,
    /// Start and end in the buffer of the last string.
    last_string: (usize, usize),
}

impl Scanner {
    /// Behind the opening brace.
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
            return Step::Go;
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
        Step::Go
    }
}

impl<R: BufRead> Frames<R> {
    /// The frames of `input`.
    pub fn new(input: R, framing: Framing) -> Self {
        Self {
            input,
            framing,
            buffer: Vec::new(),
            scanner: Scanner::default(),
            place: Place::Between,
            wrapped: false,
        }
    }

    /// The next frame; `None` at the end of the input.
    ///
    /// # Errors
    /// What the system says about the input.
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
            if self.buffer.len() + taken <= LONGEST {
                self.buffer.extend_from_slice(&chunk[..taken]);
            } else {
                too_long = true;
            }
            self.input.consume(taken);
            if end.is_some() {
                if self.buffer.trim_ascii().is_empty() && !too_long {
                    // Empty lines say nothing.
                    self.buffer.clear();
                    continue;
                }
                break;
            }
        }
        let line = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(Some(if too_long {
            Frame::Broken(Reason::TooLong, line)
        } else {
            Frame::Whole(line)
        }))
    }

    fn object(&mut self) -> io::Result<Option<Frame<'_>>> {
        self.buffer.clear();
        if self.place == Place::Pending {
            self.begin();
        }
        let mut too_long = false;
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return Ok(match self.place {
                    Place::Inside => {
                        self.place = Place::Between;
                        Some(Frame::Broken(Reason::Truncated, &self.buffer))
                    }
                    Place::Garbage => {
                        self.place = Place::Between;
                        Some(Frame::Broken(Reason::Malformed, &self.buffer))
                    }
                    _ => None,
                });
            }
            let (mut taken, mut step) = (0, Step::Go);
            while taken < chunk.len() && step == Step::Go {
                let byte = chunk[taken];
                taken += 1;
                if matches!(self.place, Place::Inside | Place::Garbage) {
                    if self.buffer.len() < LONGEST {
                        self.buffer.push(byte);
                    } else {
                        too_long = true;
                    }
                }
                match self.place {
                    Place::Between | Place::Pending => match byte {
                        b'{' => {
                            self.place = Place::Inside;
                            self.buffer.push(b'{');
                            self.scanner = Scanner::inside();
                        }
                        b']' if self.wrapped => {
                            self.place = Place::Tail;
                            self.scanner = Scanner::inside();
                        }
                        b'[' | b']' | b'}' | b',' | b' ' | b'\t' | b'\r' | b'\n' => {}
                        _ => {
                            self.place = Place::Garbage;
                            self.buffer.push(byte);
                        }
                    },
                    Place::Garbage => {
                        if byte == b'\n' {
                            step = Step::Cut;
                        }
                    }
                    Place::Tail => {
                        step = self.scanner.step(byte, 0);
                        if step != Step::Go {
                            self.wrapped = false;
                            self.place = Place::Between;
                            if step == Step::CutAndBegin {
                                self.buffer.push(b'{');
                                self.place = Place::Inside;
                                self.scanner = Scanner::inside();
                            }
                            step = Step::Go;
                        }
                    }
                    Place::Inside => {
                        let at = self.buffer.len() - 1;
                        step = self.scanner.step(byte, at);
                        let (start, end) = self.scanner.last_string;
                        if byte == b'['
                            && self.scanner.depth == 2
                            && !self.scanner.in_string
                            && WRAPPERS.contains(&&self.buffer[start.min(end)..end])
                        {
                            // The object only wraps the records: forget it.
                            self.buffer.clear();
                            self.place = Place::Between;
                            self.wrapped = true;
                        }
                    }
                }
            }
            self.input.consume(taken);
            if step != Step::Go {
                let garbage = self.place == Place::Garbage;
                self.place = Place::Between;
                if step == Step::CutAndBegin {
                    self.buffer.pop();
                    self.place = Place::Pending;
                }
                return Ok(Some(match step {
                    Step::Complete if too_long => Frame::Broken(Reason::TooLong, &self.buffer),
                    Step::Complete => Frame::Whole(&self.buffer),
                    _ if garbage => Frame::Broken(Reason::Malformed, &self.buffer),
                    _ => Frame::Broken(Reason::Truncated, &self.buffer),
                }));
            }
        }
    }

    /// An object whose brace was read with the end of the one before.
    fn begin(&mut self) {
        self.place = Place::Inside;
        self.buffer.push(b'{');
        self.scanner = Scanner::inside();
    }
}

#[cfg(test)]
mod tests {
    use super::{Frame, Frames};
    use crate::formats::Framing;
    use crate::parsed::Reason;

    fn all(text: &str, framing: Framing, capacity: usize) -> Vec<String> {
        let input = std::io::BufReader::with_capacity(capacity, text.as_bytes());
        let mut frames = Frames::new(input, framing);
        let mut out = Vec::new();
        while let Some(frame) = frames.next_frame().unwrap() {
            out.push(match frame {
                Frame::Whole(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
                Frame::Broken(Reason::Truncated, bytes) => format!("cut {}", bytes.len()),
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
    fn cut_objects_cost_one_frame() {
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
