//! An experiment under way: its directory, campaigns and journal, and the report at its end.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use bucketload_results::journal;
use bucketload_results::study::{self, REPORT, TRIALS};
use bucketload_run::StopHandle;
use bucketload_workload::spec::WorkloadFile;

use super::{Experiment, derive};
use crate::campaign::{Campaign, CampaignSpec};
use crate::cli::capacity::StudyOutputArgs;
use crate::cli::run::LoadArgs;
use crate::cli::workload::WorkloadArgs;
use crate::connection::Connection;
use crate::exit::{Exit, Failure, OrFail};
use crate::job::forget_hollow;
use crate::{setup, signals};

/// An experiment under way: its directory, and who may stop it.
pub(crate) struct Session<'a> {
    pub(crate) dir: PathBuf,
    pub(crate) stop: StopHandle,
    /// Whether the directory holds trials of an interrupted session.
    pub(crate) resumes: bool,
    /// Whether the directory was there before.
    existed: bool,
    output: &'a StudyOutputArgs,
    quiet: bool,
}

impl<'a> Session<'a> {
    /// A session in the directory of `--out`, or in one named after `verb`, `subject` and the time.
    ///
    /// # Errors
    /// When signals cannot be handled.
    pub(crate) fn new(
        verb: &str,
        subject: &str,
        output: &'a StudyOutputArgs,
        quiet: bool,
    ) -> Result<Self, Failure> {
        let started = time::OffsetDateTime::now_utc();
        let named = || setup::default_directory(&format!("{verb}-{subject}"), started);
        let dir = output.out.clone().unwrap_or_else(|| setup::unused(named()));
        Ok(Self {
            existed: dir.exists(),
            dir,
            stop: signals::watched()?,
            resumes: false,
            output,
            quiet,
        })
    }

    /// Opens a campaign in `dir` whose trials have independent schedules.
    ///
    /// # Errors
    /// As [`Campaign::open`].
    pub(crate) fn campaign(
        &self,
        dir: &Path,
        file: &WorkloadFile,
        workload: &WorkloadArgs,
        connection: Connection,
        load: &LoadArgs,
    ) -> Result<Campaign, Failure> {
        Campaign::open(CampaignSpec {
            file: file.clone(),
            overrides: workload.overrides().or_usage()?,
            connection,
            load: load.clone(),
            dir: dir.to_owned(),
            resumed: self.resumes.then(|| trials_in(dir)),
            independent: true,
            // The line per trial is enough where progress cannot be redrawn in place.
            quiet: self.quiet || !std::io::stderr().is_terminal(),
            stop: self.stop.clone(),
        })
    }

    /// Creates the journal with its header.
    ///
    /// # Errors
    /// When it cannot be written, or the directory holds one already.
    pub(crate) fn create<E: Experiment>(&self, header: &E::Header) -> Result<Journal<E>, Failure> {
        Ok(Journal {
            writer: study::create::<E>(&self.dir, header).or_aborted()?,
            earlier: Vec::new(),
            quiet: self.quiet,
        })
    }

    /// Opens the journal of an interrupted session, whose trials are `earlier`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn resume<E: Experiment>(
        &self,
        earlier: Vec<E::Record>,
    ) -> Result<Journal<E>, Failure> {
        Ok(Journal {
            writer: journal::Journal::open(&self.dir.join(TRIALS)).or_aborted()?,
            earlier,
            quiet: self.quiet,
        })
    }

    /// Whether the journal has no trial.
    fn measured_nothing(&self) -> bool {
        std::fs::metadata(self.dir.join(TRIALS)).is_ok_and(|journal| journal.len() == 0)
    }

    /// A trial's run directory relative to the session's.
    pub(crate) fn relative(&self, trial: &Path) -> String {
        let inside = trial.strip_prefix(&self.dir).unwrap_or(trial);
        inside.to_string_lossy().into_owned()
    }

    /// Reports the trials that were measured, however they `ended`, and says what clean-up left in the target if the
    /// campaigns did not end well when they were `closed`. Returns the exit code. If the trials were refused before
    /// anything was measured, nothing remains of the directory.
    ///
    /// # Errors
    /// The failure that ended the trials, unless the user interrupted them; or when the report cannot be written.
    pub(crate) fn finish<E: Experiment>(
        &self,
        ended: Result<(), Failure>,
        closed: Result<(), Failure>,
    ) -> Result<Exit, Failure> {
        let leftovers = closed.err();
        let message = leftovers.as_ref().map(|failure| failure.message.as_str());
        let refused = |failure: &Failure| matches!(failure.exit, Exit::Usage | Exit::Target);
        if let Err(failure) = &ended
            && refused(failure)
            && !self.resumes
            && self.measured_nothing()
        {
            let known = [E::HEADER, TRIALS];
            forget_hollow(&self.dir, self.existed, &known).or_aborted()?;
            return ended
                .map(|()| Exit::Ok)
                .map_err(|f| f.with_leftovers(message));
        }
        let derived = derive::<E>(&self.dir, false)
            .and_then(|derived| {
                derived.publish(&self.dir, self.output.output)?;
                Ok(derived)
            })
            .map_err(|failure| failure.with_leftovers(message))?;
        if !self.quiet {
            eprintln!("bucketload: report: {}", self.dir.join(REPORT).display());
        }
        if let Some(message) = message {
            eprintln!("bucketload: {message}");
        }
        match (ended, leftovers) {
            (Ok(()), Some(failure)) if failure.exit != Exit::Leftovers => Ok(failure.exit),
            (Ok(()), leftovers) => Ok(derived.exit.or_leftovers(leftovers.is_some())),
            (Err(failure), _) if failure.exit == Exit::Interrupted => Ok(Exit::Interrupted),
            (Err(failure), _) => Err(failure),
        }
    }
}

/// The highest trial number among the run directories in `dir`, including trials that did not end.
fn trials_in(dir: &Path) -> u32 {
    let entries = dir.read_dir().into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| {
        let name = entry.file_name();
        name.to_str()?.split_once('-')?.0.parse().ok()
    });
    numbers.max().unwrap_or(0)
}

/// The journal of an experiment: one line per trial, appended when the trial has ended.
pub(crate) struct Journal<E: Experiment> {
    writer: journal::Journal<E::Record>,
    /// Trials of an interrupted session.
    pub(crate) earlier: Vec<E::Record>,
    quiet: bool,
}

impl<E: Experiment> Journal<E> {
    /// Appends a trial and prints `line` about it, unless the session is quiet.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub(crate) fn append(&mut self, record: &E::Record, line: &str) -> Result<(), Failure> {
        if !self.quiet {
            eprintln!("{line}");
        }
        self.writer.append(record).or_aborted()
    }
}
