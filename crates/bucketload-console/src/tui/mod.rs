//! The terminal console: a run on the whole screen, for people on ssh.
//!
//! [`source`] brings what is shown, from a run directory or from a controller; `draw` turns it into a
//! screen and knows neither time nor terminal; `text` writes figures; here are keys and the loop.
//! Where standard output is no terminal, a line is printed now and then.

mod draw;
pub mod source;
mod text;

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use draw::Screen;
use source::{Shown, Source};
pub(crate) use text::bytes;

/// Time between two looks at the source.
const PERIOD: Duration = Duration::from_millis(500);
/// Time between two lines when there is no terminal.
const LINE_PERIOD: Duration = Duration::from_secs(10);

/// Shows a run until the user leaves, or without a terminal until the run is over.
///
/// The terminal is put back as it was, also after a panic.
///
/// # Errors
/// When the terminal cannot be used. What the source cannot tell is shown instead of the run.
pub fn show(source: &mut dyn Source) -> io::Result<()> {
    if !io::stdout().is_terminal() {
        return lines(source, &mut io::stdout());
    }
    // The panic hook that this installs restores the terminal first.
    let mut terminal = ratatui::try_init()?;
    let outcome = screen(source, &mut terminal);
    ratatui::try_restore()?;
    outcome
}

fn screen(source: &mut dyn Source, terminal: &mut ratatui::DefaultTerminal) -> io::Result<()> {
    let mut screen = Screen::default();
    let mut looked: Option<Instant> = None;
    loop {
        if looked.is_none_or(|at| at.elapsed() >= PERIOD) {
            screen.take(source.look(screen.phase()));
            looked = Some(Instant::now());
        }
        terminal.draw(|frame| screen.draw(frame))?;
        let wait = looked.map_or(PERIOD, |at| PERIOD.saturating_sub(at.elapsed()));
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
            looked = None;
        }
    }
}

/// Prints a line now and then.
fn lines(source: &mut dyn Source, out: &mut dyn io::Write) -> io::Result<()> {
    loop {
        let shown = source.look(None);
        let over = shown.as_ref().map_or(true, Shown::is_over);
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
    use super::source::{Shown, Source};

    struct Once(Vec<Result<Shown, String>>);

    impl Source for Once {
        fn look(&mut self, _phase: Option<usize>) -> Result<Shown, String> {
            self.0.remove(0)
        }
    }

    #[test]
    fn without_a_terminal_there_are_plain_lines_until_the_run_is_over() {
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
