//! A comparison as text, Markdown, CSV or JSON.

use bucketload_core::stats::decide::Decision;
use serde::Serialize;

use super::TextOptions;
use crate::compare::{Compared, Comparison, Effect, Side};
use crate::kit::escape::csv;
use crate::kit::{Cell, Style, Table};
use crate::units;

/// The outcome in one sentence.
#[must_use]
pub fn comparison_sentence(c: &Comparison) -> String {
    let margin = units::percent(c.margin);
    match c.decision {
        Decision::Slower => format!("B is slower than A: {}", culprits(c, Decision::Slower)),
        Decision::Faster => format!("B is faster than A: {}", culprits(c, Decision::Faster)),
        Decision::Equivalent => {
            format!("B differs from A by less than {margin}")
        }
        Decision::Inconclusive => {
            format!("the runs show neither a change beyond {margin} nor that there is none")
        }
    }
}

/// The quantities with this word, at most three of them, with their effects.
fn culprits(c: &Comparison, word: Decision) -> String {
    let mut found = c
        .quantities
        .iter()
        .filter(|q| q.decision == word && q.sample.quantity.gate);
    let named: Vec<String> = found
        .by_ref()
        .take(3)
        .map(|q| format!("{} {}", q.sample.quantity.name, effect(q)))
        .collect();
    let more = match found.count() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("{}{more}", named.join(", "))
}

/// The change of B against A: `+10.2 %` for ratios.
pub(crate) fn effect(q: &Compared) -> String {
    let value = match (q.interval, q.sample.quantity.effect) {
        (Some(i), _) => i.estimate,
        (None, Effect::Ratio) if q.a_mean != 0.0 => q.b_mean / q.a_mean,
        (None, Effect::Ratio) => return "–".to_owned(),
        (None, Effect::Difference) => q.b_mean - q.a_mean,
    };
    change(value, q.sample.quantity.effect)
}

fn change(value: f64, effect: Effect) -> String {
    let share = match effect {
        Effect::Ratio => value - 1.0,
        Effect::Difference => value,
    };
    format!("{:+.1} %", share * 100.0)
}

/// The interval of the change; a dash without one.
pub(crate) fn interval(q: &Compared) -> String {
    q.interval.map_or_else(
        || "–".to_owned(),
        |i| {
            let effect = q.sample.quantity.effect;
            format!("{} … {}", change(i.low, effect), change(i.high, effect))
        },
    )
}

pub(crate) fn p_value(q: &Compared) -> String {
    match q.interval {
        None => "–".to_owned(),
        Some(_) if q.adjusted_p < 0.0005 => "<0.001".to_owned(),
        Some(_) => format!("{:.3}", q.adjusted_p),
    }
}

/// A side's mean with its variation from run to run.
pub(crate) fn mean(q: &Compared, b: bool) -> String {
    let (mean, cv) = if b {
        (q.b_mean, q.b_cv)
    } else {
        (q.a_mean, q.a_cv)
    };
    let shown = q.sample.quantity.unit.show(mean);
    match cv {
        Some(cv) => format!("{shown} (CV {})", units::percent(cv)),
        None => shown,
    }
}

/// How the intervals were made, in words.
pub(crate) fn method(c: &Comparison) -> String {
    format!(
        "95 % intervals: {}; p corrected for {} quantities (Holm, weighted); margin {}",
        c.method.words(),
        c.quantities.len(),
        units::percent(c.margin)
    )
}

fn side_line(side: &Side) -> String {
    let profile = match side.profile.as_str() {
        "" => String::new(),
        profile => format!(" ({profile})"),
    };
    let runs = match side.runs.len() {
        1 => "1 run".to_owned(),
        n => format!("{n} runs"),
    };
    format!(
        "{}{profile} on {}, {runs}, scenario {}",
        side.workload, side.target, side.scenario_hash
    )
}

/// The comparison for people.
#[must_use]
pub fn comparison_text(c: &Comparison, options: TextOptions) -> String {
    let colour = options.colour;
    let style = |word| match word {
        Decision::Faster | Decision::Equivalent => Style::Good,
        Decision::Inconclusive => Style::Warn,
        Decision::Slower => Style::Bad,
    };
    let mut out = String::new();
    let word = c.decision.name().to_uppercase();
    out.push_str(&format!(
        "{}  {}\n",
        style(c.decision).paint(&word, colour),
        comparison_sentence(c)
    ));
    out.push_str(&format!(
        "  A  {}\n  B  {}\n",
        side_line(&c.a),
        side_line(&c.b)
    ));
    if !c.schedule.is_empty() {
        out.push_str(&format!("  order of the runs: {}\n", c.schedule));
    }
    out.push_str(&format!("  {}\n\n", method(c)));
    let head = ["", "A", "B", "B against A", "95 % interval", "p", "verdict"];
    let mut table = Table::new(1, head);
    for q in &c.quantities {
        let star = if q.sample.quantity.primary {
            "* "
        } else {
            "  "
        };
        let plain = |style| {
            if q.decision == Decision::Inconclusive {
                Style::Plain
            } else {
                style
            }
        };
        let word = if q.sample.quantity.gate {
            q.decision.name().to_owned()
        } else {
            format!("({})", q.decision.name())
        };
        table.row(vec![
            format!("{star}{}", q.sample.quantity.name).into(),
            mean(q, false).into(),
            mean(q, true).into(),
            effect(q).into(),
            interval(q).into(),
            p_value(q).into(),
            Cell::Styled(plain(style(q.decision)), word),
        ]);
    }
    table.render(colour, &mut out);
    out.push_str(
        "  * primary; in brackets: the client's own cost, without influence on the verdict\n",
    );
    semantics_text(c, &mut out);
    for d in &c.differences {
        out.push_str(&format!(
            "  differs by request: {}: {} against {}\n",
            d.field, d.a, d.b
        ));
    }
    for note in &c.notes {
        out.push_str(&format!("  note: {note}\n"));
    }
    out
}

/// What the operations mean on either side, where the sides speak different APIs.
fn semantics_text(c: &Comparison, out: &mut String) {
    if c.semantics.is_empty() {
        return;
    }
    let [a, b] = [&c.a, &c.b].map(|side| &side.driver);
    out.push_str(&format!(
        "  the sides speak different APIs; what operations mean on A, {a}, and on B, {b}:\n"
    ));
    for row in &c.semantics {
        out.push_str(&format!(
            "    {}\n      A  {}\n      B  {}\n",
            row.topic, row.a, row.b
        ));
    }
}

/// The comparison as a Markdown table, for pull requests.
#[must_use]
pub fn comparison_markdown(c: &Comparison) -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let mut out = format!(
        "**{}**: {}\n\n- A: {}\n- B: {}\n- {}\n",
        c.decision,
        cell(&comparison_sentence(c)),
        side_line(&c.a),
        side_line(&c.b),
        method(c)
    );
    if !c.schedule.is_empty() {
        out.push_str(&format!("- order of the runs: {}\n", c.schedule));
    }
    out.push_str("\n| | A | B | B against A | 95 % interval | p | verdict |\n|---|--:|--:|--:|--:|--:|---|\n");
    for q in &c.quantities {
        let name = cell(&q.sample.quantity.name);
        let name = if q.sample.quantity.primary {
            format!("**{name}**")
        } else {
            name
        };
        out.push_str(&format!(
            "| {name} | {} | {} | {} | {} | {} | {} |\n",
            mean(q, false),
            mean(q, true),
            effect(q),
            interval(q),
            p_value(q),
            q.decision
        ));
    }
    if !c.semantics.is_empty() {
        out.push_str("\n| what operations mean | A | B |\n|---|---|---|\n");
    }
    for row in &c.semantics {
        out.push_str(&format!("| {} | {} | {} |\n", row.topic, row.a, row.b));
    }
    for note in &c.notes {
        out.push_str(&format!("\n> {note}\n"));
    }
    out
}

/// The comparison as CSV (RFC 4180): one row per quantity. Intervals are of the ratio, or of the
/// difference where `effect` says so.
#[must_use]
pub fn comparison_csv(c: &Comparison) -> String {
    let mut out = "id,unit,effect,primary,runs_a,runs_b,a,b,cv_a,cv_b,estimate,low,high,p,p_holm,superiority,verdict\r\n"
        .to_owned();
    let number = |value: Option<f64>| value.map_or_else(String::new, |v| format!("{v}"));
    for q in &c.quantities {
        let quantity = &q.sample.quantity;
        let cells = [
            csv(&quantity.id),
            word(&quantity.unit),
            word(&quantity.effect),
            quantity.primary.to_string(),
            q.sample.a.len().to_string(),
            q.sample.b.len().to_string(),
            number(Some(q.a_mean)),
            number(Some(q.b_mean)),
            number(q.a_cv),
            number(q.b_cv),
            number(q.interval.map(|i| i.estimate)),
            number(q.interval.map(|i| i.low)),
            number(q.interval.map(|i| i.high)),
            number(q.interval.map(|i| i.p_value)),
            number(Some(q.adjusted_p)),
            number(q.ranks.map(|r| r.superiority)),
            q.decision.name().to_owned(),
        ];
        out.push_str(&cells.join(","));
        out.push_str("\r\n");
    }
    out
}

/// The name of a plain enumeration's value.
fn word<T: Serialize>(value: &T) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}

/// The comparison as one JSON document; its form is [`crate::compare::Comparison`].
#[must_use]
pub fn comparison_json(c: &Comparison) -> String {
    let mut text = serde_json::to_string_pretty(c).unwrap_or_default();
    text.push('\n');
    text
}
