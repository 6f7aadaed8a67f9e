//! Lines of text broken between words, for terminals.

/// `text` with lines of at most `width` characters where words allow it; the rest of a line is indented by two more
/// spaces than its beginning. Escape sequences take no room.
pub(super) fn broken(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        break_line(&mut out, line, width, indent + 2);
    }
    out
}

/// Appends `line` in lines of at most `width` characters where words allow it, the second and further ones indented by
/// `hang` spaces. Blanks at its beginning stay. Escape sequences take no room.
pub fn break_line(out: &mut String, line: &str, width: usize, hang: usize) {
    let indent = line.len() - line.trim_start().len();
    if room(line) <= width {
        out.push_str(line);
    } else {
        out.push_str(&line[..indent]);
        let mut used = indent;
        for (n, word) in line[indent..].split(' ').enumerate() {
            let needs = room(word);
            if n > 0 && used + 1 + needs > width {
                out.push('\n');
                out.push_str(&" ".repeat(hang));
                used = hang;
            } else if n > 0 {
                out.push(' ');
                used += 1;
            }
            out.push_str(word);
            used += needs;
        }
    }
    out.push('\n');
}

/// Characters that a terminal shows.
pub(super) fn room(text: &str) -> usize {
    let mut escaped = false;
    let shown = text.chars().filter(|&c| {
        let starts = c == '\u{1b}';
        let hidden = escaped || starts;
        escaped = (escaped || starts) && c != 'm';
        !hidden
    });
    shown.count()
}

#[cfg(test)]
mod tests {
    use super::{broken, room};

    #[test]
    fn lines_break_between_words_and_keep_their_indentation() {
        let text = "  note: one two three four\nshort\n";
        assert_eq!(broken(text, 80), text);
        assert_eq!(broken(text, 16), "  note: one two\n    three four\nshort\n");
        assert_eq!(broken("0123456789 a\n", 4), "0123456789\n  a\n");
        assert_eq!(room("\u{1b}[1;31mBAD\u{1b}[0m é"), 5);
    }
}
