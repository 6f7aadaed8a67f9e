//! The names of a worker's current operation, in buffers that are used again and again.

use bucketload_core::op::KeySource;

/// Key, source and further keys of one operation.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) key: String,
    more: Option<Box<More>>,
}

/// The names that most operations do not have.
#[derive(Default)]
pub(crate) struct More {
    pub(crate) source: String,
    /// The bucket, where it is not that of the target.
    pub(crate) bucket: String,
    /// The keys of a request about several objects whose names the plan cannot render.
    pub(crate) listed: Listed,
}

impl Names {
    /// Room for keys of `key_len` bytes; other names get their memory when there are any.
    pub(crate) fn with_capacity(key_len: usize) -> Self {
        Self {
            key: String::with_capacity(key_len),
            more: None,
        }
    }

    /// The key, and the names beside it, to be written.
    pub(crate) fn parts_mut(&mut self) -> (&mut String, &mut More) {
        (&mut self.key, self.more.get_or_insert_default())
    }

    /// There is no source.
    #[inline]
    pub(crate) fn clear_source(&mut self) {
        if let Some(more) = &mut self.more {
            more.source.clear();
        }
    }

    /// The source key; empty where there is none.
    #[inline]
    pub(crate) fn source(&self) -> &str {
        self.more.as_deref().map_or("", |more| &more.source)
    }

    /// The bucket, where it is not that of the target.
    #[inline]
    pub(crate) fn bucket(&self) -> &str {
        self.more.as_deref().map_or("", |more| &more.bucket)
    }

    /// The keys of a request about several objects, where they were written.
    pub(crate) fn listed(&self) -> Option<&Listed> {
        self.more.as_deref().map(|more| &more.listed)
    }
}

/// Several names in one buffer.
#[derive(Default)]
pub(crate) struct Listed {
    text: String,
    /// End of each name.
    ends: Vec<usize>,
}

impl Listed {
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// Appends the name that `write` appends to the buffer.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut String)) {
        write(&mut self.text);
        self.ends.push(self.text.len());
    }
}

impl KeySource for Listed {
    fn render(&self, i: u64, out: &mut String) {
        let i = i as usize;
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        out.clear();
        out.push_str(&self.text[start..self.ends[i]]);
    }
}

/// Appends `key` to `out`. A key need not be text, a request's name has to be: what is no UTF-8 is
/// written as `%XX`.
pub(crate) fn push_key(key: &[u8], out: &mut String) {
    for chunk in key.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            out.push('%');
            out.push(HEX[usize::from(byte >> 4)] as char);
            out.push(HEX[usize::from(byte & 15)] as char);
        }
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::op::KeySource;

    use super::{Listed, push_key};

    #[test]
    fn keys_that_are_no_text_stay_distinct() {
        let text = |key: &[u8]| {
            let mut out = String::from("p/");
            push_key(key, &mut out);
            out
        };
        assert_eq!(text("a/ä".as_bytes()), "p/a/ä");
        assert_eq!(text(b"a\xff\x80b"), "p/a%FF%80b");
    }

    #[test]
    fn listed_names_come_back_in_order() {
        let mut listed = Listed::default();
        for name in ["one", "", "three"] {
            listed.push(|out| out.push_str(name));
        }
        let mut out = String::from("old");
        let names = [0, 1, 2].map(|i| {
            listed.render(i, &mut out);
            out.clone()
        });
        assert_eq!(names, ["one", "", "three"]);
    }
}
