//! Why runs cannot be compared, in words and units instead of field names and nanoseconds.

use bucketload_results::compare::{Difference, Refusal};
use bucketload_results::units;

/// Maximum number of listed differences.
const MAX_LISTED: usize = 12;
/// What the form of the page calls its permission.
const PERMISSION: &str = "tick “Allow different workloads, and verdicts other than VALID”";

/// The reason in words.
pub(super) fn words(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Different {
            sides,
            fields,
            forbidden,
        } => {
            let mut text = format!("{sides} did not measure the same thing:");
            for field in fields.iter().take(MAX_LISTED) {
                text += &format!("\n  {}", difference(field));
            }
            if fields.len() > MAX_LISTED {
                text += &format!("\n  and {} more", fields.len() - MAX_LISTED);
            }
            text + &match forbidden {
                true => "\nResults at different scales, or of another benchmark's procedure, are never comparable: run \
                         the same profile at the same scale."
                    .to_owned(),
                false if fields.iter().any(is_of_the_client) => "\nThe load generator and the driver must be the same: \
                     submit both with the same options. `bucketload compare --allow-different client` or `driver` \
                     compares them nevertheless."
                    .to_owned(),
                false => format!("\nIf this is the difference that you want to compare, {PERMISSION}."),
            }
        }
        Refusal::Verdict {
            directory,
            word,
            rules,
            advice,
        } => {
            let advice = match advice.contains("--allow-different") {
                true => format!("repeat it under better conditions, or {PERMISSION}"),
                false => (*advice).to_owned(),
            };
            format!("{directory} is {word} ({rules}): {advice}.")
        }
        other => other.to_string(),
    }
}

/// Whether a difference is in the load generator or the driver, which the page's permission does not cover.
fn is_of_the_client(found: &Difference) -> bool {
    let root = found.field.split('.').next();
    matches!(root, Some("client" | "driver"))
}

/// One difference: `duration of phase run: 8 s vs 12 s`.
fn difference(found: &Difference) -> String {
    let path: Vec<&str> = found.field.split('.').collect();
    let (leaf, above) = path.split_last().unwrap_or((&"", &[]));
    let value = |text: &str| value(leaf, text);
    format!(
        "{}: {} vs {}",
        subject(leaf, above),
        value(&found.a),
        value(&found.b)
    )
}

/// What a field is about, from its path.
fn subject(leaf: &str, above: &[&str]) -> String {
    let mut text = leaf.to_owned();
    for suffix in ["_ns", "_per_s", "_bytes"] {
        if let Some(short) = leaf.strip_suffix(suffix) {
            short.clone_into(&mut text);
        }
    }
    let mut text = text.replace('_', " ");
    let mut phase = "";
    let mut context = Vec::new();
    let mut rest = above.iter();
    while let Some(&part) = rest.next() {
        let mut named = |kind: &str| rest.next().map(|name| format!("{kind} {name}"));
        match part {
            "phases" => {
                let name = rest.next().copied().unwrap_or_default();
                phase = name;
                context.push(format!("phase {name}"));
            }
            // The only work of a phase has its name.
            "works" => match rest.next() {
                Some(&name) if name != phase => context.push(format!("work {name}")),
                _ => {}
            },
            "keysets" => context.extend(named("key set")),
            "mix" => context.extend(named("operation")),
            "limits" | "model" | "settings" => {}
            other => context.push(other.replace('_', " ")),
        }
    }
    for part in context.iter().rev() {
        text += &format!(" of {part}");
    }
    text
}

/// A value with the unit that its field's name states.
fn value(leaf: &str, text: &str) -> String {
    let Ok(number) = text.parse::<f64>() else {
        return match text {
            "–" | "null" => "none".to_owned(),
            "true" => "yes".to_owned(),
            "false" => "no".to_owned(),
            other => other.to_owned(),
        };
    };
    let short = |text: String| match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            let number = number.trim_end_matches('0').trim_end_matches('.');
            format!("{number} {unit}")
        }
        _ => text,
    };
    match leaf {
        _ if leaf.ends_with("_ns") && number == 0.0 => "none".to_owned(),
        _ if leaf.ends_with("_ns") => short(units::ns(number)),
        _ if leaf.ends_with("_bytes") || leaf == "bytes" => short(units::bytes(number)),
        _ if leaf.ends_with("_per_s") => format!("{}/s", units::number(number)),
        _ if number.fract() == 0.0 && (0.0..1e15).contains(&number) => units::count(number as u64),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use bucketload_results::compare::{Difference, Refusal};

    use super::{difference, words};

    fn told(field: &str, a: &str, b: &str) -> String {
        difference(&Difference {
            field: field.to_owned(),
            a: a.to_owned(),
            b: b.to_owned(),
        })
    }

    #[test]
    fn differences_are_told_in_words_and_units() {
        for (field, a, b, expected) in [
            (
                "phases.run.limits.duration_ns",
                "8000000000",
                "12500000000",
                "duration of phase run: 8 s vs 12.5 s",
            ),
            (
                "phases.run.works.run.model.workers",
                "8",
                "1600",
                "workers of phase run: 8 vs 1,600",
            ),
            (
                "phases.run.works.readers.mix.get.weight",
                "1.5",
                "–",
                "weight of operation get of work readers of phase run: 1.5 vs none",
            ),
            (
                "keysets.data.size_bytes",
                "65536",
                "1048576",
                "size of key set data: 64 KiB vs 1 MiB",
            ),
            ("verify", "true", "false", "verify: yes vs no"),
            ("timeout_ns", "0", "1500000", "timeout: none vs 1.5 ms"),
        ] {
            assert_eq!(told(field, a, b), expected);
        }
    }

    #[test]
    fn a_refusal_names_what_the_page_offers() {
        let refusal = Refusal::Verdict {
            directory: "w3/run".to_owned(),
            word: "DEGRADED".to_owned(),
            rules: "V8".to_owned(),
            advice: "repeat it, or accept it with --allow-different verdict",
        };
        let text = words(&refusal);
        assert!(
            text.contains("tick “Allow") && !text.contains("--"),
            "{text}"
        );
    }
}
