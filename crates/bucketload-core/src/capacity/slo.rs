//! Service level objectives that a store has to meet, such as `p99<50ms,errors<0.1%`.
//!
//! ```text
//! SLO       = OBJECTIVE { "," OBJECTIVE }
//! OBJECTIVE = [ CLASS "." ] METRIC ( "<" | "<=" | ">" | ">=" ) BOUND
//! METRIC    = [ "ttfb." ] ( "p" PERCENT | "mean" | "max" )     bound: a duration
//!           | "errors"                                         bound: a share
//!           | "throughput"                                     bound: N/s, or a size per second
//!           | AI figure ([`AiFigure`]), without a class           bound: a share, N/s, a size per second or a duration
//! ```
//!
//! The names that studies have for metrics are accepted too: `bandwidth`, `first-byte` and `p999`.
//!
//! Durations are *response times* (from the intended start), of all operations or of one class. Bounds on
//! durations and errors are ceilings, bounds on throughput, shares of success and other rates are floors. An SLO without an objective for errors
//! gets `errors<=0.1%` (docs/spec/statistics.md section 6).

use std::fmt;
use std::mem::discriminant;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ai::{AiFigure, AiKind};
use crate::op::OpClass;
use crate::units::{
    Invalid, format_duration, format_rate, format_size_f64, parse_duration, parse_rate,
    parse_share, parse_size_f64,
};

/// Largest share of failed operations for an SLO that does not mention errors.
pub const DEFAULT_ERROR_SHARE: f64 = 0.001;

const REMEDY: &str = "write objectives such as p99<50ms, get.p99.9<=20ms, ttfb.p99<10ms, mean<5ms, errors<0.1%, \
     throughput>=500/s, joined by commas";

/// Objectives that must all be met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slo {
    /// The objectives, in the order given; never empty.
    pub objectives: Vec<Objective>,
}

/// One condition.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// The operation class; `None` for all operations together.
    pub class: Option<OpClass>,
    /// The limited quantity and its bound.
    pub bound: Bound,
    /// Whether a value equal to the bound meets the objective.
    pub inclusive: bool,
}

/// What an objective limits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Bound {
    /// A statistic of a duration must stay below this many nanoseconds.
    Duration {
        /// The duration.
        of: Timing,
        /// The statistic.
        statistic: Statistic,
        /// The ceiling, nanoseconds.
        ns: u64,
    },
    /// The share of failed operations must stay below this.
    Errors {
        /// The ceiling, 0 to 1.
        share: f64,
    },
    /// Successful operations per second must reach this.
    Operations {
        /// The floor, operations per second.
        per_s: f64,
    },
    /// A figure of training, checkpoints or a cache must reach this, or stay below it if it is a time.
    Ai {
        /// The figure.
        figure: AiFigure,
        /// The bound: a share, per second, bytes per second or nanoseconds.
        value: f64,
    },
    /// Object bytes of successful operations per second must reach this.
    Bytes {
        /// The floor, bytes per second.
        per_s: f64,
    },
}

/// The duration that an objective limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timing {
    /// From the intended start to the end.
    Response,
    /// From the real start to the first byte of the answer.
    Ttfb,
}

/// The statistic that an objective limits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The quantile, 0 to 1 exclusive.
    Quantile(f64),
    /// The mean.
    Mean,
    /// The largest value.
    Max,
}

impl Slo {
    /// The highest quantile that any objective needs; `None` if none needs one.
    #[must_use]
    pub fn highest_quantile(&self) -> Option<f64> {
        let quantile = |objective: &Objective| match objective.bound {
            Bound::Duration {
                statistic: Statistic::Quantile(q),
                ..
            } => Some(q),
            _ => None,
        };
        self.objectives
            .iter()
            .filter_map(quantile)
            .max_by(f64::total_cmp)
    }

    /// The classes that objectives name.
    pub fn classes(&self) -> impl Iterator<Item = OpClass> + '_ {
        self.objectives.iter().filter_map(|o| o.class)
    }

    /// The figures of training, checkpoints and caches that objectives concern.
    pub fn ai_figures(&self) -> impl Iterator<Item = AiFigure> + '_ {
        self.objectives.iter().filter_map(Objective::ai_figure)
    }

    /// Whether an objective concerns the utilisation of accelerators.
    #[must_use]
    pub fn wants_utilisation(&self) -> bool {
        self.ai_figures().any(|figure| figure == AiFigure::Au)
    }

    /// The objective for which the latency-against-load curve is drawn: the first one on a duration.
    #[must_use]
    pub fn primary(&self) -> Option<&Objective> {
        self.objectives
            .iter()
            .find(|o| matches!(o.bound, Bound::Duration { .. }))
    }
}

impl FromStr for Slo {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.trim().is_empty() {
            return Err(Invalid::new("the SLO is empty", REMEDY));
        }
        let mut objectives: Vec<Objective> = Vec::new();
        for part in text.split(',') {
            let objective = part.parse::<Objective>()?;
            let kind = |o: &Objective| (o.metric(), discriminant(&o.bound));
            if objectives.iter().any(|o| kind(o) == kind(&objective)) {
                return Err(Invalid::new(
                    format!("`{}` is limited twice", objective.metric()),
                    "keep the stricter of the two bounds",
                ));
            }
            objectives.push(objective);
        }
        let errors = |o: &Objective| matches!(o.bound, Bound::Errors { .. }) && o.class.is_none();
        if !objectives.iter().any(errors) {
            objectives.push(Objective {
                class: None,
                bound: Bound::Errors {
                    share: DEFAULT_ERROR_SHARE,
                },
                inclusive: true,
            });
        }
        Ok(Self { objectives })
    }
}

impl FromStr for Objective {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        let wrong = |what: String| Invalid::new(format!("objective `{text}`: {what}"), REMEDY);
        let at = text
            .find(['<', '>', '='])
            .ok_or_else(|| wrong("it contains no < or >".to_owned()))?;
        let below = match &text[at..=at] {
            "<" => true,
            ">" => false,
            _ => return Err(wrong("write the bound with < or >, not =".to_owned())),
        };
        let (metric, rest) = (text[..at].trim(), &text[at + 1..]);
        let inclusive = rest.starts_with('=');
        let value = rest.strip_prefix('=').unwrap_or(rest).trim();
        if value.is_empty() {
            return Err(wrong("the bound is missing".to_owned()));
        }
        let (class, metric) = match metric.split_once('.') {
            Some((name, rest)) if OpClass::from_name(name).is_some() => {
                (OpClass::from_name(name), rest)
            }
            _ => (None, metric),
        };
        let (of, name) = match metric.strip_prefix("ttfb.") {
            Some(name) => (Timing::Ttfb, name),
            None if metric == "first-byte" => (Timing::Ttfb, "mean"),
            None => (Timing::Response, metric),
        };
        let bound = match (name, of) {
            ("errors", Timing::Response) => Bound::Errors {
                share: parse_share(value).map_err(|e| wrong(e.to_string()))?,
            },
            (name, Timing::Response) if AiFigure::from_name(name).is_some() => {
                let figure = AiFigure::from_name(name).filter(|_| class.is_none());
                let figure = figure.ok_or_else(|| {
                    wrong(format!("{name} is a figure of the whole run; name no class"))
                })?;
                let value = ai_value(figure, value).map_err(|e| wrong(e.to_string()))?;
                Bound::Ai { figure, value }
            }
            ("throughput" | "bandwidth", Timing::Response) => {
                throughput(name, value).map_err(|e| wrong(e.to_string()))?
            }
            _ => Bound::Duration {
                of,
                statistic: statistic(name).ok_or_else(|| {
                    wrong(format!("`{metric}` is neither a percentile nor mean, max, errors, throughput, or a class with one of these"))
                })?,
                ns: match parse_duration(value) {
                    Ok(0) => return Err(wrong("no operation takes zero time".to_owned())),
                    Ok(ns) => ns,
                    Err(e) => return Err(wrong(e.to_string())),
                },
            },
        };
        let ceiling = bound.is_ceiling();
        if ceiling != below {
            let sign = if ceiling { "<" } else { ">" };
            return Err(wrong(format!("{metric} is limited with {sign} or {sign}=")));
        }
        Ok(Self {
            class,
            bound,
            inclusive,
        })
    }
}

/// The bound of a figure in its unit.
fn ai_value(figure: AiFigure, value: &str) -> Result<f64, Invalid> {
    match figure.kind() {
        AiKind::Share => parse_share(value),
        AiKind::PerSecond => parse_rate(value),
        AiKind::BytesPerSecond => bytes_per_s(value, "write a size per second such as 2GiB/s"),
        AiKind::Time => match parse_duration(value)? {
            0 => Err(Invalid::new("nothing takes zero time", REMEDY)),
            ns => Ok(ns as f64),
        },
    }
}

/// Reads `p99`, `p99.9`, `mean` or `max`.
fn statistic(name: &str) -> Option<Statistic> {
    match name {
        "mean" => Some(Statistic::Mean),
        "max" => Some(Statistic::Max),
        "p999" => Some(Statistic::Quantile(0.999)),
        _ => {
            let digits = name.strip_prefix('p')?;
            let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            let percent: f64 = digits.parse().ok().filter(|_| plain)?;
            // Division by 100 rounds correctly, so p99.9 equals the literal 0.999.
            (percent > 0.0 && percent < 100.0).then_some(Statistic::Quantile(percent / 100.0))
        }
    }
}

/// The bound of `throughput`, in operations or bytes, or of `bandwidth`, in bytes.
fn throughput(name: &str, value: &str) -> Result<Bound, Invalid> {
    match parse_rate(value) {
        Ok(per_s) if name == "throughput" => return Ok(Bound::Operations { per_s }),
        _ => {}
    }
    let remedy = "write operations such as 500/s, or bytes such as 100MiB/s";
    let per_s = bytes_per_s(value, remedy)?;
    Ok(Bound::Bytes { per_s })
}

/// A size per second.
fn bytes_per_s(value: &str, remedy: &str) -> Result<f64, Invalid> {
    let wrong = || Invalid::new(format!("`{value}` is not a throughput"), remedy);
    let size = value.strip_suffix("/s").ok_or_else(wrong)?;
    parse_size_f64(size.trim()).map_err(|_| wrong())
}

impl Bound {
    /// Whether values must stay below it, rather than reach it.
    #[must_use]
    pub const fn is_ceiling(&self) -> bool {
        match self {
            Self::Duration { .. } | Self::Errors { .. } => true,
            Self::Ai { figure, .. } => figure.is_ceiling(),
            Self::Operations { .. } | Self::Bytes { .. } => false,
        }
    }
}

impl Statistic {
    /// The name as written: `p99.9`, `mean`, `max`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            // Twelve digits hide the rounding error of the multiplication.
            Self::Quantile(q) => format!("p{}", (q * 1e14).round() / 1e12),
            Self::Mean => "mean".to_owned(),
            Self::Max => "max".to_owned(),
        }
    }
}

impl Objective {
    /// The limited quantity without its bound, such as `get.p99`.
    #[must_use]
    pub fn metric(&self) -> String {
        let name = match self.bound {
            Bound::Duration { of, statistic, .. } => match of {
                Timing::Response => statistic.name(),
                Timing::Ttfb => format!("ttfb.{}", statistic.name()),
            },
            Bound::Errors { .. } => "errors".to_owned(),
            Bound::Ai { figure, .. } => figure.name().to_owned(),
            Bound::Operations { .. } | Bound::Bytes { .. } => "throughput".to_owned(),
        };
        match self.class {
            Some(class) => format!("{}.{name}", class.name()),
            None => name,
        }
    }

    /// The figure of training, checkpoints or a cache that it concerns, if any.
    #[must_use]
    pub const fn ai_figure(&self) -> Option<AiFigure> {
        match self.bound {
            Bound::Ai { figure, .. } => Some(figure),
            _ => None,
        }
    }

    /// Whether a measured `value` meets the bound. The value has the bound's unit: nanoseconds, a share, or
    /// per second.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        let bound = match self.bound {
            Bound::Duration { ns, .. } => ns as f64,
            Bound::Errors { share } => share,
            Bound::Ai { value, .. } => value,
            Bound::Operations { per_s } | Bound::Bytes { per_s } => per_s,
        };
        if value == bound {
            self.inclusive
        } else {
            (value < bound) == self.bound.is_ceiling() && !value.is_nan()
        }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.bound.is_ceiling() { '<' } else { '>' };
        let percent = |share: f64| format!("{}%", (share * 1e14).round() / 1e12);
        // A number without a unit would be operations.
        let bytes = |per_s| match format_size_f64(per_s) {
            plain if plain.ends_with(|c: char| c.is_ascii_digit()) => format!("{plain}B/s"),
            size => format!("{size}/s"),
        };
        let bound = match self.bound {
            Bound::Duration { ns, .. } => format_duration(ns),
            Bound::Errors { share } => percent(share),
            Bound::Operations { per_s } => format_rate(per_s),
            Bound::Bytes { per_s } => bytes(per_s),
            Bound::Ai { figure, value } => match figure.kind() {
                AiKind::Share => percent(value),
                AiKind::PerSecond => format_rate(value),
                AiKind::BytesPerSecond => bytes(value),
                AiKind::Time => format_duration(value as u64),
            },
        };
        let equal = if self.inclusive { "=" } else { "" };
        write!(f, "{}{sign}{equal}{bound}", self.metric())
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, objective) in self.objectives.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            objective.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Bound, Objective, Slo, Statistic, Timing};
    use crate::ai::AiFigure;
    use crate::op::OpClass;

    fn objective(text: &str) -> Objective {
        text.parse().unwrap()
    }

    #[test]
    fn objectives_are_read() {
        let slo: Slo = "p99<50ms,errors<0.1%".parse().unwrap();
        assert_eq!(slo.objectives.len(), 2);
        assert_eq!(
            slo.objectives[0].bound,
            Bound::Duration {
                of: Timing::Response,
                statistic: Statistic::Quantile(0.99),
                ns: 50_000_000
            }
        );
        assert_eq!(slo.objectives[1].bound, Bound::Errors { share: 0.001 });
        assert!(!slo.objectives[0].inclusive && !slo.objectives[1].inclusive);
        assert_eq!(slo.highest_quantile(), Some(0.99));
        let o = objective(" range-get.ttfb.p99.9 <= 1.5ms ");
        assert_eq!((o.class, o.inclusive), (Some(OpClass::RangeGet), true));
        assert_eq!(o.metric(), "range-get.ttfb.p99.9");
        assert_eq!(
            objective("throughput>=500/s").bound,
            Bound::Operations { per_s: 500.0 }
        );
        assert_eq!(
            objective("get.throughput>2MiB/s").bound,
            Bound::Bytes { per_s: 2_097_152.0 }
        );
    }

    #[test]
    fn an_slo_that_is_silent_about_errors_gets_the_default() {
        let slo: Slo = "mean<5ms".parse().unwrap();
        assert_eq!(slo.to_string(), "mean<5ms,errors<=0.1%");
        assert_eq!(slo.highest_quantile(), None);
        let slo: Slo = "get.errors<1%,p50<1s".parse().unwrap();
        assert_eq!(slo.objectives.len(), 3);
    }

    #[test]
    fn utilisation_is_a_floor_without_a_class() {
        let au = objective("au>=90%");
        assert_eq!(
            au.bound,
            Bound::Ai {
                figure: AiFigure::Au,
                value: 0.9
            }
        );
        assert!(au.holds(0.9) && !au.holds(0.899) && !au.holds(f64::NAN));
        assert_eq!(au.to_string(), "au>=90%");
        assert!("au<90%".parse::<Slo>().is_err() && "get.au>90%".parse::<Slo>().is_err());
        let write = objective("checkpoint-write-time<=20s");
        assert!(write.holds(2e10) && !write.holds(2.1e10) && !write.holds(f64::NAN));
        for text in [
            "samples>=500/s",
            "checkpoint-read>2GiB/s",
            "checkpoint-read>1B/s",
            "throughput>=100B/s",
            "dlio-write-time<10s",
            "hit-ratio>=40%",
            "load-p99<50ms",
        ] {
            assert_eq!(objective(text).to_string(), text);
        }
        for wrong in [
            "samples<5/s",
            "checkpoint-read>5s",
            "load-p99<0s",
            "get.load-p99<5ms",
            "hit-ratio>2s",
        ] {
            assert!(wrong.parse::<Slo>().is_err(), "{wrong}");
        }
        assert!("au>90%".parse::<Slo>().unwrap().wants_utilisation());
    }

    #[test]
    fn bounds_are_exclusive_unless_they_say_so() {
        assert!(!objective("p99<50ms").holds(50e6) && objective("p99<=50ms").holds(50e6));
        assert!(objective("p99<50ms").holds(49e6) && !objective("p99<50ms").holds(51e6));
        assert!(objective("throughput>=5/s").holds(5.0) && !objective("throughput>5/s").holds(5.0));
        assert!(
            !objective("errors<1%").holds(f64::NAN) && !objective("throughput>1/s").holds(f64::NAN)
        );
    }

    #[test]
    fn mistakes_name_the_objective_and_a_remedy() {
        for (text, part) in [
            ("", "the SLO is empty"),
            ("p99", "it contains no < or >"),
            ("p99=5ms", "not ="),
            ("p99>5ms", "limited with <"),
            ("p99<", "the bound is missing"),
            ("p99<5", "lacks a unit of time"),
            ("p99<0ms", "takes zero time"),
            ("p100<5ms", "`p100` is neither a percentile"),
            ("p0<5ms", "neither"),
            ("p9e1<5ms", "neither"),
            ("fetch.p99<5ms", "neither"),
            ("ttfb.errors<1%", "neither"),
            ("errors<5", "is not between"),
            ("errors>5%", "limited with <"),
            ("throughput<5/s", "limited with >"),
            ("throughput>fast", "is not a throughput"),
            ("throughput>1MiB/s,bandwidth>2MiB/s", "limited twice"),
            ("p99<5ms,p99<6ms", "`p99` is limited twice"),
            ("p99<5ms,", "it contains no < or >"),
        ] {
            let error = text.parse::<Slo>().unwrap_err();
            assert!(error.to_string().contains(part), "{text}: {error}");
            assert!(!error.remedy.is_empty(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn formatted_objectives_parse_back(q in 1u32..99_999, ns in 1u64..1 << 50, share in 0u32..=1000, per_s in 1u32..1 << 30) {
            let text = format!(
                "p{}<{ns}ns,put.mean<={ns}ns,get.errors<{}%,errors<=1%,throughput>{per_s}/s",
                f64::from(q) / 1000.0, f64::from(share) / 10.0);
            let slo: Slo = text.parse().unwrap();
            prop_assert_eq!(slo.to_string().parse::<Slo>().unwrap(), slo);
        }

        #[test]
        fn any_text_is_safe(text in "(p|99|<|>|=|ms|get|\\.|,|errors|%|throughput|/s|\\PC){0,12}") {
            let _ = text.parse::<Slo>();
        }
    }
}
