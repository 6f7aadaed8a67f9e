//! Verifies a result: recomputes the formula and both hashes.

use super::hash::PairHash;
use super::options::config_hash;
use super::parse::Recorded;
use super::score::Scores;
use super::{Group, phase_named};

/// Largest relative difference between a recorded score and the recomputed one. Figures have six decimals
/// (docs/spec/io500-mdworkbench.md: all published results agree to 1e-4).
const TOLERANCE: f64 = 1e-4;

/// The outcome of a verification.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// Whether means and total follow from the phases.
    pub formula_ok: bool,
    /// Whether the recorded hash matches the figures; `true` for a summary, which has none.
    pub hash_ok: bool,
    /// Whether the recorded hash matches the given configuration; `true` without one.
    pub config_ok: bool,
    /// Whether the result claims to be valid.
    pub valid: bool,
    /// Descriptions of all mismatches.
    pub problems: Vec<String>,
}

impl Verified {
    /// True if everything agrees.
    #[must_use]
    pub const fn agrees(&self) -> bool {
        self.formula_ok && self.hash_ok && self.config_ok
    }
}

/// Verifies the text of a result, and with `config` that the result belongs to that configuration.
///
/// # Errors
/// When the text is invalid.
pub fn verify(text: &str, config: Option<&str>) -> Result<Verified, String> {
    let recorded = Recorded::parse(text)?;
    let group = |name: &str| phase_named(name).map_or(Group::None, |phase| phase.group);
    let scored = recorded
        .phases
        .iter()
        .filter(|phase| group(&phase.name) != Group::None);
    let figures: Vec<(Group, f64)> = scored
        .clone()
        .map(|phase| (group(&phase.name), phase.score.parse().unwrap_or(0.0)))
        .collect();
    let scores = Scores::from_figures(figures.into_iter(), true);
    let mut problems = Vec::new();
    let mut agree = |name: &str, text: &str, computed: f64| {
        let recorded: f64 = text.parse().unwrap_or(0.0);
        let same = (recorded - computed).abs() <= TOLERANCE * computed.abs().max(1e-2);
        if !same {
            problems.push(format!(
                "{name} = {text}, but its phases give {computed:.6}"
            ));
        }
        same
    };
    let formula_ok = [
        agree("MD", &recorded.md, scores.md),
        agree("BW", &recorded.bw, scores.bw),
        agree("SCORE", &recorded.total, scores.total),
    ]
    .into_iter()
    .all(|same| same);
    let mut hash = PairHash::default();
    hash.add("version", &recorded.version);
    hash.add_result(
        scored.map(|phase| (phase.name.as_str(), phase.score.clone())),
        [
            recorded.md.clone(),
            recorded.bw.clone(),
            recorded.total.clone(),
        ],
        !recorded.invalid,
    );
    let hash = hash.to_string();
    let hash_ok = recorded.hash.is_empty() || recorded.hash == hash;
    if !hash_ok {
        problems.push(format!(
            "hash = {}, but the figures give {hash}",
            recorded.hash
        ));
    }
    let mut config_ok = true;
    if let Some(config) = config {
        let hash = config_hash(config)?;
        config_ok = recorded.config_hash == hash;
        if !config_ok {
            problems.push(format!(
                "config-hash = {}, but the configuration gives {hash}",
                recorded.config_hash
            ));
        }
    }
    let valid = !recorded.invalid;
    Ok(Verified {
        formula_ok,
        hash_ok,
        config_ok,
        valid,
        problems,
    })
}

#[cfg(test)]
mod tests {
    use super::verify;

    /// Two phases with the means of section A.5, in the format of IO500's summary.
    const SUMMARY: &str = "\
IO500 version io500-isc26_v2-26-g02091cf254d8 (standard)
[RESULT]       ior-easy-write        0.458973 GiB/s : time 2.254 seconds [INVALID]
[RESULT]    mdtest-easy-write       79.707941 kIOPS : time 3.454 seconds
[      ]            timestamp        0.000000 kIOPS : time 0.000 seconds
[RESULT]                 find        0.000000 kIOPS : time 0.000 seconds [INVALID]
[SCORE ] Bandwidth 0.458973 GiB/s : IOPS 79.707941 kiops : TOTAL 6.048454 [INVALID]
";

    #[test]
    fn the_formula_gives_the_published_score() {
        let verified = verify(SUMMARY, None).unwrap();
        assert!(verified.formula_ok && verified.agrees() && !verified.valid);
        let wrong = SUMMARY.replace("TOTAL 6.048454", "TOTAL 6.148454");
        let verified = verify(&wrong, None).unwrap();
        assert!(
            !verified.formula_ok && verified.problems[0].contains("6.048454"),
            "{verified:?}"
        );
    }

    #[test]
    fn invalid_results_are_refused_with_the_line() {
        let old = "[RESULT] BW   phase 1 ior_easy_write 1.2 GB/s : time 300 seconds\n";
        assert!(
            verify(old, None)
                .unwrap_err()
                .contains("line 1: this summary is older than 2021")
        );
        assert!(
            verify("[run]\nnonsense\n", None)
                .unwrap_err()
                .contains("line 2")
        );
        assert!(verify("", None).unwrap_err().contains("MD"));
    }
}
