//! Sizes and popularity as realised, against their laws.

use super::page::{Axis, Chart, Section, Series, Table};
use crate::result::{PhaseResult, Realised, RealisedPopularity, RealisedSizes};
use crate::units;

/// The comparison with theory.
pub(super) fn section(phase: &PhaseResult) -> Section {
    let mut section = Section {
        title: "The workload as realised".to_owned(),
        intro: "Operations are functions of the seed and their number; the offered ones are generated again and \
                compared with the laws they were drawn from."
            .to_owned(),
        ..Section::default()
    };
    section.tables.push(mix(&phase.realised));
    for entry in &phase.realised {
        if let Some(sizes) = &entry.sizes {
            section.tables.push(size_table(entry, sizes));
            section.charts.push(size_chart(entry, sizes));
        }
        if let Some(popularity) = &entry.popularity {
            section.tables.push(popularity_table(entry, popularity));
            section.charts.push(popularity_chart(entry, popularity));
        }
    }
    section
}

fn mix(entries: &[Realised]) -> Table {
    Table {
        title: "Mix".to_owned(),
        head: ["", "operations", "share", "in theory"]
            .map(str::to_owned)
            .to_vec(),
        rows: entries
            .iter()
            .map(|e| {
                vec![
                    format!("{} {}", e.work_name, e.class),
                    units::count(e.n),
                    units::percent(e.share),
                    units::percent(e.share_theory),
                ]
            })
            .collect(),
        ..Table::default()
    }
}

fn size_table(entry: &Realised, sizes: &RealisedSizes) -> Table {
    let mut head = vec![String::new()];
    let (mut theory, mut realised) = (vec!["theory".to_owned()], vec!["realised".to_owned()]);
    for quantile in &sizes.quantiles {
        head.push(format!("p{}", units::number(quantile.q * 100.0)));
        theory.push(units::bytes(quantile.theory));
        realised.push(units::bytes(quantile.realised));
    }
    Table {
        title: format!("Sizes of {}", entry.class),
        head,
        rows: vec![theory, realised],
        note: format!(
            "{} sizes, mean {}; Kolmogorov-Smirnov distance {} (a sample of the law exceeds {} in 1 % of cases; \
             reads repeat the sizes of popular objects).",
            units::count(sizes.n),
            units::bytes(sizes.mean_bytes),
            units::number(sizes.ks),
            units::number(sizes.ks_critical),
        ),
        ..Table::default()
    }
}

fn size_chart(entry: &Realised, sizes: &RealisedSizes) -> Chart {
    let mut chart = Chart::lines(
        &format!("Sizes of {}", entry.class),
        Axis::log("size", "B"),
        Axis {
            min: Some(0.0),
            max: Some(1.0),
            ..Axis::linear("share of operations", "%")
        },
    );
    for (name, dash) in [("realised", false), ("theory", true)] {
        let points = sizes
            .quantiles
            .iter()
            .map(|q| (if dash { q.theory } else { q.realised }.max(1.0), Some(q.q)))
            .collect();
        chart.series.push(Series {
            name: name.to_owned(),
            points,
            dash,
            ..Series::default()
        });
    }
    chart
}

fn popularity_table(entry: &Realised, popularity: &RealisedPopularity) -> Table {
    let show =
        |value: Option<f64>, text: fn(f64) -> String| value.map_or_else(|| "–".to_owned(), text);
    let mut rows: Vec<Vec<String>> = popularity
        .top
        .iter()
        .map(|top| {
            vec![
                format!("share of the top {}", units::count(top.k)),
                show(top.theory, units::percent),
                format!(
                    "{} ± {}",
                    units::percent(top.realised),
                    units::percent(top.standard_error)
                ),
            ]
        })
        .collect();
    rows.push(vec![
        "effective keys".to_owned(),
        show(popularity.effective_theory, units::number),
        units::number(popularity.effective),
    ]);
    Table {
        title: format!("Popularity of {}", entry.class),
        head: ["", "theory", "realised"].map(str::to_owned).to_vec(),
        rows,
        note: format!(
            "{} operations on {} of {} objects; ± is one standard error.",
            units::count(popularity.n),
            units::count(popularity.used),
            units::count(popularity.objects),
        ),
        ..Table::default()
    }
}

fn popularity_chart(entry: &Realised, popularity: &RealisedPopularity) -> Chart {
    let mut chart = Chart::lines(
        &format!("Popularity of {}", entry.class),
        Axis::log("rank of the object", ""),
        Axis::log("share of operations", "%"),
    );
    chart.series.push(Series {
        name: "realised".to_owned(),
        points: popularity
            .by_rank
            .iter()
            .map(|&(rank, share)| (rank as f64, Some(share)))
            .collect(),
        ..Series::default()
    });
    chart
}
