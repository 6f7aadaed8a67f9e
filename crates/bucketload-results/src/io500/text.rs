//! The result files in IO500's own formats (docs/spec/io500-mdworkbench.md section A.5).

use std::fmt::Write as _;

use time::OffsetDateTime;
use time::macros::format_description;

use bucketload_core::ranks::PhaseRanks;

use super::hash::{of_extended, of_scores};
use super::score::{PhaseScore, Scores};
use super::{Group, Report};

/// Writes a pair, with the key left-justified to 15 columns.
fn pair(out: &mut String, key: &str, value: &str) {
    let _ = writeln!(out, "{key:<15} = {value}");
}

/// An instant in IO500's format, in UTC.
fn instant(unix_s: i64) -> String {
    let form = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
    OffsetDateTime::from_unix_timestamp(unix_s)
        .ok()
        .and_then(|at| at.format(form).ok())
        .unwrap_or_default()
}

const fn flag(invalid: bool) -> &'static str {
    if invalid { " [INVALID]" } else { "" }
}

/// The text of `result.txt`.
#[must_use]
pub fn result(report: &Report) -> String {
    let mut out = String::from("[run]\n");
    pair(&mut out, "procs", &report.ranks.to_string());
    pair(&mut out, "version", &report.version);
    pair(&mut out, "config-hash", &report.config_hash);
    pair(&mut out, "result-dir", &report.result_dir);
    pair(&mut out, "mode", mode(report));
    pair(&mut out, "mapping", &report.mapping);
    let _ = writeln!(out, "; START {}\n", instant(report.start_unix_s));
    for phase in &report.phases {
        section(&mut out, phase);
    }
    let scores = Scores::of(&report.phases);
    out.push_str("[SCORE]\n");
    pair(&mut out, "MD", &format!("{:.6}", scores.md));
    pair(&mut out, "BW", &format!("{:.6}", scores.bw));
    let total = format!("{:.6}{}", scores.total, flag(!scores.valid));
    pair(&mut out, "SCORE", &total);
    let hash = of_scores(&report.version, &report.phases, &scores);
    pair(&mut out, "hash", &hash.to_string());
    // In a section of its own, because IO500's hash covers every pair of [SCORE].
    out.push_str("\n[SCORE-without-find]\n");
    let without = Scores::without_find(&report.phases);
    pair(&mut out, "MD-without-find", &format!("{:.6}", without.md));
    let total = format!("{:.6}{}", without.total, flag(!without.valid));
    pair(&mut out, "SCORE-without-find", &total);
    if report.extended {
        let extended = Scores::extended(&report.phases);
        out.push_str("\n[SCOREX]\n");
        pair(&mut out, "MD", &format!("{:.6}", extended.md));
        pair(&mut out, "BW", &format!("{:.6}", extended.bw));
        let total = format!("{:.6}{}", extended.total, flag(!extended.valid));
        pair(&mut out, "SCORE", &total);
        let hash = of_extended(&report.phases, &extended);
        pair(&mut out, "hash", &hash.to_string());
    }
    let _ = writeln!(out, "; END {}", instant(report.end_unix_s));
    out
}

const fn mode(report: &Report) -> &'static str {
    match report.extended {
        true => "extended",
        false => "standard",
    }
}

/// The text of `<phase>.txt`: the phase's section and the measurements of its ranks. IO500 stores the output of its tools
/// there.
#[must_use]
pub fn phase(score: &PhaseScore, ranks: &PhaseRanks) -> String {
    let mut out = String::new();
    section(&mut out, score);
    out.push_str(
        "rank steps failed-steps requests failed-requests bytes seconds longest-request-seconds\n",
    );
    for rank in &ranks.ranks {
        let _ = writeln!(
            out,
            "{} {} {} {} {} {} {:.6} {:.6}",
            rank.rank,
            rank.steps,
            rank.steps - rank.good.min(rank.steps),
            rank.ops + rank.failed,
            rank.failed,
            rank.bytes,
            rank.last_ns.saturating_sub(rank.first_ns) as f64 / 1e9,
            rank.longest_ns as f64 / 1e9
        );
    }
    let steps = ranks.ranks.iter().map(|rank| rank.steps);
    let (least, most) = (steps.clone().min().unwrap_or(0), steps.max().unwrap_or(0));
    let _ = writeln!(
        out,
        "\n{} ranks, {least} to {most} steps each, {:.6} s from the first start to the last end",
        ranks.ranks.len(),
        ranks.length_ns() as f64 / 1e9
    );
    out
}

fn section(out: &mut String, phase: &PhaseScore) {
    let _ = writeln!(out, "[{}]", phase.name);
    if phase.start_unix_s > 0 {
        pair(out, "t_start", &instant(phase.start_unix_s));
    }
    for (key, value) in &phase.lines {
        pair(out, key, value);
    }
    for why in &phase.invalid {
        let _ = writeln!(out, "; ERROR INVALID {why}");
    }
    pair(out, "score", &format!("{:.6}", phase.score));
    pair(out, "t_delta", &format!("{:.4}", phase.seconds));
    if phase.end_unix_s > 0 {
        pair(out, "t_end", &instant(phase.end_unix_s));
    }
    out.push('\n');
}

/// The unit of a phase's score.
#[must_use]
pub fn unit(phase: &str) -> &'static str {
    match phase.starts_with('i') {
        true => "GiB/s",
        false => "kIOPS",
    }
}

/// The line of a phase: `[RESULT] %20s %15s %s : time %.3f seconds`.
#[must_use]
pub fn phase_line(phase: &PhaseScore) -> String {
    let mark = match phase.group() {
        Group::None => "[      ]",
        Group::Bandwidth | Group::Metadata => "[RESULT]",
    };
    let unit = unit(&phase.name);
    let score = format!("{:.6}", phase.score);
    let (name, seconds) = (&phase.name, phase.seconds);
    let flag = flag(!phase.invalid.is_empty());
    format!("{mark} {name:>20} {score:>15} {unit} : time {seconds:.3} seconds{flag}")
}

/// The line of the scores.
#[must_use]
pub fn score_line(scores: &Scores) -> String {
    total_line("[SCORE ]", scores)
}

fn total_line(mark: &str, scores: &Scores) -> String {
    format!(
        "{mark} Bandwidth {:.6} GiB/s : IOPS {:.6} kiops : TOTAL {:.6}{}",
        scores.bw,
        scores.md,
        scores.total,
        flag(!scores.valid)
    )
}

/// The text of `result_summary.txt`. The line with the score without the search is our addition.
#[must_use]
pub fn summary(report: &Report) -> String {
    let mut out = format!("IO500 version {} ({})\n", report.version, mode(report));
    for phase in &report.phases {
        out.push_str(&phase_line(phase));
        out.push('\n');
    }
    out.push_str(&score_line(&Scores::of(&report.phases)));
    if report.extended {
        let extended = Scores::extended(&report.phases);
        let _ = write!(out, "\n{}", total_line("[SCOREX]", &extended));
    }
    let without = Scores::without_find(&report.phases);
    let _ = writeln!(
        out,
        "\n[      ] without find: IOPS {:.6} kiops : TOTAL {:.6}{} (mapping {})",
        without.md,
        without.total,
        flag(!without.valid),
        report.mapping
    );
    out
}

#[cfg(test)]
mod tests {
    use super::{phase_line, result, score_line, summary};
    use crate::io500::parse::Recorded;
    use crate::io500::verify::verify;
    use crate::io500::{PhaseScore, Report, Scores};

    fn phase(name: &str, score: f64, seconds: f64, invalid: &[&str]) -> PhaseScore {
        PhaseScore {
            name: name.to_owned(),
            score,
            seconds,
            invalid: invalid.iter().map(|&why| why.to_owned()).collect(),
            ..PhaseScore::default()
        }
    }

    /// The lines shown in section A.5.
    #[test]
    fn lines_match_the_original() {
        let short = "Runtime is smaller than expected minimum runtime";
        let lines = [
            (
                phase("ior-easy-write", 0.376149, 2.2536, &[short]),
                "[RESULT]       ior-easy-write        0.376149 GiB/s : time 2.254 seconds [INVALID]",
            ),
            (
                phase("mdtest-easy-write", 41.326755, 3.454, &[]),
                "[RESULT]    mdtest-easy-write       41.326755 kIOPS : time 3.454 seconds",
            ),
            (
                phase("timestamp", 0.0, 0.0, &[]),
                "[      ]            timestamp        0.000000 kIOPS : time 0.000 seconds",
            ),
        ];
        for (phase, line) in lines {
            assert_eq!(phase_line(&phase), line);
        }
        let scores = Scores {
            bw: 0.458973,
            md: 79.707941,
            total: 6.048454,
            valid: false,
        };
        assert_eq!(
            score_line(&scores),
            "[SCORE ] Bandwidth 0.458973 GiB/s : IOPS 79.707941 kiops : TOTAL 6.048454 [INVALID]"
        );
    }

    #[test]
    fn the_result_file_matches_the_original() {
        let mut easy = phase(
            "ior-easy-write",
            0.376149,
            2.2536,
            &["Runtime is smaller than expected minimum runtime"],
        );
        // 2026-11-20 08:38:11 UTC
        easy.start_unix_s = 1_795_163_891;
        easy.end_unix_s = 1_795_163_893;
        easy.lines = vec![
            ("exe".to_owned(), "./ior".to_owned()),
            ("throughput-stonewall".to_owned(), "0.39".to_owned()),
        ];
        let mut find = phase("find", 258.922475, 0.5407, &[]);
        find.lines = [("nproc", "2"), ("found", "976"), ("total-files", "140003")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .to_vec();
        let report = Report {
            version: "io500-isc26_v2-26-g02091cf254d8".to_owned(),
            config_hash: "A486B358".to_owned(),
            result_dir: "./results".to_owned(),
            mapping: "native".to_owned(),
            ranks: 2,
            extended: false,
            start_unix_s: 1_795_163_891,
            end_unix_s: 1_795_163_916,
            phases: vec![easy, find],
            ranks_of: Vec::new(),
        };
        let text = result(&report);
        let wanted = "\
[run]
procs           = 2
version         = io500-isc26_v2-26-g02091cf254d8
config-hash     = A486B358
result-dir      = ./results
mode            = standard
mapping         = native
; START 2026-11-20 08:38:11

[ior-easy-write]
t_start         = 2026-11-20 08:38:11
exe             = ./ior
throughput-stonewall = 0.39
; ERROR INVALID Runtime is smaller than expected minimum runtime
score           = 0.376149
t_delta         = 2.2536
t_end           = 2026-11-20 08:38:13

[find]
nproc           = 2
found           = 976
total-files     = 140003
score           = 258.922475
t_delta         = 0.5407

[SCORE]
MD              = 258.922475
BW              = 0.376149
SCORE           = 9.868811 [INVALID]
hash            = ";
        assert!(text.starts_with(wanted), "{text}");
        assert!(text.ends_with("; END 2026-11-20 08:38:36\n"), "{text}");
        let verified = verify(&text, None).unwrap();
        assert!(
            verified.hash_ok && verified.formula_ok && !verified.valid,
            "{verified:?}"
        );
        let recorded = Recorded::parse_summary(&summary(&report)).unwrap();
        assert_eq!(recorded.total, "9.868811");
        assert_eq!(recorded.phases.len(), 2);
    }
}
