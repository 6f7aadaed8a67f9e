//! What the terms of a result mean: the manual's glossary, and the declarations of figures and of the verdict.

use std::fmt::Write as _;

use crate::result::RunResult;
use crate::result::figure::CLASS;

/// The manual's page, so that text and manual agree.
const GLOSSARY: &str = include_str!("../../../../docs/glossary.md");

/// Appends a line for each term that occurs in `out`.
pub(super) fn write(out: &mut String, result: &RunResult) -> std::fmt::Result {
    let text = out.to_lowercase();
    writeln!(out, "\nWhat the words mean:")?;
    if let Some(reserve) = result.verdict.client.reserve {
        let meaning = reserve.limit.meaning().trim_end_matches('.');
        let (first, rest) = meaning.split_at(meaning.chars().next().map_or(0, char::len_utf8));
        let first = first.to_lowercase();
        writeln!(out, "  limit of the headroom: {first}{rest}")?;
    }
    for (terms, meaning) in entries() {
        if terms.split(", ").any(|term| occurs(&text, term)) {
            writeln!(out, "  {terms}: {meaning}")?;
        }
    }
    Ok(())
}

/// Terms and meanings: of the glossary, without links, and of figures that it does not have.
fn entries() -> Vec<(String, String)> {
    let rows = GLOSSARY.lines().filter_map(|line| {
        let (term, meaning) = line
            .strip_prefix("| ")?
            .strip_suffix(" |")?
            .split_once(" | ")?;
        Some((plain(term), plain(meaning)))
    });
    // The first row is the heading.
    let mut known: Vec<(String, String)> = rows.skip(1).collect();
    for figure in CLASS.iter().filter(|figure| figure.computed) {
        if !known.iter().any(|(term, _)| term == figure.title) {
            known.push((figure.title.to_owned(), figure.doc.to_owned()));
        }
    }
    known
}

/// Markdown without code marks and links; a link in parentheses is left out.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let (Some((name, after)), true) = (link.split_once("]("), link.contains(')')) else {
            break;
        };
        rest = after.split_once(')').map_or("", |(_, after)| after);
        match (before.strip_suffix(" ("), rest.strip_prefix(')')) {
            (Some(before), Some(after)) => {
                out += before;
                rest = after;
            }
            _ => {
                out += before;
                out += name;
            }
        }
    }
    (out + rest).replace('`', "")
}

/// Whether `term` occurs as a word.
fn occurs(text: &str, term: &str) -> bool {
    let term = term.to_lowercase();
    let letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(&term).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + term.len()..]);
        let word = term.chars().all(char::is_alphanumeric) || term.contains(' ');
        !word || !letter(before.chars().next_back()) && !letter(after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::{entries, occurs, plain};
    use crate::result::figure::{CLASS, CLIENT, DURATIONS};

    #[test]
    fn every_word_of_the_tables_has_a_meaning() {
        let known: Vec<String> = entries()
            .into_iter()
            .flat_map(|(terms, _)| terms.split(", ").map(str::to_lowercase).collect::<Vec<_>>())
            .collect();
        let has = |word: &str| known.iter().any(|k| k == &word.to_lowercase());
        for word in CLASS.iter().map(|f| f.title).filter(|t| !t.is_empty()) {
            assert!(has(word), "{word}");
        }
        for word in DURATIONS.iter().map(|d| d.title) {
            assert!(has(word), "{word}");
        }
        for word in CLIENT.iter().map(|f| f.brief).filter(|t| !t.is_empty()) {
            assert!(has(word), "{word}");
        }
        for word in [
            "lag",
            "late + build",
            "wait",
            "± 95 %",
            "~",
            "open loop",
            "closed loop",
        ] {
            assert!(has(word), "{word}");
        }
    }

    #[test]
    fn links_are_dropped_and_words_are_whole() {
        assert_eq!(plain("list, … ([all](reference/o.md)); `x`"), "list, …; x");
        assert!(
            occurs("the lag of it", "lag") && !occurs("flags", "lag") && occurs("± 95 %", "± 95 %")
        );
    }
}
