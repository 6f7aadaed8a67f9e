//! Refuses comparisons that would mean nothing, and says which field is the reason.

use bucketload_core::verdict::Word;

use super::diff::{Difference, differences};
use super::{Options, Run};
use crate::rundir::Manifest;

/// Fields that no permission covers: results of different scale are not comparable, and those that
/// reproduce another benchmark's procedure stand in no table with others.
const NEVER: [&str; 2] = ["scale", "compat"];
/// Fields beside the plan's: `workload` does not permit them to differ.
const NOT_OF_THE_PLAN: [&str; 2] = ["driver", "client"];
/// The API of the target: as the target itself, it is what may be compared.
const API: &str = "driver.name";
/// Most differences that a message lists.
const MOST: usize = 12;

/// Why runs cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A side has no run.
    #[error("side {0} has no run")]
    Empty(&'static str),
    /// The same run stands twice in the comparison.
    #[error("{0} stands twice in the comparison; name each run once")]
    Twice(String),
    /// Pairs need as many runs on each side.
    #[error(
        "a paired comparison needs as many runs of A as of B, not {a} and {b}; without --paired the \
         numbers may differ"
    )]
    Unpaired {
        /// Runs of A.
        a: usize,
        /// Runs of B.
        b: usize,
    },
    /// A run is not worth comparing.
    #[error("{directory} is {word} ({rules}): {advice}")]
    Verdict {
        /// The run directory.
        directory: String,
        /// Its verdict.
        word: String,
        /// The rules behind it.
        rules: String,
        /// What can be done.
        advice: &'static str,
    },
    /// Fields differ that must be equal.
    #[error("{}", describe(sides, fields, *forbidden))]
    Different {
        /// What was set against each other, such as `A and B`.
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
    for d in fields.iter().take(MOST) {
        text.push_str(&format!("\n  {}: {} against {}", d.field, d.a, d.b));
    }
    if fields.len() > MOST {
        text.push_str(&format!("\n  and {} more", fields.len() - MOST));
    }
    text.push_str(if forbidden {
        "\nResults of different scale (or of another benchmark's procedure) are not comparable; give both \
         the same profile and --scale"
    } else {
        "\n--allow-different FIELD permits one that you want to compare; --allow-different workload \
         permits all of the workload's"
    });
    text
}

/// Whether a run may take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsableVerdict {
    /// Yes.
    Yes,
    /// Only if the user allows it (`verdict`).
    WithLeave,
    /// No: it says nothing about the store.
    No,
}

/// What a verdict means for a comparison.
#[must_use]
pub const fn usable(word: Word) -> UsableVerdict {
    match word {
        Word::Valid => UsableVerdict::Yes,
        Word::Degraded | Word::Unsteady | Word::Overloaded => UsableVerdict::WithLeave,
        Word::ClientBound | Word::Incomplete => UsableVerdict::No,
    }
}

/// The differences that were allowed, and notes.
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
            "the runs were made by different client machines, which may be part of the difference"
                .to_owned(),
        );
    }
    let versions = |run: &Run| run.manifest.version.clone();
    if a.iter()
        .chain(b)
        .any(|run| versions(run) != versions(&a[0]))
    {
        notes.push("the runs were made by different versions of the tool".to_owned());
    }
    for allowed in &options.allow {
        let used = allowed == "verdict" || found.iter().any(|d| covers(allowed, &d.field));
        if !used {
            notes.push(format!(
                "--allow-different {allowed}: nothing of that name differs"
            ));
        }
    }
    Ok((found, notes))
}

/// The differences between what two runs would measure, all of them permitted. Can be asked before
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
        let place = run.directory.canonicalize();
        if !seen.insert(place.unwrap_or_else(|_| run.directory.clone())) {
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
    let leave = options.allow.iter().any(|allowed| allowed == "verdict");
    for run in runs {
        let verdict = &run.result.verdict;
        let rules: Vec<&str> = verdict.reasons.iter().map(|r| r.rule.as_str()).collect();
        let advice = match usable(verdict.word) {
            UsableVerdict::Yes => continue,
            UsableVerdict::WithLeave if leave => {
                notes.push(format!(
                    "{} is {} ({})",
                    run.directory.display(),
                    verdict.word,
                    rules.join(", ")
                ));
                continue;
            }
            UsableVerdict::WithLeave => {
                "repeat it under better conditions, or take it as it is with --allow-different verdict"
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

/// Whether permission `allowed` covers `field`.
fn covers(allowed: &str, field: &str) -> bool {
    if allowed == "workload" {
        let root = field.split('.').next().unwrap_or(field);
        return !NOT_OF_THE_PLAN.contains(&root);
    }
    field
        .strip_prefix(allowed)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What the members of a pair have in common must be the same, run by run.
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
