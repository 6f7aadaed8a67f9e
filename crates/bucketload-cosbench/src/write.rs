//! `workload-config.xml`: the workload as interpreted, with all inherited settings written out (specification
//! section 5). It can be submitted again.

use std::fmt::Write as _;

use crate::model::{Work, Workload};

/// Keys whose values are secrets.
const SECRETS: [&str; 7] = [
    "key",
    "accesskey",
    "secretkey",
    "password",
    "token",
    "usertoken",
    "custom_headers",
];

/// The workload as XML. With `redact`, keys and passwords are replaced by `***`, and the file can no longer
/// be submitted unchanged.
#[must_use]
pub fn workload_config(workload: &Workload, redact: bool) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    open(
        &mut out,
        0,
        "workload",
        &[
            ("name", workload.name.clone()),
            ("description", workload.description.clone()),
            ("trigger", workload.trigger.clone().unwrap_or_default()),
            ("config", shown(&workload.config, redact)),
        ],
        ">",
    );
    open(
        &mut out,
        1,
        "workflow",
        &[("config", shown(&workload.workflow_config, redact))],
        ">",
    );
    for stage in &workload.stages {
        open(
            &mut out,
            2,
            "workstage",
            &[
                ("name", stage.name.clone()),
                ("closuredelay", stage.closure_delay_s.to_string()),
                ("trigger", stage.trigger.clone().unwrap_or_default()),
                ("config", shown(&stage.config, redact)),
            ],
            ">",
        );
        for work in &stage.works {
            self::work(&mut out, work, redact);
        }
        out.push_str("    </workstage>\n");
    }
    out.push_str("  </workflow>\n</workload>\n");
    out
}

fn work(out: &mut String, work: &Work, redact: bool) {
    let attributes = [
        ("name", work.name.clone()),
        ("type", work.kind.name().to_owned()),
        ("workers", work.workers.to_string()),
        ("interval", work.interval_s.to_string()),
        ("division", work.division.name().to_owned()),
        ("runtime", work.runtime_s.to_string()),
        ("rampup", work.rampup_s.to_string()),
        ("rampdown", work.rampdown_s.to_string()),
        ("afr", work.afr.to_string()),
        ("totalOps", work.total_ops.to_string()),
        ("totalBytes", work.total_bytes.to_string()),
        ("driver", work.driver.clone().unwrap_or_default()),
        ("config", shown(&work.config, redact)),
    ];
    open(out, 3, "work", &attributes, ">");
    let adapters = [
        ("auth", work.auth.adapter.name, work.auth.config.text()),
        (
            "storage",
            work.storage.adapter.name,
            work.storage.config.text(),
        ),
    ];
    for (element, name, config) in adapters {
        let config = shown(config, redact);
        open(
            out,
            4,
            element,
            &[("type", name.to_owned()), ("config", config)],
            "/>",
        );
    }
    for op in &work.operations {
        let attributes = [
            ("type", op.kind.name().to_owned()),
            ("ratio", op.ratio.to_string()),
            ("division", op.division.name().to_owned()),
            ("config", shown(op.config.text(), redact)),
            ("id", op.id.clone()),
        ];
        open(out, 4, "operation", &attributes, "/>");
    }
    out.push_str("      </work>\n");
}

/// Writes a start tag, omitting empty values.
fn open(out: &mut String, depth: usize, name: &str, attributes: &[(&str, String)], end: &str) {
    let _ = write!(out, "{:indent$}<{name}", "", indent = 2 * depth);
    for (name, value) in attributes.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = write!(out, " {name}=\"{}\"", escaped(value));
    }
    out.push_str(end);
    out.push('\n');
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\t' => out.push_str("&#9;"),
            c => out.push(c),
        }
    }
    out
}

/// A config string. With `redact`, its secrets are removed; they may be at any level.
fn shown(config: &str, redact: bool) -> String {
    if !redact {
        return config.to_owned();
    }
    let entries = config.split(';').map(|entry| match entry.split_once('=') {
        Some((key, _)) if SECRETS.contains(&key.trim()) => format!("{key}=***"),
        _ => entry.to_owned(),
    });
    entries.collect::<Vec<_>>().join(";")
}
