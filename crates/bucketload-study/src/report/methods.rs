//! The methods: what was actually done, in sentences, from the files of the study.

use time::OffsetDateTime;

use std::collections::BTreeMap;

use bucketload_core::verdict::Word;
use bucketload_results::units;

use super::digest::Facts;
use super::groups::{Measured, Summary};
use super::read::Files;
use super::show::distinct;
use crate::journal::{End, instant};
use crate::model::{JournalLine, Order, TargetFacts};

/// A titled paragraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paragraph {
    /// Heading.
    pub title: &'static str,
    /// Sentences.
    pub text: String,
}

/// The paragraphs, in order.
#[must_use]
pub fn methods(files: &Files, all: &[Measured], summary: &Summary) -> Vec<Paragraph> {
    let paragraph = |title, sentences: Vec<String>| Paragraph {
        title,
        text: sentences.join(" "),
    };
    let mut out = vec![
        paragraph("Design and order", design(files)),
        paragraph("What was measured", experiments(files, all, summary)),
        paragraph("Machine and client", machine(files, summary)),
        paragraph("Stores", stores(files)),
        paragraph("Analysis", analysis(all)),
        paragraph("Deviations", deviations(files, all)),
    ];
    out.retain(|p| !p.text.is_empty());
    out
}

fn n(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", units::count(count as u64))
}

/// `text` with a capital letter in front.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// A duration in seconds, with as many digits as suit its size.
fn seconds(ns: f64) -> String {
    units::seconds(ns / 1e9)
}

/// `a, b and c`.
fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// The smallest and the largest of `values`; `None` without any.
fn range<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<(T, T)> {
    let values: Vec<T> = values.collect();
    Some((*values.iter().min()?, *values.iter().max()?))
}

/// The distinct `texts` that are not empty, sorted.
fn sorted(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    all.sort();
    all.dedup();
    all
}

fn design(files: &Files) -> Vec<String> {
    let (study, plan) = (&files.study, &files.plan);
    let blocks = plan.cells.iter().map(|cell| cell.block).max().unwrap_or(0) as usize;
    let mut out = vec![format!(
        "The study consists of {} in {} (a block is one repetition of everything), planned with {}.",
        n(plan.cells.len(), "cell"),
        n(blocks, "block"),
        match plan.order {
            Order::Random => format!(
                "the cells of each target in random order inside randomised blocks, seed {}",
                plan.seed
            ),
            Order::Abba => format!(
                "one random order, alternating forwards and backwards (ABBA), seed {}",
                plan.seed
            ),
        }
    )];
    if study.quick {
        out.push("This is the quick version: durations, sizes or repetitions are those of the specification's [quick] section, shorter than those of the full study.".to_owned());
    }
    if let Some(budget) = plan.budget_ns {
        out.push(format!("The budget was {}.", seconds(budget as f64)));
    }
    for note in &plan.notes {
        let note = note.trim().trim_end_matches('.');
        if !note.is_empty() {
            out.push(format!("{}.", sentence(note)));
        }
    }
    let started = || {
        files.journal.iter().filter_map(|line| match line {
            JournalLine::Started { pause_ns, busy, .. } => Some((*pause_ns, *busy)),
            _ => None,
        })
    };
    match range(started().map(|(pause, _)| pause)) {
        None | Some((_, 0)) => {}
        Some((low, high)) if low == high => {
            out.push(format!("Before each cell there was a pause of {}.", seconds(low as f64)));
        }
        Some((low, high)) => out.push(format!(
            "Before each cell there was a pause of {} to {} (at least the recovery of {}, longer while the machine was not idle).",
            seconds(low as f64),
            seconds(high as f64),
            seconds(study.recovery_ns as f64)
        )),
    }
    if let Some(most) = started().filter_map(|(_, busy)| busy).reduce(f64::max) {
        out.push(format!(
            "At the end of the pauses, up to {} of the machine's processors were busy.",
            units::percent(most)
        ));
    }
    out.extend(time(files));
    out
}

/// When the study ran, and for how long.
fn time(files: &Files) -> Vec<String> {
    let sessions = files
        .journal
        .iter()
        .filter(|l| matches!(l, JournalLine::Session { .. }));
    let (Some(first), Some(last)) = (files.journal.first(), files.journal.last()) else {
        return Vec::new();
    };
    let from = date(instant(first));
    let to = date(instant(last));
    let mut out = vec![format!(
        "It ran from {from} to {to} UTC in {}, with {} of active time.",
        n(sessions.count(), "session"),
        seconds(files.state.active_ns as f64)
    )];
    if let Some(JournalLine::Ended { reason, .. }) = files
        .journal
        .iter()
        .rev()
        .find(|line| matches!(line, JournalLine::Ended { .. }))
        && reason != "complete"
    {
        out.push(format!("Reason for the end of the last session: {reason}."));
    }
    out
}

/// Date and time of an instant, to the second.
fn date(unix_ns: u64) -> String {
    let seconds = (unix_ns / 1_000_000_000).cast_signed();
    let at = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (hour, minute, second) = at.to_hms();
    format!("{} {hour:02}:{minute:02}:{second:02}", at.date())
}

fn experiments(files: &Files, all: &[Measured], summary: &Summary) -> Vec<String> {
    let mut out = Vec::new();
    for measured in all {
        let experiment = &measured.experiment;
        let what = match experiment.workload.as_str() {
            "" => format!("the command {}", experiment.command.name()),
            workload => format!("{} {workload}", experiment.command.name()),
        };
        let mut sentence = format!("{}: {what}", experiment.label());
        if !experiment.field.is_empty() {
            sentence += &format!(
                ", {} swept over {}",
                experiment.field,
                experiment.values.join(", ")
            );
        }
        let counts = measured.groups.iter().map(|g| g.runs.len());
        let (low, high) = range(counts).unwrap_or_default();
        sentence += &match low == high {
            true => format!("; {} per cell were measured", n(high, "repetition")),
            false => format!("; {low} to {high} repetitions per cell were measured"),
        };
        let facts = summary
            .facts
            .get(&experiment.name)
            .map_or(&[][..], Vec::as_slice);
        sentence += &runs(facts);
        out.push(format!("{sentence}."));
    }
    let cells = files.state.cells.values();
    let took = cells.filter_map(|cell| match &cell.end {
        Some(End::Finished { took_ns, .. }) => Some(*took_ns),
        _ => None,
    });
    if let Some((low, high)) = range(took) {
        out.push(format!(
            "A cell took {} to {}, including preparation and clean-up.",
            seconds(low as f64),
            seconds(high as f64)
        ));
    }
    out
}

/// Common properties of an experiment's runs: load, windows, warm-up, content.
fn runs(facts: &[Facts]) -> String {
    if facts.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    let lengths = |of: fn(&Facts) -> &[u64]| -> Option<String> {
        let (low, high) = range(facts.iter().flat_map(of).copied())?;
        Some(match low == high {
            true => format!("{high} s"),
            false => format!("{low} to {high} s"),
        })
    };
    if let Some(window) = lengths(|f| &f.window_s) {
        out += &format!("; measured windows of {window}");
    }
    match lengths(|f| &f.warmup_s).as_deref() {
        None => {}
        Some("0 s") => out += " without a warm-up cut",
        Some(warmup) => out += &format!(" after cutting a detected warm-up of {warmup}"),
    }
    let loads = distinct(facts.iter().flat_map(|f| &f.load).map(String::as_str));
    match loads.len() {
        0 => {}
        1..=4 => out += &format!("; load: {}", loads.join("; ")),
        more => {
            out += &format!(
                "; load: {}; and {} further variants by value",
                loads[0],
                more - 1
            )
        }
    }
    let open = facts.iter().any(|f| f.open_loop);
    out += match open {
        true => "; open loop, response times measured from the due time of operations",
        false => "; closed loop",
    };
    let all = |of: fn(&Facts) -> &str| list(&sorted(facts.iter().map(|f| of(f).to_owned())));
    let payload = all(|f| &f.payload);
    if !payload.is_empty() {
        out += &format!("; content: {payload}");
    }
    if facts.iter().all(|f| f.verified) {
        out += ", verified byte by byte when read";
    }
    let scale = all(|f| &f.scale);
    if !scale.is_empty() {
        out += &format!("; scaled: {scale}");
    }
    let compat = all(|f| &f.compat);
    if !compat.is_empty() {
        out += &format!("; procedure of {compat}");
    }
    out
}

fn machine(files: &Files, summary: &Summary) -> Vec<String> {
    let all = |of: fn(&Facts) -> String| sorted(summary.facts.values().flatten().map(of));
    let threads = all(|f| f.threads.to_string());
    if threads.is_empty() {
        return alone(files);
    }
    vec![
        format!(
            "The load came from Bucketload {} ({}) on {}, {}, with {} load {}.",
            list(&all(|f| f.version.clone())),
            list(&all(|f| f.client.clone())),
            list(&all(|f| f.machine.clone())),
            list(&all(|f| f.kernel.clone())),
            list(&threads),
            if threads == ["1"] {
                "thread"
            } else {
                "threads"
            },
        ),
        placed(files),
    ]
}

/// Describes the machine from the targets' facts, for cells that keep trials instead of runs (grids).
fn alone(files: &Files) -> Vec<String> {
    let used = files
        .facts
        .values()
        .find(|target| target.skipped.is_empty());
    let Some(target) = used else {
        return Vec::new();
    };
    let of = |name: &str| target.machine.get(name).map_or("", String::as_str);
    let memory = of("memory_bytes")
        .parse()
        .map_or(String::new(), |bytes: u64| {
            format!(", {} of memory", units::bytes(bytes as f64))
        });
    vec![
        format!(
            "The load came from Bucketload {} on {}, {} cores{memory}, {} {}.",
            files.plan.version,
            of("cpu"),
            of("cores"),
            of("os"),
            of("kernel"),
        ),
        placed(files),
    ]
}

/// Where the stores started by the study ran.
fn placed(files: &Files) -> String {
    let started = files
        .facts
        .values()
        .filter(|t| !t.server.is_empty() && t.skipped.is_empty());
    let mut cores: Vec<&str> = started.map(|target| target.cores.as_str()).collect();
    cores.sort_unstable();
    cores.dedup();
    match cores[..] {
        [] => String::new(),
        ["", ..] => "Stores that the study started ran on the same machine, one after another, and shared its processors with the client.".to_owned(),
        _ => format!(
            "Stores that the study started ran on the same machine, one after another, on {} of its cores, separate from those of the load threads.",
            list(&cores.iter().map(|cores| format!("core(s) {cores}")).collect::<Vec<_>>())
        ),
    }
}

fn stores(files: &Files) -> Vec<String> {
    let pairs = |of: &BTreeMap<String, String>| {
        let known = of.iter().filter(|(_, value)| !value.is_empty());
        let all: Vec<String> = known.map(|(name, value)| pair(name, value)).collect();
        all.join(", ")
    };
    let targets = files.study.targets.iter();
    let known: Vec<&TargetFacts> = targets
        .filter_map(|target| files.facts.get(&target.name))
        .collect();
    // If all share one machine, the client's paragraph describes it.
    let alike = known.windows(2).all(|two| two[0].machine == two[1].machine);
    let sentence = |target: &TargetFacts| {
        let mut out = match target.title.as_str() {
            "" => target.name.clone(),
            title => title.to_owned(),
        };
        if !target.skipped.is_empty() {
            return format!(
                "{out} was skipped: {}.",
                target.skipped.trim_end_matches('.')
            );
        }
        out += &match target.server.as_str() {
            "" => format!(": used at {}", target.url),
            server => format!(": started by {server}"),
        };
        if !target.endpoint.is_empty() {
            out += &format!(" at {}", target.endpoint);
        }
        if !target.versions.is_empty() {
            out += &format!("; versions: {}", pairs(&target.versions));
        }
        if !target.settings.is_empty() {
            out += &format!("; settings: {}", pairs(&target.settings));
        }
        if !alike && !target.machine.is_empty() {
            out += &format!("; machine: {}", pairs(&target.machine));
        }
        format!("{out}.")
    };
    known.iter().map(|target| sentence(target)).collect()
}

/// A fact of a target for readers; `memory_bytes` in binary units.
fn pair(name: &str, value: &str) -> String {
    let bytes = name.strip_suffix("_bytes").zip(value.parse::<u64>().ok());
    match bytes {
        Some((name, bytes)) => format!("{name} {}", units::bytes(bytes as f64)),
        None => format!("{name} {value}"),
    }
}

fn analysis(all: &[Measured]) -> Vec<String> {
    let most = all
        .iter()
        .flat_map(|m| &m.groups)
        .map(|g| g.counted().count())
        .max()
        .unwrap_or(0);
    let mut out = vec![
        "The unit of analysis is the run. Rates and mean times of a cell are geometric means over its repetitions with the t interval of the logarithms; \
         percentiles are computed from each run's merged histograms, and a cell shows the median of its runs' percentiles with the interval of the order \
         statistics from six runs on and the t interval of the logarithms below that. Ratios are taken inside the blocks, whose runs share the seed, and are geometric means over the blocks with the t interval of the logarithms. \
         All intervals are at 95 % and are not adjusted for their number."
            .to_owned(),
    ];
    match most {
        0 => {}
        1 => out.push("With one repetition per cell there are no intervals: differences between cells may be chance.".to_owned()),
        2..=4 => out.push(format!("With at most {most} repetitions per cell intervals are wide.")),
        _ => {}
    }
    out
}

fn deviations(files: &Files, all: &[Measured]) -> Vec<String> {
    let mut out = Vec::new();
    let groups = || all.iter().flat_map(|m| &m.groups);
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, why) in groups().flat_map(|group| &group.missing) {
        *reasons.entry(why).or_default() += 1;
    }
    out.extend(reasons.into_iter().map(|(why, count)| {
        let why = why.trim_end_matches('.');
        format!("{}: {why}.", n(count, "cell"))
    }));
    let mut words: BTreeMap<Word, usize> = BTreeMap::new();
    for run in groups().flat_map(|group| &group.runs) {
        *words.entry(run.word).or_default() += 1;
    }
    let total: usize = words.values().sum();
    let valid = words.remove(&Word::Valid).unwrap_or(0);
    let others = words.iter().map(|(word, n)| format!("{n} {word}"));
    let others: Vec<String> = others.collect();
    if total > 0 {
        let runs = n(total, "run");
        out.push(match others.is_empty() {
            true => format!("All {runs} are VALID."),
            false => format!("Of {runs}, {valid} are VALID, {}.", list(&others)),
        });
    }
    let retried = files
        .state
        .cells
        .values()
        .filter(|cell| cell.attempts > 1)
        .count();
    if retried > 0 {
        out.push(format!(
            "{} took more than one attempt.",
            n(retried, "cell")
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{date, list};

    #[test]
    fn dates_are_civil() {
        let at = |s: u64| date(s * 1_000_000_000);
        assert_eq!(at(0), "1970-01-01 00:00:00");
        assert_eq!(at(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(at(1_767_323_045), "2026-01-02 03:04:05");
        assert_eq!(at(4_102_444_799), "2099-12-31 23:59:59");
    }

    #[test]
    fn lists_read_as_sentences() {
        let words = |n: usize| {
            ["a", "b", "c"][..n]
                .iter()
                .map(|w| (*w).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            [0, 1, 2, 3].map(|n| list(&words(n))),
            ["", "a", "a and b", "a, b and c"]
        );
    }
}
