//! Tables for terminals: aligned columns, with emphasis where the terminal supports it.

use super::table::{Cell, Table};

/// Emphasis on terminals that support it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// None.
    #[default]
    Plain,
    /// A figure based on enough values.
    Bold,
    /// No problem.
    Good,
    /// Needs attention.
    Warn,
    /// A problem.
    Bad,
}

impl Style {
    /// `text` in this style, with ANSI escape sequences (ECMA-48 SGR) if `colour`.
    #[must_use]
    pub fn paint(self, text: &str, colour: bool) -> String {
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

impl Table {
    /// Appends the table to `out`, each line indented by two spaces.
    pub fn render(&self, colour: bool, out: &mut String) {
        let head = self.columns.iter().map(|c| Cell::text(&*c.title)).collect();
        let rows: Vec<&Vec<Cell>> = std::iter::once(&head).chain(&self.rows).collect();
        let wide = |cell: &Cell| cell.shown().chars().count();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|i| {
                let cells = rows.iter().filter_map(|row| row.get(i));
                cells.map(wide).max().unwrap_or(0)
            })
            .collect();
        for row in rows {
            let mut line = String::from(" ");
            for ((i, cell), column) in row.iter().enumerate().zip(&self.columns) {
                let pad = " ".repeat(widths[i] - wide(cell));
                let style = match cell {
                    Cell::Styled(style, _) => *style,
                    _ => Style::Plain,
                };
                let painted = style.paint(&cell.shown(), colour);
                line.push_str(if i == 0 { " " } else { "  " });
                line += &match column.number {
                    true => pad + &painted,
                    false => painted + &pad,
                };
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Style, Table};

    #[test]
    fn columns_align_whatever_the_style() {
        let mut table = Table::new(1, ["op", "value"]);
        table.texts(["get", "1.5 µs"]);
        table.row(vec![
            "put".into(),
            Cell::Styled(Style::Bold, "20 ms".to_owned()),
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
