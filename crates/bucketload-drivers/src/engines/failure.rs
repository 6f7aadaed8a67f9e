//! The meaning of a client's error, from the available facts: the store's answer if there was one,
//! else the chain of causes, else the text.

#[cfg(any(test, feature = "http-engines"))]
use std::{error::Error, io};

use bucketload_core::error::ErrorKind;
#[cfg(feature = "http-engines")]
use bucketload_core::error::OpError;

#[cfg(any(test, feature = "http-engines"))]
use crate::http::answer::one_line;

/// The kind of a failure without an answer of the store: that of the first recognised cause.
#[cfg(any(test, feature = "http-engines"))]
pub(crate) fn kind_of_cause(error: &(dyn Error + 'static)) -> ErrorKind {
    let mut at = Some(error);
    while let Some(cause) = at {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        match io {
            Some(io::ErrorKind::TimedOut) => return ErrorKind::Timeout,
            Some(
                io::ErrorKind::ConnectionRefused
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::AddrNotAvailable,
            ) => return ErrorKind::Connect,
            Some(
                io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::NotConnected,
            ) => return ErrorKind::Reset,
            _ => {}
        }
        at = cause.source();
    }
    kind_of_text(&chain(error)).unwrap_or(ErrorKind::Protocol)
}

/// An error and its causes in one line.
#[cfg(any(test, feature = "http-engines"))]
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut out = error.to_string();
    let mut at = error.source();
    while let Some(cause) = at {
        let text = cause.to_string();
        if !out.contains(&text) {
            out += ": ";
            out += &text;
        }
        at = cause.source();
    }
    one_line(&out)
}

/// Phrases that identify a failure in clients' texts, in search order.
const PHRASES: [(&str, ErrorKind); 28] = [
    ("certificate", ErrorKind::Tls),
    ("handshake", ErrorKind::Tls),
    ("ssl error", ErrorKind::Tls),
    ("tls:", ErrorKind::Tls),
    ("connection refused", ErrorKind::Connect),
    ("could not connect", ErrorKind::Connect),
    ("failed to connect", ErrorKind::Connect),
    ("unable to connect", ErrorKind::Connect),
    ("error trying to connect", ErrorKind::Connect),
    ("dns error", ErrorKind::Connect),
    ("name or service not known", ErrorKind::Connect),
    ("no such host", ErrorKind::Connect),
    ("name resolution", ErrorKind::Connect),
    ("no route to host", ErrorKind::Connect),
    ("network is unreachable", ErrorKind::Connect),
    ("timed out", ErrorKind::Timeout),
    ("timeout", ErrorKind::Timeout),
    ("connection reset", ErrorKind::Reset),
    ("broken pipe", ErrorKind::Reset),
    ("connection was closed", ErrorKind::Reset),
    ("connection aborted", ErrorKind::Reset),
    ("connection closed", ErrorKind::Reset),
    ("incompletemessage", ErrorKind::Reset),
    ("unexpected end of file", ErrorKind::Reset),
    ("unexpected eof", ErrorKind::Reset),
    ("end of file before message length", ErrorKind::Reset),
    ("error reading a body from connection", ErrorKind::Reset),
    ("no space left", ErrorKind::Full),
];

/// The kind of failure that a text describes, if it is a failure below the protocol.
pub(crate) fn kind_of_text(text: &str) -> Option<ErrorKind> {
    let text = text.to_ascii_lowercase();
    PHRASES
        .iter()
        .find(|(phrase, _)| text.contains(phrase))
        .map(|(_, kind)| *kind)
}

/// The error for a failure without an answer, with its causes as detail.
#[cfg(feature = "http-engines")]
pub(crate) fn from_cause(error: &(dyn Error + 'static)) -> OpError {
    OpError::new(kind_of_cause(error), chain(error))
}

/// The error for a library's error after an answer with `status` (0: no answer). Libraries include the
/// answer's document, or its code, in their text.
#[cfg(any(feature = "engine-object-store", feature = "engine-opendal"))]
pub(crate) fn from_answer(
    status: u16,
    error: &(dyn Error + 'static),
    config: &crate::s3::S3Config,
) -> OpError {
    use crate::s3::error_map::{Context, ErrorDocument, to_error};
    let text = chain(error);
    let scrub = |text: &str| match &config.credentials {
        Some(credentials) => credentials.scrub(text),
        None => text.to_owned(),
    };
    if status < 300 {
        let mut error = from_cause(error);
        error.status = status;
        error.detail = scrub(&error.detail).into();
        return error;
    }
    let mut whole = error.to_string();
    let mut at = error.source();
    while let Some(cause) = at {
        whole += &cause.to_string();
        at = cause.source();
    }
    let mut document = match whole.find("<Error") {
        Some(from) => ErrorDocument::parse(&whole.as_bytes()[from..]),
        None => ErrorDocument::default(),
    };
    // opendal: `S3Error { code: "NoSuchKey", message: …`
    for (field, start) in [
        (&mut document.code, "code: \""),
        (&mut document.message, "message: \""),
    ] {
        if field.is_empty()
            && let Some(from) = whole.find(start).map(|at| at + start.len())
            && let Some(len) = whole[from..].find('"')
        {
            *field = one_line(&whole[from..from + len]);
        }
    }
    if document.code.is_empty() && document.message.is_empty() {
        document.message = text;
    }
    let context = Context {
        region: &config.region,
        credentials: config.credentials.as_ref(),
        bucket_region: "",
        location: "",
    };
    to_error(status, &document, &context)
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::{fmt, io};

    use bucketload_core::error::ErrorKind;

    use super::{chain, kind_of_cause, kind_of_text};

    #[derive(Debug)]
    struct Outer(io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("dispatch\n failure")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn causes_are_searched_to_the_bottom() {
        for (io, kind) in [
            (io::ErrorKind::ConnectionRefused, ErrorKind::Connect),
            (io::ErrorKind::ConnectionReset, ErrorKind::Reset),
            (io::ErrorKind::TimedOut, ErrorKind::Timeout),
            (io::ErrorKind::Other, ErrorKind::Protocol),
        ] {
            assert_eq!(kind_of_cause(&Outer(io.into())), kind);
        }
        let other = Outer(io::Error::other("invalid peer certificate: UnknownIssuer"));
        assert_eq!(kind_of_cause(&other), ErrorKind::Tls);
        assert_eq!(
            chain(&other),
            "dispatch failure: invalid peer certificate: UnknownIssuer"
        );
    }

    #[test]
    fn texts_are_recognised() {
        assert_eq!(
            kind_of_text("[Errno 111] Connection refused"),
            Some(ErrorKind::Connect)
        );
        assert_eq!(kind_of_text("all is well"), None);
    }
}
