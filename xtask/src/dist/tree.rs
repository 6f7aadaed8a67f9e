//! A tree of files as archives hold it: sorted, with fixed owners, modes and times; and its form as a tar file.

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::{Compression, GzBuilder};

use crate::sh::Result;

const BLOCK: usize = 512;

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Dir,
    File(Vec<u8>),
    Link(String),
}

/// A node with what surrounds it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    node: Node,
    mode: u32,
    /// User and group.
    owner: u32,
}

/// Files by path; directories above a path are there by themselves, before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree(BTreeMap<String, Entry>);

impl Tree {
    /// A file of root's.
    pub(super) fn file(&mut self, path: &str, mode: u32, bytes: impl Into<Vec<u8>>) {
        self.put(path, Node::File(bytes.into()), mode, 0);
    }

    /// A directory with an owner.
    pub(super) fn dir(&mut self, path: &str, mode: u32, owner: u32) {
        self.put(path, Node::Dir, mode, owner);
    }

    /// A symbolic link.
    pub(super) fn link(&mut self, path: &str, to: &str) {
        self.put(path, Node::Link(to.to_owned()), 0o777, 0);
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

    /// The tree below a directory of this name.
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

    /// Path, mode and content of the files.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, u32, &[u8])> {
        let all = self.0.iter();
        all.filter_map(|(path, entry)| match &entry.node {
            Node::File(bytes) => Some((path.as_str(), entry.mode, bytes.as_slice())),
            _ => None,
        })
    }

    /// Bytes of all files, as a package manager counts them: in whole KiB each.
    pub(super) fn kib(&self) -> u64 {
        let sizes = self.files().map(|(_, _, bytes)| bytes.len());
        sizes.map(|size| size.div_ceil(1024) as u64).sum()
    }

    /// The tar file (POSIX ustar), paths with `before` in front, all times `epoch` (seconds).
    ///
    /// # Errors
    /// When a path or a target of a link is too long for the format.
    pub(super) fn tar(&self, before: &str, epoch: u64) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        for (path, entry) in &self.0 {
            let (kind, bytes, link): (u8, &[u8], &str) = match &entry.node {
                Node::Dir => (b'5', &[], ""),
                Node::File(bytes) => (b'0', bytes, ""),
                Node::Link(to) => (b'2', &[], to),
            };
            let slash = if kind == b'5' { "/" } else { "" };
            let name = format!("{before}{path}{slash}");
            out.extend(header(&name, entry, kind, bytes.len(), link, epoch)?);
            out.extend(bytes);
            out.resize(out.len().next_multiple_of(BLOCK), 0);
        }
        out.resize(out.len() + 2 * BLOCK, 0);
        Ok(out)
    }
}

fn header(
    name: &str,
    entry: &Entry,
    kind: u8,
    size: usize,
    link: &str,
    epoch: u64,
) -> Result<[u8; BLOCK]> {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    let (prefix, name) = split(name)?;
    if link.len() > 100 {
        return Err(format!("{link}: is too long for a link in a tar file"));
    }
    put(0, name.as_bytes());
    put(100, format!("{:07o}", entry.mode).as_bytes());
    put(108, format!("{:07o}", entry.owner).as_bytes());
    put(116, format!("{:07o}", entry.owner).as_bytes());
    put(124, format!("{size:011o}").as_bytes());
    put(136, format!("{epoch:011o}").as_bytes());
    // The sum is made with blanks in its own place.
    put(148, b"        ");
    put(156, &[kind]);
    put(157, link.as_bytes());
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

/// Prefix and name of a path: at most 155 and 100 bytes, divided at a slash.
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

/// `bytes` compressed, without name and time.
///
/// # Errors
/// None in practice: writing into memory does not fail.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    // 255: the system that made it is unknown, whatever it is.
    let made = GzBuilder::new().operating_system(255);
    let mut out = made.write(Vec::new(), Compression::default());
    let written = out.write_all(bytes).and_then(|()| out.finish());
    written.map_err(|e| format!("gzip: {e}"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Stdio};

    use super::{Tree, gzip, split};

    fn tree() -> Tree {
        let mut tree = Tree::default();
        tree.file("bin/program", 0o755, "x".repeat(513));
        tree.link("bin/other", "program");
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
    fn tar_reads_what_was_written() {
        let bytes = tree().tar("./", 1_700_000_000).unwrap();
        assert_eq!(bytes.len() % 512, 0);
        let mut child = Command::new("tar")
            .args(["--list", "--verbose", "--full-time", "--utc", "--file=-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let out = child.wait_with_output().unwrap();
        assert!(out.status.success());
        let text = String::from_utf8(out.stdout).unwrap();
        let squeezed: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let at = "2023-11-14 22:13:20";
        let deep = format!("./{}/{}", "d".repeat(90), "f".repeat(60));
        let expected = [
            format!("drwxr-xr-x root/root 0 {at} ./a/"),
            format!("-rw-r--r-- root/root 0 {at} ./a-b"),
            format!("-rw-r--r-- root/root 0 {at} ./a/b"),
            format!("drwxr-xr-x root/root 0 {at} ./bin/"),
            format!("lrwxrwxrwx root/root 0 {at} ./bin/other -> program"),
            format!("-rwxr-xr-x root/root 513 {at} ./bin/program"),
            format!("drwxr-xr-x root/root 0 {at} ./{}/", "d".repeat(90)),
            format!("-rw-r--r-- root/root 4 {at} {deep}"),
            format!("drwxr-x--- 65532/65532 0 {at} ./work/"),
        ];
        assert_eq!(squeezed, expected);
    }

    #[test]
    fn the_order_of_putting_changes_nothing() {
        let mut other = Tree::default();
        other.file("a/b", 0o644, "");
        other.dir("work", 0o750, 65532);
        other.file(
            &format!("{}/{}", "d".repeat(90), "f".repeat(60)),
            0o644,
            "deep",
        );
        other.link("bin/other", "program");
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
    fn compressed_bytes_name_no_time_and_no_system() {
        let packed = gzip(b"text").unwrap();
        assert_eq!(packed[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
        let mut text = String::new();
        flate2::read::GzDecoder::new(&packed[..])
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "text");
    }
}
