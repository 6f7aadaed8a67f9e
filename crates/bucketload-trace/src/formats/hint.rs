//! The `--map` that would read a file of separated values whose format is not recognised.

use std::fmt::Write as _;

use super::Column;

/// Usual names of columns, in lower case without separators, and what they mean.
const USUAL: [(&[&str], Column); 12] = [
    (
        &[
            "ts",
            "time",
            "timestamp",
            "date",
            "datetime",
            "start",
            "starttime",
        ],
        Column::Ts,
    ),
    (&["end", "endtime"], Column::End),
    (
        &[
            "op",
            "operation",
            "method",
            "verb",
            "request",
            "requesttype",
            "type",
        ],
        Column::Op,
    ),
    (&["bucket", "container", "bucketname"], Column::Bucket),
    (
        &[
            "key",
            "path",
            "object",
            "name",
            "uri",
            "url",
            "file",
            "filename",
            "objectkey",
        ],
        Column::Key,
    ),
    (
        &[
            "size",
            "bytes",
            "length",
            "objectsize",
            "contentlength",
            "bytessent",
        ],
        Column::Size,
    ),
    (&["off", "offset", "rangestart"], Column::Off),
    (&["len", "rangelength"], Column::Len),
    (
        &["client", "ip", "clientip", "host", "remoteaddr", "user"],
        Column::Client,
    ),
    (
        &["status", "code", "httpstatus", "statuscode"],
        Column::Status,
    ),
    (
        &["dur", "duration", "latency", "elapsed", "responsetime"],
        Column::Dur,
    ),
    (&["error"], Column::Error),
];

/// How to read a file that begins with `head`, as a clause for an error message; empty if its first line has no
/// columns.
#[must_use]
pub(crate) fn hint(head: &[u8]) -> String {
    let line = head.split(|&b| b == b'\n').next().unwrap_or_default();
    let Ok(line) = std::str::from_utf8(line) else {
        return String::new();
    };
    let line = line.trim_end_matches('\r').trim_start_matches('\u{feff}');
    let count = |d: &char| line.matches(*d).count();
    let delimiter = [',', '\t', ';', '|'].into_iter().max_by_key(count);
    let Some(delimiter) = delimiter.filter(|d| count(d) >= 2) else {
        return String::new();
    };
    let fields: Vec<&str> = line
        .split(delimiter)
        .map(|f| f.trim().trim_matches('"'))
        .collect();
    let found: Vec<(usize, Column)> = meanings(&fields);
    let flag = match delimiter {
        ',' => String::new(),
        '\t' => " --delimiter tab".to_owned(),
        other => format!(" --delimiter '{other}'"),
    };
    let names = Column::NAMES.iter();
    let name = |column: Column| names.clone().find(|n| n.1 == column).map_or("", |n| n.0);
    let known = |column| found.iter().any(|(_, c)| *c == column);
    if found.len() < 2 || !known(Column::Key) {
        let all: Vec<&str> = names.clone().map(|n| n.0).collect();
        return format!(
            ". Its first line has {} columns: say with --map what they mean, such as --map ts=1,op=2,key=3,size=4{flag} \
             (known: {}; --skip-lines 1 skips a header)",
            fields.len(),
            all.join(", ")
        );
    }
    let mut map = String::new();
    for (index, column) in &found {
        let comma = if map.is_empty() { "" } else { "," };
        let _ = write!(map, "{comma}{}={}", name(*column), index + 1);
    }
    let mut out = format!(
        ". Its first line names the columns {}: --map {map}{flag} --skip-lines 1 reads them",
        fields.join(", ")
    );
    if !known(Column::Ts) && !known(Column::End) {
        out += " (without times: add --untimed RATE)";
    }
    out
}

/// The columns whose names are usual ones, each meaning once.
fn meanings(fields: &[&str]) -> Vec<(usize, Column)> {
    let mut found: Vec<(usize, Column)> = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let plain: String = field
            .chars()
            .filter(|c| c.is_ascii_alphanumeric())
            .map(|c| c.to_ascii_lowercase())
            .collect();
        let usual = USUAL
            .iter()
            .find(|(names, _)| names.contains(&plain.as_str()));
        if let Some((_, column)) = usual
            && !found.iter().any(|(_, c)| c == column)
        {
            found.push((index, *column));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn a_header_of_usual_names_shows_the_map_that_reads_it() {
        assert_eq!(
            hint(b"time,method,path,bytes\n0.1,GET,/a,100\n"),
            ". Its first line names the columns time, method, path, bytes: --map ts=1,op=2,key=3,size=4 --skip-lines 1 \
             reads them"
        );
        let tabs = hint(b"Operation\tObject Key\tContent-Length\r\n");
        assert!(
            tabs.contains("--map op=1,key=2,size=3 --delimiter tab"),
            "{tabs}"
        );
        assert!(tabs.contains("--untimed RATE"), "{tabs}");
    }

    #[test]
    fn columns_without_names_show_the_form_of_a_map() {
        let text = hint(b"0.1,GET,/a,100\n0.2,PUT,/b,200\n");
        assert!(text.starts_with(". Its first line has 4 columns"), "{text}");
        assert!(text.contains("--map ts=1,op=2,key=3,size=4"), "{text}");
        assert_eq!(hint(b"hello world\n"), "");
        assert_eq!(hint(&[0xff, 0xfe, b'\n']), "");
        assert_eq!(hint(b""), "");
    }
}
