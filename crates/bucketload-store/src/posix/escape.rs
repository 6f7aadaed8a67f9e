//! The mapping between keys and paths.
//!
//! A key is split at `/` into components. The last becomes a file and the others become directories of
//! the same names, so `dir/file` stays `dir/file`. Names that a file system cannot hold are escaped
//! with `%`, which itself becomes `%25`:
//!
//! | in the key | on disk | |
//! |---|---|---|
//! | `%`, NUL | `%25`, `%00` | |
//! | component `.` or `..` | `%2E`, `%2E%2E` | |
//! | empty component (`a//b`, trailing `/`) | `%` | |
//! | component longer than 255 bytes when escaped | `piece%+/piece%+/rest` | pieces of at most 253 bytes |
//! | object `a` if there are objects below `a/` | `a/%self` | the directory has the plain name |
//!
//! The mapping is one-to-one: a name is part of a key only if escaping the key yields that name. No
//! component of a path is `.`, `..` or empty, contains `/` or NUL, or is longer than 255 bytes.

/// Maximum length of a file name, in bytes.
const MAX_NAME: usize = 255;
/// Suffix of a directory whose entries continue a long component.
const CONTINUED: &[u8] = b"%+";
/// File name of an object whose name is that of a directory.
pub(super) const SELF: &str = "%self";
const EMPTY: &[u8] = b"%";

/// The path of a key, relative to the store's root and beginning with the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectPath {
    path: Vec<u8>,
    /// Length of the path of the file's directory.
    parent: usize,
}

impl ObjectPath {
    pub(super) fn of(bucket: &str, key: &str) -> Self {
        let mut path = Vec::with_capacity(bucket.len() + key.len() + 8);
        path.extend_from_slice(bucket.as_bytes());
        if is_plain(key) {
            path.push(b'/');
            path.extend_from_slice(key.as_bytes());
        } else {
            for component in key.split('/') {
                path.push(b'/');
                push_component(component, &mut path);
            }
        }
        let parent = path.iter().rposition(|b| *b == b'/').unwrap_or(0);
        Self { path, parent }
    }

    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }

    /// Path of the file's directory.
    pub(super) fn parent(&self) -> &[u8] {
        &self.path[..self.parent]
    }

    /// The bucket.
    pub(super) fn bucket(&self) -> String {
        let end = self.path.iter().position(|b| *b == b'/');
        String::from_utf8_lossy(&self.path[..end.unwrap_or(self.path.len())]).into_owned()
    }

    /// The key, decoded from the path.
    pub(super) fn key(&self) -> String {
        read_path(&self.path).unwrap_or_default()
    }

    /// Name of the file in its directory.
    pub(super) fn name(&self) -> &[u8] {
        &self.path[self.parent + 1..]
    }
}

/// Whether every component of a key is a file name as it stands.
fn is_plain(key: &str) -> bool {
    let bytes = key.as_bytes();
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'/' if is_name(&bytes[start..at]) => start = at + 1,
            b'/' | b'%' | 0 => return false,
            _ => {}
        }
    }
    is_name(&bytes[start..])
}

/// Whether a component without characters to escape is a file name as it stands.
fn is_name(component: &[u8]) -> bool {
    component.len() <= MAX_NAME && !matches!(component, b"" | b"." | b"..")
}

/// The key with the path `path`, which begins with the bucket. `None` if no key has that path.
fn read_path(path: &[u8]) -> Option<String> {
    let mut components: Vec<String> = Vec::new();
    let mut before = String::new();
    for name in path.split(|b| *b == b'/').skip(1) {
        match read_name(name, &before) {
            Name::Component(component) => {
                components.push(component);
                before = String::new();
            }
            Name::Continued(part) => before = part,
            Name::SelfFile | Name::Foreign => return None,
        }
    }
    before.is_empty().then(|| components.join("/"))
}

/// Path of the directory that holds the keys beginning with `prefix`, up to its last `/`, and that
/// part of the prefix.
pub(super) fn directory_of_prefix<'p>(bucket: &str, prefix: &'p str) -> (Vec<u8>, &'p str) {
    let mut path = bucket.as_bytes().to_vec();
    let Some(end) = prefix.rfind('/') else {
        return (path, "");
    };
    for component in prefix[..end].split('/') {
        path.push(b'/');
        push_component(component, &mut path);
    }
    (path, &prefix[..=end])
}

/// Appends the escaped component. The result contains `/` only between the pieces of a long component.
pub(super) fn push_component(component: &str, out: &mut Vec<u8>) {
    match component {
        "" => out.extend_from_slice(EMPTY),
        "." => out.extend_from_slice(b"%2E"),
        ".." => out.extend_from_slice(b"%2E%2E"),
        plain if plain.len() <= MAX_NAME && !plain.bytes().any(|b| matches!(b, b'%' | 0)) => {
            out.extend_from_slice(plain.as_bytes());
        }
        _ => {
            let extra = component.bytes().filter(|b| matches!(b, b'%' | 0)).count() * 2;
            let mut rest = component.len() + extra;
            let mut piece = 0;
            // The length of the rest decides where pieces end: a rest that fits is never split, and
            // no piece is ever empty, `.` or `..`.
            let mut cut = rest > MAX_NAME;
            let mut buffer = [0; 4];
            for c in component.chars() {
                let unit: &[u8] = match c {
                    '%' => b"%25",
                    '\0' => b"%00",
                    _ => c.encode_utf8(&mut buffer).as_bytes(),
                };
                if cut && piece + unit.len() > MAX_NAME - CONTINUED.len() {
                    out.extend_from_slice(CONTINUED);
                    out.push(b'/');
                    piece = 0;
                    cut = rest > MAX_NAME;
                }
                out.extend_from_slice(unit);
                piece += unit.len();
                rest -= unit.len();
            }
        }
    }
}

/// The meaning of a directory entry's name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// A whole component, or the end of one.
    Component(String),
    /// A directory that holds the continuations of a long component, of which this is the beginning.
    Continued(String),
    /// [`SELF`].
    SelfFile,
    /// Not a name that the store creates.
    Foreign,
}

/// Decodes a name. `before` is the beginning of the component that the directories above hold (empty
/// for none).
pub(super) fn read_name(name: &[u8], before: &str) -> Name {
    if name == SELF.as_bytes() && before.is_empty() {
        return Name::SelfFile;
    }
    let (body, continued) = match name.strip_suffix(CONTINUED) {
        Some(body) => (body, true),
        None => (name, false),
    };
    let Some(text) = unescape(body) else {
        return Name::Foreign;
    };
    let component = [before, &text].concat();
    if continued {
        // A piece ends where the next character, of at most 4 bytes, does not fit.
        let longest = MAX_NAME - CONTINUED.len();
        if !(longest - 3..=longest).contains(&body.len()) {
            return Name::Foreign;
        }
        return Name::Continued(component);
    }
    let mut again = Vec::with_capacity(before.len() + name.len());
    push_component(&component, &mut again);
    let last = again
        .iter()
        .rposition(|b| *b == b'/')
        .map_or(0, |at| at + 1);
    let split = last > 0;
    if &again[last..] == name && split != before.is_empty() {
        Name::Component(component)
    } else {
        Name::Foreign
    }
}

/// Reverses the escapes; `None` if `name` is not a valid escaped text.
fn unescape(name: &[u8]) -> Option<String> {
    if name == EMPTY {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            bytes.push(match tail.get(..2)? {
                b"25" => b'%',
                b"00" => 0,
                b"2E" => b'.',
                _ => return None,
            });
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(key: &str) -> String {
        String::from_utf8(ObjectPath::of("b", key).path().to_vec()).unwrap()
    }

    #[test]
    fn ordinary_keys_stay_readable() {
        for key in ["file", "dir/file.txt", ".hidden", "a b/ü/日本", "..."] {
            assert_eq!(path(key), format!("b/{key}"));
        }
        let object = ObjectPath::of("b", "dir/file");
        assert_eq!(
            (object.parent(), object.name()),
            (b"b/dir".as_slice(), b"file".as_slice())
        );
    }

    #[test]
    fn names_that_a_file_system_cannot_hold_are_escaped() {
        assert_eq!(path("."), "b/%2E");
        assert_eq!(path("../.."), "b/%2E%2E/%2E%2E");
        assert_eq!(path("a//b"), "b/a/%/b");
        assert_eq!(path("/"), "b/%/%");
        assert_eq!(path("a/"), "b/a/%");
        assert_eq!(path("100%"), "b/100%25");
        assert_eq!(path("%self"), "b/%25self");
        assert_eq!(path("\0"), "b/%00");
        assert_eq!(path(&"x".repeat(255)), format!("b/{}", "x".repeat(255)));
        let long = "x".repeat(256);
        assert_eq!(path(&long), format!("b/{}%+/xxx", "x".repeat(253)));
        let longer = "x".repeat(253 + 255);
        assert_eq!(
            path(&longer),
            format!("b/{}%+/{}", "x".repeat(253), "x".repeat(255))
        );
    }

    #[test]
    fn foreign_names_are_recognised() {
        for name in ["100%.txt", "%2e", "%41", "%", "a%25b"] {
            let known = matches!(name, "%" | "a%25b");
            assert_eq!(
                read_name(name.as_bytes(), "") == Name::Foreign,
                !known,
                "{name}"
            );
        }
        assert_eq!(read_name(b"\xff", ""), Name::Foreign);
        assert_eq!(read_name(b"%2Ex", ""), Name::Foreign);
        assert_eq!(read_name(b"%self", ""), Name::SelfFile);
    }

    /// Keys with edge cases: special characters, and runs of every length.
    fn odd_key() -> impl Strategy<Value = String> {
        let unit = prop_oneof![
            Just("/".to_owned()),
            Just(".".to_owned()),
            Just("%".to_owned()),
            Just("%+".to_owned()),
            Just("%self".to_owned()),
            Just("\0".to_owned()),
            Just("ü".to_owned()),
            "[a-z]{1,5}",
            (1..700_usize).prop_map(|n| "x".repeat(n)),
            (1..300_usize).prop_map(|n| "%".repeat(n)),
            (1..200_usize).prop_map(|n| "日".repeat(n)),
        ];
        prop::collection::vec(unit, 1..8)
            .prop_map(|units| {
                let mut key = units.concat();
                let mut end = key.len().min(crate::names::MAX_KEY_BYTES);
                while !key.is_char_boundary(end) {
                    end -= 1;
                }
                key.truncate(end);
                key
            })
            .prop_filter("not empty", |key| !key.is_empty())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn every_key_has_a_legal_path_that_decodes_to_it(key in odd_key()) {
            let object = ObjectPath::of("bucket", &key);
            prop_assert!(object.path().len() + 1 + SELF.len() < 4096);
            for name in object.path().split(|b| *b == b'/') {
                prop_assert!(!name.is_empty() && name.len() <= 255);
                prop_assert!(name != b"." && name != b".." && name != SELF.as_bytes());
                prop_assert!(!name.contains(&0));
            }
            prop_assert_eq!(object.bucket(), "bucket");
            prop_assert_eq!(read_path(object.path()), Some(key));
        }

        #[test]
        fn a_path_decodes_to_the_key_that_has_it_or_not_at_all(
            names in prop::collection::vec("(%25|%00|%2E|%\\+|%|\\.|x|x{250,255}){1,4}", 1..4)
        ) {
            let path = format!("b/{}", names.join("/"));
            if let Some(key) = read_path(path.as_bytes()).filter(|key| !key.is_empty()) {
                let object = ObjectPath::of("b", &key);
                prop_assert_eq!(String::from_utf8_lossy(object.path()), path);
            }
        }
    }
}
