//! Explanations and notes that several phases share appear once, at the head of the page.

use crate::kit::{Page, Section, Table};
use crate::result::RunResult;
use bucketload_core::verdict::{Reason, Verdict};

/// Number of occurrences from which on an explanation moves to the head of the page; also the minimum number of phases.
pub(super) const SEVERAL: usize = 3;

/// Limit on the figures of one reason: many phases have the same one.
const SHOWN: usize = 4;

/// The reasons of the verdict, with those of several phases combined.
pub(super) fn reasons(verdict: &Verdict) -> Vec<String> {
    sentences(&verdict.reasons)
}

/// The notes of the verdict, with those of several phases combined, and what was reduced.
pub(super) fn notes(result: &RunResult) -> Vec<String> {
    let (verdict, run) = (&result.verdict, &result.run);
    let phases: Vec<&str> = result.measured().map(|phase| phase.name.as_str()).collect();
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for note in &verdict.notes {
        let (phase, text) = match note.split_once(": ") {
            Some((phase, text)) if phases.contains(&phase) => (Some(phase), text),
            _ => (None, note.as_str()),
        };
        match notes.iter_mut().find(|(known, _)| *known == text) {
            Some((_, of)) => of.extend(phase),
            None => notes.push((text, phase.into_iter().collect())),
        }
    }
    let reduced = [&run.scale_note, &run.data_note].into_iter().cloned();
    notes
        .into_iter()
        .map(|(text, of)| match of.len() {
            0 => text.to_owned(),
            n if n >= SEVERAL && n == phases.len() => format!("All phases: {text}"),
            _ => format!("{}: {text}", of.join(", ")),
        })
        .chain(reduced)
        .filter(|note| !note.is_empty())
        .map(|note| sentence(&note))
        .collect()
}

/// `text` with a capital and a full stop.
fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut rest = text.chars();
    let first = rest.next().map(|c| c.to_uppercase().to_string());
    let stop = if text.ends_with('.') { "" } else { "." };
    format!("{}{}{stop}", first.unwrap_or_default(), rest.as_str())
}

/// A line per reason; reasons that differ only in their figures share one.
fn sentences(reasons: &[Reason]) -> Vec<String> {
    let mut grouped: Vec<(&Reason, Vec<&str>)> = Vec::new();
    for reason in reasons {
        let same = |known: &Reason| {
            (known.word, &known.rule, &known.condition, &known.advice)
                == (reason.word, &reason.rule, &reason.condition, &reason.advice)
        };
        match grouped.iter_mut().find(|(known, _)| same(known)) {
            Some((_, figures)) => figures.push(&reason.measured),
            None => grouped.push((reason, vec![&reason.measured])),
        }
    }
    grouped
        .into_iter()
        .map(|(reason, figures)| {
            let Reason {
                word,
                rule,
                condition,
                advice,
                ..
            } = reason;
            let more = figures.len().saturating_sub(SHOWN);
            let mut figures = figures[..figures.len() - more].join("; ");
            if more > 0 {
                figures += &format!("; and {more} more");
            }
            format!("{word} ({rule}): {figures}. Expected: {condition}. {advice}")
        })
        .collect()
}

/// Moves the explanations that several sections, tables or charts share into a section of their own. Returns it;
/// `None` without shared explanations.
pub(super) fn gather(page: &mut Page) -> Option<Section> {
    let mut notes: Vec<(String, String, usize)> = Vec::new();
    each(page, |title, note| {
        match notes.iter_mut().find(|(_, known, _)| known == note) {
            Some((_, _, count)) => *count += 1,
            None => notes.push((title.to_owned(), note.clone(), 1)),
        }
    });
    notes.retain(|(_, note, count)| *count >= SEVERAL && !note.is_empty());
    if notes.is_empty() {
        return None;
    }
    each(page, |_, note| {
        if notes.iter().any(|(_, known, _)| known == note) {
            note.clear();
        }
    });
    let rows = notes.into_iter().map(|(title, note, _)| [title, note]);
    let notes = Section::new("Notes on all phases", "");
    Some(notes.tables([Table::prose("").with(rows)]).folded())
}

/// Calls `look` for every explanation with the title above it.
fn each(page: &mut Page, mut look: impl FnMut(&str, &mut String)) {
    for section in &mut page.sections {
        section.each_mut(&mut |section| {
            look(&section.title, &mut section.intro);
            for table in &mut section.tables {
                let title = match table.title.is_empty() {
                    true => &section.title,
                    false => &table.title,
                };
                look(title, &mut table.note);
            }
            for chart in &mut section.charts {
                look(&chart.title, &mut chart.note);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::verdict::{Reason, Word};

    use super::{gather, sentences};
    use crate::kit::{Page, Section, Table};

    #[test]
    fn a_reason_reads_as_sentences() {
        let reason = |measured: &str| Reason {
            word: Word::ClientBound,
            rule: "V4".to_owned(),
            condition: "the machine uses at most 80 % of its cores".to_owned(),
            measured: measured.to_owned(),
            advice: "Lower the rate.".to_owned(),
            figures: Vec::new(),
        };
        assert_eq!(
            sentences(&[reason("machine: 95 %"), reason("machine: 97 %")]),
            [
                "CLIENT-BOUND (V4): machine: 95 %; machine: 97 %. Expected: the machine uses at most 80 % of its \
                 cores. Lower the rate."
            ]
        );
    }

    #[test]
    fn shared_explanations_appear_once() {
        let section = |name: &str, note: &str| Section {
            title: name.to_owned(),
            intro: format!("about {name}"),
            tables: vec![Table::pairs("Latency").noted(note)],
            ..Section::default()
        };
        let sections = ["a", "b", "c"].map(|name| section(name, "from the intended start"));
        let mut page = Page {
            sections: sections.to_vec(),
            ..Page::default()
        };
        page.sections.push(section("d", "another"));
        let notes = gather(&mut page).unwrap();
        assert_eq!(
            notes.tables[0].rows,
            [["Latency".into(), "from the intended start".into()]]
        );
        assert!(
            page.sections[..3]
                .iter()
                .all(|section| section.tables[0].note.is_empty())
        );
        assert_eq!(page.sections[3].tables[0].note, "another");
        assert_eq!(page.sections[0].intro, "about a");
        page.sections.truncate(1);
        assert!(gather(&mut page).is_none());
    }
}
