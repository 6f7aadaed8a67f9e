//! Recognises a format by what its importer makes of the first lines.

use std::io::Cursor;

use super::{Format, FormatOptions};
use crate::frames::{Frame, Frames};
use crate::parsed::Reason;

/// Frames that are tried.
const TRIED: u64 = 64;

/// The format of a file that begins with `head`; `None` if none fits. The last line of `head` may
/// be cut. A format fits when at least half of its frames can be read; among those the first in
/// [`Format::ALL`] with the largest share wins.
#[must_use]
pub fn detect(head: &[u8], options: &FormatOptions) -> Option<Format> {
    // A cut last line must not count, unless it is all there is.
    let head = match memchr::memrchr(b'\n', head) {
        Some(at) => &head[..=at],
        None => head,
    };
    let mut best: Option<(f64, Format)> = None;
    for &format in Format::ALL {
        let score = score(format, head, options).unwrap_or(0.0);
        if score >= 0.5 && best.is_none_or(|(least, _)| score > least) {
            best = Some((score, format));
        }
    }
    best.map(|(_, format)| format)
}

/// Share of the first frames that the format's importer understands.
fn score(format: Format, head: &[u8], options: &FormatOptions) -> Option<f64> {
    if format == Format::Csv && options.layout.is_none() {
        return None;
    }
    let mut importer = format.importer(options).ok()?;
    importer.start_file();
    let mut frames = Frames::new(Cursor::new(head), importer.framing());
    let (mut seen, mut good, mut records) = (0, 0, 0);
    while seen < TRIED {
        match frames.next_frame().ok()? {
            None => break,
            Some(Frame::Broken(..)) => seen += 1,
            Some(Frame::Whole(bytes)) => {
                seen += 1;
                match importer.read(bytes, &mut |_| records += 1) {
                    Ok(()) => good += 1,
                    Err(Reason::Foreign) => {}
                    Err(reason) if !reason.is_unparsable() => good += 1,
                    Err(_) => {}
                }
            }
        }
    }
    (seen > 0 && records > 0).then(|| f64::from(good) / seen as f64)
}
