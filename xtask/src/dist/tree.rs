//! A tree of files for archives: sorted, with fixed owners, modes and times; and its tar form.

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::{Compression, GzBuilder};

use crate::sh::Result;

const BLOCK: usize = 512;

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Dir,
    File(Vec<u8>),
}

/// A node with its mode and owner.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    node: Node,
    mode: u32,
    /// User and group.
    owner: u32,
}

/// Entries by path; the directories above a path are added automatically and sort before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree(BTreeMap<String, Entry>);

impl Tree {
    /// Adds a file owned by root.
    pub(super) fn file(&mut self, path: &str, mode: u32, bytes: impl Into<Vec<u8>>) {
        self.put(path, Node::File(bytes.into()), mode, 0);
    }

    /// Adds a directory.
    pub(super) fn dir(&mut self, path: &str, mode: u32, owner: u32) {
        self.put(path, Node::Dir, mode, owner);
    }

    fn put(&mut self, path: &str, node: Node, mode: u32, owner: u32) {
        for (end, _) in path.match_indices('/') {
            let above = self.0.entry(path[..end].to_owned());
            above.or_insert(Entry {
                node: Node::Dir,
                mode: 0o755,
                owner: 0,
            });
        }
        let entry = Entry { node, mode, owner };
        self.0.insert(path.to_owned(), entry);
    }

    /// The tree moved into the directory `top`.
    pub(super) fn below(self, top: &str) -> Self {
        let mut moved = Self::default();
        for (path, entry) in self.0 {
            moved.put(
                &format!("{top}/{path}"),
                entry.node,
                entry.mode,
                entry.owner,
            );
        }
        moved
    }

    /// Path, mode and contents of all files.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, u32, &[u8])> {
        let all = self.0.iter();
        all.filter_map(|(path, entry)| match &entry.node {
            Node::File(bytes) => Some((path.as_str(), entry.mode, bytes.as_slice())),
            _ => None,
        })
    }

    /// Size of all files in KiB, each rounded up, as package managers count it.
    pub(super) fn kib(&self) -> u64 {
        let sizes = self.files().map(|(_, _, bytes)| bytes.len());
        sizes.map(|size| size.div_ceil(1024) as u64).sum()
    }

    /// The tar file (POSIX ustar), with `before` in front of paths and all times set to `epoch` (seconds).
    ///
    /// # Errors
    /// A path is too long for the format.
    pub(super) fn tar(&self, before: &str, epoch: u64) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        for (path, entry) in &self.0 {
            let (kind, slash, bytes): (u8, &str, &[u8]) = match &entry.node {
                Node::Dir => (b'5', "/", &[]),
                Node::File(bytes) => (b'0', "", bytes),
            };
            let name = format!("{before}{path}{slash}");
            out.extend(header(&name, entry, kind, bytes.len(), epoch)?);
            out.extend(bytes);
            out.resize(out.len().next_multiple_of(BLOCK), 0);
        }
        out.resize(out.len() + 2 * BLOCK, 0);
        Ok(out)
    }
}

fn header(name: &str, entry: &Entry, kind: u8, size: usize, epoch: u64) -> Result<[u8; BLOCK]> {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    let (prefix, name) = split(name)?;
    put(0, name.as_bytes());
    put(100, format!("{:07o}", entry.mode).as_bytes());
    put(108, format!("{:07o}", entry.owner).as_bytes());
    put(116, format!("{:07o}", entry.owner).as_bytes());
    put(124, format!("{size:011o}").as_bytes());
    put(136, format!("{epoch:011o}").as_bytes());
    // The checksum field counts as blanks.
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    if entry.owner == 0 {
        put(265, b"root");
        put(297, b"root");
    }
    put(345, prefix.as_bytes());
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// Splits a path at a slash into a prefix of at most 155 and a name of at most 100 bytes.
fn split(path: &str) -> Result<(&str, &str)> {
    if path.len() <= 100 {
        return Ok(("", path));
    }
    let fits = |at: &usize| *at <= 155 && (1..=100).contains(&(path.len() - at - 1));
    let mut slashes = path.match_indices('/').map(|(at, _)| at);
    match slashes.find(fits) {
        Some(at) => Ok((&path[..at], &path[at + 1..])),
        None => Err(format!("{path}: is too long for a tar file")),
    }
}

/// Compresses `bytes`, without a name or time.
///
/// # Errors
/// None in practice: writing to memory does not fail.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    // 255 means unknown operating system, so that the bytes are the same everywhere.
    let made = GzBuilder::new().operating_system(255);
    let mut out = made.write(Vec::new(), Compression::default());
    let written = out.write_all(bytes).and_then(|()| out.finish());
    written.map_err(|e| format!("gzip: {e}"))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::{Tree, gzip, split};

    fn tree() -> Tree {
        let mut tree = Tree::default();
        tree.file("bin/program", 0o755, "x".repeat(513));
        tree.dir("work", 0o750, 65532);
        tree.file(
            &format!("{}/{}", "d".repeat(90), "f".repeat(60)),
            0o644,
            "deep",
        );
        tree.file("a-b", 0o644, "");
        tree.file("a/b", 0o644, "");
        tree
    }

    #[test]
    fn entries_are_sorted_with_their_types() {
        let bytes = tree().tar("./", 1_700_000_000).unwrap();
        let mut lines = Vec::new();
        let mut rest = &bytes[..];
        while rest[0] != 0 {
            let (head, after) = rest.split_at(512);
            let text = |from: usize, to: usize| {
                let text = std::str::from_utf8(&head[from..to]).unwrap();
                text.trim_end_matches('\0').to_owned()
            };
            let number = |from, to| u64::from_str_radix(&text(from, to), 8).unwrap();
            let own: u64 = head[148..156].iter().map(|&byte| u64::from(byte)).sum();
            let all: u64 = head.iter().map(|&byte| u64::from(byte)).sum();
            assert_eq!(number(148, 154), all - own + 8 * u64::from(b' '));
            assert_eq!(
                (number(136, 147), text(257, 262)),
                (1_700_000_000, "ustar".to_owned())
            );
            let (mode, owner, size) = (number(100, 107), number(108, 115), number(124, 135));
            assert_eq!(owner, number(116, 123));
            let (kind, user) = (char::from(head[156]), text(265, 297));
            let path = match text(345, 500) {
                prefix if prefix.is_empty() => text(0, 100),
                prefix => format!("{prefix}/{}", text(0, 100)),
            };
            lines.push(format!("{kind} {mode:o} {owner} {user} {size} {path}"));
            rest = &after[usize::try_from(size).unwrap().next_multiple_of(512)..];
        }
        // Two empty blocks mark the end.
        assert_eq!(rest, [0; 1024]);
        let expected = [
            "5 755 0 root 0 ./a/".to_owned(),
            "0 644 0 root 0 ./a-b".to_owned(),
            "0 644 0 root 0 ./a/b".to_owned(),
            "5 755 0 root 0 ./bin/".to_owned(),
            "0 755 0 root 513 ./bin/program".to_owned(),
            format!("5 755 0 root 0 ./{}/", "d".repeat(90)),
            format!("0 644 0 root 4 ./{}/{}", "d".repeat(90), "f".repeat(60)),
            "5 750 65532  0 ./work/".to_owned(),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn insertion_order_does_not_matter() {
        let mut other = Tree::default();
        other.file("a/b", 0o644, "");
        other.dir("work", 0o750, 65532);
        other.file(
            &format!("{}/{}", "d".repeat(90), "f".repeat(60)),
            0o644,
            "deep",
        );
        other.file("a-b", 0o644, "");
        other.file("bin/program", 0o755, "x".repeat(513));
        assert_eq!(other.tar("", 1).unwrap(), tree().tar("", 1).unwrap());
        assert_ne!(other.tar("", 1).unwrap(), tree().tar("", 2).unwrap());
        assert_eq!(other.kib(), 2);
    }

    #[test]
    fn long_paths_are_divided_or_refused() {
        let long = format!("{}/{}", "p".repeat(150), "n".repeat(99));
        assert_eq!(split(&long).unwrap().1.len(), 99);
        assert!(split(&"n".repeat(101)).unwrap_err().contains("too long"));
    }

    #[test]
    fn compressed_bytes_contain_no_time_and_no_system() {
        let packed = gzip(b"text").unwrap();
        assert_eq!(packed[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
        let mut text = String::new();
        flate2::read::GzDecoder::new(&packed[..])
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "text");
    }
}
