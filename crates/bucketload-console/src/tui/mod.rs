//! The terminal console: a full-screen view of a run, for users on ssh.
//!
//! [`source`] provides the data, from a run directory or a controller. `draw` renders it, independent of time and
//! terminal; `text` formats figures; this module handles keys and the main loop. If standard output is not a
//! terminal, a line is printed now and then.

mod draw;
pub mod source;
mod text;

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use draw::Screen;
use source::{Snapshot, Source};
pub(crate) use text::bytes;

/// Time between two reads of the source.
const PERIOD: Duration = Duration::from_millis(500);
/// Time between two lines without a terminal.
const LINE_PERIOD: Duration = Duration::from_secs(10);

/// Shows a run until the user quits, or without a terminal until the run has ended.
///
/// The terminal is restored at the end, also after a panic.
///
/// # Errors
/// When the terminal cannot be used. Errors of the source are shown on the screen.
pub fn show(source: &mut dyn Source) -> io::Result<()> {
    if !io::stdout().is_terminal() {
        return lines(source, &mut io::stdout());
    }
    // Installs a panic hook that restores the terminal.
    let mut terminal = ratatui::try_init()?;
    let outcome = screen(source, &mut terminal);
    ratatui::try_restore()?;
    outcome
}

fn screen(source: &mut dyn Source, terminal: &mut ratatui::DefaultTerminal) -> io::Result<()> {
    let mut screen = Screen::default();
    let mut read_at: Option<Instant> = None;
    loop {
        if read_at.is_none_or(|at| at.elapsed() >= PERIOD) {
            screen.take(source.snapshot(screen.phase()));
            read_at = Some(Instant::now());
        }
        terminal.draw(|frame| screen.draw(frame))?;
        let wait = read_at.map_or(PERIOD, |at| PERIOD.saturating_sub(at.elapsed()));
        if event::poll(wait)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            let control = key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                KeyCode::Char('c') if control => return Ok(()),
                KeyCode::Left | KeyCode::BackTab => screen.step_phase(-1),
                KeyCode::Right | KeyCode::Tab => screen.step_phase(1),
                KeyCode::Up => screen.step_class(-1),
                KeyCode::Down => screen.step_class(1),
                KeyCode::Char('f') => screen.follow(),
                _ => continue,
            }
            read_at = None;
        }
    }
}

/// Prints a line every [`LINE_PERIOD`].
fn lines(source: &mut dyn Source, out: &mut dyn io::Write) -> io::Result<()> {
    loop {
        let shown = source.snapshot(None);
        let over = shown.as_ref().map_or(true, Snapshot::is_over);
        match &shown {
            Ok(shown) => writeln!(out, "{}", text::line(shown))?,
            Err(e) => writeln!(out, "{e}")?,
        }
        out.flush()?;
        if over {
            return Ok(());
        }
        std::thread::sleep(LINE_PERIOD);
    }
}

#[cfg(test)]
mod tests {
    use super::source::{Snapshot, Source};

    struct Once(Vec<Result<Snapshot, String>>);

    impl Source for Once {
        fn snapshot(&mut self, _phase: Option<usize>) -> Result<Snapshot, String> {
            self.0.remove(0)
        }
    }

    #[test]
    fn without_a_terminal_plain_lines_are_printed_until_the_run_ends() {
        let mut shown = super::draw::tests::shown();
        shown.view.as_mut().unwrap().run.status = "finished".into();
        let mut out = Vec::new();
        super::lines(&mut Once(vec![Ok(shown)]), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 1);
        assert!(
            !text.contains('\u{1b}') && text.contains("finished"),
            "{text}"
        );
        let mut out = Vec::new();
        super::lines(&mut Once(vec![Err("gone".into())]), &mut out).unwrap();
        assert_eq!(out, b"gone\n");
    }
}
