//! Escaping for XML, CSV, Markdown and LaTeX.
//!
//! Names of targets, workloads and failure reasons come from outside and must not become markup.
//! Control characters are dropped everywhere: none of the formats can hold them.

use std::fmt::Write as _;

/// Control characters other than line feed and tab. XML 1.0 cannot represent them.
fn is_foreign(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t' || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// `text` as content or attribute value of XML and HTML.
#[must_use]
pub fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !is_foreign(*c)) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// `text` as one CSV field (RFC 4180), quoted if it holds a comma, a quote or a line break.
#[must_use]
pub fn csv(text: &str) -> String {
    let text: String = text.chars().filter(|c| !is_foreign(*c)).collect();
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

/// `text` as a cell of a Markdown table: one line, with every character escaped that could begin markup.
#[must_use]
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !is_foreign(*c)) {
        match c {
            '\n' | '\t' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '~' | '#' | '!' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// `text` for LaTeX's text mode, in ASCII, so it compiles with any document encoding and fonts. Characters
/// without a name here are written as their code point.
#[must_use]
pub fn latex(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !is_foreign(*c)) {
        let named = match c {
            '\n' | '\t' => " ",
            '\\' => r"\textbackslash{}",
            '{' => r"\{",
            '}' => r"\}",
            '$' => r"\$",
            '&' => r"\&",
            '#' => r"\#",
            '%' => r"\%",
            '_' => r"\_",
            '^' => r"\textasciicircum{}",
            '~' => r"\textasciitilde{}",
            '<' => r"\textless{}",
            '>' => r"\textgreater{}",
            '|' => r"\textbar{}",
            // Straight quotes need fonts or packages that a plain document does not have.
            '"' => "''",
            '`' => "{`}",
            // Two hyphens would form a dash; a bracket could become the argument of a line break.
            '-' => "{-}",
            '[' => "{[}",
            ']' => "{]}",
            '*' => "{*}",
            'µ' | 'μ' => r"\ensuremath{\mu}",
            '×' => r"\ensuremath{\times}",
            '±' => r"\ensuremath{\pm}",
            '≤' => r"\ensuremath{\leq}",
            '≥' => r"\ensuremath{\geq}",
            '·' => r"\ensuremath{\cdot}",
            '∞' => r"\ensuremath{\infty}",
            '–' => "--",
            '—' => "---",
            '…' => r"\ldots{}",
            '’' => "'",
            '\u{a0}' => "~",
            'ä' => "\\\"a",
            'ö' => "\\\"o",
            'ü' => "\\\"u",
            'Ä' => "\\\"A",
            'Ö' => "\\\"O",
            'Ü' => "\\\"U",
            'ß' => r"\ss{}",
            'é' => r"\'e",
            'è' => r"\`e",
            _ if c.is_ascii() => {
                out.push(c);
                continue;
            }
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(out, "U+{:04X}", u32::from(c));
                continue;
            }
        };
        out.push_str(named);
    }
    out
}

/// `text` as part of a file name or identifier: lower-case letters, digits and single hyphens.
#[must_use]
pub fn slug(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => out.push(c),
            _ if !out.is_empty() && !out.ends_with('-') => out.push('-'),
            _ => {}
        }
    }
    let out = out.trim_end_matches('-');
    match out {
        "" => "x".to_owned(),
        _ => out.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{csv, latex, markdown, slug, xml};

    /// Parses one line into fields by the grammar of RFC 4180.
    fn fields(line: &str) -> Vec<String> {
        let mut out = vec![String::new()];
        let mut chars = line.chars().peekable();
        let mut quoted = false;
        while let Some(c) = chars.next() {
            match (quoted, c) {
                (true, '"') if chars.peek() == Some(&'"') => {
                    chars.next();
                    out.last_mut().unwrap().push('"');
                }
                (true, '"') => quoted = false,
                (false, '"') => quoted = true,
                (false, ',') => out.push(String::new()),
                _ => out.last_mut().unwrap().push(c),
            }
        }
        assert!(!quoted, "an open quote: {line}");
        out
    }

    fn printable(text: &str) -> String {
        text.chars().filter(|c| !super::is_foreign(*c)).collect()
    }

    proptest! {
        #[test]
        fn csv_fields_come_back(a in any::<String>(), b in any::<String>()) {
            let line = format!("{},{}", csv(&a), csv(&b));
            prop_assert_eq!(fields(&line), vec![printable(&a), printable(&b)]);
        }

        #[test]
        fn xml_has_no_markup_left(text in any::<String>()) {
            let escaped = xml(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
            let back = escaped
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&quot;", "\"")
                .replace("&#39;", "'")
                .replace("&amp;", "&");
            prop_assert_eq!(back, printable(&text));
        }

        #[test]
        fn markdown_cells_stay_cells(text in any::<String>()) {
            let cell = markdown(&text);
            prop_assert!(!cell.contains('\n'));
            // Every bar and every markup character has an odd number of backslashes before it.
            let mut slashes = 0;
            for c in cell.chars() {
                if "|`*_[]~#!".contains(c) {
                    prop_assert_eq!(slashes % 2, 1, "{}", cell);
                }
                slashes = if c == '\\' { slashes + 1 } else { 0 };
            }
        }

        #[test]
        fn latex_has_no_active_character_left(text in any::<String>()) {
            let escaped = latex(&text);
            prop_assert!(escaped.is_ascii());
            let (mut depth, mut chars) = (0i64, escaped.chars().peekable());
            while let Some(c) = chars.next() {
                match c {
                    // A command: its name, or one escaped character.
                    '\\' => {
                        let next = chars.next();
                        let harmless = |c: char| c.is_ascii_alphabetic() || "{}$&#%_\"'`".contains(c);
                        prop_assert!(next.is_some_and(harmless), "command");
                        if matches!(next, Some('"' | '\'' | '`')) {
                            prop_assert!(chars.next().is_some_and(|c| c.is_ascii_alphabetic()));
                        }
                    }
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    '$' | '&' | '#' | '%' | '_' | '^' | '"' => prop_assert!(false, "{}", escaped),
                    _ => {}
                }
                prop_assert!(depth >= 0);
            }
            prop_assert_eq!(depth, 0);
        }

        #[test]
        fn slugs_are_plain_names(text in any::<String>()) {
            let slug = slug(&text);
            prop_assert!(!slug.is_empty());
            prop_assert!(slug.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
        }
    }

    #[test]
    fn examples() {
        assert_eq!(csv("a,\"b\"\nc"), "\"a,\"\"b\"\"\nc\"");
        assert_eq!(markdown("a|b_c\n<d>"), "a\\|b\\_c &lt;d>");
        assert_eq!(
            latex("50 % of µs_{a}\\~x"),
            r"50 \% of \ensuremath{\mu}s\_\{a\}\textbackslash{}\textasciitilde{}x"
        );
        assert_eq!(latex("[1]--日"), "{[}1{]}{-}{-}U+65E5");
        assert_eq!(xml("<script>\u{0}&'"), "&lt;script&gt;&amp;&#39;");
        assert_eq!(slug("../Swift & Ceph (1)"), "swift-ceph-1");
        assert_eq!(slug("§"), "x");
    }
}
