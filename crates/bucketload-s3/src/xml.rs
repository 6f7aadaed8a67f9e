//! XML as S3 services and their clients write it: elements and text, no attributes, no document type.
//!
//! The reader reports each element when it closes, with the names of the enclosing elements and its text. It borrows
//! from the document and allocates nothing, because listings are parsed on the request path. Existing XML crates keep
//! the stack of open elements on the heap.

/// Maximum nesting of elements.
const DEPTH: usize = 8;

/// The document is not well-formed, or nested deeper than any S3 document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed XML")]
pub struct Malformed;

/// The text of an element, with references still unresolved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text<'a> {
    raw: &'a str,
    strict: bool,
}

impl Text<'_> {
    /// Appends the text with its references resolved. Unknown references are copied unchanged.
    pub fn push_to(&self, out: &mut Vec<u8>) {
        let mut rest = self.raw;
        while let Some(at) = rest.find(['&', '<']) {
            self.push_piece(out, &rest[..at]);
            rest = &rest[at..];
            if let Some((c, after)) = reference(rest) {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = after;
            } else if let Some(body) = rest.strip_prefix("<![CDATA[") {
                let (literal, after) = body.split_once("]]>").unwrap_or((body, ""));
                self.push_piece(out, literal);
                rest = after;
            } else if rest.starts_with('&') {
                out.push(b'&');
                rest = &rest[1..];
            } else {
                // A comment or a processing instruction.
                let end = if rest.starts_with("<!--") {
                    "-->"
                } else {
                    "?>"
                };
                rest = rest.split_once(end).map_or("", |(_, after)| after);
            }
        }
        self.push_piece(out, rest);
    }

    /// Appends literal text. In requests, line ends become line feeds (XML 1.0, section 2.11). In responses they are
    /// kept: a server that writes a key with such a byte means it.
    fn push_piece(&self, out: &mut Vec<u8>, piece: &str) {
        if self.strict && piece.contains('\r') {
            let lines = piece.replace("\r\n", "\n").replace('\r', "\n");
            out.extend_from_slice(lines.as_bytes());
        } else {
            out.extend_from_slice(piece.as_bytes());
        }
    }

    /// The text with its references resolved.
    #[must_use]
    pub fn get(&self) -> String {
        let mut out = Vec::with_capacity(self.raw.len());
        self.push_to(&mut out);
        // Concatenated UTF-8 is UTF-8.
        String::from_utf8(out).unwrap_or_default()
    }

    /// True if the trimmed text is `wanted`, which must not need references.
    #[must_use]
    pub fn is(&self, wanted: &str) -> bool {
        self.raw.trim() == wanted
    }

    /// True if there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }
}

/// Parses a reference at the start of `text`: its character, and the remaining text.
fn reference(text: &str) -> Option<(char, &str)> {
    let body = text.strip_prefix('&')?;
    let end = body.bytes().take(16).position(|byte| byte == b';')?;
    let c = match &body[..end] {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        name => {
            let digits = name.strip_prefix('#')?;
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => digits.parse().ok()?,
            };
            char::from_u32(code)?
        }
    };
    Some((c, &body[end + 1..]))
}

/// True if every reference in a request's text can be resolved. XML cannot carry a NUL character.
fn is_sound(text: &str) -> bool {
    let mut marks = text.match_indices('&');
    marks.all(|(at, _)| reference(&text[at..]).is_some_and(|(c, _)| c != '\0'))
}

/// Calls `f` for each leaf of a response, with the local names from the root down to the leaf, and its text. Unknown
/// references are accepted.
///
/// # Errors
/// When the document is not well-formed; `f` has seen the leaves before the fault.
pub fn leaves<'a>(xml: &'a [u8], mut f: impl FnMut(&[&'a str], Text<'a>)) -> Result<(), Malformed> {
    each(xml, false, &mut |path, text, leaf| {
        if leaf {
            f(path, text);
        }
    })
}

/// Calls `f` for each element of a request when it closes, with the same arguments as [`leaves`]. Elements with
/// children have no text. Unknown references are errors.
///
/// # Errors
/// When the document is not well-formed; `f` has seen the elements before the fault.
pub fn elements<'a>(
    xml: &'a [u8],
    mut f: impl FnMut(&[&'a str], Text<'a>),
) -> Result<(), Malformed> {
    each(xml, true, &mut |path, text, _| f(path, text))
}

/// Not generic over `f`, so it is compiled only once.
fn each<'a>(
    xml: &'a [u8],
    strict: bool,
    f: &mut dyn FnMut(&[&'a str], Text<'a>, bool),
) -> Result<(), Malformed> {
    let xml = std::str::from_utf8(xml).map_err(|_| Malformed)?;
    let mut rest = xml.trim_start_matches('\u{feff}');
    let mut path = [""; DEPTH];
    let mut depth = 0usize;
    // The document from the content of the innermost open element on, as long as that element has no children.
    let mut leaf: Option<&str> = None;
    let mut seen_root = false;
    while let Some(at) = rest.find('<') {
        let (text, markup) = rest.split_at(at);
        if strict && !is_sound(text) {
            return Err(Malformed);
        }
        rest = &markup[1..];
        if let Some(body) = rest.strip_prefix('?') {
            rest = after(body, "?>")?.1;
        } else if let Some(body) = rest.strip_prefix("!--") {
            rest = after(body, "-->")?.1;
        } else if let Some(body) = rest.strip_prefix("![CDATA[") {
            rest = after(body, "]]>")?.1;
        } else if let Some(body) = rest.strip_prefix('/') {
            let (name, next) = after(body, ">")?;
            rest = next;
            let open = depth.checked_sub(1).ok_or(Malformed)?;
            if path[open] != local(name.trim_end()) {
                return Err(Malformed);
            }
            let raw = leaf.map_or("", |from| &from[..from.len() - markup.len()]);
            f(&path[..depth], Text { raw, strict }, leaf.is_some());
            leaf = None;
            depth = open;
        } else {
            let (tag, next) = after_tag(rest)?;
            rest = next;
            let (tag, closed) = match tag.strip_suffix('/') {
                Some(tag) => (tag, true),
                None => (tag, false),
            };
            let name = tag.split_ascii_whitespace().next().ok_or(Malformed)?;
            let second_root = depth == 0 && seen_root;
            // Refuses document types.
            if tag.starts_with(|c: char| c.is_whitespace() || c == '!') || second_root {
                return Err(Malformed);
            }
            seen_root = true;
            *path.get_mut(depth).ok_or(Malformed)? = local(name);
            if closed {
                f(&path[..=depth], Text { raw: "", strict }, true);
                leaf = None;
            } else {
                depth += 1;
                leaf = Some(rest);
            }
        }
    }
    if depth > 0 || !seen_root || (strict && !is_sound(rest)) {
        return Err(Malformed);
    }
    Ok(())
}

fn after<'a>(text: &'a str, end: &str) -> Result<(&'a str, &'a str), Malformed> {
    text.split_once(end).ok_or(Malformed)
}

/// Splits after the `>` of a start tag. A `>` inside a quoted attribute value does not count.
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

/// Appends `text` and escapes the characters that XML reserves. Control characters, which XML cannot carry, become
/// numeric references; clients ask for `encoding-type=url` if keys may hold them.
pub fn push_escaped(out: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\'' => out.extend_from_slice(b"&apos;"),
            0..0x20 | 0x7f => {
                out.extend_from_slice(b"&#");
                crate::encode::push_decimal(out, u64::from(byte));
                out.push(b';');
            }
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
#[path = "xml_tests.rs"]
mod tests;
