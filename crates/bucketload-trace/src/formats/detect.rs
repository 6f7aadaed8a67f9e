//! Detects a format by parsing the first lines with each importer.

use std::io::Cursor;

use super::{Format, FormatOptions};
use crate::frames::{Frame, Frames};
use crate::parsed::DropReason;

/// Maximum number of frames that are parsed.
const MAX_FRAMES: u64 = 64;

/// Detects the format of a file that begins with `head`; `None` if none matches. The last line of `head` may be
/// incomplete. A format matches if at least half of its frames can be parsed; the largest share wins, and among equal
/// shares the first in [`Format::ALL`].
#[must_use]
pub fn detect(head: &[u8], options: &FormatOptions) -> Option<Format> {
    // An incomplete last line must not count, unless there is no other.
    let head = match memchr::memrchr(b'\n', head) {
        Some(at) => &head[..=at],
        None => head,
    };
    let mut best: Option<(f64, Format)> = None;
    for &format in Format::ALL {
        let score = score(format, head, options).unwrap_or(0.0);
        if score >= 0.5 && best.is_none_or(|(best_score, _)| score > best_score) {
            best = Some((score, format));
        }
    }
    best.map(|(_, format)| format)
}

/// The share of the first frames that the importer can parse.
fn score(format: Format, head: &[u8], options: &FormatOptions) -> Option<f64> {
    if format == Format::Csv && options.layout.is_none() {
        return None;
    }
    let mut importer = format.importer(options).ok()?;
    importer.start_file();
    let mut frames = Frames::new(Cursor::new(head), importer.framing());
    let (mut seen, mut good, mut records) = (0, 0, 0);
    while seen < MAX_FRAMES {
        match frames.next_frame().ok()? {
            None => break,
            Some(Frame::Broken(..)) => seen += 1,
            Some(Frame::Whole(bytes)) => {
                seen += 1;
                match importer.read(bytes, &mut |_| records += 1) {
                    Ok(()) => good += 1,
                    Err(DropReason::Foreign) => {}
                    Err(reason) if !reason.is_unparsable() => good += 1,
                    Err(_) => {}
                }
            }
        }
    }
    (seen > 0 && records > 0).then(|| f64::from(good) / seen as f64)
}
