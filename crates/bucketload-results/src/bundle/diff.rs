//! Where a stored artifact differs from the one that was computed anew, in words that a reader can look up:
//! the field of a JSON document, the row and column of a table, the heading above a figure of a page.

use serde_json::Value;

/// Most differences that are told of one file.
const MOST: usize = 50;
/// Most characters of a value that are shown.
const SHOWN: usize = 60;

/// A place where a stored artifact does not say what follows from the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub file: String,
    /// Where in it; empty for the file itself.
    pub field: String,
    /// What it says.
    pub stored: String,
    /// What follows from the data.
    pub computed: String,
}

/// The differences between `stored` and `computed`, both the content of a file called `file`; none when the
/// bytes are the same. At most 50 are told.
#[must_use]
pub fn diff(file: &str, stored: &[u8], computed: &[u8]) -> Vec<Finding> {
    if stored == computed {
        return Vec::new();
    }
    let mut found = Found {
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
        // The same values in another form, such as other blanks.
        found.lines(&old, &new);
    }
    if found.all.is_empty() {
        found.add("bytes", "", "");
    }
    found.all
}

struct Found<'a> {
    file: &'a str,
    all: Vec<Finding>,
}

impl Found<'_> {
    fn add(&mut self, field: &str, stored: &str, computed: &str) {
        if self.all.len() < MOST {
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
                    // A name and its value.
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
            if self.all.len() >= MOST {
                break;
            }
        }
    }

    /// Two pages, piece by piece; the place is that of the computed one.
    fn page(&mut self, old: &str, new: &str) {
        let (mut old, mut new, mut place) = (pieces(old), pieces(new), Place::default());
        loop {
            match (old.next(), new.next()) {
                (None, None) => break,
                (Some(a), Some(b)) if a == b => place.pass(b),
                (Some(a), Some(b)) => {
                    place.pass(b);
                    let tag = |piece: &str| piece.starts_with('<');
                    self.add(&place.words(), a, b);
                    // A piece more or less: the rest would be compared with the wrong one.
                    if tag(a) != tag(b) {
                        break;
                    }
                }
                (a, b) => {
                    self.add(&place.words(), a.unwrap_or(""), b.unwrap_or(""));
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

/// Where in a page a piece stands.
#[derive(Default)]
struct Place {
    heading: String,
    in_heading: bool,
    columns: Vec<String>,
    cells: usize,
    in_cell: bool,
    row: String,
}

impl Place {
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
            "h1" | "h2" | "h3" | "h4" | "figcaption" | "caption" | "title" => {
                self.in_heading = true
            }
            "/h1" | "/h2" | "/h3" | "/h4" | "/figcaption" | "/caption" | "/title" => {
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

    /// Whether the row that is passed is the first one of its table.
    fn row_is_head(&self) -> bool {
        self.columns.len() + 1 == self.cells
    }

    fn words(&self) -> String {
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

/// Two texts, or what is around their first difference where they are long.
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
        // Nothing that a terminal would obey.
        shown
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect()
    };
    (cut(old), cut(new))
}
