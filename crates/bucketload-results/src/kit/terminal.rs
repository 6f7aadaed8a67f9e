//! Tables for terminals: aligned columns, with emphasis where the terminal supports it.

use std::borrow::Cow;

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

fn wide(cell: &Cell) -> usize {
    cell.shown().chars().count()
}

impl Table {
    /// Appends the table to `out`, each line indented by two spaces.
    pub fn render(&self, colour: bool, out: &mut String) {
        self.render_within(None, colour, out);
    }

    /// Appends the table to `out`, each line indented by two spaces. Where it is wider than `width`, it leaves out
    /// expendable columns, then columns on the right, and at last shortens the first column.
    pub fn render_within(&self, width: Option<usize>, colour: bool, out: &mut String) {
        match width {
            Some(width) => self.fitting(width).draw(colour, out),
            None => self.draw(colour, out),
        }
    }

    /// The width of each column.
    fn widths(&self) -> Vec<usize> {
        let of = |i: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(i)).map(wide);
            cells
                .max()
                .unwrap_or(0)
                .max(self.columns[i].title.chars().count())
        };
        (0..self.columns.len()).map(of).collect()
    }

    fn fitting(&self, width: usize) -> Cow<'_, Self> {
        let needs = |table: &Self| table.widths().iter().map(|w| w + 2).sum::<usize>();
        let mut table = Cow::Borrowed(self);
        let mut expendable = self.expendable.iter();
        while needs(&table) > width {
            let held: Vec<bool> = match expendable.next() {
                Some(title) => table.columns.iter().map(|c| c.title != *title).collect(),
                None if table.columns.len() > 2 => {
                    let last = table.columns.len() - 1;
                    (0..=last).map(|at| at < last).collect()
                }
                None => break,
            };
            table.to_mut().keep(&held);
        }
        let excess = needs(&table).saturating_sub(width);
        let first = table.widths().first().copied().unwrap_or(0);
        if excess > 0 && first > excess + 1 {
            let most = first - excess;
            for cell in table
                .to_mut()
                .rows
                .iter_mut()
                .filter_map(|row| row.first_mut())
            {
                if wide(cell) > most {
                    let kept: String = cell.shown().chars().take(most - 1).collect();
                    *cell = Cell::Text(kept + "…");
                }
            }
        }
        table
    }

    fn draw(&self, colour: bool, out: &mut String) {
        let head = self.columns.iter().map(|c| Cell::text(&*c.title)).collect();
        let rows = std::iter::once(&head).chain(&self.rows);
        let widths = self.widths();
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
    fn narrow_terminals_get_fewer_columns_and_no_broken_line() {
        let mut table = Table::new(1, ["operation", "ok", "retries", "ops/s", "p99"]);
        table.texts([
            "get of a work with a long name",
            "12,000",
            "0",
            "1,234",
            "1.40 ms",
        ]);
        let table = table.expending(&["retries", "ok"]);
        for (width, titles) in [
            (80, "operation ok retries ops/s p99"),
            (58, "operation ok ops/s p99"),
            (48, "operation ops/s p99"),
            (40, "operation ops/s"),
            (20, "operation ops/s"),
        ] {
            let mut out = String::new();
            table.render_within(Some(width), false, &mut out);
            let head = out.lines().next().unwrap();
            assert_eq!(
                head.split_whitespace().collect::<Vec<_>>().join(" "),
                titles
            );
            assert!(
                out.lines().all(|line| line.chars().count() <= width),
                "{out}"
            );
        }
    }

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
