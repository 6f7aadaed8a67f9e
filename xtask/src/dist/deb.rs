//! Debian packages: an `ar` archive of a version, a control archive and a data archive.

use super::tree::{Tree, gzip};
use crate::sh::Result;

/// A package for dpkg.
pub(super) struct Deb<'a> {
    /// The fields of the control file except `Installed-Size`, one per line.
    pub(super) control: String,
    /// Text of the file `triggers`; empty for none.
    pub(super) triggers: &'a str,
    /// The installed files.
    pub(super) data: &'a Tree,
}

impl Deb<'_> {
    /// The bytes of the package, with all times set to `epoch` (seconds).
    ///
    /// # Errors
    /// A path is too long for a tar file.
    pub(super) fn bytes(&self, epoch: u64) -> Result<Vec<u8>> {
        let mut control = Tree::default();
        let size = self.data.kib();
        let fields = &self.control;
        // The description must come last, as it spans several lines.
        let at = fields.find("Description:").unwrap_or(fields.len());
        let (head, tail) = fields.split_at(at);
        let text = format!("{head}Installed-Size: {size}\n{tail}");
        control.file("control", 0o644, text);
        if !self.triggers.is_empty() {
            control.file("triggers", 0o644, self.triggers);
        }
        ar(
            &[
                ("debian-binary", b"2.0\n".to_vec()),
                ("control.tar.gz", gzip(&control.tar("./", epoch)?)?),
                ("data.tar.gz", gzip(&self.data.tar("./", epoch)?)?),
            ],
            epoch,
        )
    }
}

/// An `ar` archive with names of at most 15 bytes.
fn ar(members: &[(&str, Vec<u8>)], epoch: u64) -> Result<Vec<u8>> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        if name.len() > 15 {
            return Err(format!("{name}: is too long for an ar archive"));
        }
        let size = bytes.len();
        let header = format!(
            "{name:<16}{epoch:<12}{:<6}{:<6}{:<8o}{size:<10}`\n",
            0, 0, 0o100_644
        );
        out.extend(header.as_bytes());
        out.extend(bytes);
        if size % 2 == 1 {
            out.push(b'\n');
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::{Deb, Tree, ar};

    #[test]
    fn archive_members_start_at_even_offsets() {
        let made = ar(&[("odd", b"abc".to_vec()), ("even", b"de".to_vec())], 7).unwrap();
        let text = String::from_utf8(made).unwrap();
        let odd = format!(
            "odd{}7{}0     0     100644  3         `\nabc\n",
            " ".repeat(13),
            " ".repeat(11)
        );
        let even = format!(
            "even{}7{}0     0     100644  2         `\nde",
            " ".repeat(12),
            " ".repeat(11)
        );
        assert_eq!(text, format!("!<arch>\n{odd}{even}"));
        assert!(ar(&[("a-name-too-long-", Vec::new())], 0).is_err());
    }

    #[test]
    fn installed_size_precedes_the_description() {
        let mut data = Tree::default();
        data.file("usr/bin/x", 0o755, vec![0; 2049]);
        let deb = Deb {
            control: "Package: x\nDescription: y\n z\n".to_owned(),
            triggers: "",
            data: &data,
        };
        let made = deb.bytes(3).unwrap();
        assert_eq!(made, deb.bytes(3).unwrap());
        assert_eq!(made[..8], *b"!<arch>\n");
        let start = 8 + 60 + 4 + 60;
        let mut tar = Vec::new();
        let mut packed = flate2::read::GzDecoder::new(&made[start..]);
        std::io::Read::read_to_end(&mut packed, &mut tar).unwrap();
        let text = String::from_utf8_lossy(&tar);
        assert!(
            text.contains("Package: x\nInstalled-Size: 3\nDescription: y\n z\n"),
            "{text}"
        );
    }
}
