//! Who takes the body of an answer.

/// Takes a successful answer.
pub(crate) trait Sink {
    /// Whether the header fields are looked at. Costs another pass over the head.
    fn wants_fields(&self) -> bool {
        false
    }

    /// A header field of the answer.
    fn field(&mut self, _name: &str, _value: &[u8]) {}

    /// Whether the body's bytes are looked at. Otherwise they are dropped in the kernel where
    /// possible.
    fn looks(&self) -> bool {
        false
    }

    /// The next bytes of the body.
    fn data(&mut self, _bytes: &[u8]) {}
}

/// Drops bodies.
pub(crate) struct Ignore;

impl Sink for Ignore {}

/// Keeps one field of an answer's head.
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

/// Keeps a body in memory, up to a limit.
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
    fn looks(&self) -> bool {
        true
    }

    fn data(&mut self, bytes: &[u8]) {
        let room = self.limit - self.into.len();
        self.overflow |= bytes.len() > room;
        self.into.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}
