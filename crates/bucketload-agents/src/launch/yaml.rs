//! JSON values as YAML, for manifests that people read and change.
//!
//! Strings are double-quoted as in JSON, of which YAML 1.2 is a superset (section 1.3), so no string can be
//! mistaken for a number or a date. Strings of several lines are literal blocks.

use std::fmt::Write as _;

use serde_json::Value;

/// Writes `value` as a document.
#[must_use]
pub(crate) fn document(value: &Value) -> String {
    let mut out = String::from("---\n");
    write(value, 0, &mut out);
    out
}

fn write(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                indent(depth, out);
                out.push_str(name);
                out.push(':');
                field(value, depth, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                indent(depth, out);
                out.push('-');
                let mut text = String::new();
                match item {
                    Value::Object(map) if !map.is_empty() => {
                        // The first field goes on the line of the dash.
                        write(item, depth + 1, &mut text);
                        out.push(' ');
                        out.push_str(text.trim_start());
                    }
                    other => field(other, depth, out),
                }
            }
        }
        other => scalar(other, out),
    }
}

/// Writes the value after a name or a dash.
fn field(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            write(value, depth + 1, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            write(value, depth + 1, out);
        }
        Value::String(text) if is_block(text) => {
            out.push_str(" |");
            // `|` ends the text with one line break, `|-` with none.
            out.push_str(if text.ends_with('\n') { "\n" } else { "-\n" });
            for line in text.lines() {
                if !line.is_empty() {
                    indent(depth + 1, out);
                    out.push_str(line);
                }
                out.push('\n');
            }
        }
        other => {
            out.push(' ');
            scalar(other, out);
            out.push('\n');
        }
    }
}

/// Whether a literal block preserves the text.
fn is_block(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\n', '\t'])
        && text
            .chars()
            .all(|c| c == '\n' || c == '\t' || !c.is_control())
}

fn scalar(value: &Value, out: &mut String) {
    // JSON is YAML.
    let _ = write!(out, "{value}");
}

fn indent(depth: usize, out: &mut String) {
    (0..depth).for_each(|_| out.push_str("  "));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::document;

    #[test]
    fn documents_look_hand_written() {
        let value = json!({
            "kind": "Job",
            "spec": {"n": 3, "empty": {}, "none": [], "args": ["run", "a: b"],
                     "env": [{"name": "X", "value": "1"}, {"name": "Y"}]},
            "text": "a = 1\n\n[b]\n  c = 2\n",
        });
        let expected = "---\nkind: \"Job\"\nspec:\n  args:\n    - \"run\"\n    - \"a: b\"\n  \
                        empty: {}\n  env:\n    - name: \"X\"\n      value: \"1\"\n    - name: \"Y\"\n  \
                        n: 3\n  none: []\ntext: |\n  a = 1\n\n  [b]\n    c = 2\n";
        assert_eq!(document(&value), expected);
    }
}
