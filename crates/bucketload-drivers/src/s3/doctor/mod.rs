//! Examines an S3 service for `bucketload doctor`.
//!
//! ```text
//! http::doctor (the way) ── table (one declaration per check) ── lab (requests, what was written)
//!                              ├ access      region, signature, addressing, bucket, rights
//!                              ├ objects     put, get, head, metadata, ranges, consistency
//!                              ├ conditions  conditional requests, checksums
//!                              ├ listing     V1 and V2, paging, keys
//!                              ├ extras      copy, tags, versions, errors
//!                              ├ multipart
//!                              └ deletion    delete, and the removal of all that was written
//! ```
//!
//! A check that needs another one is not tried unless that one works, so one fault is reported once.

mod access;
mod answer;
mod conditions;
mod deletion;
mod extras;
mod lab;
mod listing;
mod multipart;
mod objects;
mod table;
mod verdict;

use std::time::{Duration, Instant};

use bucketload_target::OpenError;
use bucketload_target::doctor::{Examination, Examined, Finding, State, judge_connections};

use super::S3Config;
use crate::http::doctor;
use lab::Lab;
use table::{CHECKS, Check};

/// Time after which no further check begins.
const PATIENCE: Duration = Duration::from_secs(60);

/// Examines the way to the service, then what the service does.
///
/// # Errors
/// When this machine cannot provide what the examination needs.
pub(super) fn examine(config: S3Config, exam: &mut Examination<'_>) -> Result<Examined, OpenError> {
    doctor::way(&config.endpoints, &config.tls, exam)?;
    doctor::block_on(async {
        let reached = !exam.has_failed();
        let mut lab = match Lab::open(config, exam, reached).await {
            Ok(lab) => lab,
            Err(error) => {
                let found = Finding::new("connect", "a session", State::Failed, error.to_string());
                exam.findings.push(found);
                return;
            }
        };
        let began = Instant::now();
        let mut findings = Vec::with_capacity(CHECKS.len());
        for check in CHECKS {
            let finding = lab.check(check, began.elapsed() > PATIENCE).await;
            findings.push(finding);
        }
        let left = lab.clean_up().await;
        if let Some(words) = lab.skewed.take()
            && let Some(clock) = exam.findings.iter_mut().find(|f| f.id == "clock")
        {
            clock.state = State::Failed;
            clock.found = format!("{}; {words}", clock.found);
            "set this machine's clock and the server's (NTP)".clone_into(&mut clock.remedy);
        }
        if let Some(finding) = exam.findings.iter_mut().find(|f| f.id == "keep-alive") {
            judge_connections(finding, lab.kept, lab.closed);
        }
        exam.findings.append(&mut findings);
        exam.left = left;
    })?;
    Ok(Examined::All)
}

impl Lab {
    /// Carries out one check, unless something that it needs does not work.
    async fn check(&mut self, check: &'static Check, late: bool) -> Finding {
        let not_tried = |why: String| Finding::new(check.id, check.asks, State::NotTried, why);
        if !self.reached {
            return not_tried("the service cannot be reached".to_owned());
        }
        if let Some(missing) = check.needs.iter().find(|id| !self.works(id)) {
            return not_tried(format!("it needs `{missing}`"));
        }
        if late {
            return not_tried(format!("{} s have passed", PATIENCE.as_secs()));
        }
        let verdict = (check.run)(self).await;
        if verdict.state == State::Ok || verdict.setting.is_some() {
            self.works.insert(check.id);
        }
        let mut finding = Finding::new(check.id, check.asks, verdict.state, verdict.found);
        finding.setting = verdict.setting;
        if matches!(finding.state, State::Differs | State::Failed) {
            finding.remedy = verdict.remedy.unwrap_or_else(|| check.remedy.to_owned());
            if finding.setting.is_none() {
                finding.refuses = check.refuses.to_vec();
            }
        }
        finding
    }
}
