//! Generates a workload with a phase for every combination of object sizes, worker counts and operations, like
//! COSBench's matrix generator.
//!
//! The result is the text of a workload that users can read, change and submit like any other. Values are checked
//! here only because they become parts of names; the check of the workload checks their meaning.

use std::fmt::Write as _;

/// Maximum number of phases of a matrix; a workload may have up to 1,024.
pub(crate) const MAX_PHASES: usize = 200;
/// Maximum number of entries in a list.
const MAX_LIST: usize = 40;
/// Operations that can be combined.
pub(crate) const OPERATIONS: [&str; 5] = ["get", "put", "head", "list", "delete"];

/// The values of the form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MatrixForm {
    /// Name of the workload.
    pub(crate) name: String,
    /// Object sizes, separated by commas or blanks.
    pub(crate) sizes: String,
    /// Worker counts, separated likewise.
    pub(crate) workers: String,
    /// Mixes, one per line: `get`, or `get=80, put=20`.
    pub(crate) operations: String,
    /// Number of objects of each size.
    pub(crate) objects: String,
    /// Length of each phase.
    pub(crate) duration: String,
}

impl MatrixForm {
    /// The initial values of the form.
    pub(crate) fn example() -> Self {
        Self {
            name: "matrix".to_owned(),
            sizes: "4KiB, 64KiB, 1MiB".to_owned(),
            workers: "1, 8, 64".to_owned(),
            operations: "get\nput\nget=80, put=20".to_owned(),
            objects: "1000".to_owned(),
            duration: "30s".to_owned(),
        }
    }
}

/// Operations with their weights.
type Mix = Vec<(&'static str, u32)>;

/// A matrix as a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matrix {
    /// The workload in TOML.
    pub(crate) text: String,
    /// Number of phases.
    pub(crate) phases: usize,
}

/// Generates the workload.
///
/// # Errors
/// With the field and a remedy, for invalid values and for more than [`MAX_PHASES`] combinations.
pub(crate) fn generate(entered: &MatrixForm) -> Result<Matrix, String> {
    let name = entered.name.trim();
    if !is_name(name) {
        return Err("Name: use 1 to 64 letters, digits, `-` and `_`".to_owned());
    }
    let sizes = list("Object sizes", &entered.sizes, "64KiB, 1MiB")?;
    let workers = list("Workers", &entered.workers, "1, 8, 64")?;
    for count in &workers {
        if !count.parse::<u32>().is_ok_and(|n| n > 0) {
            return Err(format!(
                "Workers: `{count}` is not a number of workers; write numbers such as 1, 8, 64"
            ));
        }
    }
    let objects = entered.objects.trim();
    if !objects.parse::<u64>().is_ok_and(|n| n > 0) {
        return Err(format!(
            "Objects of each size: `{objects}` is not a number; write for example 1000"
        ));
    }
    let duration = word("Duration", entered.duration.trim())?;
    let mixes = mixes(&entered.operations)?;
    let phases = sizes.len() * workers.len() * mixes.len();
    if phases > MAX_PHASES {
        return Err(format!(
            "{} sizes × {} worker counts × {} mixes are {phases} phases; a submission may have at most {MAX_PHASES}",
            sizes.len(),
            workers.len(),
            mixes.len()
        ));
    }
    let (mut keysets, mut steps) = (String::new(), String::new());
    for size in &sizes {
        let label = size.replace('.', "_");
        for (operation, keyset, prepared) in [("get", "read", true), ("put", "write", false)] {
            let used = |mix: &Mix| mix.iter().any(|(known, _)| set_of(known) == operation);
            if mixes.iter().any(used) {
                keyset_of(
                    &mut keysets,
                    &format!("{keyset}-{label}"),
                    objects,
                    size,
                    prepared,
                );
            }
        }
        for count in &workers {
            for mix in &mixes {
                let phase = format!("{label}-w{count}-{}", mix_label(mix));
                let _ = write!(
                    steps,
                    "\n[phases.{phase}]\nduration = \"{duration}\"\nworkers = {count}\n"
                );
                for (operation, weight) in mix {
                    let keys = match *operation {
                        "delete" => {
                            // Each phase deletes its own objects.
                            let keyset = format!("gone-{phase}");
                            keyset_of(&mut keysets, &keyset, objects, size, true);
                            format!("keyset = \"{keyset}\"")
                        }
                        "put" => format!("keyset = \"write-{label}\", keys = \"sequential\""),
                        "list" => format!("keyset = \"read-{label}\""),
                        _ => format!("keyset = \"read-{label}\", keys = \"uniform\""),
                    };
                    let _ = writeln!(steps, "mix.{operation} = {{ weight = {weight}, {keys} }}");
                }
            }
        }
    }
    // Combined names of phases and key sets can be too long.
    if let Some(long) = steps
        .lines()
        .chain(keysets.lines())
        .filter_map(|line| line.strip_prefix('[')?.strip_suffix(']')?.split_once('.'))
        .find(|(_, name)| !is_name(name))
    {
        return Err(format!(
            "the generated name `{}` is too long; use fewer operations per line",
            long.1
        ));
    }
    let text = format!(
        "name = \"{name}\"\ndescription = \"Matrix: {} sizes, {} worker counts, {} mixes; {phases} phases of {duration}\"\n{keysets}{steps}",
        sizes.len(),
        workers.len(),
        mixes.len()
    );
    Ok(Matrix { text, phases })
}

fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

fn keyset_of(out: &mut String, name: &str, count: &str, size: &str, prepared: bool) {
    let _ = write!(
        out,
        "\n[keysets.{name}]\ncount = {count}\nsize = \"{size}\"\n"
    );
    if !prepared {
        out.push_str("prepare = false\n");
    }
}

/// The operation whose key set `operation` uses.
fn set_of(operation: &str) -> &str {
    match operation {
        "get" | "head" | "list" => "get",
        other => other,
    }
}

/// Checks a value that becomes part of names: letters, digits and `.`.
fn word<'a>(field: &str, text: &'a str) -> Result<&'a str, String> {
    let plain = !text.is_empty()
        && text.len() <= 20
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.');
    if plain {
        return Ok(text);
    }
    let shown: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
    Err(format!(
        "{field}: `{shown}` is not a valid value; write for example 64KiB or 30s"
    ))
}

/// Splits values at commas, blanks and line ends, and drops duplicates.
fn list(field: &str, text: &str, example: &str) -> Result<Vec<String>, String> {
    let mut values: Vec<String> = Vec::new();
    for value in text
        .split([',', ' ', '\t', '\r', '\n'])
        .filter(|v| !v.is_empty())
    {
        let value = word(field, value)?.to_owned();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    if values.is_empty() || values.len() > MAX_LIST {
        return Err(format!(
            "{field}: write 1 to {MAX_LIST} values such as {example}"
        ));
    }
    Ok(values)
}

fn mixes(text: &str) -> Result<Vec<Mix>, String> {
    let mut found: Vec<Mix> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut mix = Mix::new();
        for part in line.split([',', ' ', '\t']).filter(|part| !part.is_empty()) {
            let (name, weight) = part.split_once('=').unwrap_or((part, "100"));
            let operation = OPERATIONS.into_iter().find(|known| *known == name);
            let weight = weight
                .parse()
                .ok()
                .filter(|weight| (1..=10_000).contains(weight));
            let (Some(operation), Some(weight)) = (operation, weight) else {
                let shown: String = part.chars().filter(|c| !c.is_control()).take(40).collect();
                return Err(format!(
                    "Operations: `{shown}` is not an operation with a weight; write one mix per line, such as get=80, put=20, from {}",
                    OPERATIONS.join(", ")
                ));
            };
            if mix.iter().any(|(known, _)| *known == operation) {
                return Err(format!(
                    "Operations: `{operation}` appears twice in one line"
                ));
            }
            mix.push((operation, weight));
        }
        if !found.contains(&mix) {
            found.push(mix);
        }
    }
    if found.is_empty() || found.len() > MAX_LIST {
        return Err(format!(
            "Operations: write 1 to {MAX_LIST} mixes, one per line"
        ));
    }
    Ok(found)
}

/// `get` or `get80-put20`.
fn mix_label(mix: &Mix) -> String {
    match mix.as_slice() {
        [(only, _)] => (*only).to_owned(),
        many => {
            let parts: Vec<String> = many.iter().map(|(name, w)| format!("{name}{w}")).collect();
            parts.join("-")
        }
    }
}

#[cfg(test)]
mod tests {
    use bucketload_workload::resolve::{Overrides, ResolveContext, resolve};
    use bucketload_workload::spec::WorkloadFile;

    use super::{MAX_PHASES, MatrixForm, generate};

    fn with(change: impl FnOnce(&mut MatrixForm)) -> MatrixForm {
        let mut entered = MatrixForm::example();
        change(&mut entered);
        entered
    }

    #[test]
    fn a_matrix_is_a_workload_with_a_phase_per_combination() {
        let entered = with(|e| {
            e.sizes = "4KiB 1.5MiB,4KiB".to_owned();
            e.workers = "1, 16".to_owned();
            e.operations =
                "get\nput = 1".replace(" = ", "=") + "\nget=80, put=15 delete=5\nlist,head";
        });
        let matrix = generate(&entered).unwrap();
        assert_eq!(matrix.phases, 2 * 2 * 4);
        let file = WorkloadFile::parse("matrix.toml", &matrix.text).unwrap();
        let context = ResolveContext {
            memory_budget: None,
        };
        let plan = resolve(&file, &Overrides::default(), &context)
            .unwrap()
            .plan;
        let names: Vec<&str> = plan
            .phases
            .iter()
            .map(|phase| phase.name.as_str())
            .filter(|name| name.contains("iB-w") && !name.starts_with("prepare-"))
            .collect();
        assert_eq!(names.len(), 16, "{names:?}");
        assert_eq!(names[0], "4KiB-w1-get");
        assert!(
            names.contains(&"1_5MiB-w16-get80-put15-delete5"),
            "{names:?}"
        );
    }

    #[test]
    fn invalid_values_are_refused_with_their_field() {
        for (entered, words) in [
            (with(|e| e.name = "a b".into()), "Name"),
            (with(|e| e.sizes = String::new()), "Object sizes"),
            (with(|e| e.sizes = "4KiB\"\n[x]".into()), "Object sizes"),
            (with(|e| e.workers = "0".into()), "Workers: `0`"),
            (with(|e| e.workers = "-1".into()), "Workers"),
            (with(|e| e.objects = "many".into()), "Objects of each size"),
            (with(|e| e.duration = "30 s\"".into()), "Duration"),
            (with(|e| e.operations = "\n".into()), "Operations"),
            (with(|e| e.operations = "gett".into()), "Operations: `gett`"),
            (with(|e| e.operations = "get=0".into()), "Operations"),
            (with(|e| e.operations = "get, get".into()), "twice"),
        ] {
            let refused = generate(&entered).unwrap_err();
            assert!(refused.contains(words), "{refused}");
        }
        let many = with(|e| {
            e.workers = (1..=30).map(|n| format!("{n} ")).collect();
        });
        let refused = generate(&many).unwrap_err();
        assert!(
            refused.contains("270 phases") && refused.contains(&MAX_PHASES.to_string()),
            "{refused}"
        );
    }
}
