//! Plain aligned tables.

/// A cell with its emphasis.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) style: Style,
}

/// Emphasis on terminals that show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Style {
    #[default]
    Plain,
    Bold,
    Good,
    Warn,
    Bad,
}

impl Style {
    /// `text` in this style, in ANSI escape sequences (ECMA-48 SGR) when `colour`.
    pub(super) fn paint(self, text: &str, colour: bool) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            Self::Bold => "1",
            Self::Good => "1;32",
            Self::Warn => "1;33",
            Self::Bad => "1;31",
        };
        if colour {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            style: Style::Plain,
        }
    }
}

/// Rows of equal length; the first `left` columns are aligned to the left, the others to the right.
pub(super) struct Table {
    left: usize,
    rows: Vec<Vec<Text>>,
}

impl Table {
    pub(super) fn new<T: Into<Text>>(left: usize, head: impl IntoIterator<Item = T>) -> Self {
        Self {
            left,
            rows: vec![head.into_iter().map(Into::into).collect()],
        }
    }

    pub(super) fn row(&mut self, cells: Vec<Text>) {
        self.rows.push(cells);
    }

    /// The table with each line indented by two spaces.
    pub(super) fn render(&self, colour: bool, out: &mut String) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|i| {
                let cells = self.rows.iter().filter_map(|row| row.get(i));
                cells.map(|c| c.text.chars().count()).max().unwrap_or(0)
            })
            .collect();
        for row in &self.rows {
            let mut line = String::from(" ");
            for (i, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[i] - cell.text.chars().count());
                let painted = cell.style.paint(&cell.text, colour);
                line.push_str(if i == 0 { " " } else { "  " });
                if i < self.left {
                    line.push_str(&painted);
                    line.push_str(&pad);
                } else {
                    line.push_str(&pad);
                    line.push_str(&painted);
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Style, Table, Text};

    #[test]
    fn columns_align_whatever_the_style() {
        let mut table = Table::new(1, ["op", "value"]);
        table.row(vec!["get".into(), "1.5 µs".into()]);
        table.row(vec![
            "put".into(),
            Text {
                text: "20 ms".to_owned(),
                style: Style::Bold,
            },
        ]);
        let (mut plain, mut colour) = (String::new(), String::new());
        table.render(false, &mut plain);
        table.render(true, &mut colour);
        assert_eq!(plain, "  op    value\n  get  1.5 µs\n  put   20 ms\n");
        assert_eq!(
            colour,
            "  op    value\n  get  1.5 µs\n  put   \u{1b}[1m20 ms\u{1b}[0m\n"
        );
    }
}
