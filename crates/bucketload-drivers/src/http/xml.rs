//! A reader for the XML that S3 services answer with: elements and text, no attributes, no
//! document type. It borrows from the answer and allocates nothing.
//!
//! Consumers ask for leaves: an element that holds only text, with the names of the elements
//! around it.

/// Deepest nesting of elements.
const DEPTH: usize = 8;

/// The answer is not well-formed, or deeper than any S3 answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed XML")]
pub(crate) struct Malformed;

/// Text of an element.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Text<'a> {
    raw: &'a str,
    /// Whether `&` has no meaning in it (CDATA).
    literal: bool,
}

impl Text<'_> {
    /// Appends the text with its references resolved. Unknown references stay as they are.
    pub(crate) fn push_to(&self, out: &mut Vec<u8>) {
        let mut rest = self.raw;
        while !self.literal
            && let Some(at) = rest.find('&')
        {
            out.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at..];
            let end = rest.as_bytes().iter().take(12).position(|&b| b == b';');
            match end.and_then(|end| Some((end, reference(&rest[1..end])?))) {
                Some((end, c)) => {
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    rest = &rest[end + 1..];
                }
                None => {
                    out.push(b'&');
                    rest = &rest[1..];
                }
            }
        }
        out.extend_from_slice(rest.as_bytes());
    }

    /// The text with its references resolved.
    pub(crate) fn get(&self) -> String {
        let mut out = Vec::with_capacity(self.raw.len());
        self.push_to(&mut out);
        // Pieces of text and encoded characters are UTF-8, and so is what they make.
        String::from_utf8(out).unwrap_or_default()
    }

    /// Whether the text is `wanted`, which needs no reference.
    pub(crate) fn is(&self, wanted: &str) -> bool {
        self.raw.trim() == wanted
    }

    /// Whether there is no text.
    pub(crate) fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }
}

fn reference(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let digits = name.strip_prefix('#')?;
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => digits.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

/// Calls `f` for each leaf with the local names of its ancestors and itself (the root first) and
/// its text.
///
/// # Errors
/// When the document is not well-formed; leaves before that place have been shown.
pub(crate) fn leaves<'a>(
    xml: &'a [u8],
    mut f: impl FnMut(&[&'a str], Text<'a>),
) -> Result<(), Malformed> {
    each_leaf(xml, &mut f)
}

/// Compiled once, whatever is done with a leaf.
fn each_leaf<'a>(xml: &'a [u8], f: &mut dyn FnMut(&[&'a str], Text<'a>)) -> Result<(), Malformed> {
    let mut rest = std::str::from_utf8(xml).map_err(|_| Malformed)?;
    let mut path = [""; DEPTH];
    let mut depth = 0usize;
    let mut text = Text::default();
    // Whether the last tag was a start: only then does an end close a leaf.
    let mut leaf = false;
    let mut seen_root = false;
    while let Some(at) = rest.find('<') {
        if leaf && at > 0 {
            text = Text {
                raw: &rest[..at],
                literal: false,
            };
        }
        rest = &rest[at + 1..];
        if let Some(body) = rest.strip_prefix("?") {
            rest = after(body, "?>")?.1;
        } else if let Some(body) = rest.strip_prefix("!--") {
            rest = after(body, "-->")?.1;
        } else if let Some(body) = rest.strip_prefix("![CDATA[") {
            let (raw, next) = after(body, "]]>")?;
            text = Text { raw, literal: true };
            rest = next;
        } else if let Some(body) = rest.strip_prefix('/') {
            let (name, next) = after(body, ">")?;
            rest = next;
            let open = depth.checked_sub(1).ok_or(Malformed)?;
            if path[open] != local(name.trim_end()) {
                return Err(Malformed);
            }
            if leaf {
                f(&path[..depth], text);
            }
            leaf = false;
            depth = open;
        } else {
            let (tag, next) = after_tag(rest)?;
            rest = next;
            let (tag, closed) = match tag.strip_suffix('/') {
                Some(tag) => (tag, true),
                None => (tag, false),
            };
            let name = tag.split_ascii_whitespace().next().ok_or(Malformed)?;
            if tag.starts_with(char::is_whitespace) || (depth == 0 && seen_root) {
                return Err(Malformed);
            }
            seen_root = true;
            *path.get_mut(depth).ok_or(Malformed)? = local(name);
            text = Text::default();
            if closed {
                f(&path[..=depth], text);
                leaf = false;
            } else {
                depth += 1;
                leaf = true;
            }
        }
    }
    if depth > 0 || !seen_root {
        return Err(Malformed);
    }
    Ok(())
}

fn after<'a>(text: &'a str, end: &str) -> Result<(&'a str, &'a str), Malformed> {
    text.split_once(end).ok_or(Malformed)
}

/// Splits behind the `>` of a start tag; one inside a quoted attribute value does not count.
fn after_tag(text: &str) -> Result<(&str, &str), Malformed> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Ok((&text[..at], &text[at + 1..])),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    Err(Malformed)
}

fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// Appends `text` with the characters escaped that XML reserves, and those that it cannot carry
/// literally as references.
pub(crate) fn push_escaped(out: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\'' => out.extend_from_slice(b"&apos;"),
            0..0x20 => {
                out.extend_from_slice(b"&#");
                super::encode::push_decimal(out, u64::from(byte));
                out.push(b';');
            }
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
#[path = "xml_tests.rs"]
mod tests;
