//! The page of a comparison: decision, table of quantities, the report's tables with one column per side, and its
//! charts with both sides overlaid.

use bucketload_core::stats::decide::Decision;

use super::overlay;
use super::summary::latencies;
use crate::compare::{Compared, Comparison, Difference, Effect, Run, Side, Unit};
use crate::kit::svg::{Bar, Bars, Body};
use crate::kit::{Axis, Chart, Page, Section, Table, VerdictBox};
use crate::output::comparison::{self as words, comparison_sentence};
use crate::result::{ClassResult, Latency, PhaseResult};
use crate::units;

pub(super) fn page(c: &Comparison, a: &[Run], b: &[Run]) -> Page {
    let mut page = Page {
        title: format!("Comparison: {}", title(c)),
        subtitle: format!(
            "A: {}. B: {}. {}.",
            c.a.target,
            c.b.target,
            words::method(c)
        ),
        verdict: VerdictBox {
            word: c.decision.name().to_uppercase(),
            tone: match c.decision {
                Decision::Faster | Decision::Equivalent => "good",
                Decision::Inconclusive => "warn",
                Decision::Slower => "bad",
            },
            meaning: headline(c),
            reasons: c.notes.clone(),
            ..VerdictBox::default()
        },
        facts: c
            .quantities
            .iter()
            .filter(|q| q.sample.quantity.primary || is_rate(q))
            .take(8)
            .map(|q| (q.sample.quantity.name.clone(), words::effect(q)))
            .collect(),
        first: vec![intervals(c)],
        sections: vec![quantities(c)],
    };
    let phases = a[0].result.measured().map(|phase| phase.name.as_str());
    for name in phases {
        let (x, y) = (of_phase(a, name), of_phase(b, name));
        if x.len() == a.len() && y.len() == b.len() {
            page.sections.push(figures(name, &x, &y));
            page.sections.push(overlay::section(name, &x, &y));
        }
    }
    if !c.shifts.is_empty() {
        page.sections.push(overlay::shifts(c));
    }
    page.sections.push(runs(c));
    page
}

/// Whether the quantity is a throughput.
fn is_rate(q: &Compared) -> bool {
    matches!(q.sample.quantity.unit, Unit::PerS | Unit::BytesPerS)
}

/// The decision, and the gain or loss in throughput with its interval.
fn headline(c: &Comparison) -> String {
    let sentence = comparison_sentence(c);
    let mut first = sentence.chars();
    let capital = first.next().map(|c| c.to_uppercase().to_string());
    let mut out = format!("{}{}.", capital.unwrap_or_default(), first.as_str());
    if let Some(q) = c.quantities.iter().find(|q| is_rate(q)) {
        let name = &q.sample.quantity.name;
        // The sentence has it already if it decided.
        if !out.contains(&format!("{name} ")) {
            out += &format!(" Throughput ({name}): {}", words::effect(q));
            if q.interval.is_some() {
                out += &format!(" (95 % interval {})", words::interval(q));
            }
            out.push('.');
        }
    }
    out
}

/// The change of each quantity with its interval; hollow where the interval contains no change.
fn intervals(c: &Comparison) -> Chart {
    let share = |value: f64, effect: Effect| match effect {
        Effect::Ratio => value - 1.0,
        Effect::Difference => value,
    };
    let mut bars = Bars {
        mark: Some(0.0),
        ..Bars::default()
    };
    let shown = c.quantities.iter().filter(|q| q.sample.quantity.gate);
    for q in shown.take(MOST_INTERVALS) {
        let Some(i) = q.interval else { continue };
        let effect = q.sample.quantity.effect;
        let (low, high) = (share(i.low, effect), share(i.high, effect));
        let bar = Bar {
            value: share(i.estimate, effect),
            ci: Some((low, high)),
            text: words::effect(q),
            flawed: low <= 0.0 && high >= 0.0,
            ..Bar::default()
        };
        bars.add(&q.sample.quantity.name, bar);
    }
    let x = Axis::linear("change from A to B", Unit::Share);
    Chart::new("B against A, with 95 % intervals", x.clone(), x, Body::Bars(bars)).noted(
        "The line is no change; hollow: the interval contains it. More throughput is better, more time is worse.",
    )
}

/// Limit on the rows of the interval plot.
const MOST_INTERVALS: usize = 12;

fn title(c: &Comparison) -> String {
    if c.a.workload == c.b.workload {
        c.a.workload.clone()
    } else {
        format!("{} and {}", c.a.workload, c.b.workload)
    }
}

fn of_phase<'a>(runs: &'a [Run], name: &str) -> Vec<&'a PhaseResult> {
    let phase = |run: &'a Run| run.result.measured().find(|p| p.name == name);
    runs.iter().filter_map(phase).collect()
}

fn quantities(c: &Comparison) -> Section {
    let rows = c.quantities.iter().map(|q| {
        let quantity = &q.sample.quantity;
        let name = if quantity.primary {
            format!("{} (primary)", quantity.name)
        } else {
            quantity.name.clone()
        };
        let superiority = q.ranks.map_or(f64::NAN, |ranks| ranks.superiority);
        let mut row = vec![name];
        row.extend(words::figures(q));
        row.extend([units::number(superiority), words::verdict(q)]);
        row
    });
    let head = [""].into_iter().chain(words::FIGURES);
    let table = Table::new(1, head.chain(["P(B > A)", "verdict"])).with(rows).noted(
        "CV is the run-to-run variation. P(B > A) is the share of run pairs in which B's value is larger. Verdicts in \
         parentheses are for the client's own cost and do not affect the overall verdict.",
    );
    let intro = "One value per run. Faster and slower require an interval that excludes no change, after correction \
                 for the number of quantities, and a change beyond the margin. Equivalent requires the whole interval \
                 within the margin.";
    Section::new("Quantities", intro).tables([table])
}

/// A figure of a phase in one run.
type Figure<'a> = &'a dyn Fn(&PhaseResult) -> f64;

/// A duration of a class.
type Duration = fn(&ClassResult) -> &Latency;

/// Throughput and latencies of a phase, one column (or row) per side; means over the runs.
fn figures(name: &str, a: &[&PhaseResult], b: &[&PhaseResult]) -> Section {
    let per_s = |value: f64| format!("{}/s", units::rate(value));
    let bytes_per_s = |value: f64| format!("{}/s", units::bytes(value));
    type Show<'a> = &'a dyn Fn(f64) -> String;
    let rows: [(&str, Show<'_>, Figure<'_>); 6] = [
        ("operations offered", &per_s, &|p| p.rates.offered_ops_per_s),
        ("operations completed", &per_s, &|p| p.rates.ops_per_s.mean),
        ("throughput", &bytes_per_s, &|p| p.rates.bytes_per_s.mean),
        ("failed operations", &units::number, &|p| {
            p.totals.failed as f64
        }),
        ("measured", &units::seconds, &|p| p.window.seconds()),
        ("client CPU per operation", &units::ns, &|p| {
            p.client.cpu_us_per_op.unwrap_or(f64::NAN) * 1e3
        }),
    ];
    let rows = rows.into_iter().map(|(name, show, value)| {
        let mean = |runs: &[&PhaseResult]| {
            show(runs.iter().map(|p| value(p)).sum::<f64>() / runs.len() as f64)
        };
        [name.to_owned(), mean(a), mean(b)]
    });
    let outcome = Table::new(1, ["", "A", "B"])
        .titled("Throughput and outcome (means over the runs)")
        .with(rows);
    let mut latency = latencies("Latency (medians over the runs)")
        .noted("A percentile is shown if at least 10 values lie beyond it in every run.");
    for class in &a[0].classes {
        let kinds: [(&str, Duration); 3] = [
            ("response", |c| &c.response),
            ("service", |c| &c.service),
            ("first byte", |c| &c.ttfb),
        ];
        for (kind, pick) in kinds {
            for (label, phases) in [("A", a), ("B", b)] {
                let found: Vec<&Latency> = phases
                    .iter()
                    .filter_map(|p| {
                        let same = |c: &&ClassResult| {
                            c.class == class.class && c.work_name == class.work_name
                        };
                        p.classes.iter().find(same).map(pick)
                    })
                    .filter(|latency| latency.n > 0)
                    .collect();
                if found.len() == phases.len() {
                    let name = format!("{} {kind} {label}", a[0].class_name(class));
                    latency.texts(latency_row(name, &found));
                }
            }
        }
    }
    let intro = format!("A: {}. B: {}.", a[0].load.join("; "), b[0].load.join("; "));
    Section::new(format!("Phase {name}"), intro).tables([outcome, latency])
}

fn latency_row(name: String, runs: &[&Latency]) -> Vec<String> {
    use bucketload_core::stats::quantile::Print;
    let median = |mut values: Vec<f64>| -> f64 {
        values.sort_unstable_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let of = |pick: &dyn Fn(&Latency) -> f64| median(runs.iter().map(|l| pick(l)).collect());
    let mut row = vec![
        name,
        units::count(of(&|l| l.n as f64) as u64),
        units::ns(of(&|l| l.mean_ns)),
    ];
    for i in 0..runs[0].percentiles.len() {
        let values: Option<Vec<f64>> = runs
            .iter()
            .map(|l| {
                let p = l.percentiles.get(i)?;
                (p.print != Print::Omit).then_some(p.value_ns as f64)
            })
            .collect();
        row.push(values.map_or_else(|| "–".to_owned(), |v| units::ns(median(v))));
    }
    row.push(units::ns(of(&|l| l.max_ns as f64)));
    row
}

/// The compared sides: their runs and the allowed differences.
fn runs(c: &Comparison) -> Section {
    type Of = fn(&Side) -> &str;
    let facts: [(&str, Of); 6] = [
        ("target", |s| &s.target),
        ("workload", |s| &s.workload),
        ("profile", |s| &s.profile),
        ("scenario", |s| &s.scenario_hash),
        ("driver", |s| &s.driver),
        ("version", |s| &s.version),
    ];
    let facts = facts.map(|(name, of)| [name, of(&c.a), of(&c.b)]);
    let known = facts
        .into_iter()
        .filter(|[_, a, b]| !(a.is_empty() && b.is_empty()));
    let sides = Table::new(3, ["", "A", "B"]).titled("Sides").with(known);
    let semantics = Table::new(3, ["", "A", "B"])
        .titled("Meaning of operations")
        .noted(
            "The sides use different APIs, so the same workload does different work. Operations that mean the same \
             on both are omitted.",
        )
        .with(c.semantics.iter().map(|row| [row.topic, row.a, row.b]));
    let allowed = c.differences.iter();
    let differences = Table::new(3, ["field", "A", "B"])
        .titled("Allowed differences")
        .with(allowed.map(Difference::words));
    let list = [&c.a, &c.b].into_iter().flat_map(|side| {
        side.runs.iter().map(|run| {
            [
                side.label.to_owned(),
                run.directory.clone(),
                run.started.clone(),
                format!("{} {}", run.verdict, run.rules.join(", ")),
            ]
        })
    });
    let list = Table::new(4, ["side", "directory", "start", "verdict"])
        .titled("Runs")
        .with(list);
    let extra = [semantics, differences].into_iter();
    let intro = match c.schedule.as_str() {
        "" => String::new(),
        order => format!("Run order: {order}."),
    };
    Section::new("What was compared", intro)
        .tables([sides])
        .tables(extra.filter(|table| !table.rows.is_empty()))
        .tables([list])
}
