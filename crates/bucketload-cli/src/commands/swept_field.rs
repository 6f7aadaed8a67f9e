//! The field of a sweep and its values: `workers=1,2,4..128`, `size=4KiB..1MiB`, `rate=100/s..900/s+200/s`.

use std::str::FromStr;

use bucketload_core::units;
use bucketload_results::sweep::Axis;
use bucketload_workload::resolve::{Field, Override};

/// Most values of a sweep.
const MOST: usize = 1000;

/// A field and its values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SweptField {
    /// The field's name as typed.
    pub(crate) field: String,
    /// What it changes.
    pub(crate) swept: Swept,
    /// Its values, in the order given, each once.
    pub(crate) values: Vec<String>,
}

/// What a sweep changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Swept {
    /// A field of the workload.
    Field(Field),
    /// How many of the target's endpoints are used.
    Endpoints,
}

/// Workload options that can be swept.
const FIELDS: [(&str, Field); 16] = [
    ("workers", Field::Workers),
    ("rate", Field::Rate),
    ("size", Field::Size),
    ("objects", Field::Objects),
    ("think", Field::Think),
    ("max-in-flight", Field::MaxInFlight),
    ("arrival", Field::Arrival),
    ("duration", Field::Duration),
    ("ops", Field::Ops),
    ("bytes", Field::Bytes),
    ("mix", Field::Mix),
    ("keys", Field::Keys),
    ("timeout", Field::Timeout),
    ("payload", Field::Payload),
    ("verify", Field::Verify),
    ("seed", Field::Seed),
];

impl FromStr for SweptField {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let remedy = "write FIELD=VALUES, such as workers=1,2,4..128";
        let (field, list) = text
            .split_once('=')
            .ok_or_else(|| format!("there is no `=`; {remedy}"))?;
        let field = field.trim();
        let swept = match FIELDS.iter().find(|(name, _)| *name == field) {
            Some((_, known)) => Swept::Field(known.clone()),
            None if field == "endpoints" => Swept::Endpoints,
            None if field.contains('.') => {
                // Checks the path as `--set` does.
                Override::parse(&format!("{field}=0")).map_err(|e| e.to_string())?;
                Swept::Field(Field::Path(field.to_owned()))
            }
            None => {
                let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
                return Err(format!(
                    "there is no field `{field}`; fields are endpoints, {}, or a path such as phases.run.drain",
                    names.join(", ")
                ));
            }
        };
        let mut values: Vec<String> = Vec::new();
        for part in split(list) {
            let expanded = match part.split_once("..") {
                Some((from, to)) if !from.is_empty() => range(from.trim(), to.trim())?,
                _ => vec![part.to_owned()],
            };
            for value in expanded {
                if value.is_empty() {
                    return Err(format!("a value is empty; {remedy}"));
                }
                if !values.contains(&value) {
                    values.push(value);
                }
            }
        }
        if values.len() < 2 {
            return Err(format!("a sweep needs two or more values; {remedy}"));
        }
        if values.len() > MOST {
            return Err(format!(
                "{} values are more than the limit of {MOST}; use larger steps",
                values.len()
            ));
        }
        let over = Self {
            field: field.to_owned(),
            swept,
            values,
        };
        if over.swept == Swept::Endpoints {
            for value in &over.values {
                over.count(value)?;
            }
        }
        Ok(over)
    }
}

impl SweptField {
    /// The settings of a trial at `value`.
    pub(crate) fn overrides(&self, value: &str) -> Vec<Override> {
        match &self.swept {
            Swept::Field(field) => vec![Override::new(field.clone(), value)],
            Swept::Endpoints => Vec::new(),
        }
    }

    /// The field's role in the analysis. Values that are not numbers are categories.
    pub(crate) fn axis(&self) -> Axis {
        if self.values.iter().any(|value| self.number(value).is_none()) {
            return Axis::Category;
        }
        match &self.swept {
            Swept::Endpoints | Swept::Field(Field::Workers) => Axis::Concurrency,
            Swept::Field(Field::Rate) => Axis::Rate,
            Swept::Field(_) => Axis::Number,
        }
    }

    /// The value as a number: bytes for sizes, per second for rates, seconds for durations.
    pub(crate) fn number(&self, value: &str) -> Option<f64> {
        match &self.swept {
            Swept::Field(Field::Rate) => units::parse_rate(value).ok(),
            _ => quantity(value).map(|(number, unit)| number * unit.factor()),
        }
    }

    /// The value as a number of endpoints.
    ///
    /// # Errors
    /// When it is not a whole number of at least 1.
    pub(crate) fn count(&self, value: &str) -> Result<usize, String> {
        match value.parse() {
            Ok(n) if n > 0 => Ok(n),
            _ => Err(format!(
                "endpoints={value}: write a whole number of at least 1"
            )),
        }
    }
}

/// Splits at semicolons, or, if there are none, at commas outside parentheses.
fn split(list: &str) -> Vec<&str> {
    if list.contains(';') {
        return list.split(';').map(str::trim).collect();
    }
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    parts
}

/// The unit of a value.
#[derive(Clone, Debug, PartialEq)]
enum Unit {
    None,
    PerSecond,
    Bytes,
    Time,
}

impl Unit {
    /// Factor from the unit's integer form to the number that is shown.
    fn factor(&self) -> f64 {
        match self {
            Self::Time => 1e-9,
            _ => 1.0,
        }
    }

    fn write(&self, number: f64) -> String {
        match self {
            Self::None => number.to_string(),
            Self::PerSecond => units::format_rate(number),
            Self::Bytes => units::format_size(number as u64),
            Self::Time => units::format_duration(number as u64),
        }
    }
}

/// A number with its unit: plain, per second, bytes, or nanoseconds.
fn quantity(text: &str) -> Option<(f64, Unit)> {
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some((number, Unit::None));
    }
    if text.contains('/') {
        return Some((units::parse_rate(text).ok()?, Unit::PerSecond));
    }
    // `5m` can mean five minutes or five mebibytes, which in a workload depends on the field. Here it is a duration;
    // only text that is not a duration is read as a size.
    if let Ok(ns) = units::parse_duration(text) {
        return Some((ns as f64, Unit::Time));
    }
    let bytes = units::parse_size(text).ok()?;
    Some((bytes as f64, Unit::Bytes))
}

/// `A..B` doubles from A to B; `A..B+S` goes from A to B in steps of S. B is always the last value.
fn range(from: &str, to: &str) -> Result<Vec<String>, String> {
    let whole = format!("{from}..{to}");
    let wrong = |what: &str| {
        format!("`{whole}`: {what}; write a range such as 1..128, 4KiB..1MiB or 10..50+10")
    };
    let (to, step) = match to.split_once('+') {
        Some((to, step)) => (to.trim(), Some(step.trim())),
        None => (to, None),
    };
    let read =
        |text: &str| quantity(text).ok_or_else(|| wrong(&format!("`{text}` is not a number")));
    let ((from, unit), (to, other)) = (read(from)?, read(to)?);
    let step = step.map(read).transpose()?;
    if unit != other || step.as_ref().is_some_and(|(_, u)| *u != unit) {
        return Err(wrong("the numbers have different units"));
    }
    if from <= 0.0 || to <= from {
        return Err(wrong("the range must rise from a number above 0"));
    }
    let mut values = vec![from];
    loop {
        let last = values[values.len() - 1];
        let next = match step {
            Some((step, _)) if step > 0.0 => last + step,
            Some(_) => return Err(wrong("the step is 0")),
            None => last * 2.0,
        };
        if next >= to {
            values.push(to);
            break;
        }
        values.push(next);
        if values.len() > MOST {
            return Err(wrong("the range has too many values"));
        }
    }
    Ok(values.into_iter().map(|v| unit.write(v)).collect())
}

#[cfg(test)]
mod tests {
    use bucketload_results::sweep::Axis;
    use bucketload_workload::resolve::Field;

    use super::{Swept, SweptField};

    fn over(text: &str) -> SweptField {
        text.parse().unwrap()
    }

    #[test]
    fn lists_and_ranges() {
        for (text, values) in [
            ("workers=1,2,4..16", vec!["1", "2", "4", "8", "16"]),
            ("workers=1..6", vec!["1", "2", "4", "6"]),
            ("workers=8..32+8", vec!["8", "16", "24", "32"]),
            ("size=4KiB..16KiB", vec!["4KiB", "8KiB", "16KiB"]),
            ("rate=100/s..400/s", vec!["100/s", "200/s", "400/s"]),
            ("think=1ms,2ms", vec!["1ms", "2ms"]),
            (
                "size=loguniform(1k, 1m),4k",
                vec!["loguniform(1k, 1m)", "4k"],
            ),
            (
                "mix=get=9,put=1;get=1,put=9",
                vec!["get=9,put=1", "get=1,put=9"],
            ),
            ("phases.run.drain=1s,2s", vec!["1s", "2s"]),
        ] {
            assert_eq!(over(text).values, values, "{text}");
        }
    }

    #[test]
    fn fields_have_their_axis_and_numbers() {
        assert_eq!(over("workers=1,2").axis(), Axis::Concurrency);
        assert_eq!(over("endpoints=1,2").axis(), Axis::Concurrency);
        assert_eq!(over("endpoints=1,2").swept, Swept::Endpoints);
        assert_eq!(over("rate=60/min,2/s").axis(), Axis::Rate);
        assert_eq!(over("rate=60/min,2/s").number("60/min"), Some(1.0));
        assert_eq!(over("size=4KiB,1MiB").axis(), Axis::Number);
        assert_eq!(over("size=4KiB,1MiB").number("4KiB"), Some(4096.0));
        assert_eq!(over("think=1ms,2ms").number("1ms"), Some(0.001));
        assert_eq!(over("keys=uniform,sequential").axis(), Axis::Category);
        let path = over("keysets.objects.count=5,6");
        assert_eq!(
            path.swept,
            Swept::Field(Field::Path("keysets.objects.count".into()))
        );
    }

    #[test]
    fn mistakes_say_what_to_write() {
        for (text, part) in [
            ("workers", "there is no `=`"),
            ("workers=4", "two or more values"),
            ("workers=4,,5", "a value is empty"),
            ("speed=1,2", "there is no field `speed`"),
            ("workers=8..4", "must rise"),
            ("workers=0..4", "must rise"),
            ("size=4KiB..8", "different units"),
            ("workers=a..8", "`a` is not a number"),
            ("workers=1..9+0", "the step is 0"),
            ("workers=1..1000000+1", "too many values"),
            ("endpoints=1,x", "whole number"),
        ] {
            let error = text.parse::<SweptField>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
