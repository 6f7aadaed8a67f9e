//! The scores of IO500: one row per phase, and the three means.

use crate::io500::text::unit;
use crate::io500::{Group, PhaseScore, ScoreTable, Scores};
use crate::kit::{Section, Table};

const fn mark(valid: bool) -> &'static str {
    if valid { "" } else { " [INVALID]" }
}

/// Phases and scores.
pub(super) fn section(table: &ScoreTable) -> Section {
    let scored = |name: &str, scores: &Scores| {
        [
            ("bandwidth", format!("{:.6} GiB/s", scores.bw)),
            ("metadata", format!("{:.6} kIOPS", scores.md)),
            ("total", format!("{:.6}", scores.total)),
        ]
        .map(|(figure, value)| {
            let whole = format!("{figure}{name}");
            // A run that is not valid may have means of valid phases, so only the total is marked.
            let valid = scores.valid || figure != "total";
            [whole, value, mark(valid).trim().to_owned()]
        })
    };
    let mut scores = scored("", &table.scores).to_vec();
    scores.extend(scored(", without find", &table.without_find));
    if let Some(extended) = &table.extended {
        scores.extend(scored(", extended", extended));
    }
    let intro = format!(
        "{} ranks, mapping {}. Bandwidth and metadata are geometric means of their phases; the total is the square root \
         of their product. Different mappings count different requests, so their rates are not comparable.",
        table.ranks, table.mapping
    );
    let scores = Table::new(1, ["", "score", "valid"])
        .titled("Scores")
        .with(scores);
    let phases = Table::new(1, ["", "value", "time", "requests", "counts in", "valid"])
        .titled("Phases")
        .noted(
            "In order of execution. The time is that of the whole phase; values cover the time from the first start to \
             the last end of an operation on any rank.",
        )
        .with(table.phases.iter().map(row));
    Section::new("IO500 scores", intro)
        .tables([scores, phases])
        .tables(reasons(table))
}

/// Reasons why phases do not count or were not run, each reason listed once with its phases.
fn reasons(table: &ScoreTable) -> Option<Table> {
    let mut rows: Vec<(String, Vec<&str>)> = Vec::new();
    for phase in &table.phases {
        let not_run = phase.lines.iter().filter(|(key, _)| key == NOT_RUN);
        let not_run = not_run.map(|(_, why)| format!("Not run: {why}"));
        for why in phase.invalid.iter().cloned().chain(not_run) {
            match rows.iter_mut().find(|(known, _)| *known == why) {
                Some((_, of)) => of.push(&phase.name),
                None => rows.push((why, vec![&phase.name])),
            }
        }
    }
    let rows = rows.into_iter().map(|(why, of)| [of.join(", "), why]);
    let table = Table::prose("Why phases do not count").with(rows);
    (!table.rows.is_empty()).then_some(table)
}

/// Key of the line of an unscored phase that was not run.
const NOT_RUN: &str = "not-run";

fn row(phase: &PhaseScore) -> [String; 6] {
    let ran = phase.seconds > 0.0;
    let scored = ran && (phase.score > 0.0 || phase.extended_group() != Group::None);
    let line = |key: &str| phase.lines.iter().find(|(name, _)| name == key);
    [
        phase.name.clone(),
        match scored {
            true => format!("{:.6} {}", phase.score, unit(&phase.name)),
            false => "–".to_owned(),
        },
        match ran {
            true => format!("{:.3} s", phase.seconds),
            false => "–".to_owned(),
        },
        line("requests").map_or_else(String::new, |(_, value)| value.clone()),
        match (phase.group(), phase.extended_group()) {
            (Group::Bandwidth, _) => "bandwidth",
            (Group::Metadata, _) => "metadata",
            (Group::None, Group::None) => "none",
            (Group::None, _) => "extended metadata",
        }
        .to_owned(),
        match (line(NOT_RUN), phase.invalid.is_empty()) {
            (Some(_), _) => "not run".to_owned(),
            (None, valid) => mark(valid).trim().to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::section;
    use crate::io500::{PhaseScore, ScoreTable, Scores};
    use crate::result::headline::Headlined as _;

    #[test]
    fn every_phase_has_a_row_and_invalid_ones_say_why() {
        let phase = |name: &str, score: f64, invalid: &[&str]| PhaseScore {
            name: name.to_owned(),
            score,
            seconds: 2.0,
            invalid: invalid.iter().map(|&why| why.to_owned()).collect(),
            lines: vec![("requests".to_owned(), "80".to_owned())],
            ..PhaseScore::default()
        };
        let phases = vec![
            phase("ior-easy-write", 4.0, &["Runtime is smaller"]),
            phase("mdtest-easy-write", 9.0, &[]),
        ];
        let table = ScoreTable {
            mapping: "native".to_owned(),
            ranks: 3,
            scores: Scores::of(&phases),
            without_find: Scores::without_find(&phases),
            extended: None,
            phases,
        };
        assert_eq!(table.headline()[0].text, "6.000000 [INVALID]");
        let section = section(&table);
        let shown = |table: usize, row: usize| -> Vec<String> {
            let row = section.tables[table].rows[row].iter();
            row.map(crate::kit::Cell::shown).collect()
        };
        assert_eq!(
            shown(1, 0)[1..5],
            ["4.000000 GiB/s", "2.000 s", "80", "bandwidth"]
        );
        assert_eq!(shown(1, 0)[5], "[INVALID]");
        assert_eq!(shown(2, 0), ["ior-easy-write", "Runtime is smaller"]);
        assert_eq!((&*shown(1, 1)[1], &*shown(1, 1)[5]), ("9.000000 kIOPS", ""));
        assert_eq!(section.tables[0].rows.len(), 6);
        assert_eq!(shown(0, 2), ["total", "6.000000", "[INVALID]"]);
    }
}
