//! A comparison as text, Markdown, CSV or JSON.

use bucketload_core::stats::decide::Decision;
use serde::Serialize;

use super::TextOptions;
use crate::compare::{Compared, Comparison, Effect, Side};
use crate::kit::escape::csv;
use crate::kit::{Cell, Style, Table};
use crate::units;

/// The result in one sentence.
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
            format!("the runs neither show nor rule out a change beyond {margin}")
        }
    }
}

/// The quantities with this decision, at most three of them, with their effects.
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

/// The change from A to B: `+10.2 %` for ratios.
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

fn p_value(q: &Compared) -> String {
    match q.interval {
        None => "–".to_owned(),
        Some(_) if q.adjusted_p < 0.0005 => "<0.001".to_owned(),
        Some(_) => format!("{:.3}", q.adjusted_p),
    }
}

/// A side's mean with its run-to-run variation.
fn mean(q: &Compared, b: bool) -> String {
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

/// Headings of [`figures`].
pub(crate) const FIGURES: [&str; 5] = ["A", "B", "B vs A", "95 % interval", "p"];

/// The figures of a quantity as text.
pub(crate) fn figures(q: &Compared) -> [String; 5] {
    [
        mean(q, false),
        mean(q, true),
        effect(q),
        interval(q),
        p_value(q),
    ]
}

/// The decision on a quantity; in parentheses if it does not count.
pub(crate) fn verdict(q: &Compared) -> String {
    match q.sample.quantity.gate {
        true => q.decision.name().to_owned(),
        false => format!("({})", q.decision.name()),
    }
}

/// The method of the intervals as text.
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

/// The comparison for readers.
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
        out.push_str(&format!("  run order: {}\n", c.schedule));
    }
    out.push_str(&format!("  {}\n\n", method(c)));
    let mut table = Table::new(1, [""].into_iter().chain(FIGURES)).text_columns(["verdict"]);
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
        let mut row = vec![format!("{star}{}", q.sample.quantity.name).into()];
        row.extend(figures(q).map(Cell::from));
        row.push(Cell::Styled(plain(style(q.decision)), verdict(q)));
        table.row(row);
    }
    table.render_within(options.width, colour, &mut out);
    out.push_str(
        "  * primary; in parentheses: the client's own cost, which does not affect the verdict\n",
    );
    semantics_text(c, &mut out);
    for d in &c.differences {
        let [name, a, b] = d.words();
        out.push_str(&format!("  allowed difference: {name}: {a} vs {b}\n"));
    }
    for note in &c.notes {
        out.push_str(&format!("  note: {note}\n"));
    }
    out
}

/// What operations mean on each side, if the sides use different APIs.
fn semantics_text(c: &Comparison, out: &mut String) {
    if c.semantics.is_empty() {
        return;
    }
    let [a, b] = [&c.a, &c.b].map(|side| &side.driver);
    out.push_str(&format!(
        "  the sides use different APIs; meaning of the operations on A ({a}) and B ({b}):\n"
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
        out.push_str(&format!("- run order: {}\n", c.schedule));
    }
    out.push_str(&format!(
        "\n| | {} | verdict |\n|---|--:|--:|--:|--:|--:|---|\n",
        FIGURES.join(" | ")
    ));
    for q in &c.quantities {
        let name = cell(&q.sample.quantity.name);
        let name = if q.sample.quantity.primary {
            format!("**{name}**")
        } else {
            name
        };
        out.push_str(&format!(
            "| {name} | {} | {} |\n",
            figures(q).join(" | "),
            q.decision
        ));
    }
    if !c.semantics.is_empty() {
        out.push_str("\n| meaning of operations | A | B |\n|---|---|---|\n");
    }
    for row in &c.semantics {
        out.push_str(&format!("| {} | {} | {} |\n", row.topic, row.a, row.b));
    }
    for note in &c.notes {
        out.push_str(&format!("\n> {note}\n"));
    }
    out
}

/// The comparison as CSV (RFC 4180): one row per quantity. The interval is that of the ratio, or of the difference if
/// `effect` says so.
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

/// The serialized name of a plain enumeration's value.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}

/// The comparison as one JSON document; its format is [`crate::compare::Comparison`].
#[must_use]
pub fn comparison_json(c: &Comparison) -> String {
    super::json::pretty(c)
}
