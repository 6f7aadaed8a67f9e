//! Figures per rank: `<phase>.csv` and `find.csv`, with the columns of IO500's tools (docs/spec/io500-mdworkbench.md
//! section A.5).

use std::fmt::Write as _;

use bucketload_core::ranks::{PhaseRanks, RankSum};

use super::{Phase, Tool};

/// The tests of mdtest in the order of its columns, two for each. Ours are of files only.
const TESTS: [&str; 11] = [
    "Directory creation",
    "Directory stat",
    "Directory read",
    "Directory rename",
    "Directory removal",
    "File creation",
    "File stat",
    "File read",
    "File removal",
    "Tree creation",
    "Tree removal",
];
/// Those of them that mdtest writes for each rank.
const RANK_TESTS: usize = 9;

/// The columns of pfind. A rank here takes no work from another, so those of its messages are 0.
const FIND: &str = "rank, errors, unknown, found, total, checked, job steal msgs received, work items send, job steal \
                    msgs send, work items stolen, time spend in job stealing in s, number of completion tokens send\n";

/// The file of a phase. Throughput is bytes/s, rates are operations/s, times are seconds.
#[must_use]
pub fn csv(phase: &Phase, ranks: &PhaseRanks) -> String {
    match phase.tool {
        Tool::Ior => ior(phase, ranks),
        Tool::Mdtest => mdtest(phase, ranks),
        Tool::Find => find(ranks),
        Tool::Workbench | Tool::Timestamp => workbench(ranks),
    }
}

fn seconds(rank: &RankSum) -> f64 {
    rank.last_ns.saturating_sub(rank.first_ns) as f64 / 1e9
}

fn per_second(amount: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        amount as f64 / seconds
    } else {
        0.0
    }
}

/// A number as C writes it with `%.10e`.
fn exp(number: f64) -> String {
    let text = format!("{number:.10e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

fn ior(phase: &Phase, ranks: &PhaseRanks) -> String {
    let mut out = String::from(
        "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput\n",
    );
    let access = if phase.writes { "write" } else { "read" };
    for rank in &ranks.ranks {
        // Opening and closing are ordinary requests here and part of both.
        let time = seconds(rank);
        let (time, rate) = (exp(time), exp(per_second(rank.bytes, time)));
        let _ = writeln!(out, "{access},{},{time},{time},{rate},{rate}", rank.rank);
    }
    out
}

fn mdtest(phase: &Phase, ranks: &PhaseRanks) -> String {
    let mut out = String::from("rank,items");
    for test in TESTS {
        let _ = write!(out, ",rate-{test},time-{test}");
    }
    let test = match phase.name.rsplit('-').next() {
        Some("write") => "File creation",
        Some("stat") => "File stat",
        Some("read") => "File read",
        _ => "File removal",
    };
    let mut row = |name: &str, tests: &[&str], items: u64, time: f64| {
        let _ = write!(out, "\n{name}");
        for &other in tests {
            let _ = match other == test && items > 0 {
                true => write!(out, ",{},{}", exp(per_second(items, time)), exp(time)),
                false => write!(out, ",,"),
            };
        }
    };
    // mdtest states the items of a rank in the row of all.
    let each = ranks.ranks.iter().map(|rank| rank.steps).max().unwrap_or(0);
    let all = ranks.length_ns() as f64 / 1e9;
    row(
        &format!("all,{each}"),
        &TESTS,
        ranks.sum(|rank| rank.good),
        all,
    );
    for rank in &ranks.ranks {
        let name = format!("{},", rank.rank);
        row(&name, &TESTS[..RANK_TESTS], rank.good, seconds(rank));
    }
    out.push('\n');
    out
}

fn find(ranks: &PhaseRanks) -> String {
    let time = ranks.length_ns() as f64 / 1e9;
    let rate = per_second(ranks.sum(|rank| rank.seen), time);
    let mut out = format!("runtime: {time:.6} rate: {rate:.6}\n{FIND}");
    for rank in &ranks.ranks {
        let RankSum {
            found,
            seen,
            failed,
            ..
        } = rank;
        let _ = writeln!(
            out,
            "{}, {failed}, 0, {found}, {seen}, {seen}, 0, 0, 0, 0, 0.000s, 0",
            rank.rank
        );
    }
    out
}

/// IO500 writes no such file for MD-Workbench.
fn workbench(ranks: &PhaseRanks) -> String {
    let mut out = String::from("rank,items,failed,runtime,rate\n");
    for rank in &ranks.ranks {
        let (time, rate) = (seconds(rank), per_second(rank.good, seconds(rank)));
        let _ = writeln!(
            out,
            "{},{},{},{time:e},{rate:e}",
            rank.rank, rank.good, rank.failed
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use bucketload_core::ranks::{PhaseRanks, RankSum};

    use super::{csv, exp};
    use crate::io500::phase_named;

    /// IO500's own files, of 2 ranks.
    macro_rules! genuine {
        ($name:literal) => {
            include_str!(concat!("../../tests/io500/two/", $name, ".csv"))
        };
    }

    /// A line with its figures replaced by their form.
    fn form(line: &str) -> String {
        let exp = |field: &str| field.len() == 16 && field.contains('e') && field.contains('.');
        let field = |field: &str| match field {
            field if exp(field) => "E".to_owned(),
            field => field
                .chars()
                .map(|c| if c.is_ascii_digit() { '9' } else { c })
                .collect(),
        };
        line.split(',')
            .map(field)
            .collect::<Vec<_>>()
            .join(",")
            .replace("99", "9")
    }

    fn measured() -> PhaseRanks {
        let rank = |rank| RankSum {
            rank,
            steps: 2000,
            good: 2000,
            bytes: 1 << 30,
            ops: 4,
            first_ns: 1_000_000_000,
            last_ns: 1_000_000_000 + 130_247_831 * u64::from(rank + 1),
            seen: 10,
            found: 2,
            ..RankSum::default()
        };
        PhaseRanks {
            phase: 1,
            stonewall_ns: 0,
            ranks: vec![rank(0), rank(1)],
        }
    }

    #[test]
    fn files_have_the_columns_and_numbers_of_io500() {
        for (name, genuine) in [
            ("ior-easy-write", genuine!("ior-easy-write")),
            ("mdtest-easy-write", genuine!("mdtest-easy-write")),
            ("mdtest-hard-delete", genuine!("mdtest-hard-delete")),
        ] {
            let ours = csv(phase_named(name).unwrap(), &measured());
            assert_eq!(ours.lines().count(), genuine.lines().count(), "{name}");
            assert_eq!(ours.lines().next(), genuine.lines().next(), "{name}");
            for (ours, genuine) in ours.lines().zip(genuine.lines()).skip(1) {
                // mdtest also times the directories, which nobody made here.
                let genuine = form(genuine);
                let genuine = match ours.starts_with("all,") {
                    true => format!("{},,,,", genuine.trim_end_matches([',', 'E'])),
                    false => genuine,
                };
                let ours = match ours.starts_with("all,") {
                    true => format!("{},,,,", form(ours).trim_end_matches([',', 'E'])),
                    false => form(ours),
                };
                assert_eq!(ours, genuine, "{name}");
            }
            assert!(ours.ends_with('\n'));
        }
        let genuine = genuine!("find");
        let ours = csv(phase_named("find").unwrap(), &measured());
        assert_eq!(ours.lines().nth(1), genuine.lines().nth(1));
        assert_eq!(
            ours.lines().next().unwrap(),
            "runtime: 0.260496 rate: 76.776710"
        );
        assert_eq!(
            ours.lines().nth(3).unwrap(),
            "1, 0, 0, 2, 10, 10, 0, 0, 0, 0, 0.000s, 0"
        );
        let fields = |text: &str| text.lines().nth(3).unwrap().split(", ").count();
        assert_eq!(fields(&ours), fields(genuine));
    }

    #[test]
    fn units_are_bytes_operations_and_seconds() {
        let of = |name: &str| csv(phase_named(name).unwrap(), &measured());
        let wanted = "read,1,2.6049566200e-01,2.6049566200e-01,4.1219182529e+09,4.1219182529e+09";
        assert_eq!(of("ior-easy-read").lines().nth(2), Some(wanted));
        let stat = of("mdtest-easy-stat");
        let fields =
            |at: usize| -> Vec<&str> { stat.lines().nth(at).unwrap().split(',').collect() };
        let column = fields(0)
            .iter()
            .position(|name| *name == "rate-File stat")
            .unwrap();
        assert_eq!(fields(1)[..2], ["all", "2000"]);
        assert_eq!(
            fields(1)[column..][..2],
            ["1.5355342079e+04", "2.6049566200e-01"]
        );
        assert_eq!(fields(3)[..2], ["1", ""]);
        assert_eq!(
            fields(3)[column..][..2],
            ["7.6776710393e+03", "2.6049566200e-01"]
        );
        assert_eq!(exp(0.0), "0.0000000000e+00");
        assert_eq!(exp(1e100), "1.0000000000e+100");
    }
}
