//! Whether the baseline of a running drill allows anything to be broken.

use std::path::Path;

use bucketload_core::capacity::Slo;
use bucketload_core::stats::quantile::{Print, print_rule};
use bucketload_core::verdict::Word;

use crate::analyze;

/// The quantile that a baseline has to support if no objective names a higher one.
const QUANTILE: f64 = 0.99;
/// Fewest operations beyond a percentile that is printed ([`print_rule`]).
const BEYOND: f64 = 10.0;

/// The highest quantile of the objectives, or p99.
#[must_use]
pub fn highest_quantile(slo: Option<&Slo>) -> f64 {
    slo.and_then(Slo::highest_quantile)
        .unwrap_or(QUANTILE)
        .max(QUANTILE)
}

/// Judges the baseline of the drill that writes `dir`: the verdict on its measured phase, as far as it has come. Returns
/// the verdict in words if something may be broken: it is VALID or among those to `accept`, and the baseline has enough
/// operations for `quantile`.
///
/// # Errors
/// The reasons why nothing may be broken.
pub fn judge_baseline(dir: &Path, accept: &[Word], quantile: f64) -> Result<String, String> {
    let result = analyze(dir).map_err(|e| format!("the baseline cannot be read: {e}"))?;
    let phase = result.measured().next();
    let Some((phase, verdict)) = phase.and_then(|phase| Some((phase, phase.verdict.as_ref()?)))
    else {
        return Err("the baseline measured nothing".to_owned());
    };
    // The phase goes on, so it lacks an end, and operations are in flight.
    let open = ["incomplete", "unfinished"];
    let reasons: Vec<_> = verdict
        .reasons
        .iter()
        .filter(|r| !open.contains(&r.rule.as_str()))
        .collect();
    let ok: u64 = phase.classes.iter().map(|class| class.ok).sum();
    if ok == 0 {
        return Err("no operation of the baseline succeeded".to_owned());
    }
    if print_rule(ok, quantile) == Print::Omit {
        return Err(format!(
            "the baseline has {ok} operations, and p{} needs {:.0}",
            quantile * 100.0,
            BEYOND / (1.0 - quantile)
        ));
    }
    let words = reasons
        .iter()
        .map(|r| format!("{} ({}): {}", r.word.name(), r.rule, r.measured));
    let words: Vec<String> = words.collect();
    match reasons
        .iter()
        .any(|r| r.word != Word::Valid && !accept.contains(&r.word))
    {
        true => Err(format!("the baseline is {}", words.join("; "))),
        false if words.is_empty() => Ok("VALID".to_owned()),
        false => Ok(format!("accepted: {}", words.join("; "))),
    }
}
