//! One request of the doctor, and all of its answer.

use bucketload_core::error::OpResult;
use bucketload_s3::xml;

use crate::http::exchange::Refusal;
use crate::http::sink::Sink;
use crate::s3::error_map::ErrorDocument;

/// Largest answer that is kept, in bytes.
const LARGEST: usize = 1 << 20;

/// A request. The default payload and no body unless set.
#[derive(Clone, Copy, Default)]
pub(super) struct Ask<'a> {
    pub(super) method: &'static str,
    /// Empty for a request to the bucket.
    pub(super) key: &'a str,
    /// In canonical form: sorted, encoded, `name=` for names without a value.
    pub(super) query: &'a str,
    /// Sorted by name.
    pub(super) headers: &'a [(&'static str, &'a str)],
    pub(super) body: &'a [u8],
    /// Replaces the value of `x-amz-content-sha256`.
    pub(super) payload: Option<&'a str>,
}

impl<'a> Ask<'a> {
    pub(super) fn new(method: &'static str, key: &'a str) -> Self {
        Self {
            method,
            key,
            ..Self::default()
        }
    }

    pub(super) fn query(mut self, query: &'a str) -> Self {
        self.query = query;
        self
    }

    pub(super) fn headers(mut self, headers: &'a [(&'static str, &'a str)]) -> Self {
        self.headers = headers;
        self
    }

    pub(super) fn body(mut self, body: &'a [u8]) -> Self {
        self.body = body;
        self
    }

    pub(super) fn payload(mut self, payload: &'a str) -> Self {
        self.payload = Some(payload);
        self
    }
}

/// A complete answer, refusals included.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) refusal: Option<Box<Refusal>>,
    /// What the server said, without secrets.
    words: String,
    /// The error code; empty if there is none.
    pub(super) code: String,
    /// The region that the server names; empty if it names none.
    pub(super) region: String,
}

impl Answer {
    /// Reads the error document, if there is one. `scrub` removes secrets.
    pub(super) fn complete(mut self, scrub: impl Fn(&str) -> String) -> Self {
        if let Some(refusal) = &mut self.refusal {
            self.body = std::mem::take(&mut refusal.body);
        }
        let document = match self.refusal {
            Some(_) => ErrorDocument::parse(&self.body),
            None => ErrorDocument::find(&self.body).unwrap_or_default(),
        };
        let named = self.field("x-amz-bucket-region");
        self.region = match named.is_empty() {
            true => document.region.clone(),
            false => named,
        };
        let mut words = self.status.to_string();
        for (before, text) in [(" ", &document.code), (": ", &document.message)] {
            if !text.is_empty() {
                words += before;
                words += text;
            }
        }
        self.words = scrub(&words);
        self.code = document.code;
        self
    }

    /// True for a success: status below 300, and no error document.
    pub(super) fn is_ok(&self) -> bool {
        self.status < 300 && self.code.is_empty()
    }

    /// Status, code and message of the server.
    pub(super) fn words(&self) -> &str {
        &self.words
    }

    /// The value of a header field; empty if it is missing.
    pub(super) fn field(&self, name: &str) -> String {
        match &self.refusal {
            Some(refusal) => refusal.field(name),
            None => self
                .fields
                .iter()
                .find(|(field, _)| field.eq_ignore_ascii_case(name))
                .map_or_else(String::new, |(_, value)| value.clone()),
        }
    }

    /// Calls `f` for each leaf of the body, as far as it is well-formed.
    pub(super) fn leaves(&self, f: impl FnMut(&[&str], String)) {
        let mut f = f;
        let _ = xml::leaves(&self.body, |path, text| f(path, text.get()));
    }

    /// The text of the first element with this name.
    pub(super) fn element(&self, name: &str) -> Option<String> {
        let mut found = None;
        self.leaves(|path, text| {
            if found.is_none() && path.last() == Some(&name) {
                found = Some(text);
            }
        });
        found
    }
}

/// Status, code and message, or why there was no answer.
pub(super) fn words(answer: &OpResult<Answer>) -> String {
    match answer {
        Ok(answer) => answer.words().to_owned(),
        Err(error) => error.to_string(),
    }
}

impl Sink for Answer {
    fn wants_fields(&self) -> bool {
        true
    }

    fn field(&mut self, name: &str, value: &[u8]) {
        let value = String::from_utf8_lossy(value).into_owned();
        self.fields.push((name.to_owned(), value));
    }

    fn wants_body(&self) -> bool {
        true
    }

    fn data(&mut self, bytes: &[u8]) {
        let room = LARGEST - self.body.len();
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}
