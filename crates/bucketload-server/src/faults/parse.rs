//! The text form of fault rules.

use std::time::Duration;

use super::distribution::Distribution;
use super::units::{
    Parsed, Service, bytes, decimal, duration, number, per_second, positive, probability, rate,
    service, status,
};
use super::{FaultRule, Kind, Trigger};
use crate::router::Operation;

/// An invalid fault rule. The message names the rule, the field and the accepted values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fault rule '{rule}': {what}")]
pub struct FaultError {
    rule: String,
    what: String,
}

/// The parameters of a rule that have not been read yet.
struct Fields<'a> {
    fields: Vec<(&'a str, &'a str)>,
}

impl<'a> Fields<'a> {
    /// Splits `NAME=VALUE,NAME=VALUE`; commas in parentheses do not separate.
    fn split(text: &'a str) -> Parsed<Self> {
        let mut fields: Vec<(&str, &str)> = Vec::new();
        let (mut depth, mut start) = (0_i32, 0);
        for (at, c) in text.char_indices().chain([(text.len(), ',')]) {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                ',' if depth == 0 || at == text.len() => {
                    let field = text[start..at].trim();
                    start = (at + 1).min(text.len());
                    if field.is_empty() {
                        continue;
                    }
                    let (name, value) = field
                        .split_once('=')
                        .ok_or_else(|| format!("'{field}' is not of the form NAME=VALUE"))?;
                    if fields.iter().any(|(other, _)| *other == name.trim()) {
                        return Err(format!("{} is given twice", name.trim()));
                    }
                    fields.push((name.trim(), value.trim()));
                }
                _ => {}
            }
        }
        if depth == 0 {
            Ok(Self { fields })
        } else {
            Err("the parentheses do not match".into())
        }
    }

    /// Removes the field called `name` and reads it.
    fn take<T>(&mut self, name: &str, read: impl FnOnce(&str) -> Parsed<T>) -> Parsed<Option<T>> {
        let Some(at) = self.fields.iter().position(|(n, _)| *n == name) else {
            return Ok(None);
        };
        let (_, value) = self.fields.remove(at);
        read(value)
            .map(Some)
            .map_err(|what| format!("{name}={value}: {what}"))
    }

    /// As [`Fields::take`], for a required field.
    fn require<T>(&mut self, name: &str, read: impl FnOnce(&str) -> Parsed<T>) -> Parsed<T> {
        self.take(name, read)?
            .ok_or_else(|| format!("{name}= is missing"))
    }

    /// Refuses the remaining fields.
    fn finish(&self, allowed: &str) -> Parsed<()> {
        match self.fields.first() {
            None => Ok(()),
            Some((name, _)) => Err(format!("{name}= has no meaning here; allowed: {allowed}")),
        }
    }
}

/// Reads one rule.
pub(super) fn rule(text: &str) -> Result<FaultRule, FaultError> {
    parse(text.trim()).map_err(|what| FaultError {
        rule: text.trim().to_owned(),
        what,
    })
}

fn parse(text: &str) -> Parsed<FaultRule> {
    let (head, rest) = text.split_once(',').unwrap_or((text, ""));
    // `status=503` is short for `status,status=503`.
    let (name, rest) = match head.split_once('=') {
        Some((name, _)) if name.trim() == "status" => ("status", text),
        _ => (head.trim(), rest),
    };
    let mut fields = Fields::split(rest)?;
    let (kind, own) = kind(name, &mut fields)?;
    let counted = !matches!(kind, Kind::Stall { .. } | Kind::Full(_));
    let mut rule = FaultRule {
        text: text.to_owned(),
        kind,
        trigger: Trigger::Always,
        operations: fields.take("op", operations)?.unwrap_or_default(),
        prefix: fields.take("prefix", text_of)?.unwrap_or_default(),
        contains: fields.take("contains", text_of)?.unwrap_or_default(),
        after: 0,
        count: u64::MAX,
        seed: fields.take("seed", number)?.unwrap_or(0),
    };
    let mut allowed = format!("{own}op, prefix, contains, seed");
    if !matches!(kind, Kind::Full(_)) {
        rule.count = fields.take("count", number)?.unwrap_or(u64::MAX);
        allowed += ", count";
    }
    if counted {
        rule.after = fields.take("after", number)?.unwrap_or(0);
        let every = fields.take("every", positive)?.map(Trigger::Every);
        let probability = fields.take("prob", probability)?.map(Trigger::Probability);
        rule.trigger = match (every, probability) {
            (Some(_), Some(_)) => return Err("every= and prob= exclude each other".into()),
            (every, probability) => every.or(probability).unwrap_or(Trigger::Always),
        };
        allowed += ", every, prob, after";
    }
    fields.finish(&allowed)?;
    restrict(&mut rule)?;
    Ok(rule)
}

fn text_of(text: &str) -> Parsed<String> {
    Ok(text.to_owned())
}

/// The parameter `age`, 0 by default.
fn age(fields: &mut Fields<'_>) -> Parsed<Duration> {
    Ok(fields.take("age", duration)?.unwrap_or_default())
}

/// Reads the kind and its parameters. Also returns the names of those parameters.
fn kind(name: &str, fields: &mut Fields<'_>) -> Parsed<(Kind, &'static str)> {
    Ok(match name {
        "delay" => {
            let given = [
                fields.take("dist", distribution)?,
                fields.take("ms", |text| {
                    decimal(text).map(|ms| Distribution::Constant(ms / 1e3))
                })?,
                fields.take("time", |text| {
                    duration(text).map(|t| Distribution::Constant(t.as_secs_f64()))
                })?,
            ];
            let mut given = given.into_iter().flatten();
            match (given.next(), given.next()) {
                (Some(distribution), None) => (Kind::Delay(distribution), "dist, ms, time, "),
                _ => return Err("give one of dist=, ms= and time=".into()),
            }
        }
        "queue" => {
            let mean = 1.0 / fields.require("rate", per_second)?;
            let service = match fields.take("service", service)? {
                Some(Service::Constant) => Distribution::Constant(mean),
                Some(Service::Exponential) | None => Distribution::Exponential { mean },
            };
            (Kind::Queue(service), "rate, service, ")
        }
        "stall" => {
            let at = fields.require("at", duration)?;
            let length = fields.require("for", duration)?;
            let period = fields.take("period", duration)?;
            if period.is_some_and(|period| period <= length) {
                return Err("period= must be longer than for=".into());
            }
            (Kind::Stall { at, length, period }, "at, for, period, ")
        }
        "slow" => (Kind::Slow(fields.require("rate", rate)?), "rate, "),
        "status" => (Kind::Status(fields.require("status", status)?), "status, "),
        "full" => (Kind::Full(fields.require("after", bytes)?), "after, "),
        "reset" => (Kind::Reset, ""),
        "truncate" => (Kind::Truncate, ""),
        "corrupt" => (Kind::Corrupt, ""),
        "stale" => (Kind::Stale(age(fields)?), "age, "),
        "lost" => (Kind::Lost, ""),
        "torn" => (Kind::Torn, ""),
        "resurrect" => (Kind::Resurrect(age(fields)?), "age, "),
        "stale-list" => (Kind::StaleList(fields.require("lag", duration)?), "lag, "),
        other => {
            return Err(format!(
                "unknown kind '{other}'; the kinds are delay, queue, stall, slow, status, reset, full, truncate, corrupt, stale, lost, torn, resurrect, stale-list"
            ));
        }
    })
}

/// Restricts kinds that apply to certain operations to these, and refuses others.
fn restrict(rule: &mut FaultRule) -> Parsed<()> {
    use Operation::{Delete, DeleteMany, Get, List, ListV1, Put, UploadPart};
    let possible: &[Operation] = match rule.kind {
        Kind::Truncate | Kind::Corrupt | Kind::Stale(_) => &[Get],
        Kind::Lost | Kind::Torn => &[Put],
        Kind::Resurrect(_) => &[Delete, DeleteMany],
        Kind::StaleList(_) => &[List, ListV1],
        Kind::Full(_) => &[Put, UploadPart],
        Kind::Slow(_) => &[Get, Put, UploadPart],
        _ => return Ok(()),
    };
    if let Some(foreign) = rule.operations.iter().find(|op| !possible.contains(op)) {
        let names: Vec<_> = possible.iter().map(|op| op.name()).collect();
        return Err(format!(
            "op={}: this kind concerns {} only",
            foreign.name(),
            names.join(" and ")
        ));
    }
    if rule.operations.is_empty() {
        rule.operations = possible.to_vec();
    }
    Ok(())
}

fn operations(text: &str) -> Parsed<Vec<Operation>> {
    let read = |name: &str| {
        Operation::from_name(name.trim()).ok_or_else(|| {
            let names: Vec<_> = Operation::ALL.iter().map(|op| op.name()).collect();
            format!("unknown operation; known: {}", names.join(", "))
        })
    };
    text.split('+').map(read).collect()
}

fn distribution(text: &str) -> Parsed<Distribution> {
    let (name, inner) = text
        .strip_suffix(')')
        .and_then(|text| text.split_once('('))
        .ok_or("expected NAME(...), such as lognormal(mean=5ms,cv=1)")?;
    let seconds = |text: &str| duration(text).map(|d| d.as_secs_f64());
    if name == "const" {
        return seconds(inner).map(Distribution::Constant);
    }
    let mut fields = Fields::split(inner)?;
    let (distribution, allowed) = match name {
        "uniform" => {
            let (min, max) = (
                fields.require("min", seconds)?,
                fields.require("max", seconds)?,
            );
            if min > max {
                return Err("min is above max".into());
            }
            (Distribution::Uniform { min, max }, "min, max")
        }
        "exp" => (
            Distribution::Exponential {
                mean: fields.require("mean", seconds)?,
            },
            "mean",
        ),
        "lognormal" => {
            let mean = fields.require("mean", seconds)?;
            if mean <= 0.0 {
                return Err("the mean must be above zero".into());
            }
            (
                Distribution::Lognormal {
                    mean,
                    cv: fields.require("cv", decimal)?,
                },
                "mean, cv",
            )
        }
        "bimodal" => {
            let (low, high) = (
                fields.require("low", seconds)?,
                fields.require("high", seconds)?,
            );
            if low <= 0.0 || low >= high {
                return Err("low must be above zero and below high".into());
            }
            (
                Distribution::Bimodal {
                    low,
                    high,
                    share: fields.require("share", probability)?,
                    cv: fields.take("cv", decimal)?.unwrap_or(0.0),
                },
                "low, high, share, cv",
            )
        }
        _ => {
            return Err(
                "unknown distribution; known: const, uniform, exp, lognormal, bimodal".into(),
            );
        }
    };
    fields.finish(allowed)?;
    Ok(distribution)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kind_of(text: &str) -> Kind {
        rule(text).unwrap().kind
    }

    #[test]
    fn rules_are_read() {
        assert_eq!(
            kind_of("delay,dist=lognormal(mean=5ms,cv=1)"),
            Kind::Delay(Distribution::Lognormal {
                mean: 0.005,
                cv: 1.0
            })
        );
        assert_eq!(
            kind_of("delay,dist=const(1s)"),
            Kind::Delay(Distribution::Constant(1.0))
        );
        assert_eq!(
            kind_of("stall,at=10s,for=500ms"),
            Kind::Stall {
                at: Duration::from_secs(10),
                length: Duration::from_millis(500),
                period: None
            }
        );
        assert_eq!(
            kind_of("stall,at=1s,for=1s,period=10s"),
            Kind::Stall {
                at: Duration::from_secs(1),
                length: Duration::from_secs(1),
                period: Some(Duration::from_secs(10))
            }
        );
        for text in ["queue,rate=400/s", "queue,rate=400,service=exp"] {
            let service = Distribution::Exponential { mean: 0.0025 };
            assert_eq!(kind_of(text), Kind::Queue(service));
        }
        assert_eq!(
            kind_of("queue,rate=400/s,service=const,op=get"),
            Kind::Queue(Distribution::Constant(0.0025))
        );
        assert_eq!(
            kind_of("delay,dist=bimodal(low=2ms,high=50ms,share=0.1)"),
            Kind::Delay(Distribution::Bimodal {
                low: 0.002,
                high: 0.05,
                share: 0.1,
                cv: 0.0
            })
        );
        assert_eq!(kind_of("slow,rate=1.5MiB/s"), Kind::Slow(1_572_864));
        assert_eq!(kind_of("full,after=100MiB"), Kind::Full(100 << 20));
        assert_eq!(kind_of("status,status=500"), Kind::Status(500));
        let r = rule("status=503,every=100").unwrap();
        assert_eq!(
            (r.kind, r.trigger),
            (Kind::Status(503), Trigger::Every(100))
        );
        let r =
            rule(" delay , ms=10 , op=get+put, prefix=a/b, after=3, count=4, prob=0.5, seed=9 ")
                .unwrap();
        assert_eq!(r.operations, [Operation::Get, Operation::Put]);
        assert_eq!(
            (r.prefix.as_str(), r.after, r.count, r.seed),
            ("a/b", 3, 4, 9)
        );
        assert_eq!(r.trigger, Trigger::Probability(0.5));
        assert_eq!(rule("corrupt").unwrap().operations, [Operation::Get]);
        let age = Duration::from_millis(5);
        assert_eq!(kind_of("stale,age=5ms"), Kind::Stale(age));
        assert_eq!(kind_of("resurrect,age=5ms"), Kind::Resurrect(age));
        assert_eq!(kind_of("stale-list,lag=5ms"), Kind::StaleList(age));
        assert_eq!(rule("lost").unwrap().operations, [Operation::Put]);
        assert_eq!(rule("reset").unwrap().to_string(), "reset");
    }

    #[test]
    fn errors_name_field_and_remedy() {
        for (text, part) in [
            ("", "the kinds are delay"),
            ("explode", "unknown kind 'explode'"),
            ("delay", "give one of dist=, ms= and time="),
            ("delay,ms=1,time=2ms", "give one of"),
            ("delay,ms=x", "ms=x: expected a number"),
            ("delay,dist=lognormal(mean=5ms)", "cv= is missing"),
            ("delay,dist=lognormal(mean=5ms,cv=1", "parentheses"),
            ("delay,dist=zipf(mean=5ms)", "unknown distribution"),
            ("delay,time=5", "duration with unit"),
            ("status=200", "between 400 and 599"),
            ("reset,every=0", "at least 1"),
            ("reset,prob=1.5", "between 0 and 1"),
            ("reset,prob=0.5,every=2", "exclude each other"),
            (
                "reset,rate=1MiB/s",
                "rate= has no meaning here; allowed: op, prefix, contains, seed, count, every",
            ),
            ("queue", "rate= is missing"),
            ("queue,rate=0/s", "must be above zero"),
            ("queue,rate=5/h", "expected requests per second"),
            ("queue,rate=5/s,service=gamma", "exp or const"),
            ("stall,at=1s,for=2s,period=2s", "period= must be longer"),
            (
                "delay,dist=bimodal(low=9ms,high=5ms,share=0.1)",
                "low must be above zero and below high",
            ),
            ("stall,at=1s", "for= is missing"),
            ("stall,at=1s,for=1s,every=2", "every= has no meaning here"),
            ("corrupt,op=put", "concerns get only"),
            ("delay,ms=1,op=fetch", "unknown operation; known: get, put"),
            ("slow,rate=0B/s", "at least 1B/s"),
            ("full", "after= is missing"),
            ("stale-list", "lag= is missing"),
            ("torn,op=get", "concerns put only"),
            ("reset,every=2,every=3", "every is given twice"),
            ("reset,fast", "'fast' is not of the form"),
        ] {
            let error = rule(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert!(
                error.starts_with(&format!("fault rule '{text}'")),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_safe(text in "(delay|queue|stall|full|slow|,|=|\\(|\\)|ms|at|for|rate|dist|after|exp|mean|service|const|period|bimodal|[0-9.]{1,25}|s|MiB/s|\\PC){0,20}") {
            let _ = rule(&text);
        }
    }
}
