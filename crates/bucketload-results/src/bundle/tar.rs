//! Entries of the archive: ustar headers (POSIX.1-2017, pax, "ustar Interchange Format") of regular files. They
//! record only path and length, so the same files give the same bytes.

use super::BundleError;

/// Size of a header in bytes; contents are padded to a multiple of it.
pub(super) const BLOCK: usize = 512;

/// Smallest length that does not fit the octal field.
const OCTAL_END: u64 = 1 << 33;

/// The header of a file. `None` if the path cannot be split into the header's two path fields.
pub(super) fn header(path: &str, bytes: u64) -> Option<[u8; BLOCK]> {
    let mut out = [0; BLOCK];
    let (prefix, name) = split(path)?;
    out[..name.len()].copy_from_slice(name.as_bytes());
    out[345..345 + prefix.len()].copy_from_slice(prefix.as_bytes());
    octal(&mut out[100..108], 0o644);
    octal(&mut out[108..116], 0);
    octal(&mut out[116..124], 0);
    match bytes < OCTAL_END {
        true => octal(&mut out[124..136], bytes),
        // GNU's and star's form of large numbers: the first bit set, then big-endian.
        false => {
            out[124] = 0x80;
            out[128..136].copy_from_slice(&bytes.to_be_bytes());
        }
    }
    octal(&mut out[136..148], 0);
    out[156] = b'0';
    out[257..263].copy_from_slice(b"ustar\0");
    out[263..265].copy_from_slice(b"00");
    out[148..156].fill(b' ');
    let sum: u64 = out.iter().map(|b| u64::from(*b)).sum();
    octal(&mut out[148..155], sum);
    out[155] = b' ';
    Some(out)
}

/// Prefix and name of a path.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= 100 {
        return Some(("", path));
    }
    let mut splits = path
        .match_indices('/')
        .map(|(at, _)| (&path[..at], &path[at + 1..]));
    splits.rfind(|(prefix, name)| prefix.len() <= 155 && name.len() <= 100)
}

/// Writes zero-padded octal digits and a final zero byte.
fn octal(field: &mut [u8], mut value: u64) {
    let digits = field.len() - 1;
    for digit in field[..digits].iter_mut().rev() {
        *digit = b'0' + (value & 7) as u8;
        value >>= 3;
    }
    field[digits] = 0;
}

/// Padding in bytes between the end of a file of this length and the next header.
pub(super) fn padding(bytes: u64) -> usize {
    (BLOCK - (bytes % BLOCK as u64) as usize) % BLOCK
}

/// The length that a header states, if it is in octal digits.
pub(super) fn bytes_of(header: &[u8; BLOCK]) -> Option<u64> {
    let digits = std::str::from_utf8(&header[124..135]).ok()?;
    u64::from_str_radix(digits, 8).ok()
}

/// Checks that `found` is the header of `path` and `bytes`.
///
/// # Errors
/// Describes the entry that was found instead.
pub(super) fn expect(found: &[u8; BLOCK], path: &str, bytes: u64) -> Result<(), BundleError> {
    if header(path, bytes).is_some_and(|wanted| wanted == *found) {
        return Ok(());
    }
    let text = |range: std::ops::Range<usize>| {
        let field = &found[range];
        let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
        String::from_utf8_lossy(&field[..end])
            .escape_debug()
            .to_string()
    };
    let (name, prefix) = (text(0..100), text(345..500));
    let shown = match prefix.is_empty() {
        true => name,
        false => format!("{prefix}/{name}"),
    };
    let what = match found[156] {
        b'0' | 0 => "",
        b'1' | b'2' => ", a link",
        b'5' => ", a directory",
        b'3' | b'4' | b'6' => ", a device or pipe",
        _ => ", an unknown kind of entry",
    };
    let length = match bytes_of(found) {
        Some(found) if found != bytes => format!(" of {found} B"),
        _ => String::new(),
    };
    Err(BundleError::refused(format!(
        "the archive holds `{shown}`{length}{what}, but its list of contents names the file `{path}` of {bytes} B"
    )))
}

#[cfg(test)]
mod tests {
    use super::{header, padding, split};

    #[test]
    fn a_header_is_what_tar_writes() {
        let header = header("run.json", 1234).unwrap();
        assert_eq!(&header[..9], b"run.json\0");
        assert_eq!(&header[124..136], b"00000002322\0");
        // POSIX computes the sum with blanks in the checksum field.
        let mut copy = header;
        copy[148..156].fill(b' ');
        let sum: u32 = copy.iter().map(|b| u32::from(*b)).sum();
        assert_eq!(&header[148..156], format!("{sum:06o}\0 ").as_bytes());
    }

    #[test]
    fn long_paths_are_split_at_a_slash() {
        let long = format!("{}/{}", "d".repeat(120), "f".repeat(60));
        assert_eq!(split(&long), Some((&long[..120], &long[121..])));
        assert_eq!(split(&"x".repeat(101)), None);
        assert_eq!([0u64, 1, 511, 512, 513].map(padding), [0, 511, 1, 0, 511]);
    }
}
