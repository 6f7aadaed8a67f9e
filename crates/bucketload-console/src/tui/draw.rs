//! Renders a snapshot to terminal cells.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Gauge, Paragraph, Row, Sparkline, Table};

use super::source::Snapshot;
use super::text::{bytes, mark, ns, progress, rate, total_rate};
use crate::monitor::view::{Point, View};

/// Number of columns of the table of classes, and their widths, characters.
const COLUMNS: usize = 8;
const WIDTHS: [u16; COLUMNS] = [12, 8, 10, 8, 8, 8, 8, 8];
/// Columns that a narrow screen drops, in this order: longest, p95, bytes and p50.
const DROPPED_FIRST: [usize; 4] = [7, 5, 2, 4];
/// Maximum number of agents with a line; the others are only counted.
const AGENT_LINES: usize = 8;

/// The snapshot, and the user's selection.
#[derive(Debug, Default)]
pub(super) struct Screen {
    shown: Option<Snapshot>,
    problem: String,
    /// The selected phase; `None` follows the run.
    phase: Option<usize>,
    class: usize,
}

impl Screen {
    /// The selected phase.
    pub(super) const fn phase(&self) -> Option<usize> {
        self.phase
    }

    /// Takes the result of a source. After an error the last snapshot stays, with the reason.
    pub(super) fn take(&mut self, looked: Result<Snapshot, String>) {
        match looked {
            Ok(shown) => {
                self.shown = Some(shown);
                self.problem.clear();
            }
            Err(e) => self.problem = e,
        }
    }

    fn view(&self) -> Option<&View> {
        self.shown.as_ref().and_then(|shown| shown.view.as_ref())
    }

    /// Selects an earlier or later phase.
    pub(super) fn step_phase(&mut self, step: isize) {
        let Some(view) = self.view() else {
            return;
        };
        let last = view.run.phases.len().saturating_sub(1);
        let at = self.phase.unwrap_or(view.run.shown);
        self.phase = Some(at.saturating_add_signed(step).min(last));
    }

    /// Follows the running phase.
    pub(super) const fn follow(&mut self) {
        self.phase = None;
    }

    /// Selects the class of the latency chart.
    pub(super) fn step_class(&mut self, step: isize) {
        let last = self
            .view()
            .map_or(0, |view| view.series.classes.len().saturating_sub(1));
        self.class = self.class.saturating_add_signed(step).min(last);
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let Some(view) = self.view() else {
            let text = match (&self.shown, self.problem.as_str()) {
                (_, problem) if !problem.is_empty() => problem.to_owned(),
                (Some(shown), _) => {
                    format!(
                        "{}: no workload is running; {} waiting",
                        shown.title, shown.waiting
                    )
                }
                (None, _) => "…".to_owned(),
            };
            frame.render_widget(Paragraph::new(vec![Line::from(text), keys()]), area);
            return;
        };
        let shown = self.shown.as_ref();
        let agents = shown.map_or(0, |shown| shown.agents.len());
        let agent_lines = match agents {
            0 => 0,
            n => n.min(AGENT_LINES) as u16 + 1,
        };
        let classes = view.series.classes.len().max(1) as u16;
        let signs = view.run.signs.len().max(1) as u16;
        let [head, phases, bar, table, charts, so_far, agent_area, foot] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(classes + 2),
            Constraint::Min(6),
            Constraint::Length(signs + 1),
            Constraint::Length(agent_lines),
            Constraint::Length(1),
        ])
        .areas(area);
        self.head(frame, head, view);
        self.phases(frame, phases, view);
        gauge(frame, bar, view, self.phase);
        self.table(frame, table, view);
        self.charts(frame, charts, view);
        signs_of(frame, so_far, view);
        if let Some(shown) = shown {
            agents_of(frame, agent_area, shown);
        }
        frame.render_widget(Paragraph::new(keys()), foot);
    }

    fn head(&self, frame: &mut Frame<'_>, area: Rect, view: &View) {
        let run = &view.run;
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let mut first = vec![
            Span::styled("bucketload  ", bold),
            Span::styled(run.workload.clone(), bold),
            Span::raw(format!("  against {}", run.target)),
        ];
        if !self.problem.is_empty() {
            first = vec![Span::styled(
                format!("! {}", self.problem),
                Style::new().fg(Color::Red),
            )];
        }
        let verdict = run
            .verdict
            .as_ref()
            .map_or(String::new(), |verdict| format!("  verdict {verdict}"));
        let waiting = match self.shown.as_ref().map_or(0, |shown| shown.waiting) {
            0 => String::new(),
            n => format!("  {n} waiting"),
        };
        let title = self.shown.as_ref().map_or("", |shown| shown.title.as_str());
        let second = format!(
            "{title}  {}{verdict}{waiting}  in flight {}",
            run.status, run.in_flight
        );
        frame.render_widget(
            Paragraph::new(vec![Line::from(first), Line::from(second)]),
            area,
        );
    }

    fn phases(&self, frame: &mut Frame<'_>, area: Rect, view: &View) {
        let looked_at = self.phase.unwrap_or(view.run.shown);
        let spans: Vec<Span<'_>> = view
            .run
            .phases
            .iter()
            .enumerate()
            .map(|(i, phase)| {
                let text = format!("{} {}  ", mark(phase.state), phase.name);
                if i == looked_at {
                    Span::styled(text, Style::new().add_modifier(Modifier::REVERSED))
                } else {
                    Span::raw(text)
                }
            })
            .collect();
        frame.render_widget(Paragraph::new(Line::from(spans)), area);
    }

    fn table(&self, frame: &mut Frame<'_>, area: Rect, view: &View) {
        let head = [
            "class", "ops/s", "bytes/s", "failed/s", "p50", "p95", "p99", "longest",
        ];
        let latest = view.series.points.last();
        let columns = columns(area.width);
        let chosen = |cells: [String; COLUMNS]| columns.iter().map(move |&c| cells[c].clone());
        let rows = view.series.classes.iter().enumerate().map(|(i, name)| {
            let point = latest.and_then(|point| point.classes.get(i).copied().flatten());
            let cells = match point {
                Some(c) => [
                    name.clone(),
                    rate(c.ops_per_s),
                    bytes(c.bytes_per_s),
                    rate(c.failed_per_s),
                    ns(c.p50_ns),
                    ns(c.p95_ns),
                    ns(c.p99_ns),
                    ns(c.max_ns),
                ],
                None => [name.as_str(), "-", "-", "-", "-", "-", "-", "-"].map(str::to_owned),
            };
            let row = Row::new(chosen(cells).collect::<Vec<_>>());
            if i == self.class {
                row.style(Style::new().add_modifier(Modifier::BOLD))
            } else {
                row
            }
        });
        let widths = columns.iter().map(|&c| match c {
            0 => Constraint::Min(WIDTHS[0]),
            other => Constraint::Length(WIDTHS[other]),
        });
        let head = Row::new(chosen(head.map(str::to_owned)).collect::<Vec<_>>())
            .style(Style::new().add_modifier(Modifier::UNDERLINED));
        frame.render_widget(Table::new(rows, widths).header(head), area);
    }

    fn charts(&self, frame: &mut Frame<'_>, area: Rect, view: &View) {
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)])
                .spacing(2)
                .areas(area);
        let points = &view.series.points;
        let width = view.series.width_s;
        let name = view
            .series
            .classes
            .get(self.class)
            .map_or("", String::as_str);
        let latency = |point: &Point| {
            let class = point.classes.get(self.class).copied().flatten();
            class.map_or(0, |class| class.p99_ns)
        };
        chart(
            frame,
            left,
            &format!("ops/s, {width:.0} s each"),
            points.iter().map(|point| total_rate(point).round() as u64),
            |top| rate(top as f64),
        );
        chart(
            frame,
            right,
            &format!("p99 of {name}"),
            points.iter().map(latency),
            ns,
        );
    }
}

/// Draws a sparkline of the latest values that fit, with the maximum in its title.
fn chart(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    values: impl DoubleEndedIterator<Item = u64> + ExactSizeIterator,
    text: impl Fn(u64) -> String,
) {
    let room = usize::from(area.width);
    let skip = values.len().saturating_sub(room);
    let data: Vec<u64> = values.skip(skip).collect();
    let top = data.iter().copied().max().unwrap_or(0);
    let block = Block::new().title(format!("{title}, top {}", text(top)));
    let line = Sparkline::default()
        .block(block)
        .data(&data)
        .style(Style::new().fg(Color::Cyan));
    frame.render_widget(line, area);
}

fn gauge(frame: &mut Frame<'_>, area: Rect, view: &View, chosen: Option<usize>) {
    let at = chosen.unwrap_or(view.run.current);
    let Some(phase) = view.run.phases.get(at) else {
        return;
    };
    let text = progress(phase);
    match phase.share {
        Some(share) => frame.render_widget(
            Gauge::default()
                .ratio(share.clamp(0.0, 1.0))
                .label(text)
                .gauge_style(Style::new().fg(Color::Blue).bg(Color::DarkGray)),
            area,
        ),
        None => frame.render_widget(Paragraph::new(text), area),
    }
}

fn signs_of(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let mut lines = vec![Line::styled(
        "so far",
        Style::new().add_modifier(Modifier::UNDERLINED),
    )];
    if view.run.signs.is_empty() {
        lines.push(Line::styled(
            "✓ no problems so far; the verdict comes at the end",
            Style::new().fg(Color::Green),
        ));
    }
    lines.extend(view.run.signs.iter().map(|sign| {
        Line::styled(
            format!("✕ {}: {}", sign.name, sign.text),
            Style::new().fg(Color::Red),
        )
    }));
    frame.render_widget(Paragraph::new(lines), area);
}

fn agents_of(frame: &mut Frame<'_>, area: Rect, shown: &Snapshot) {
    if shown.agents.is_empty() {
        return;
    }
    let failed = shown.agents.iter().filter(|a| a.is_failed()).count();
    let mut lines = vec![Line::styled(
        format!("agents: {}, failed or lost: {failed}", shown.agents.len()),
        Style::new().add_modifier(Modifier::UNDERLINED),
    )];
    // Failed agents first.
    let mut agents: Vec<_> = shown.agents.iter().collect();
    agents.sort_by_key(|agent| (!agent.is_failed(), agent.rank));
    lines.extend(agents.into_iter().take(AGENT_LINES).map(|agent| {
        let reason = agent.reason.as_deref().unwrap_or_default();
        let sign = if agent.is_failed() { "✕" } else { "✓" };
        Line::from(format!(
            "{sign} {} {} {} {reason}",
            agent.rank, agent.host, agent.state
        ))
    }));
    frame.render_widget(Paragraph::new(lines), area);
}

/// The columns that fit into `width` characters. A figure is shown completely, with its unit, or not at all.
fn columns(width: u16) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..COLUMNS).collect();
    for dropped in DROPPED_FIRST {
        let needed: u16 = shown.iter().map(|&c| WIDTHS[c] + 1).sum();
        if needed <= width + 1 {
            break;
        }
        shown.retain(|&c| c != dropped);
    }
    shown
}

fn keys() -> Line<'static> {
    Line::styled(
        "q quit   ←/→ phase   f follow   ↑/↓ class",
        Style::new().add_modifier(Modifier::DIM),
    )
}

#[cfg(test)]
pub(super) mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::{Screen, Snapshot};
    use crate::monitor::view::{
        ClassPoint, PhaseState, PhaseView, Point, RunView, SeriesView, View, WarningSign,
    };

    fn phase(name: &str, state: PhaseState) -> PhaseView {
        PhaseView {
            name: name.into(),
            state,
            elapsed_s: 12.0,
            limit_s: 60.0,
            share: Some(0.2),
            failed: 3,
            ..PhaseView::default()
        }
    }

    pub(in crate::tui) fn shown() -> Snapshot {
        let point = |i: u32| Point {
            t_s: f64::from(i),
            offered_per_s: 100.0,
            in_flight: 4,
            classes: vec![
                Some(ClassPoint {
                    ops_per_s: f64::from(80 + i),
                    bytes_per_s: 1_572_864.0,
                    failed_per_s: 0.0,
                    p50_ns: 1_200_000,
                    p95_ns: 2_500_000,
                    p99_ns: u64::from(i + 1) * 1_000_000,
                    max_ns: 45_000_000,
                }),
                None,
            ],
        };
        Snapshot {
            title: "runs/demo".into(),
            view: Some(View {
                run: RunView {
                    workload: "online-service".into(),
                    target: "mem:".into(),
                    status: "running".into(),
                    current: 1,
                    shown: 1,
                    phases: vec![
                        phase("prepare", PhaseState::Done),
                        phase("run", PhaseState::Running),
                        phase("cleanup", PhaseState::Waiting),
                    ],
                    signs: vec![WarningSign {
                        name: "failures".into(),
                        text: "3 of 1000 operations failed (0.30 %)".into(),
                    }],
                    in_flight: 4,
                    ..RunView::default()
                },
                series: SeriesView {
                    phase: 1,
                    width_s: 1.0,
                    classes: vec!["get".into(), "put".into()],
                    from: 0,
                    points: (0..12).map(point).collect(),
                },
            }),
            agents: Vec::new(),
            waiting: 2,
        }
    }

    /// The screen as lines of text, without trailing blanks.
    fn frame(screen: &Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let mut text = String::new();
        for y in 0..height {
            let line: String = (0..width)
                .map(|x| buffer.cell((x, y)).unwrap().symbol())
                .collect();
            text += line.trim_end();
            text.push('\n');
        }
        text
    }

    #[test]
    fn the_screen_is_the_golden_one() {
        let mut screen = Screen::default();
        screen.take(Ok(shown()));
        let got = frame(&screen, 84, 20);
        let golden = include_str!("golden/run.txt");
        assert_eq!(got, golden, "\n{got}");
    }

    #[test]
    fn narrow_screens_show_whole_figures() {
        let mut screen = Screen::default();
        screen.take(Ok(shown()));
        for (width, there, gone) in [
            (84, &["p95", "45.0 ms", "1.50 MiB"][..], &[][..]),
            (70, &["2.50 ms", "1.50 MiB"], &["longest"]),
            (60, &["1.50 MiB", "12.0 ms"], &["p95", "longest"]),
            (40, &["91.0", "12.0 ms"], &["p50", "bytes/s"]),
        ] {
            let text = frame(&screen, width, 20);
            for word in there {
                assert!(text.contains(word), "{width}: {word} in\n{text}");
            }
            for word in gone {
                assert!(!text.contains(word), "{width}: {word} in\n{text}");
            }
        }
    }

    #[test]
    fn keys_choose_phase_and_class() {
        let mut screen = Screen::default();
        screen.step_phase(1);
        assert_eq!(screen.phase(), None, "nothing to select from");
        screen.take(Ok(shown()));
        screen.step_phase(-1);
        assert_eq!(screen.phase(), Some(0));
        screen.step_phase(-1);
        assert_eq!(screen.phase(), Some(0));
        for _ in 0..9 {
            screen.step_phase(1);
        }
        assert_eq!(screen.phase(), Some(2));
        screen.follow();
        assert_eq!(screen.phase(), None);
        screen.step_class(1);
        assert!(frame(&screen, 84, 20).contains("p99 of put"));
        screen.step_class(5);
        assert_eq!(screen.class, 1);
    }

    #[test]
    fn small_and_empty_screens_do_not_break() {
        let mut screen = Screen::default();
        for (width, height) in [(1, 1), (10, 3), (200, 60)] {
            frame(&screen, width, height);
        }
        screen.take(Err("controller h:1: connection refused".into()));
        assert!(frame(&screen, 60, 3).contains("connection refused"));
        screen.take(Ok(Snapshot {
            title: "h:1".into(),
            ..Snapshot::default()
        }));
        assert!(frame(&screen, 60, 3).contains("no workload is running; 0 waiting"));
        screen.take(Ok(shown()));
        for (width, height) in [(1, 1), (10, 3), (40, 10), (200, 60)] {
            frame(&screen, width, height);
        }
        screen.take(Err("gone".into()));
        assert!(
            frame(&screen, 84, 20).contains("! gone"),
            "the last snapshot stays"
        );
    }
}
