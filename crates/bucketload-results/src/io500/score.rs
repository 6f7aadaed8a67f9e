//! The score: geometric means of the phases' scores (docs/spec/io500-mdworkbench.md section A.3).

use serde::{Deserialize, Serialize};

use super::{Group, phase_named};

/// The score of a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseScore {
    /// Its name.
    pub name: String,
    /// GiB/s or 1000 operations/s; 0 if nothing was measured.
    pub score: f64,
    /// Its duration, seconds.
    pub seconds: f64,
    /// Why it does not count; empty for a valid phase.
    pub invalid: Vec<String>,
    /// Further lines of its section.
    pub lines: Vec<(String, String)>,
    /// Start, seconds since 1970; 0 if it did not run.
    pub start_unix_s: i64,
    /// End, seconds since 1970.
    pub end_unix_s: i64,
}

impl PhaseScore {
    /// The mean to which it contributes.
    #[must_use]
    pub fn group(&self) -> Group {
        phase_named(&self.name).map_or(Group::None, |phase| phase.group)
    }

    /// The mean of the extended score to which it contributes.
    #[must_use]
    pub fn extended_group(&self) -> Group {
        phase_named(&self.name).map_or(Group::None, |phase| phase.extended)
    }

    fn is_optional(&self) -> bool {
        phase_named(&self.name).is_some_and(|phase| phase.optional)
    }
}

/// The scores of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Geometric mean of the bandwidths, GiB/s.
    pub bw: f64,
    /// Geometric mean of the metadata rates, 1000 operations/s.
    pub md: f64,
    /// Square root of their product.
    pub total: f64,
    /// Whether every phase counts.
    pub valid: bool,
}

impl Scores {
    /// The scores of `phases`; validity follows the phases' own rules. Phases of the extended mode have no effect.
    #[must_use]
    pub fn of(phases: &[PhaseScore]) -> Self {
        let mandatory = phases.iter().filter(|phase| !phase.is_optional());
        Self::over(mandatory, PhaseScore::group)
    }

    /// The extended scores: the same means, including the phases of the extended mode.
    #[must_use]
    pub fn extended(phases: &[PhaseScore]) -> Self {
        Self::over(phases.iter(), PhaseScore::extended_group)
    }

    fn over<'a>(
        phases: impl Iterator<Item = &'a PhaseScore> + Clone,
        group: impl Fn(&PhaseScore) -> Group + Clone,
    ) -> Self {
        let of = group.clone();
        let scored = phases.clone().filter(move |phase| of(phase) != Group::None);
        let valid = scored.clone().all(|phase| phase.score > 0.0);
        Self::from_figures(
            scored.map(move |phase| (group(phase), phase.score)),
            valid && phases.clone().all(|phase| phase.invalid.is_empty()),
        )
    }

    /// The scores of figures. Figures that are not above 0 are excluded from their mean, including its count.
    pub fn from_figures(figures: impl Iterator<Item = (Group, f64)> + Clone, valid: bool) -> Self {
        let mean = |group| {
            let of_group = figures
                .clone()
                .filter(|(g, score)| *g == group && *score > 0.0);
            let (n, logs) = of_group.fold((0u32, 0.0), |(n, sum), (_, score)| {
                (n + 1, sum + score.ln())
            });
            if n == 0 {
                0.0
            } else {
                (logs / f64::from(n)).exp()
            }
        };
        let (bw, md) = (mean(Group::Bandwidth), mean(Group::Metadata));
        Self {
            bw,
            md,
            total: (bw * md).sqrt(),
            valid,
        }
    }

    /// The scores without the search, which object stores perform by listing.
    #[must_use]
    pub fn without_find(phases: &[PhaseScore]) -> Self {
        let rest: Vec<PhaseScore> = phases
            .iter()
            .filter(|phase| phase.name != "find")
            .cloned()
            .collect();
        Self::of(&rest)
    }
}

#[cfg(test)]
mod tests {
    use super::{Group, PhaseScore, Scores};

    fn phase(name: &str, score: f64) -> PhaseScore {
        PhaseScore {
            name: name.to_owned(),
            score,
            ..PhaseScore::default()
        }
    }

    /// The total of the result in section A.5.
    #[test]
    fn the_total_matches_the_original() {
        let figures = [(Group::Metadata, 79.707941), (Group::Bandwidth, 0.458973)];
        let scores = Scores::from_figures(figures.into_iter(), true);
        assert_eq!(format!("{:.6}", scores.total), "6.048454");
    }

    #[test]
    fn zero_scores_are_excluded_and_invalidate_the_run() {
        let mut phases = vec![
            phase("ior-easy-write", 4.0),
            phase("ior-hard-write", 1.0),
            phase("find", 0.0),
            phase("mdtest-easy-write", 8.0),
            phase("mdtest-hard-write", 2.0),
            phase("ior-rnd4K-easy-read", 1000.0),
        ];
        let scores = Scores::of(&phases);
        assert!((scores.bw - 2.0).abs() < 1e-12 && (scores.md - 4.0).abs() < 1e-12);
        assert!((scores.total - 8f64.sqrt()).abs() < 1e-12);
        assert!(!scores.valid);
        assert!(Scores::without_find(&phases).valid);
        phases[2].score = 1.0;
        assert!(Scores::of(&phases).valid);
        phases[5].invalid.push("no".to_owned());
        assert!(!Scores::of(&phases).valid);
        assert_eq!(Scores::of(&[]).total, 0.0);
        phases[5].invalid.clear();
        let official = Scores::of(&phases);
        phases.push(phase("find-easy", 16.0));
        phases.push(phase("mdworkbench-create", 0.0));
        assert_eq!(Scores::of(&phases), official);
        // find, mdtest-easy-write, mdtest-hard-write and find-easy: 1, 8, 2 and 16.
        let extended = Scores::extended(&phases);
        assert!(
            (extended.md - 4.0).abs() < 1e-12 && extended.valid,
            "{extended:?}"
        );
        phases[6].invalid.push("no".to_owned());
        assert!(Scores::of(&phases).valid && !Scores::extended(&phases).valid);
    }
}
