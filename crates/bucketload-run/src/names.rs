//! The names of a worker's current operation, in reused buffers.

use bucketload_core::op::KeySource;

/// The names of one operation.
#[derive(Default)]
pub(crate) struct Names {
    key: String,
    /// Key set and index of the object whose name `key` holds, if it holds one.
    object: Option<(u16, u64)>,
    more: Option<Box<OtherNames>>,
}

/// The names that few operations have.
#[derive(Default)]
pub(crate) struct OtherNames {
    pub(crate) source: String,
    /// The bucket, if it is not the target's.
    pub(crate) bucket: String,
    /// The keys of a delete-many that was recorded in a trace.
    pub(crate) listed: NameList,
}

impl Names {
    /// Names with room for a key of `key_len` bytes. Memory for other names is allocated when they are first needed.
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

    /// The key, for writing.
    #[inline]
    pub(crate) const fn key_mut(&mut self) -> &mut String {
        self.object = None;
        &mut self.key
    }

    /// The key, for writing the name of object `key` of key set `keyset`. `None` if it holds that name already, as
    /// when an object is read by ranges.
    #[inline]
    pub(crate) fn key_of(&mut self, keyset: u16, key: u64) -> Option<&mut String> {
        let object = Some((keyset, key));
        if self.object == object {
            return None;
        }
        self.object = object;
        Some(&mut self.key)
    }

    /// The key and the other names, for writing.
    pub(crate) fn parts_mut(&mut self) -> (&mut String, &mut OtherNames) {
        self.object = None;
        (&mut self.key, self.more.get_or_insert_default())
    }

    /// The names other than the key, for writing.
    pub(crate) fn more_mut(&mut self) -> &mut OtherNames {
        self.more.get_or_insert_default()
    }

    /// Clears the source key.
    #[inline]
    pub(crate) fn clear_source(&mut self) {
        if let Some(more) = &mut self.more {
            more.source.clear();
        }
    }

    /// The source key; empty if there is none.
    #[inline]
    pub(crate) fn source(&self) -> &str {
        self.more.as_deref().map_or("", |more| &more.source)
    }

    /// The bucket, if it is not the target's; else empty.
    #[inline]
    pub(crate) fn bucket(&self) -> &str {
        self.more.as_deref().map_or("", |more| &more.bucket)
    }

    /// The keys of a recorded delete-many, if any were written.
    pub(crate) fn listed(&self) -> Option<&NameList> {
        self.more.as_deref().map(|more| &more.listed)
    }
}

/// Several names in one buffer.
#[derive(Default)]
pub(crate) struct NameList {
    text: String,
    /// End of each name.
    ends: Vec<usize>,
}

impl NameList {
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

impl KeySource for NameList {
    fn render(&self, i: u64, out: &mut String) {
        let i = i as usize;
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        out.clear();
        out.push_str(&self.text[start..self.ends[i]]);
    }
}

/// Appends `key` to `out`. A key need not be text, but a request's name must be, so bytes that are not UTF-8 become
/// `%XX`.
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

    use super::{NameList, Names, push_key};

    #[test]
    fn keys_that_are_not_text_stay_distinct() {
        let text = |key: &[u8]| {
            let mut out = String::from("p/");
            push_key(key, &mut out);
            out
        };
        assert_eq!(text("a/ä".as_bytes()), "p/a/ä");
        assert_eq!(text(b"a\xff\x80b"), "p/a%FF%80b");
    }

    #[test]
    fn a_name_is_written_again_only_after_another() {
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
    fn listed_names_keep_their_order() {
        let mut listed = NameList::default();
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
