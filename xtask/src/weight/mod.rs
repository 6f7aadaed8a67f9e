//! What a build costs: build times, packages, intermediate code, size of the program, lines of code. `cargo xtask
//! weight` prints it, each row with its command; `docs/project/weight.md` keeps the last table.

mod build;
mod ir;
mod lines;

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::program::target;
use crate::sh::{Result, cargo, cmd, need_programs, output, root, write_between};

/// The page with the last table.
const PAGE: &str = "docs/project/weight.md";

/// Builds the release program with its symbols.
const SYMBOLS: &str = "rustc --release --locked -p bucketload --bin bucketload -- -Cstrip=none";

/// A figure and the command that produces it.
struct Row {
    what: String,
    value: String,
    command: String,
}

impl Row {
    fn new(what: impl Into<String>, value: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            value: value.into(),
            command: command.into(),
        }
    }
}

/// Prints the table. `--quick` leaves out rows that compile from nothing, `--write` puts the table into the page.
///
/// # Errors
/// A build fails, or options are unknown or contradict each other.
pub(crate) fn main(args: &[String]) -> Result {
    let (mut quick, mut write) = (false, false);
    for arg in args {
        match arg.as_str() {
            "--quick" => quick = true,
            "--write" => write = true,
            _ => {
                return Err(format!(
                    "weight: unknown option {arg}; --quick and --write are known"
                ));
            }
        }
    }
    if quick && write {
        return Err("weight: --write needs every row: leave out --quick".to_owned());
    }
    need_programs(&[("nm", "binutils")])?;
    let mut rows = Vec::new();
    let mut heaviest = Vec::new();
    if quick {
        let built = target().join("release/bucketload");
        if built.exists() {
            rows.push(size(&built)?);
        } else {
            eprintln!("no size of the program: {} is missing", built.display());
        }
    } else {
        let place = build::BuildDir::new()?;
        rows.extend(build::rows(&place)?);
        rows.push(size(&place.program())?);
        rows.push(functions(&place)?);
        let functions = ir::of_the_program(&place)?;
        rows.extend(ir::rows(&functions));
        heaviest = ir::heaviest(functions);
    }
    rows.push(packages()?);
    let metadata = output(&mut cargo("metadata --no-deps --locked --format-version 1"))?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|e| format!("cargo metadata: {e}"))?;
    let crates = lines::crates(&metadata)?;
    rows.push(lines::tests(&crates));
    let mut text = table(&rows);
    let _ = write!(text, "\n{}", lines::table(&crates));
    if !heaviest.is_empty() {
        let _ = write!(text, "\n{}", ir::table(&heaviest));
    }
    print!("{text}");
    if write {
        write_between(&root().join(PAGE), "weight", &text)?;
    }
    Ok(())
}

/// Number of packages that a build of the program compiles, including ours.
fn packages() -> Result<Row> {
    const LINE: &str = "tree --locked -p bucketload -e normal,build --prefix none -f";
    let tree = output(cargo(LINE).arg("{p}"))?;
    let mut names: Vec<&str> = tree
        .lines()
        .map(|line| {
            line.trim_end_matches(" (*)")
                .trim_end_matches(" (proc-macro)")
        })
        .filter(|line| !line.is_empty())
        .collect();
    names.sort_unstable();
    names.dedup();
    Ok(Row::new(
        "packages",
        grouped(names.len() as u64),
        format!("cargo {LINE} '{{p}}'"),
    ))
}

/// Size of the program.
fn size(path: &Path) -> Result<Row> {
    let size = std::fs::metadata(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(Row::new(
        "the program, MB",
        format!("{:.1}", size.len() as f64 / 1e6),
        "stat -c %s target/release/bucketload",
    ))
}

/// Number of functions of the program. A release build has no symbols, so the program is linked again with them.
fn functions(place: &build::BuildDir) -> Result<Row> {
    place.rustc(SYMBOLS)?;
    let program = place.program();
    let symbols = output(&mut cmd(
        "nm",
        ["--defined-only".as_ref(), program.as_os_str()],
    ))?;
    let functions = code_symbols(&symbols);
    if functions == 0 {
        return Err(format!("{}: nm finds no functions", program.display()));
    }
    Ok(Row::new(
        "its functions",
        grouped(functions),
        format!(
            "cargo {SYMBOLS}; nm --defined-only target/release/bucketload | grep -ci ' [twi] '"
        ),
    ))
}

/// Number of code symbols in the output of `nm`: the letters `t`, `w` and `i` before a name mean code (nm(1)).
fn code_symbols(symbols: &str) -> u64 {
    let is_code = |line: &&str| {
        let kind = line.split_whitespace().nth(1);
        matches!(kind, Some("t" | "T" | "w" | "W" | "i"))
    };
    symbols.lines().filter(is_code).count() as u64
}

/// The rows as Markdown.
fn table(rows: &[Row]) -> String {
    let mut text = "| what | value | command |\n|---|---|---|\n".to_owned();
    for Row {
        what,
        value,
        command,
    } in rows
    {
        // A bar would end the table cell.
        let command = command.replace('|', "\\|");
        let _ = writeln!(text, "| {what} | {value} | `{command}` |");
    }
    text
}

/// Formats a number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Row, code_symbols, grouped, main, table};

    #[test]
    fn a_row_becomes_a_line_of_the_table() {
        let rows = [
            Row::new("packages", "289", "cargo tree"),
            Row::new("its functions", "1,000", "nm x | wc"),
        ];
        let expected = "| what | value | command |\n|---|---|---|\n| packages | 289 | `cargo tree` |\n\
                        | its functions | 1,000 | `nm x \\| wc` |\n";
        assert_eq!(table(&rows), expected);
    }

    #[test]
    fn functions_are_distinguished_from_data() {
        let symbols =
            "0000 T main\n0010 t helper\n0020 D table\n0030 W weak\n                 U outside\n";
        assert_eq!(code_symbols(symbols), 3);
    }

    #[test]
    fn thousands_are_grouped() {
        let numbers = [0, 999, 1_000, 54_700, 7_500_000].map(grouped);
        assert_eq!(numbers, ["0", "999", "1,000", "54,700", "7,500,000"]);
    }

    #[test]
    fn contradicting_options_are_refused() {
        let refused = |args: &[&str], words: &str| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            let error = main(&args).unwrap_err();
            assert!(error.contains(words), "{error}");
        };
        refused(&["--fast"], "--fast");
        refused(&["--quick", "--write"], "leave out --quick");
    }
}
