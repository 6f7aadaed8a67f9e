//! Progress on standard error: a few lines redrawn in place on a terminal, an occasional line elsewhere, nothing if
//! quiet.

use std::io::{IsTerminal as _, Write as _};

use bucketload_core::plan::Plan;
use bucketload_core::sink::{Event, RunSink};
use bucketload_core::tally::Interval;
use bucketload_results::output::live::LiveView;

/// Intervals from one line to the next if standard error is not a terminal.
const EVERY: u64 = 10;
/// Number of failures that are printed during a run; the run directory has all of them.
const MAX_FAILURES: u32 = 5;

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Quiet,
    Plain,
    Terminal,
}

/// Progress of a run.
pub(crate) struct Live {
    view: LiveView,
    mode: Mode,
    /// Number of lines of the last drawing, which are above the cursor.
    drawn: usize,
    failures: u32,
    /// Whether the calibration is still to come.
    calibrates: bool,
}

impl Live {
    /// Progress of a run of `plan`.
    pub(crate) fn new(plan: &Plan, quiet: bool) -> Self {
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        let mode = if quiet {
            Mode::Quiet
        } else if std::io::stderr().is_terminal() && !dumb {
            Mode::Terminal
        } else {
            Mode::Plain
        };
        Self {
            view: LiveView::new(plan),
            mode,
            drawn: 0,
            failures: 0,
            calibrates: false,
        }
    }

    /// Says that the run begins, and `calibrates` this client once the target has answered.
    pub(crate) fn begin(&mut self, calibrates: bool) {
        self.calibrates = calibrates;
        self.status(match calibrates {
            true => "connecting to the target, then calibrating this client",
            false => "connecting to the target",
        });
    }

    /// Prints a message above the progress.
    pub(crate) fn say(&mut self, message: &str) {
        if self.mode != Mode::Quiet {
            self.erase();
            eprintln!("bucketload: {message}");
        }
    }

    /// On a terminal, says what happens before the first interval.
    fn status(&mut self, what: &str) {
        if self.mode == Mode::Terminal {
            self.erase();
            eprintln!("bucketload: {what} ...");
            self.drawn = 1;
        }
    }

    /// Erases the progress at the end of the run.
    pub(crate) fn finish(&mut self) {
        self.erase();
    }

    fn erase(&mut self) {
        if self.drawn > 0 {
            // Moves up to the first line of the drawing, then clears to the end of the screen.
            eprint!("\x1b[{}A\r\x1b[J", self.drawn);
            self.drawn = 0;
        }
    }

    fn draw(&mut self) {
        let width = rustix::termios::tcgetwinsize(std::io::stderr())
            .map_or(80, |size| usize::from(size.ws_col).clamp(20, 400));
        let lines = self.view.lines(width);
        self.erase();
        let mut out = std::io::stderr().lock();
        for line in &lines {
            // A terminal that disappears must not end the run.
            let _ = writeln!(out, "{line}");
        }
        self.drawn = lines.len();
    }
}

impl RunSink for Live {
    fn event(&mut self, event: &Event) {
        self.view.event(event);
        match event {
            Event::Warning { message } => self.say(message),
            Event::Failure {
                class, key, error, ..
            } => {
                self.failures += 1;
                if self.failures <= MAX_FAILURES {
                    self.say(&format!("{class} {key}: {error}"));
                }
                if self.failures == MAX_FAILURES {
                    self.say("further failures are in the run directory (events.jsonl)");
                }
            }
            Event::Calibrated(_) => {
                self.calibrates = false;
                self.status("starting the load");
            }
            Event::PhaseEnded { .. } if self.calibrates => self.status("calibrating this client"),
            Event::PhaseStarted { .. } if self.mode == Mode::Terminal => self.draw(),
            _ => {}
        }
    }

    fn interval(&mut self, interval: &Interval) {
        self.view.interval(interval);
        match self.mode {
            Mode::Quiet => {}
            Mode::Plain if (interval.index + 1).is_multiple_of(EVERY) => {
                eprintln!("bucketload: {}", self.view.line());
            }
            Mode::Plain => {}
            Mode::Terminal => self.draw(),
        }
    }
}
