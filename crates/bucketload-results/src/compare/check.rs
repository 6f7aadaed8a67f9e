//! Rejects comparisons that would be meaningless, and names the field that is the reason.

use bucketload_core::verdict::Word;

use super::diff::{Difference, differences};
use super::{Options, Run};
use crate::rundir::Manifest;

/// Fields that no permission covers. Results of different scale are not comparable, and those that reproduce
/// another benchmark's procedure must not be mixed with others.
const NEVER: [&str; 2] = ["scale", "compat"];
/// Fields outside the plan: permission `workload` does not cover them.
const NOT_OF_THE_PLAN: [&str; 2] = ["driver", "client"];
/// The target's API. Like the target itself, it may differ.
const API: &str = "driver.name";
/// Limit on the differences in a message.
const MAX_LISTED: usize = 12;

/// Why runs cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A side has no runs.
    #[error("side {0} has no runs")]
    Empty(&'static str),
    /// A run appears twice in the comparison.
    #[error("{0} appears twice in the comparison; name each run once")]
    Twice(String),
    /// A paired comparison needs the same number of runs on each side.
    #[error(
        "a paired comparison needs equal numbers of runs, but A has {a} and B has {b}; without --paired the \
         numbers may differ"
    )]
    Unpaired {
        /// Runs of A.
        a: usize,
        /// Runs of B.
        b: usize,
    },
    /// The verdict of a run rules out a comparison.
    #[error("{directory} is {word} ({rules}): {advice}")]
    Verdict {
        /// The run directory.
        directory: String,
        /// Its verdict.
        word: String,
        /// The rules that led to it.
        rules: String,
        /// The remedy.
        advice: &'static str,
    },
    /// Fields differ that must be equal.
    #[error("{}", describe(sides, fields, *forbidden))]
    Different {
        /// The compared sides, such as `A and B`.
        sides: String,
        /// The fields.
        fields: Vec<Difference>,
        /// Whether one of them is never permitted to differ.
        forbidden: bool,
    },
    /// The runs have no quantity in common.
    #[error("the runs have no quantity in common: they measured different operations")]
    NothingInCommon,
}

fn describe(sides: &str, fields: &[Difference], forbidden: bool) -> String {
    let mut text = format!("{sides} did not measure the same thing:");
    for d in fields.iter().take(MAX_LISTED) {
        let [name, a, b] = d.words();
        text.push_str(&format!("\n  {name}: {a} vs {b}"));
        if name != d.field {
            text.push_str(&format!("  (field {})", d.field));
        }
    }
    if fields.len() > MAX_LISTED {
        text.push_str(&format!("\n  and {} more", fields.len() - MAX_LISTED));
    }
    text.push_str(if forbidden {
        "\nResults at different scales (or from another benchmark's procedure) are not comparable; use the same \
         profile and --scale for both"
    } else {
        "\n--allow-different FIELD allows a difference that you want to compare; --allow-different workload \
         allows every difference in the workload"
    });
    text
}

/// Whether a run may be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsableVerdict {
    /// Yes.
    Yes,
    /// Only if the user allows it (`verdict`).
    IfAllowed,
    /// No: the run says nothing about the store.
    No,
}

/// Whether a run with this verdict may be compared.
#[must_use]
pub const fn usable(word: Word) -> UsableVerdict {
    match word {
        Word::Valid => UsableVerdict::Yes,
        Word::Degraded | Word::Unsteady | Word::Overloaded => UsableVerdict::IfAllowed,
        Word::ClientBound | Word::Incomplete => UsableVerdict::No,
    }
}

/// Returns the permitted differences, and notes.
pub(super) fn check(
    a: &[Run],
    b: &[Run],
    options: &Options,
) -> Result<(Vec<Difference>, Vec<String>), Refusal> {
    for (label, runs) in [("A", a), ("B", b)] {
        if runs.is_empty() {
            return Err(Refusal::Empty(label));
        }
    }
    no_run_twice(a, b)?;
    if options.paired && a.len() != b.len() {
        return Err(Refusal::Unpaired {
            a: a.len(),
            b: b.len(),
        });
    }
    let mut notes = Vec::new();
    for (label, runs) in [("A", a), ("B", b)] {
        for run in &runs[1..] {
            let sides = format!(
                "the runs of {label}, {} and {},",
                runs[0].directory.display(),
                run.directory.display()
            );
            permitted(
                sides,
                differences(&runs[0].manifest, &run.manifest),
                options,
            )?;
        }
    }
    let found = comparable(&a[0].manifest, &b[0].manifest, options)?;
    if options.paired {
        pairs(a, b, &found)?;
    }
    verdicts(a.iter().chain(b), options, &mut notes)?;
    let hosts = |run: &Run| run.manifest.host.clone();
    if a.iter().chain(b).any(|run| hosts(run) != hosts(&a[0])) {
        notes.push(
            "the runs come from different client machines, which may explain part of the difference"
                .to_owned(),
        );
    }
    let versions = |run: &Run| run.manifest.version.clone();
    if a.iter()
        .chain(b)
        .any(|run| versions(run) != versions(&a[0]))
    {
        notes.push("the runs come from different versions of the tool".to_owned());
    }
    for allowed in &options.allow {
        let used = allowed == "verdict" || found.iter().any(|d| covers(allowed, &d.field));
        if !used {
            notes.push(format!(
                "--allow-different {allowed}: no field of that name differs"
            ));
        }
    }
    Ok((found, notes))
}

/// The differences between what two runs would measure, provided all are permitted. Works before
/// anything runs.
///
/// # Errors
/// When one is not permitted.
pub fn comparable(
    a: &Manifest,
    b: &Manifest,
    options: &Options,
) -> Result<Vec<Difference>, Refusal> {
    permitted("A and B".to_owned(), differences(a, b), options)
}

fn no_run_twice(a: &[Run], b: &[Run]) -> Result<(), Refusal> {
    let mut seen = std::collections::BTreeSet::new();
    for run in a.iter().chain(b) {
        let path = run.directory.canonicalize();
        if !seen.insert(path.unwrap_or_else(|_| run.directory.clone())) {
            return Err(Refusal::Twice(run.directory.display().to_string()));
        }
    }
    Ok(())
}

fn verdicts<'a>(
    runs: impl Iterator<Item = &'a Run>,
    options: &Options,
    notes: &mut Vec<String>,
) -> Result<(), Refusal> {
    let allowed = options.allow.iter().any(|allowed| allowed == "verdict");
    for run in runs {
        let verdict = &run.result.verdict;
        let rules: Vec<&str> = verdict.reasons.iter().map(|r| r.rule.as_str()).collect();
        let advice = match usable(verdict.word) {
            UsableVerdict::Yes => continue,
            UsableVerdict::IfAllowed if allowed => {
                notes.push(format!(
                    "{} is {} ({})",
                    run.directory.display(),
                    verdict.word,
                    rules.join(", ")
                ));
                continue;
            }
            UsableVerdict::IfAllowed => {
                "repeat it under better conditions, or accept it with --allow-different verdict"
            }
            UsableVerdict::No => "it says nothing about the store; repeat it",
        };
        return Err(Refusal::Verdict {
            directory: run.directory.display().to_string(),
            word: verdict.word.to_string(),
            rules: rules.join(", "),
            advice,
        });
    }
    Ok(())
}

fn permitted(
    sides: String,
    found: Vec<Difference>,
    options: &Options,
) -> Result<Vec<Difference>, Refusal> {
    let never = |d: &Difference| NEVER.iter().any(|field| covers(field, &d.field));
    let forbidden = found.iter().any(never);
    let refused: Vec<Difference> = found
        .iter()
        .filter(|d| {
            never(d)
                || !(d.field == API
                    || options
                        .allow
                        .iter()
                        .any(|allowed| covers(allowed, &d.field)))
        })
        .cloned()
        .collect();
    if refused.is_empty() {
        Ok(found)
    } else {
        Err(Refusal::Different {
            sides,
            fields: refused,
            forbidden,
        })
    }
}

/// True if permission `allowed` covers `field`.
fn covers(allowed: &str, field: &str) -> bool {
    if allowed == "workload" {
        let root = field.split('.').next().unwrap_or(field);
        return !NOT_OF_THE_PLAN.contains(&root);
    }
    field
        .strip_prefix(allowed)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Checks that the members of each pair differ only in the fields `found`.
fn pairs(a: &[Run], b: &[Run], found: &[Difference]) -> Result<(), Refusal> {
    let known: Vec<&str> = found.iter().map(|d| d.field.as_str()).collect();
    for (a, b) in a.iter().zip(b) {
        let fields: Vec<Difference> = differences(&a.manifest, &b.manifest)
            .into_iter()
            .filter(|d| !known.contains(&d.field.as_str()))
            .collect();
        if !fields.is_empty() {
            return Err(Refusal::Different {
                sides: format!(
                    "the pair {} and {}",
                    a.directory.display(),
                    b.directory.display()
                ),
                fields,
                forbidden: false,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn permissions_are_prefixes_of_paths() {
        assert!(covers("phases.run", "phases.run.works.run.model.workers"));
        assert!(covers("seed", "seed") && !covers("see", "seed"));
        assert!(covers("workload", "phases.run.limits.ops"));
        assert!(!covers("workload", "driver.engine") && covers("driver", "driver.engine"));
    }
}
