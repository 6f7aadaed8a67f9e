//! Receivers of response bodies.

/// Receives a successful response.
pub(crate) trait Sink {
    /// Whether the sink needs the header fields, which costs another pass over the head.
    fn wants_fields(&self) -> bool {
        false
    }

    /// Receives a header field.
    fn field(&mut self, _name: &str, _value: &[u8]) {}

    /// Whether the sink needs the body. Otherwise the kernel discards it where possible.
    fn wants_body(&self) -> bool {
        false
    }

    /// Receives the next bytes of the body.
    fn data(&mut self, _bytes: &[u8]) {}
}

/// Discards the body.
pub(crate) struct Ignore;

impl Sink for Ignore {}

/// Keeps one header field.
pub(crate) struct OneField<'a> {
    pub(crate) name: &'static str,
    pub(crate) value: &'a mut Vec<u8>,
}

impl Sink for OneField<'_> {
    fn wants_fields(&self) -> bool {
        true
    }

    fn field(&mut self, name: &str, value: &[u8]) {
        if name.eq_ignore_ascii_case(self.name) {
            self.value.clear();
            self.value.extend_from_slice(value);
        }
    }
}

/// Keeps the body in memory, up to a limit.
pub(crate) struct Collect<'a> {
    pub(crate) into: &'a mut Vec<u8>,
    pub(crate) limit: usize,
    pub(crate) overflow: bool,
}

impl<'a> Collect<'a> {
    pub(crate) fn new(into: &'a mut Vec<u8>, limit: usize) -> Self {
        into.clear();
        Self {
            into,
            limit,
            overflow: false,
        }
    }
}

impl Sink for Collect<'_> {
    fn wants_body(&self) -> bool {
        true
    }

    fn data(&mut self, bytes: &[u8]) {
        let room = self.limit - self.into.len();
        self.overflow |= bytes.len() > room;
        self.into.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Keeps the body in memory, and one header field.
pub(crate) struct CollectWith<'a> {
    pub(crate) body: Collect<'a>,
    pub(crate) field: OneField<'a>,
}

impl Sink for CollectWith<'_> {
    fn wants_fields(&self) -> bool {
        true
    }

    fn field(&mut self, name: &str, value: &[u8]) {
        self.field.field(name, value);
    }

    fn wants_body(&self) -> bool {
        true
    }

    fn data(&mut self, bytes: &[u8]) {
        self.body.data(bytes);
    }
}
