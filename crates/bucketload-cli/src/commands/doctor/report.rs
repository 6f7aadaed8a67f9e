//! The findings as text and as JSON, and the exit code.

use std::fmt::Write as _;

use bucketload_target::doctor::{Examination, Finding, State};
use serde::Serialize;

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
pub(super) struct Report<'a> {
    target: &'a str,
    readiness: Readiness,
    summary: String,
    checks: &'a [Finding],
    /// What could not be removed.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    left: &'a [String],
    /// The command that removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remove: Option<String>,
}

impl<'a> Report<'a> {
    /// A report on `target`; `remove` is the command that removes leftovers.
    pub(super) fn new(target: &'a str, exam: &'a Examination<'_>, remove: Option<String>) -> Self {
        let findings = &exam.findings;
        let ids = |state: State| {
            let found = findings.iter().filter(move |f| f.state == state);
            found.map(|f| f.id).collect::<Vec<_>>()
        };
        let mut differs = findings.iter().filter(|f| f.state == State::Differs);
        let holds = differs.any(|f| f.setting.is_some() || !f.refuses.is_empty());
        let (failed, differing) = (ids(State::Failed), ids(State::Differs));
        let (readiness, summary) = match (&failed[..], &differing[..]) {
            ([], []) => (Readiness::Ready, "READY: a run works here as is".to_owned()),
            ([], _) => (
                Readiness::ReadyWithDialect,
                format!(
                    "READY{} {} {}",
                    if holds {
                        " with this dialect:"
                    } else {
                        ", but not all is as it should be:"
                    },
                    differing.join(", "),
                    if differing.len() == 1 {
                        "differs"
                    } else {
                        "differ"
                    }
                ),
            ),
            ([first, ..], _) => {
                let reason = findings.iter().find(|f| f.id == *first);
                let words = reason.map_or("", |f| f.found.lines().next().unwrap_or_default());
                (Readiness::NotReady, format!("NOT READY: {first}: {words}"))
            }
        };
        Self {
            target,
            readiness,
            summary,
            checks: findings,
            left: &exam.left,
            remove: remove.filter(|_| !exam.left.is_empty()),
        }
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

    /// The report for readers; `dialect` is shown if `show` and if something differs.
    pub(super) fn text(&self, dialect: &str, show: bool) -> String {
        let mut out = format!("{}\n\n", self.summary);
        let width = self.checks.iter().map(|f| f.id.len()).max().unwrap_or(0);
        // Writing to a string cannot fail.
        let blocked =
            |f: &&Finding| f.state == State::NotTried && f.found.starts_with("it needs `");
        for finding in self.checks.iter().filter(|f| !blocked(f)) {
            let mut lines = finding.found.lines();
            let first = lines.next().unwrap_or_default();
            let state = finding.state.name();
            let _ = writeln!(
                out,
                "{state:9}  {:width$}  {}: {first}",
                finding.id, finding.asked
            );
            for line in lines {
                let _ = writeln!(out, "{:w$}{line}", "", w = 13 + width);
            }
            if !finding.remedy.is_empty() {
                let _ = writeln!(out, "{:w$}-> {}", "", finding.remedy, w = 13 + width);
            }
        }
        let names: Vec<&str> = self.checks.iter().filter(blocked).map(|f| f.id).collect();
        if !names.is_empty() {
            let _ = writeln!(
                out,
                "\nnot tried, because they need what does not work: {}",
                names.join(", ")
            );
        }
        for left in self.left {
            let _ = writeln!(out, "\nleft in the target: {left}");
        }
        if let Some(command) = &self.remove {
            let _ = writeln!(out, "once the cause is gone, this removes it: {command}");
        }
        if show && self.readiness == Readiness::ReadyWithDialect {
            let _ = write!(
                out,
                "\nThe dialect (--write-dialect FILE writes it):\n\n{dialect}"
            );
        }
        out
    }
}
