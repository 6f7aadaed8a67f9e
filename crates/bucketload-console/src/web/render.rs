//! Renders templates. The template engine escapes every value, because all template names end in `.html`.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Response};
use minijinja::{Environment, Value};
use time::OffsetDateTime;
use time::macros::format_description;

use crate::queue::JobState;

#[derive(Debug)]
pub(super) struct Templates(Environment<'static>);

macro_rules! templates {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../templates/", $name)))),*]
    };
}

const TEMPLATES: &[(&str, &str)] = templates![
    "agents.html",
    "base.html",
    "cancel.html",
    "compare.html",
    "fleet.html",
    "history.html",
    "history_table.html",
    "job.html",
    "live.html",
    "login.html",
    "matrix.html",
    "message.html",
    "overview.html",
    "queue.html",
    "state.html",
    "submit.html",
];

impl Templates {
    pub(super) fn new() -> Self {
        let mut env = Environment::new();
        env.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
        for (name, text) in TEMPLATES {
            // Cannot fail: the templates are part of the program, and the tests parse each of them.
            if let Err(e) = env.add_template(name, text) {
                eprintln!("bucketload: template {name}: {e}");
            }
        }
        env.add_filter("time", |ms: u64| timestamp(ms));
        env.add_filter("span", |ms: u64| span(ms));
        env.add_filter("signed_time", |ns: i64| signed_time(ns));
        env.add_filter("bytes", |n: u64| crate::tui::bytes(n as f64));
        env.add_filter("mark", |state: String| mark(&state));
        Self(env)
    }

    /// Renders a template to a string.
    pub(super) fn text(&self, name: &str, context: Value) -> Result<String, String> {
        self.0
            .get_template(name)
            .and_then(|template| template.render(context))
            .map_err(|e| format!("{name}: {e:#}"))
    }

    /// Renders a template to a response.
    pub(super) fn page(&self, status: StatusCode, name: &str, context: Value) -> Response {
        match self.text(name, context) {
            Ok(text) => (status, Html(text)).into_response(),
            Err(e) => {
                eprintln!("bucketload: {e}");
                super::guard::plain(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the page could not be rendered; see the controller's output",
                )
            }
        }
    }
}

/// Formats an instant in UTC, such as `2026-01-31 23:59:59`; a dash for 0.
pub(super) fn timestamp(ms: u64) -> String {
    if ms == 0 {
        return "–".to_owned();
    }
    let format = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
    i64::try_from(ms / 1000)
        .ok()
        .and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok())
        .and_then(|at| at.format(&format).ok())
        .unwrap_or_else(|| "–".to_owned())
}

/// Formats a duration, such as `2 h 5 min`.
fn span(ms: u64) -> String {
    let s = ms / 1000;
    match s {
        0 => format!("{ms} ms"),
        1..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

/// Formats a short signed time, such as `-1.25 ms`.
fn signed_time(ns: i64) -> String {
    let value = ns as f64;
    let (factor, unit) = match ns.unsigned_abs() {
        0..1_000 => (1.0, "ns"),
        1_000..1_000_000 => (1e3, "µs"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let text = format!("{:.2}", value / factor);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} {unit}")
}

/// A symbol for a state, so that a state never depends on colour alone.
fn mark(state: &str) -> &'static str {
    const ALL: [(JobState, &str); 6] = [
        (JobState::Queuing, "○"),
        (JobState::Processing, "▶"),
        (JobState::Finished, "✓"),
        (JobState::Failed, "✕"),
        (JobState::Terminated, "■"),
        (JobState::Cancelled, "–"),
    ];
    ALL.iter()
        .find(|(known, _)| known.name() == state)
        .map_or("", |(_, mark)| mark)
}

#[cfg(test)]
mod tests {
    use minijinja::{Environment, context};

    use super::{TEMPLATES, mark, signed_time, span, timestamp};

    #[test]
    fn templates_are_well_formed_and_escape() {
        for (name, text) in TEMPLATES {
            let mut env = Environment::new();
            env.add_template(name, text).unwrap();
            assert!(name.ends_with(".html"), "only these are escaped: {name}");
            assert!(
                !text.contains("|safe") && !text.contains("| safe"),
                "{name}"
            );
            for inline in ["<style", " style=", "onclick", "javascript:", "autoescape"] {
                assert!(!text.contains(inline), "{name} holds {inline}");
            }
        }
        let mut env = Environment::new();
        env.add_template("x.html", "{{ name }}").unwrap();
        let text = env
            .get_template("x.html")
            .unwrap()
            .render(context! { name => "<script>\"'" })
            .unwrap();
        assert!(!text.contains(['<', '"', '\'']), "{text}");
    }

    #[test]
    fn times_and_spans_are_readable() {
        assert_eq!(timestamp(0), "–");
        assert_eq!(timestamp(1_769_903_999_500), "2026-01-31 23:59:59");
        assert_eq!(timestamp(u64::MAX), "–");
        assert_eq!(signed_time(-1_250_000), "-1.25 ms");
        assert_eq!(signed_time(40_000), "40 µs");
        assert_eq!(signed_time(0), "0 ns");
        assert_eq!(signed_time(3_000_000_000), "3 s");
        assert_eq!(span(500), "500 ms");
        assert_eq!(span(59_999), "59 s");
        assert_eq!(span(125_000), "2 min 5 s");
        assert_eq!(span(7_500_000), "2 h 5 min");
    }

    #[test]
    fn every_state_has_a_symbol() {
        for state in [
            "queuing",
            "processing",
            "finished",
            "failed",
            "terminated",
            "cancelled",
        ] {
            assert!(!mark(state).is_empty(), "{state}");
        }
    }
}
