//! The intermediate representation (IR) of the last crate: how many lines rustc hands to LLVM, and for which
//! functions. A generic function occurs once per set of types that it is compiled for.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};

use super::build::BuildDir;
use super::{Row, grouped};
use crate::files;
use crate::sh::Result;

/// Number of functions to list.
const NAMED: usize = 10;

/// The command that writes the IR in one unit, as rustc hands it over and before LLVM changes it.
const BUILD: &str = "rustc --release --locked -p bucketload-cli --lib -- --emit=llvm-ir \
                     -Ccodegen-units=1 -Cno-prepopulate-passes";

/// All copies of a function.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Function {
    name: String,
    copies: u64,
    lines: u64,
}

/// Compiles the program once more and counts.
pub(super) fn of_the_program(place: &BuildDir) -> Result<Vec<Function>> {
    place.rustc(BUILD)?;
    let folder = place.path().join("release/deps");
    for path in files::list(&folder)? {
        if files::is_kind(&path, "ll") {
            let file = File::open(&path).map_err(files::at(&path))?;
            return count(BufReader::new(file)).map_err(files::at(&path));
        }
    }
    Err(format!(
        "{}: `cargo {BUILD}` left no file with intermediate code",
        folder.display()
    ))
}

/// Reads the output of `--emit=llvm-ir`: a comment before each function names it, and its lines are indented.
fn count(mut text: impl BufRead) -> std::io::Result<Vec<Function>> {
    let mut found: HashMap<String, Function> = HashMap::new();
    let (mut name, mut lines) = (String::new(), None);
    let mut line = Vec::new();
    while text.read_until(b'\n', &mut line)? > 0 {
        if let Some(inside) = &mut lines {
            if line.starts_with(b"}") {
                let function = found.entry(name.clone()).or_insert_with(|| Function {
                    name: name.clone(),
                    ..Function::default()
                });
                function.copies += 1;
                function.lines += *inside;
                lines = None;
                name.clear();
            } else if line.starts_with(b"  ") {
                *inside += 1;
            }
        } else if line.starts_with(b"define ") {
            lines = Some(0);
            if name.is_empty() {
                // A function such as `main`, generated for the linker.
                let text = String::from_utf8_lossy(&line);
                let symbol = text.split_once('@').map_or("", |(_, rest)| rest);
                symbol
                    .split('(')
                    .next()
                    .unwrap_or_default()
                    .clone_into(&mut name);
            }
        } else if let Some(comment) = line.strip_prefix(b"; ") {
            let comment = String::from_utf8_lossy(comment);
            if !comment.starts_with("Function Attrs: ") {
                comment.trim_end().clone_into(&mut name);
            }
        }
        line.clear();
    }
    Ok(found.into_values().collect())
}

/// The totals.
pub(super) fn rows(functions: &[Function]) -> Vec<Row> {
    let command = format!("cargo {BUILD}");
    let sum = |figure: fn(&Function) -> u64| functions.iter().map(figure).sum::<u64>();
    // Compares last path segments, ignoring generic parameters: a worker's loop, and a session's operation.
    let copies = |end: &str| {
        let of_it = functions.iter().filter(|f| is_called(&f.name, end));
        of_it.map(|f| f.copies).max().unwrap_or(0)
    };
    vec![
        Row::new(
            "IR of the last crate, lines",
            grouped(sum(|f| f.lines)),
            command.clone(),
        ),
        Row::new(
            "functions of the last crate, copies counted",
            grouped(sum(|f| f.copies)),
            command.clone(),
        ),
        Row::new(
            "copies of `perform` in the last crate",
            grouped(copies("perform")),
            command,
        ),
    ]
}

/// True if `path` is a function `name`, or its body if it is asynchronous.
fn is_called(path: &str, name: &str) -> bool {
    let path = path.trim_end_matches("::{{closure}}");
    path.rsplit("::").next() == Some(name)
}

/// The functions with the most lines, largest first.
pub(super) fn heaviest(mut functions: Vec<Function>) -> Vec<Function> {
    functions.sort_by(|a, b| b.lines.cmp(&a.lines).then_with(|| a.name.cmp(&b.name)));
    functions.truncate(NAMED);
    functions
}

/// The functions as Markdown.
pub(super) fn table(functions: &[Function]) -> String {
    let mut text =
        "| IR, lines | copies | function of the last crate |\n|---|---|---|\n".to_owned();
    for Function {
        name,
        copies,
        lines,
    } in functions
    {
        let _ = writeln!(
            text,
            "| {} | {} | `{name}` |",
            grouped(*lines),
            grouped(*copies)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Function, count, heaviest, is_called, table};

    const TEXT: &str = "\
; ModuleID = 'a'
@x = constant i8 0

; a::twice
; Function Attrs: nonlazybind uwtable
define internal void @_ZN1a5twice17h0E(i64 %n) unnamed_addr #1 {
start:
  %a = add i64 %n, 1
  ret void

bb1:                                              ; preds = %start
  unreachable
}

; a::twice
; Function Attrs: nonlazybind uwtable
define internal void @_ZN1a5twice17h1E(i8 %n) unnamed_addr #1 {
start:
; call core::panic
  ret void
}

; core::panic
; Function Attrs: cold
declare void @_ZN4core5panic17h2E() unnamed_addr #4

define i32 @main(i32 %0, ptr %1) unnamed_addr #3 {
top:
  ret i32 0
}
";

    #[test]
    fn copies_and_lines_are_counted_by_name() {
        let found = heaviest(count(TEXT.as_bytes()).unwrap());
        let function = |name: &str, copies, lines| Function {
            name: name.to_owned(),
            copies,
            lines,
        };
        assert_eq!(found[0], function("a::twice", 2, 4));
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[1].lines, 1);
        let expected = "| IR, lines | copies | function of the last crate |\n|---|---|---|\n\
                        | 4 | 2 | `a::twice` |\n";
        assert_eq!(table(&found[..1]), expected);
    }

    #[test]
    fn the_body_of_an_asynchronous_function_is_the_function() {
        assert!(is_called("run::worker::perform", "perform"));
        assert!(is_called(
            "run::worker::perform::{{closure}}::{{closure}}",
            "perform"
        ));
        assert!(!is_called("run::perform::begin", "perform"));
    }
}
