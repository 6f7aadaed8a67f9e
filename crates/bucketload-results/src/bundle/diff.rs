//! Locates the differences between a stored artifact and the recomputed one, in terms a reader can look up:
//! the field of a JSON document, the row and column of a table, the heading above a figure of a page.

use serde_json::Value;

/// Limit on the differences reported per file.
const MAX_FINDINGS: usize = 50;
/// Limit on the characters of a value that are shown.
const SHOWN: usize = 60;

/// A place where a stored artifact differs from what follows from the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub file: String,
    /// The position in the file; empty for the file as a whole.
    pub field: String,
    /// The stored value.
    pub stored: String,
    /// The value computed from the data.
    pub computed: String,
}

/// The differences between `stored` and `computed`, two versions of the file called `file`; empty if the
/// bytes are equal. Reports at most 50.
#[must_use]
pub fn diff(file: &str, stored: &[u8], computed: &[u8]) -> Vec<Finding> {
    if stored == computed {
        return Vec::new();
    }
    let mut found = Findings {
        file,
        all: Vec::new(),
    };
    let (old, new) = (
        String::from_utf8_lossy(stored),
        String::from_utf8_lossy(computed),
    );
    match file.rsplit('.').next() {
        Some("json") => found.json(&old, &new),
        Some("jsonl") => found.records(&old, &new),
        Some("csv") => found.table(&old, &new),
        Some("html" | "svg") => found.page(&old, &new),
        _ => found.lines(&old, &new),
    }
    if found.all.is_empty() {
        // The values are equal but written differently, for example with other white space.
        found.lines(&old, &new);
    }
    if found.all.is_empty() {
        found.add("bytes", "", "");
    }
    found.all
}

struct Findings<'a> {
    file: &'a str,
    all: Vec<Finding>,
}

impl Findings<'_> {
    fn add(&mut self, field: &str, stored: &str, computed: &str) {
        if self.all.len() < MAX_FINDINGS {
            let (stored, computed) = around(stored, computed);
            self.all.push(Finding {
                file: self.file.to_owned(),
                field: field.to_owned(),
                stored,
                computed,
            });
        }
    }

    fn json(&mut self, old: &str, new: &str) {
        match (serde_json::from_str(old), serde_json::from_str(new)) {
            (Ok(old), Ok(new)) => self.values("", &old, &new),
            _ => self.lines(old, new),
        }
    }

    fn values(&mut self, path: &str, old: &Value, new: &Value) {
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => {
                let at = |key: &str| {
                    if path.is_empty() {
                        key.to_owned()
                    } else {
                        format!("{path}.{key}")
                    }
                };
                for (key, value) in old {
                    self.values(&at(key), value, new.get(key).unwrap_or(&Value::Null));
                }
                for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                    self.values(&at(key), &Value::Null, value);
                }
            }
            (Value::Array(old), Value::Array(new)) => {
                for i in 0..old.len().max(new.len()) {
                    let of = |all: &[Value]| all.get(i).cloned().unwrap_or(Value::Null);
                    let (old, new) = (of(old), of(new));
                    // A pair of a name and a value.
                    let pair = new.as_array().filter(|pair| pair.len() == 2);
                    let name = new["title"].as_str().or_else(|| pair?[0].as_str());
                    let at = match name.filter(|name| !name.is_empty()) {
                        Some(title) => format!("{path} “{title}”"),
                        None => format!("{path}[{i}]"),
                    };
                    self.values(&at, &old, &new);
                }
            }
            _ if old == new => {}
            _ => self.add(path, &old.to_string(), &new.to_string()),
        }
    }

    fn records(&mut self, old: &str, new: &str) {
        self.pairs(old, new, |found, number, old, new| {
            match (serde_json::from_str(old), serde_json::from_str(new)) {
                (Ok(old), Ok(new)) => found.values(&format!("line {number}"), &old, &new),
                _ => found.add(&format!("line {number}"), old, new),
            }
        });
    }

    fn table(&mut self, old: &str, new: &str) {
        let names: Vec<&str> = new.lines().next().unwrap_or("").split(',').collect();
        self.pairs(old, new, |found, number, old, new| {
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.split(',').collect(), new.split(',').collect());
            if old.len() != new.len() {
                return found.add(&format!("line {number}"), &old.join(","), &new.join(","));
            }
            for (column, (old, new)) in old
                .iter()
                .zip(&new)
                .enumerate()
                .filter(|(_, (old, new))| old != new)
            {
                let name = names.get(column).copied().unwrap_or("?");
                found.add(&format!("line {number}, column `{name}`"), old, new);
            }
        });
    }

    fn lines(&mut self, old: &str, new: &str) {
        self.pairs(old, new, |found, number, old, new| {
            found.add(&format!("line {number}"), old, new)
        });
    }

    /// Calls `each` with the lines that differ and their numbers, from 1.
    fn pairs(&mut self, old: &str, new: &str, mut each: impl FnMut(&mut Self, usize, &str, &str)) {
        let (mut old, mut new) = (old.lines(), new.lines());
        for number in 1.. {
            match (old.next(), new.next()) {
                (None, None) => break,
                (a, b) if a == b => {}
                (a, b) => each(self, number, a.unwrap_or(""), b.unwrap_or("")),
            }
            if self.all.len() >= MAX_FINDINGS {
                break;
            }
        }
    }

    /// Compares two pages piece by piece. Positions are those of the computed page.
    fn page(&mut self, old: &str, new: &str) {
        let (mut old, mut new, mut position) = (pieces(old), pieces(new), PagePosition::default());
        loop {
            match (old.next(), new.next()) {
                (None, None) => break,
                (Some(a), Some(b)) if a == b => position.pass(b),
                (Some(a), Some(b)) => {
                    position.pass(b);
                    let tag = |piece: &str| piece.starts_with('<');
                    self.add(&position.describe(), a, b);
                    // One page has an extra piece: from here on, pieces no longer correspond.
                    if tag(a) != tag(b) {
                        break;
                    }
                }
                (a, b) => {
                    self.add(&position.describe(), a.unwrap_or(""), b.unwrap_or(""));
                    break;
                }
            }
        }
    }
}

/// Tags and the texts between them.
fn pieces(page: &str) -> impl Iterator<Item = &str> {
    let mut rest = page;
    std::iter::from_fn(move || {
        let end = match rest.strip_prefix('<') {
            Some(inner) => inner.find('>').map_or(rest.len(), |at| at + 2),
            None => rest.find('<').unwrap_or(rest.len()),
        };
        let (piece, left) = rest.split_at(end);
        rest = left;
        (!piece.is_empty()).then_some(piece)
    })
}

/// A position in a page: the nearest heading, and the row and column inside a table.
#[derive(Default)]
struct PagePosition {
    heading: String,
    in_heading: bool,
    columns: Vec<String>,
    cells: usize,
    in_cell: bool,
    row: String,
}

impl PagePosition {
    fn pass(&mut self, piece: &str) {
        let Some(tag) = piece.strip_prefix('<') else {
            let text = piece.trim();
            if self.in_heading && !text.is_empty() {
                text.clone_into(&mut self.heading);
            }
            if self.in_cell && self.cells == 1 && self.row.is_empty() {
                text.clone_into(&mut self.row);
            }
            if self.in_cell && self.row_is_head() {
                self.columns.push(text.to_owned());
            }
            return;
        };
        let name = tag.split([' ', '>', '\n']).next().unwrap_or("");
        match name {
            "h1" | "h2" | "h3" | "h4" | "summary" | "figcaption" | "caption" | "title" => {
                self.in_heading = true
            }
            "/h1" | "/h2" | "/h3" | "/h4" | "/summary" | "/figcaption" | "/caption" | "/title" => {
                self.in_heading = false
            }
            "table" => self.columns.clear(),
            "tr" => (self.cells, self.row) = (0, String::new()),
            "td" | "th" => (self.cells, self.in_cell) = (self.cells + 1, true),
            "/td" | "/th" => self.in_cell = false,
            "/table" => (self.cells, self.row) = (0, String::new()),
            _ => {}
        }
    }

    /// True in the first row of a table.
    fn row_is_head(&self) -> bool {
        self.columns.len() + 1 == self.cells
    }

    fn describe(&self) -> String {
        let mut words = vec![self.heading.as_str()];
        if self.in_cell {
            words.push(&self.row);
            words.extend(
                self.columns
                    .get(self.cells.wrapping_sub(1))
                    .map(String::as_str),
            );
        }
        words.retain(|word| !word.is_empty());
        words.join(" / ")
    }
}

/// Shortens long texts to the surroundings of their first difference.
fn around(old: &str, new: &str) -> (String, String) {
    let same = old
        .chars()
        .zip(new.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let cut = |text: &str| {
        let from = if text.chars().count() > SHOWN {
            same.saturating_sub(SHOWN / 3)
        } else {
            0
        };
        let mut shown: String = text.chars().skip(from).take(SHOWN).collect();
        if from > 0 {
            shown.insert(0, '…');
        }
        if text.chars().count() > from + SHOWN {
            shown.push('…');
        }
        // Control characters could drive the terminal.
        shown
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect()
    };
    (cut(old), cut(new))
}
