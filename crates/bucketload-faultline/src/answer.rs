//! Forged answers over plain HTTP/1.1: finds the requests of a connection, and takes some out of its way.
//!
//! A request may only be taken where it begins. A connection that carried bytes before the fault is at such a place when the
//! client sends something that begins like a request after the store has answered. A request with a chunked body, or a
//! head that does not end, makes the connection transparent: nothing on it is taken any more.

/// Longest head of a request.
const MOST: usize = 64 << 10;

/// Where the bytes from the client are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum At {
    /// Between requests, or inside one that began before the fault.
    #[default]
    Unknown,
    /// Inside the head of a request; what has arrived of it.
    Head(Vec<u8>),
    /// Inside a body with so many bytes left.
    Body { left: u64, taken: bool },
    /// Nothing can be known.
    Transparent,
}

/// Finds the requests among the bytes of a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    at: At,
    /// Whether the store has sent something since the client last did.
    answered: bool,
}

/// What to do with bytes from the client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    /// Bytes that go on to the store.
    pub(crate) forward: Vec<u8>,
    /// The answers to send.
    pub(crate) answers: Vec<Answered>,
}

/// A request that is answered without reaching the store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    /// The fault that asks for it.
    pub(crate) fault: usize,
    /// Whether the connection closes after the answer.
    pub(crate) close: bool,
    /// Whether the answer states a length but has no body (HEAD).
    pub(crate) bodiless: bool,
}

impl Requests {
    /// The state of a connection that has carried nothing.
    pub(crate) fn fresh() -> Self {
        Self {
            at: At::Unknown,
            answered: true,
        }
    }

    /// The store has sent bytes.
    pub(crate) const fn answered(&mut self) {
        self.answered = true;
    }

    /// True if bytes may pass without [`Requests::pass`] when no fault asks for answers.
    pub(crate) const fn idle(&self) -> bool {
        matches!(self.at, At::Unknown | At::Transparent)
    }

    /// Bytes pass that nobody looks at.
    pub(crate) const fn skipped(&mut self) {
        self.answered = false;
    }

    /// Decides on `bytes` from the client. `take` is asked once for each request: the index of its answer, or `None`.
    pub(crate) fn pass(
        &mut self,
        mut bytes: &[u8],
        take: &mut dyn FnMut() -> Option<usize>,
    ) -> Decision {
        let mut made = Decision::default();
        while !bytes.is_empty() {
            match &mut self.at {
                At::Transparent => {
                    made.forward.extend_from_slice(bytes);
                    break;
                }
                At::Unknown if self.answered && begins(bytes) => self.at = At::Head(Vec::new()),
                At::Unknown => {
                    self.answered = false;
                    made.forward.extend_from_slice(bytes);
                    break;
                }
                At::Body { left, taken } => {
                    let n = (*left).min(bytes.len() as u64);
                    // At most the length of the slice.
                    let (now, rest) = bytes.split_at(n as usize);
                    if !*taken {
                        made.forward.extend_from_slice(now);
                    }
                    *left -= n;
                    if *left == 0 {
                        // What follows a complete request is the next one.
                        self.at = At::Unknown;
                        self.answered = true;
                    }
                    bytes = rest;
                }
                At::Head(head) => {
                    let before = head.len();
                    head.extend_from_slice(bytes);
                    let Some(end) = end_of_head(head, before) else {
                        if head.len() > MOST {
                            made.forward.append(head);
                            self.at = At::Transparent;
                        }
                        break;
                    };
                    bytes = &bytes[end - before..];
                    head.truncate(end);
                    let whole = std::mem::take(head);
                    self.at = Self::after(&whole, &mut made, take);
                    self.answered = matches!(self.at, At::Unknown);
                }
            }
        }
        made
    }

    /// Decides on the request with head `head`, and says what follows.
    fn after(head: &[u8], made: &mut Decision, take: &mut dyn FnMut() -> Option<usize>) -> At {
        let chunked = field(head, b"transfer-encoding").is_some();
        let length = field(head, b"content-length");
        let left = length.and_then(|text| str::from_utf8(text).ok()?.trim().parse().ok());
        let left = if chunked {
            None
        } else {
            Some(left.unwrap_or(0))
        };
        let (Some(left), Some(fault)) = (left, left.and_then(|_| take())) else {
            made.forward.extend_from_slice(head);
            return match left {
                None => At::Transparent,
                Some(0) => At::Unknown,
                Some(left) => At::Body { left, taken: false },
            };
        };
        // A client that waits for 100 Continue may or may not send its body after another answer.
        let close = field(head, b"expect").is_some();
        let bodiless = head.starts_with(b"HEAD ");
        made.answers.push(Answered {
            fault,
            close,
            bodiless,
        });
        match left {
            _ if close => At::Transparent,
            0 => At::Unknown,
            left => At::Body { left, taken: true },
        }
    }
}

/// Whether `bytes` look like the start of a request, as far as they go.
fn begins(bytes: &[u8]) -> bool {
    let word = bytes.iter().take_while(|b| b.is_ascii_uppercase()).count();
    match bytes.get(word) {
        None => (1..=8).contains(&word),
        Some(b' ') => (3..=8).contains(&word) && bytes.get(word + 1).is_none_or(|b| *b == b'/'),
        Some(_) => false,
    }
}

/// Length of the head in `bytes`, of which the first `seen` have no end.
fn end_of_head(bytes: &[u8], seen: usize) -> Option<usize> {
    let from = seen.saturating_sub(3);
    let at = bytes[from..].windows(4).position(|w| w == b"\r\n\r\n")?;
    Some(from + at + 4)
}

/// The value of a field of a head; `name` is in lower case.
fn field<'h>(head: &'h [u8], name: &[u8]) -> Option<&'h [u8]> {
    head.split(|b| *b == b'\n').skip(1).find_map(|line| {
        let colon = line.iter().position(|b| *b == b':')?;
        line[..colon]
            .eq_ignore_ascii_case(name)
            .then(|| line[colon + 1..].trim_ascii())
    })
}

/// The bytes of an answer.
pub(crate) fn answer(
    status: u16,
    body: &str,
    retry_after: u32,
    close: bool,
    bodiless: bool,
) -> Vec<u8> {
    let reason = match status {
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Fault",
    };
    let kind = match body.starts_with('<') {
        true => "application/xml",
        false => "text/plain",
    };
    let retry = match retry_after {
        0 => String::new(),
        seconds => format!("Retry-After: {seconds}\r\n"),
    };
    let end = if close { "Connection: close\r\n" } else { "" };
    let sent = if bodiless { "" } else { body };
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{retry}{end}\r\n{sent}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::{Answered, Decision, Requests, answer};

    const PUT: &[u8] = b"PUT /b/k HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody";
    const GET: &[u8] = b"GET /b/k HTTP/1.1\r\nHost: h\r\n\r\n";

    const fn taken(close: bool) -> Answered {
        Answered {
            fault: 1,
            close,
            bodiless: false,
        }
    }

    /// Feeds `bytes` in pieces of `size`; takes the requests whose number `taken` names.
    fn fed(requests: &mut Requests, bytes: &[u8], size: usize, numbers: &[usize]) -> Decision {
        let mut number = 0;
        let mut all = Decision::default();
        for piece in bytes.chunks(size) {
            let made = requests.pass(piece, &mut || {
                number += 1;
                numbers.contains(&number).then_some(number)
            });
            all.forward.extend(made.forward);
            all.answers.extend(made.answers);
        }
        all
    }

    #[test]
    fn a_taken_request_does_not_reach_the_store_however_it_is_cut() {
        let both = [PUT, GET, PUT].concat();
        for size in [1, 2, 7, 1000] {
            let made = fed(&mut Requests::fresh(), &both, size, &[1]);
            assert_eq!(made.forward, [GET, PUT].concat(), "pieces of {size}");
            assert_eq!(made.answers, [taken(false)]);
            let made = fed(&mut Requests::fresh(), &both, size, &[2, 3]);
            assert_eq!((made.forward.as_slice(), made.answers.len()), (PUT, 2));
        }
    }

    #[test]
    fn a_connection_in_the_middle_of_a_body_is_left_alone_until_the_store_answers() {
        let mut requests = Requests::default();
        requests.skipped();
        assert_eq!(
            fed(&mut requests, b"GET /looks like a request", 100, &[1]).answers,
            []
        );
        requests.answered();
        assert_eq!(fed(&mut requests, GET, 100, &[1]).answers, [taken(false)]);
    }

    #[test]
    fn chunked_requests_pass_and_expecting_clients_are_closed() {
        let chunked = b"PUT /k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        let made = fed(&mut Requests::fresh(), chunked, 9, &[1]);
        assert_eq!(
            (made.forward.as_slice(), made.answers.len()),
            (&chunked[..], 0)
        );
        let expecting = b"PUT /k HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n";
        assert_eq!(
            fed(&mut Requests::fresh(), expecting, 9, &[1]).answers,
            [taken(true)]
        );
    }

    #[test]
    fn answers_state_their_length() {
        let text = String::from_utf8(answer(503, "<Error/>", 2, true, false)).unwrap();
        assert!(
            text.starts_with("HTTP/1.1 503 Service Unavailable\r\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "Content-Length: 8\r\nRetry-After: 2\r\nConnection: close\r\n\r\n<Error/>"
            )
        );
    }
}
