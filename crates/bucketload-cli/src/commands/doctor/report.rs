//! The findings as text and as JSON, and the exit code.

use std::fmt::Write as _;

use bucketload_results::output::break_line;
use bucketload_target::doctor::{Examination, Finding, State};
use serde::Serialize;

use crate::dialect;
use crate::exit::Exit;

/// The words of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Readiness {
    Ready,
    ReadyWithDialect,
    NotReady,
}

/// All that an examination found.
#[derive(Serialize)]
pub(crate) struct Report {
    target: String,
    readiness: Readiness,
    summary: String,
    checks: Vec<Finding>,
    /// What could not be removed.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    left: Vec<String>,
    /// The command that removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remove: Option<String>,
    /// Why a dialect would say nothing.
    #[serde(skip)]
    nothing_to_write: Option<String>,
}

impl Report {
    /// A report on `target`; `remove` is the command that removes leftovers, `nothing_to_write` why a dialect would say
    /// nothing.
    pub(super) fn new(
        target: &str,
        exam: Examination<'_>,
        remove: Option<String>,
        nothing_to_write: Option<String>,
    ) -> Self {
        let Examination { findings, left, .. } = exam;
        let of = |state: State| findings.iter().filter(move |f| f.state == state);
        let differing: Vec<&str> = of(State::Differs).map(|f| f.id).collect();
        let (readiness, summary) = match (of(State::Failed).next(), &differing[..]) {
            (None, []) => (Readiness::Ready, "READY: a run works here as is".to_owned()),
            (None, differing) => {
                let word = if differing.len() == 1 {
                    "differs"
                } else {
                    "differ"
                };
                let how = match of(State::Differs).any(in_dialect) {
                    true => " with this dialect:",
                    false => ", but not all is as it should be:",
                };
                let names = differing.join(", ");
                (
                    Readiness::ReadyWithDialect,
                    format!("READY{how} {names} {word}"),
                )
            }
            (Some(first), _) => {
                let words = first.found.lines().next().unwrap_or_default();
                (
                    Readiness::NotReady,
                    format!("NOT READY: {}: {words}", first.id),
                )
            }
        };
        Self {
            target: target.to_owned(),
            readiness,
            summary,
            remove: remove.filter(|_| !left.is_empty()),
            checks: findings,
            left,
            nothing_to_write,
        }
    }

    /// The dialect file of the target.
    pub(crate) fn dialect(&self) -> String {
        dialect::write(&self.target, &self.checks)
    }

    /// True if the dialect file says something to a run.
    pub(crate) fn has_dialect(&self) -> bool {
        self.readiness == Readiness::ReadyWithDialect
            && self.nothing_to_write.is_none()
            && self.checks.iter().any(in_dialect)
    }

    /// Why a dialect file of the target would say nothing, if it would.
    pub(super) fn nothing_to_write(&self) -> Option<&str> {
        self.nothing_to_write.as_deref()
    }

    /// True if no run works.
    pub(crate) fn is_unusable(&self) -> bool {
        self.readiness == Readiness::NotReady
    }

    /// True if the only obstacle is that the bucket does not exist.
    pub(crate) fn lacks_bucket(&self) -> bool {
        let mut failed = self.checks.iter().filter(|f| f.state == State::Failed);
        failed
            .next()
            .is_some_and(|f| f.id == "bucket" && f.remedy.contains("--create-bucket"))
    }

    pub(super) const fn exit(&self) -> Exit {
        match self.readiness {
            Readiness::NotReady => Exit::Target,
            Readiness::ReadyWithDialect => Exit::GateFailed,
            Readiness::Ready if !self.left.is_empty() => Exit::Leftovers,
            Readiness::Ready => Exit::Ok,
        }
    }

    pub(super) fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The answer, and what differs or fails with its remedy, for a terminal of `width` columns.
    pub(crate) fn brief(&self, width: Option<usize>) -> String {
        // The summary has the words of the first failure.
        let failed = self.checks.iter().find(|f| f.state == State::Failed);
        let differing = || self.checks.iter().filter(|f| f.state == State::Differs);
        let mut out = Lines::new(width, differing());
        out.line(&self.summary, 2);
        if let Some(failed) = failed.filter(|f| !f.remedy.is_empty()) {
            out.line(&format!("-> {}", failed.remedy), 3);
        }
        differing().for_each(|finding| out.finding(finding));
        self.leftovers(&mut out);
        out.text
    }

    /// The report for readers, on a terminal of `width` columns; the dialect is shown if `show` and if something differs.
    pub(super) fn text(&self, show: bool, width: Option<usize>) -> String {
        let mut out = Lines::new(width, self.checks.iter());
        out.line(&self.summary, 2);
        out.text.push('\n');
        let blocked =
            |f: &&Finding| f.state == State::NotTried && f.found.starts_with("it needs `");
        for finding in self.checks.iter().filter(|f| !blocked(f)) {
            out.finding(finding);
        }
        let names: Vec<&str> = self.checks.iter().filter(blocked).map(|f| f.id).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            out.text.push('\n');
            out.line(
                &format!("not tried, because they need what does not work: {names}"),
                2,
            );
        }
        self.leftovers(&mut out);
        if show && self.has_dialect() {
            let dialect = self.dialect();
            let _ = write!(
                out.text,
                "\nThe dialect (--write-dialect FILE writes it):\n\n{dialect}"
            );
        }
        // The first line has left the screen by now.
        if width.is_some() {
            out.text.push('\n');
            out.line(&self.summary, 2);
        }
        out.text
    }

    fn leftovers(&self, out: &mut Lines) {
        for left in &self.left {
            let _ = writeln!(out.text, "\nleft in the target: {left}");
        }
        if let Some(command) = &self.remove {
            let _ = writeln!(
                out.text,
                "once the cause is gone, this removes it: {command}"
            );
        }
    }
}

/// Whether a finding adds a setting or a refused operation to the dialect.
fn in_dialect(finding: &Finding) -> bool {
    finding.setting.is_some() || !finding.refuses.is_empty()
}

/// Columns before the name of a check: its state.
const BEFORE: usize = 11;
/// Columns that text beside the names needs to be readable; otherwise it continues below them.
const ROOM: usize = 60;

/// Lines for a terminal, or without limits. Writing to a text cannot fail.
struct Lines {
    text: String,
    width: usize,
    /// Columns of the longest name of a check.
    name: usize,
}

impl Lines {
    fn new<'f>(width: Option<usize>, findings: impl Iterator<Item = &'f Finding>) -> Self {
        Self {
            text: String::new(),
            width: width.unwrap_or(usize::MAX),
            name: findings.map(|f| f.id.len()).max().unwrap_or(0),
        }
    }

    /// A line, broken between words; further lines are indented by `hang`.
    fn line(&mut self, line: &str, hang: usize) {
        break_line(&mut self.text, line, self.width, hang);
    }

    fn finding(&mut self, finding: &Finding) {
        let beside = BEFORE + self.name + 2;
        let hang = if self.width.saturating_sub(beside) < ROOM {
            BEFORE
        } else {
            beside
        };
        let mut lines = finding.found.lines();
        let first = lines.next().unwrap_or_default();
        let (state, id, asked) = (finding.state.name(), finding.id, finding.asked);
        let name = self.name;
        self.line(&format!("{state:9}  {id:name$}  {asked}: {first}"), hang);
        let remedy = match finding.remedy.is_empty() {
            true => None,
            false => Some(format!("-> {}", finding.remedy)),
        };
        for line in lines.map(str::to_owned).chain(remedy) {
            self.line(&format!("{:hang$}{line}", ""), hang);
        }
    }
}
