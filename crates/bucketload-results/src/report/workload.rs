//! Sizes and popularity as realised, compared with their laws.

use bucketload_core::capacity::Statistic;

use crate::kit::{Axis, Chart, Section, Series, Table, Unit};
use crate::result::{PhaseResult, Realised, RealisedPopularity, RealisedSizes, SizeQuantile};
use crate::units;

/// The comparison with theory.
pub(super) fn section(phase: &PhaseResult) -> Section {
    let intro = "Operations are functions of the seed and their sequence number. The offered ones are regenerated here \
                 and compared with the laws they were drawn from.";
    let mut section =
        Section::new("The workload as realised", intro).tables([mix(&phase.realised)]);
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
    let rows = entries.iter().map(|e| {
        [
            format!("{} {}", e.work_name, e.class),
            units::count(e.n),
            units::percent(e.share),
            units::percent(e.share_theory),
        ]
    });
    Table::new(1, ["", "operations", "share", "in theory"])
        .titled("Mix")
        .with(rows)
}

fn size_table(entry: &Realised, sizes: &RealisedSizes) -> Table {
    let mut head = vec![String::new()];
    let (mut theory, mut realised) = (vec!["theory".to_owned()], vec!["realised".to_owned()]);
    for quantile in &sizes.quantiles {
        head.push(Statistic::Quantile(quantile.q).name());
        theory.push(units::bytes(quantile.theory));
        realised.push(units::bytes(quantile.realised));
    }
    let note = format!(
        "{} sizes, mean {}; Kolmogorov-Smirnov distance {} (a sample of the law exceeds {} in 1 % of cases; reads \
         repeat the sizes of popular objects).",
        units::count(sizes.n),
        units::bytes(sizes.mean_bytes),
        units::number(sizes.ks),
        units::number(sizes.ks_critical),
    );
    Table::new(1, head)
        .titled(format!("Sizes of {}", entry.class))
        .noted(note)
        .with([theory, realised])
}

fn size_chart(entry: &Realised, sizes: &RealisedSizes) -> Chart {
    let points = |size: fn(&SizeQuantile) -> f64| {
        let all = sizes.quantiles.iter();
        all.map(move |q| (size(q).max(1.0), q.q))
    };
    Chart::lines(
        format!("Sizes of {}", entry.class),
        Axis::log("size", Unit::Bytes),
        Axis::share("share of operations"),
        [
            Series::line("realised", 0, points(|q| q.realised)),
            Series::line("theory", 1, points(|q| q.theory)).dashed(),
        ],
    )
}

fn popularity_table(entry: &Realised, popularity: &RealisedPopularity) -> Table {
    let show =
        |value: Option<f64>, text: fn(f64) -> String| value.map_or_else(|| "–".to_owned(), text);
    let of_top = popularity.top.iter().map(|top| {
        let (share, error) = (top.realised, top.standard_error);
        [
            format!("share of the top {}", units::count(top.k)),
            show(top.theory, units::percent),
            format!("{} ± {}", units::percent(share), units::percent(error)),
        ]
    });
    let effective = [
        "effective keys".to_owned(),
        show(popularity.effective_theory, units::number),
        units::number(popularity.effective),
    ];
    let note = format!(
        "{} operations on {} of {} objects; ± is one standard error.",
        units::count(popularity.n),
        units::count(popularity.used),
        units::count(popularity.objects),
    );
    Table::new(1, ["", "theory", "realised"])
        .titled(format!("Popularity of {}", entry.class))
        .noted(note)
        .with(of_top)
        .with([effective])
}

fn popularity_chart(entry: &Realised, popularity: &RealisedPopularity) -> Chart {
    let ranks = popularity.by_rank.iter();
    let points = ranks.map(|&(rank, share)| (rank as f64, share));
    Chart::lines(
        format!("Popularity of {}", entry.class),
        Axis::log("rank of the object", Unit::Number),
        Axis::log("share of operations", Unit::Share),
        [Series::line("realised", 0, points)],
    )
}
