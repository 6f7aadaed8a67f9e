//! The table of operations by API and server, collected while the driver suites run.
//!
//! The drivers' `conformance` example prints `class NAME works|refused|-` for every operation class. [`add`] stores
//! those lines, and [`print()`] shows all columns at the end.

use std::sync::Mutex;

/// A column: the working operations of one API on one server.
struct Column {
    title: String,
    /// Operation class and word, in the suite's order.
    words: Vec<(String, String)>,
}

static COLUMNS: Mutex<Vec<Column>> = Mutex::new(Vec::new());

/// Stores what a suite printed about `server` and `api`.
pub(super) fn add(api: &str, server: &str, printed: &str) {
    let words = printed.lines().filter_map(|line| {
        let mut parts = line.strip_prefix("class")?.split_whitespace();
        Some((parts.next()?.to_owned(), parts.next()?.to_owned()))
    });
    let column = Column {
        title: format!("{api} {server}"),
        words: words.collect(),
    };
    if let Ok(mut columns) = COLUMNS.lock() {
        columns.push(column);
    }
}

/// Prints the table, if any suite ran.
pub(super) fn print() {
    let Ok(columns) = COLUMNS.lock() else { return };
    let Some(first) = columns.first() else { return };
    println!("\nwhat works (refused: the server says no; -: the API has no such thing)\n");
    print!("| operation |");
    for column in columns.iter() {
        print!(" {} |", column.title);
    }
    println!("\n|---|{}", ":-:|".repeat(columns.len()));
    for (i, (class, _)) in first.words.iter().enumerate() {
        print!("| {class} |");
        for column in columns.iter() {
            let word = column.words.get(i).map_or("?", |(_, word)| word);
            print!(" {word} |");
        }
        println!();
    }
}
