//! The tables of first-hour mistakes on the page of errors, from the file that a test of the program keeps true.

use std::fmt::Write as _;

use crate::files;
use crate::sh::{Result, ensure, root};

/// The page. Its commands are wrong on purpose, so the checks of examples and flags leave it out.
pub(super) const PAGE: &str = "docs/reference/errors.md";

/// Situation, command, exit code and message of each mistake.
const TABLE: &str = "crates/bucketload/tests/data/first_hour.txt";

const INTRODUCTION: &str = "
## Mistakes of the first hour

What the program says when something is wrong, made by running it. `http://127.0.0.1:9000` is a store with the bucket
`bench`, which `AWS_ENDPOINT_URL` names unless the command names another endpoint; other ports are servers with the fault
that the row describes. `/DIR` stands for the working directory, `RUN`, `TIME` and `N` for what differs each time.
[Exit codes](exit-codes.md) explains the numbers.
";

/// A table per group of mistakes.
pub(super) fn tables() -> Result<String> {
    render(&files::read(root().join(TABLE))?)
}

fn render(table: &str) -> Result<String> {
    let mut out = INTRODUCTION.to_owned();
    let mut rows = 0;
    for part in table.split("\n\n").map(str::trim) {
        if let Some(rest) = part.strip_prefix("# ") {
            let heading = rest.lines().next().unwrap_or_default();
            let _ = write!(
                out,
                "\n### {heading}\n\n| situation | command | message | exit code |\n|---|---|---|---|\n"
            );
        } else if let Some(rest) = part.strip_prefix("= ") {
            rows += 1;
            let mut lines = rest.lines();
            let situation = lines.next().unwrap_or_default();
            let mut next = |start: &str| {
                let line = lines.next().and_then(|line| line.strip_prefix(start));
                line.ok_or_else(|| {
                    format!("{TABLE}: {situation}: a line with {start:?} is missing")
                })
            };
            let (command, code) = (next("$ ")?, next("exit ")?);
            let message: Vec<String> = lines
                .filter(|line| !line.trim().is_empty())
                .map(cell)
                .collect();
            let message = match message.is_empty() {
                true => "works".to_owned(),
                false => message.join("<br>"),
            };
            let _ = writeln!(
                out,
                "| {situation} | {} | {message} | {code} |",
                cell(command)
            );
        }
    }
    ensure(rows >= 100, || format!("{TABLE}: only {rows} mistakes"))?;
    Ok(out)
}

/// A line as code in a cell of a table.
fn cell(line: &str) -> String {
    let text = line.trim().replace('|', "\\|");
    match text.contains('`') {
        true => format!("`` {text} ``"),
        false => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::{cell, tables};

    #[test]
    fn the_page_shows_every_mistake() {
        let text = tables().unwrap_or_else(|e| panic!("{e}"));
        let row = text
            .lines()
            .find(|line| line.starts_with("| Nothing listens at the endpoint |"));
        let row = row.unwrap_or_else(|| panic!("{text}"));
        assert!(
            row.contains("<br>`help: nothing listens there") && row.ends_with("| 3 |"),
            "{row}"
        );
    }

    #[test]
    fn code_in_a_cell_keeps_its_marks() {
        assert_eq!(cell("a | `b`"), "`` a \\| `b` ``");
    }
}
