//! The names of a worker's current operation, in buffers that are used again and again.

use bucketload_core::op::KeySource;

/// Key, source and further keys of one operation.
#[derive(Default)]
pub(crate) struct Names {
    key: String,
    /// Key set and index of the object whose name the key is, where it is that of one.
    object: Option<(u16, u64)>,
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
            object: None,
            more: None,
        }
    }

    /// The key.
    #[inline]
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The key, to be written.
    #[inline]
    pub(crate) const fn key_mut(&mut self) -> &mut String {
        self.object = None;
        &mut self.key
    }

    /// The key, to be written with the name of object `key` of key set `keyset`; `None` where it is that already, as
    /// it is while an object is read by ranges.
    #[inline]
    pub(crate) fn key_of(&mut self, keyset: u16, key: u64) -> Option<&mut String> {
        let object = Some((keyset, key));
        if self.object == object {
            return None;
        }
        self.object = object;
        Some(&mut self.key)
    }

    /// The key, and the names beside it, to be written.
    pub(crate) fn parts_mut(&mut self) -> (&mut String, &mut More) {
        self.object = None;
        (&mut self.key, self.more.get_or_insert_default())
    }

    /// The names beside the key, to be written.
    pub(crate) fn more_mut(&mut self) -> &mut More {
        self.more.get_or_insert_default()
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

    use super::{Listed, Names, push_key};

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
    fn a_name_is_written_once_and_again_after_another() {
        let mut names = Names::with_capacity(8);
        let mut written = 0;
        let mut write = |names: &mut Names, keyset, key| {
            if let Some(text) = names.key_of(keyset, key) {
                *text = format!("{keyset}/{key}");
                written += 1;
            }
            assert_eq!(names.key(), format!("{keyset}/{key}"));
        };
        for (keyset, key) in [(0, 7), (0, 7), (1, 7), (1, 7), (1, 8), (0, 7)] {
            write(&mut names, keyset, key);
        }
        names.key_mut().push('x');
        write(&mut names, 0, 7);
        names.parts_mut().0.clear();
        write(&mut names, 0, 7);
        assert_eq!(written, 6);
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
