//! Numbers, percent-encoded names, query parameters, byte ranges and comma-separated fields.

/// Parses a decimal number without a sign.
pub(crate) fn unsigned(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    text.iter().try_fold(0u64, |sum, c| {
        let digit = c.is_ascii_digit().then(|| u64::from(c - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// Parses a decimal number with an optional minus sign.
pub(crate) fn signed(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        Some(digits) => unsigned(digits)
            .and_then(|n| i64::try_from(n).ok())
            .map(|n| -n),
        None => unsigned(text).and_then(|n| i64::try_from(n).ok()),
    }
}

/// Parses a number that may be absent (`-` or empty), which gives -1.
pub(crate) fn optional(text: &[u8]) -> Option<i64> {
    match text {
        b"" | b"-" => Some(-1),
        _ => signed(text),
    }
}

/// Appends `text` with `%XX` decoded. A `%` without two hexadecimal digits stays, and `+` does not become a space.
pub(crate) fn percent_decode(text: &[u8], out: &mut Vec<u8>) {
    let hex = |c: u8| char::from(c).to_digit(16).map(|d| d as u8);
    let mut i = 0;
    while i < text.len() {
        if text[i] == b'%'
            && let (Some(&a), Some(&b)) = (text.get(i + 1), text.get(i + 2))
            && let (Some(a), Some(b)) = (hex(a), hex(b))
        {
            out.push(a << 4 | b);
            i += 3;
        } else {
            out.push(text[i]);
            i += 1;
        }
    }
}

/// Splits `/bucket/key?query` into bucket, key and query, still encoded.
pub(crate) fn split_path(path: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let (path, query) = split_at(path, b'?');
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let (bucket, key) = split_at(path, b'/');
    (bucket, key, query)
}

/// Splits at the first `mark`; without one, the second part is empty.
pub(crate) fn split_at(text: &[u8], mark: u8) -> (&[u8], &[u8]) {
    match memchr::memchr(mark, text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, b""),
    }
}

/// The value of `name` in a query such as `partNumber=3&uploadId=x`.
pub(crate) fn query<'a>(query: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let parts = query.split(|&c| c == b'&').map(|part| split_at(part, b'='));
    parts
        .into_iter()
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// Offset and length of a range such as `bytes=131072-196607`. A suffix range or an open end needs the size (-1 if
/// unknown); an open end without it gives length -1. `None` if the text is not a single range.
pub(crate) fn byte_range(text: &[u8], size: i64) -> Option<(i64, i64)> {
    let range = text.strip_prefix(b"bytes=")?;
    let at = memchr::memchr(b'-', range)?;
    let (first, last) = (&range[..at], &range[at + 1..]);
    match (first, last) {
        (b"", last) => {
            let n = signed(last)?;
            (size >= 0).then(|| ((size - n).max(0), n.min(size)))
        }
        (first, b"") => {
            let off = signed(first)?;
            Some((off, if size > off { size - off } else { -1 }))
        }
        (first, last) => {
            let (off, end) = (signed(first)?, signed(last)?);
            (end >= off).then(|| (off, end - off + 1))
        }
    }
}

/// Appends the source of a copy, `/bucket/key?versionId=…` with `%XX`, as `bucket/key`.
pub(crate) fn copy_source(text: &[u8], out: &mut Vec<u8>) {
    let (path, _) = split_at(text, b'?');
    percent_decode(path.strip_prefix(b"/").unwrap_or(path), out);
}

/// Splits a line of separated values into `out` as (start, end) of each field, without the enclosing quotes (RFC 4180).
/// Doubled quotes inside a field stay doubled; see [`unquote`]. Returns whether the quotes match.
pub(crate) fn split_csv(line: &[u8], delimiter: u8, out: &mut Vec<(usize, usize)>) -> bool {
    out.clear();
    let mut at = 0;
    loop {
        if line.get(at) == Some(&b'"') {
            let start = at + 1;
            let mut end = start;
            loop {
                match memchr::memchr(b'"', &line[end..]) {
                    None => return false,
                    Some(n) if line.get(end + n + 1) == Some(&b'"') => end += n + 2,
                    Some(n) => {
                        end += n;
                        break;
                    }
                }
            }
            out.push((start, end));
            at = end + 1;
            match line.get(at) {
                None => return true,
                Some(c) if *c == delimiter => at += 1,
                Some(_) => return false,
            }
        } else {
            match memchr::memchr(delimiter, &line[at..]) {
                None => {
                    out.push((at, line.len()));
                    return true;
                }
                Some(n) => {
                    out.push((at, at + n));
                    at += n + 1;
                }
            }
        }
    }
}

/// Appends a field with doubled quotes replaced by single ones.
pub(crate) fn unquote(field: &[u8], out: &mut Vec<u8>) {
    let mut rest = field;
    while let Some(at) = memchr::memmem::find(rest, b"\"\"") {
        out.extend_from_slice(&rest[..=at]);
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::{byte_range, percent_decode, query, signed, split_csv, split_path, unquote};

    #[test]
    fn names_are_decoded_exactly() {
        let decode = |text: &str| {
            let mut out = Vec::new();
            percent_decode(text.as_bytes(), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(decode("a%2Bb+c%20d"), "a+b+c d");
        assert_eq!(decode("100%"), "100%");
        assert_eq!(decode("%zz%4"), "%zz%4");
    }

    #[test]
    fn paths_and_queries() {
        assert_eq!(
            split_path(b"/b/k/1?partNumber=3&uploadId=x"),
            (&b"b"[..], &b"k/1"[..], &b"partNumber=3&uploadId=x"[..])
        );
        assert_eq!(split_path(b"/b"), (&b"b"[..], &b""[..], &b""[..]));
        assert_eq!(query(b"a=1&uploads&b=2", b"b"), Some(&b"2"[..]));
        assert_eq!(query(b"a=1&uploads&b=2", b"uploads"), Some(&b""[..]));
        assert_eq!(query(b"a=1", b"b"), None);
    }

    #[test]
    fn ranges() {
        assert_eq!(
            byte_range(b"bytes=131072-196607", -1),
            Some((131_072, 65_536))
        );
        assert_eq!(byte_range(b"bytes=100-", 300), Some((100, 200)));
        assert_eq!(byte_range(b"bytes=100-", -1), Some((100, -1)));
        assert_eq!(byte_range(b"bytes=-50", 300), Some((250, 50)));
        for text in [
            "bytes=5-2",
            "bytes=-5",
            "items=1-2",
            "bytes=1-2,4-5",
            "bytes=a-b",
        ] {
            assert_eq!(byte_range(text.as_bytes(), -1), None, "{text}");
        }
    }

    #[test]
    fn separated_values() {
        let fields = |line: &str| {
            let mut spans = Vec::new();
            let sound = split_csv(line.as_bytes(), b',', &mut spans);
            let text = spans.iter().map(|&(a, b)| {
                let mut out = Vec::new();
                unquote(&line.as_bytes()[a..b], &mut out);
                String::from_utf8(out).unwrap()
            });
            sound.then(|| text.collect::<Vec<_>>())
        };
        assert_eq!(fields("a,,b").unwrap(), ["a", "", "b"]);
        assert_eq!(fields("\"a,\"\"b\",c").unwrap(), ["a,\"b", "c"]);
        assert_eq!(fields("").unwrap(), [""]);
        assert_eq!(fields("\"a"), None);
        assert_eq!(fields("\"a\"b"), None);
        assert_eq!(signed(b"-12"), Some(-12));
        assert_eq!(signed(b"18446744073709551615"), None);
    }
}
