//! A Python wheel with a program, which `pip install` puts on PATH. A wheel is a zip file with a list of its files.

use std::collections::BTreeMap;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use sha2::{Digest as _, Sha256};

use super::elf::Version;
use super::when::SourceTime;
use crate::sh::Result;

/// A wheel of a program.
pub(super) struct Wheel<'a> {
    /// Name of the package and the program.
    pub(super) name: &'a str,
    /// Its version.
    pub(super) version: &'a str,
    /// The oldest glibc that runs it.
    pub(super) floor: Version,
    /// Machine, as `uname -m` prints it.
    pub(super) machine: &'a str,
    /// One-line summary.
    pub(super) summary: &'a str,
    /// Description in Markdown.
    pub(super) readme: &'a str,
    /// Licence of the package as an SPDX expression.
    pub(super) license: &'a str,
    /// File name and text of each licence.
    pub(super) licenses: &'a [(&'a str, &'a str)],
    /// The program.
    pub(super) program: &'a [u8],
}

impl Wheel<'_> {
    fn tag(&self) -> String {
        let (major, minor) = self.floor;
        format!("py3-none-manylinux_{major}_{minor}_{}", self.machine)
    }

    /// The file name, which installers parse.
    pub(super) fn file_name(&self) -> String {
        format!("{}-{}-{}.whl", self.name, self.version, self.tag())
    }

    /// The bytes of the wheel, with all times set to `when`.
    ///
    /// # Errors
    /// A file is too large for a zip file.
    pub(super) fn bytes(&self, when: SourceTime) -> Result<Vec<u8>> {
        let stem = format!("{}-{}", self.name, self.version);
        let info = format!("{stem}.dist-info");
        let mut files: BTreeMap<String, (u32, Vec<u8>)> = BTreeMap::new();
        let program = format!("{stem}.data/scripts/{}", self.name);
        files.insert(program, (0o755, self.program.to_vec()));
        let mut text = |name: &str, text: String| {
            files.insert(format!("{info}/{name}"), (0o644, text.into_bytes()));
        };
        let metadata = format!(
            "Metadata-Version: 2.1\nName: {}\nVersion: {}\nSummary: {}\nLicense: {}\n\
             Requires-Python: >=3.7\nDescription-Content-Type: text/markdown\n\n{}",
            self.name, self.version, self.summary, self.license, self.readme
        );
        text("METADATA", metadata);
        let wheel = format!(
            "Wheel-Version: 1.0\nGenerator: bucketload xtask\nRoot-Is-Purelib: false\nTag: {}\n",
            self.tag()
        );
        text("WHEEL", wheel);
        for (name, license) in self.licenses {
            text(&format!("licenses/{name}"), (*license).to_owned());
        }
        let record = format!("{info}/RECORD");
        let mut lines = String::new();
        for (path, (_, bytes)) in &files {
            let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
            lines.push_str(&format!("{path},sha256={digest},{}\n", bytes.len()));
        }
        // The record cannot contain its own hash.
        lines.push_str(&format!("{record},,\n"));
        let files = files
            .into_iter()
            .map(|(path, (mode, bytes))| (path, mode, bytes));
        let last = (record, 0o644, lines.into_bytes());
        zip(files.chain([last]), when)
    }
}

/// A zip file of entries with path, mode and contents.
fn zip(files: impl Iterator<Item = (String, u32, Vec<u8>)>, when: SourceTime) -> Result<Vec<u8>> {
    let large = |_| "a zip file holds at most 4 GiB".to_owned();
    let (date, time) = when.dos();
    let (mut out, mut directory, mut count) = (Vec::new(), Vec::new(), 0_u16);
    for (path, mode, bytes) in files {
        let mut sum = Crc::new();
        sum.update(&bytes);
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::default());
        let packed = packed.write_all(&bytes).and_then(|()| packed.finish());
        let packed = packed.map_err(|e| format!("zip: {e}"))?;
        let start = u32::try_from(out.len()).map_err(large)?;
        // Needed version 2.0, names in UTF-8, deflated.
        let mut common = Vec::new();
        for word in [20, 1 << 11, 8, time, date] {
            common.extend(u16::to_le_bytes(word));
        }
        common.extend(sum.sum().to_le_bytes());
        for size in [packed.len(), bytes.len()] {
            common.extend(u32::try_from(size).map_err(large)?.to_le_bytes());
        }
        common.extend(u16::try_from(path.len()).map_err(large)?.to_le_bytes());
        common.extend([0, 0]);
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(path.as_bytes());
        out.extend(packed);
        // Made on Unix, version 2.0: the upper half of the attributes is the mode.
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&common);
        directory.extend([0; 6]);
        directory.extend(((0o100_000 | mode) << 16).to_le_bytes());
        directory.extend(start.to_le_bytes());
        directory.extend(path.as_bytes());
        count += 1;
    }
    let start = u32::try_from(out.len()).map_err(large)?;
    let size = u32::try_from(directory.len()).map_err(large)?;
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(size.to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read as _;

    use base64::Engine as _;
    use sha2::{Digest as _, Sha256};

    use super::{SourceTime, URL_SAFE_NO_PAD, Wheel};

    /// Mode and contents of the files by name, according to the central directory.
    fn unzip(bytes: &[u8]) -> BTreeMap<String, (u32, Vec<u8>)> {
        let number = |at: usize, length: usize| {
            let digits = bytes[at..at + length].iter().rev();
            digits.fold(0, |sum, &byte| sum << 8 | usize::from(byte))
        };
        let end = bytes.len() - 22;
        assert_eq!(bytes[end..end + 4], *b"PK\x05\x06");
        let (count, size, mut at) = (
            number(end + 10, 2),
            number(end + 12, 4),
            number(end + 16, 4),
        );
        assert_eq!(at + size, end);
        let mut files = BTreeMap::new();
        for _ in 0..count {
            assert_eq!(bytes[at..at + 4], *b"PK\x01\x02");
            let (packed, unpacked, name) =
                (number(at + 20, 4), number(at + 24, 4), number(at + 28, 2));
            let mode = u32::try_from(number(at + 40, 2)).unwrap();
            let start = number(at + 42, 4);
            // The local header repeats the central one.
            assert_eq!(bytes[start..start + 4], *b"PK\x03\x04");
            assert_eq!(bytes[start + 4..start + 30], bytes[at + 6..at + 32]);
            // 2024-02-29 23:59:58
            assert_eq!((number(at + 14, 2), number(at + 12, 2)), (0x585d, 0xbf7d));
            let text = String::from_utf8(bytes[at + 46..at + 46 + name].to_vec()).unwrap();
            assert_eq!(bytes[start + 30..start + 30 + name], *text.as_bytes());
            let body = &bytes[start + 30 + name..][..packed];
            let mut content = Vec::new();
            let mut inflated = flate2::read::DeflateDecoder::new(body);
            inflated.read_to_end(&mut content).unwrap();
            assert_eq!(content.len(), unpacked);
            let mut sum = flate2::Crc::new();
            sum.update(&content);
            assert_eq!(sum.sum() as usize, number(at + 16, 4));
            files.insert(text, (mode, content));
            at += 46 + name;
        }
        files
    }

    #[test]
    fn the_record_names_every_file_with_sum_and_size() {
        let wheel = Wheel {
            name: "tool",
            version: "0.1.0",
            floor: (2, 34),
            machine: "x86_64",
            summary: "A tool",
            readme: "# Tool\n",
            license: "MIT",
            licenses: &[("LICENSE-MIT", "free")],
            program: b"\x7fELF and so on, and so on, and so on",
        };
        let name = wheel.file_name();
        assert_eq!(name, "tool-0.1.0-py3-none-manylinux_2_34_x86_64.whl");
        // 2024-02-29 23:59:59
        let bytes = wheel.bytes(SourceTime(1_709_251_199)).unwrap();
        assert_eq!(bytes, wheel.bytes(SourceTime(1_709_251_199)).unwrap());
        let files = unzip(&bytes);
        assert_eq!(
            files["tool-0.1.0.data/scripts/tool"],
            (0o100_755, wheel.program.to_vec())
        );
        let text = |name: &str| {
            let (mode, bytes) = &files[&format!("tool-0.1.0.dist-info/{name}")];
            assert_eq!(*mode, 0o100_644);
            String::from_utf8(bytes.clone()).unwrap()
        };
        assert!(text("WHEEL").contains("\nTag: py3-none-manylinux_2_34_x86_64\n"));
        assert!(text("METADATA").ends_with("\n\n# Tool\n"));
        assert_eq!(text("licenses/LICENSE-MIT"), "free");
        let record = text("RECORD");
        let (last, rows): (Vec<&str>, Vec<&str>) =
            record.lines().partition(|row| row.ends_with("RECORD,,"));
        assert_eq!((last.len(), rows.len()), (1, files.len() - 1));
        for row in rows {
            let (name, rest) = row.split_once(",sha256=").unwrap();
            let bytes = &files[name].1;
            let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
            assert_eq!(rest, format!("{digest},{}", bytes.len()));
        }
    }
}
