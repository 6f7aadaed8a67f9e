//! Conditions that decide the exit code of a run, and the precision at which it may end.

use bucketload_core::capacity::Slo;
use bucketload_core::plan::StopFigure;
use bucketload_core::units;
use bucketload_core::verdict::Word;
use clap::Args;

use super::values::{Choices, choice};

/// Conditions that a run has to meet; otherwise its exit code is 1.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Gate options")]
pub(crate) struct GateArgs {
    /// Objectives that the run has to meet, such as 'p99<50ms,errors<0.1%'; exit code 1 if it misses one
    ///
    /// In the language of `capacity`: [CLASS.][ttfb.]pNN, mean or max < DURATION; [CLASS.]errors < SHARE;
    /// [CLASS.]throughput > RATE or SIZE/s. A failed operation counts as if it took the timeout. Without an
    /// objective for errors, errors<=0.1% applies. Every measured phase has to meet the objectives of the
    /// operations that it performs.
    #[arg(long, value_name = "OBJECTIVE,...", value_parser = slo)]
    pub(crate) slo: Option<Slo>,

    /// Exit with code 1 if the verdict has a reason of one of these kinds (may be several, joined by commas)
    #[arg(long, value_name = "VERDICT,...", value_delimiter = ',', value_parser = choice(VERDICTS))]
    pub(crate) fail_on: Vec<Word>,
}

/// The verdicts that can be made failures.
pub(super) const VERDICTS: &Choices<Word> = &[
    (
        "degraded",
        "Conditions ruled out comparison, such as failed operations",
        Word::Degraded,
    ),
    (
        "unsteady",
        "The figures depend on when the measurement began and ended",
        Word::Unsteady,
    ),
    (
        "overloaded",
        "The store could not keep up with the offered load",
        Word::Overloaded,
    ),
    (
        "client-bound",
        "The client limited the result",
        Word::ClientBound,
    ),
    (
        "incomplete",
        "The run was cut short or measured nothing (fails in any case)",
        Word::Incomplete,
    ),
];

fn slo(text: &str) -> Result<Slo, String> {
    text.parse()
        .map_err(|invalid: units::Invalid| invalid.to_string())
}

/// How precisely a phase has to measure before it may end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Precision {
    /// Half-width of the 95 % interval, as a share of the figure.
    pub(crate) half_width: f64,
    /// The figure; `None` for the one that fits the model.
    pub(crate) figure: Option<StopFigure>,
}

/// Reads `2%` or `2%,p99`.
pub(crate) fn precision(text: &str) -> Result<Precision, String> {
    let (share, figure) = match text.split_once(',') {
        Some((share, figure)) => (share, Some(figure.trim())),
        None => (text, None),
    };
    let half_width = super::values::margin(share.trim())?;
    let figure = figure.map(|name| {
        StopFigure::parse(name).ok_or_else(|| {
            format!(
                "`{name}` is not a figure with an interval; write throughput, mean, p99, get.p99, ttfb.p50 or the like"
            )
        })
    });
    Ok(Precision {
        half_width,
        figure: figure.transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use bucketload_core::verdict::Word;

    use super::{VERDICTS, precision};
    use crate::cli::{Command, command};

    #[test]
    fn verdicts_have_the_names_that_results_print() {
        for (name, _, word) in VERDICTS {
            assert_eq!(name.to_uppercase(), word.name());
        }
        let line = "bucketload run get --fail-on client-bound,unsteady --slo p99<50ms";
        let Ok(Command::Run(args)) = command(line) else {
            panic!("{line}");
        };
        assert_eq!(args.gates.fail_on, [Word::ClientBound, Word::Unsteady]);
        assert_eq!(args.gates.slo.unwrap().objectives.len(), 2);
        let wrong = command("bucketload run get --fail-on slow").unwrap_err();
        assert!(wrong.contains("overloaded"), "{wrong}");
        let wrong = command("bucketload run get --slo p99=5ms").unwrap_err();
        assert!(wrong.contains("p99<50ms"), "{wrong}");
    }

    #[test]
    fn a_precision_is_a_share_and_perhaps_a_figure() {
        assert_eq!(precision("2%").unwrap().figure, None);
        let p = precision("5%, get.p99").unwrap();
        assert_eq!(
            (p.half_width, p.figure.unwrap().name().as_str()),
            (0.05, "get.p99")
        );
        for (text, says) in [
            ("0", "margin"),
            ("2%,max", "max"),
            ("2%,errors", "throughput"),
        ] {
            assert!(precision(text).unwrap_err().contains(says), "{text}");
        }
    }
}
