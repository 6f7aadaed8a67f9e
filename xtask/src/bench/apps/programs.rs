//! The applications: how they are called, and where their output has the figures.

use crate::sh::Result;

/// The number of files that is too many for a server over HTTP.
const LONG: &str = "-n 5000";

/// A figure that an application prints.
pub(super) struct Figure {
    pub(super) name: &'static str,
    /// Smallest ratio of the library in the process to plain files.
    pub(super) of_posix: Option<f64>,
    /// Smallest value with the library in the process.
    pub(super) at_least: Option<f64>,
    pub(super) read: fn(&str) -> Option<f64>,
}

/// An application.
pub(super) struct Program {
    /// Also the name of its option, of the program's file and of its files.
    pub(super) name: &'static str,
    /// The option that says where its files lie, with what follows it up to the path.
    pub(super) place: &'static str,
    works: &'static [&'static str],
    quick: &'static [&'static str],
    pub(super) figures: &'static [Figure],
}

impl Program {
    /// The amounts of work, as arguments.
    pub(super) fn works(&self, is_quick: bool) -> &'static [&'static str] {
        if is_quick { self.quick } else { self.works }
    }

    /// True if this work takes minutes over HTTP: the applications list a prefix at each removal, and a server reads
    /// the whole directory for that.
    pub(super) fn is_long(&self, work: &str) -> bool {
        work.contains(LONG)
    }

    /// Adds the figures in an output to `values`, which has a list for each.
    pub(super) fn add(&self, text: &str, values: &mut [Vec<f64>]) -> Result {
        for (figure, values) in self.figures.iter().zip(values) {
            let missing = || format!("{}: no {:?} in its output: {text}", self.name, figure.name);
            values.push((figure.read)(text).ok_or_else(missing)?);
        }
        Ok(())
    }
}

const fn figure(
    name: &'static str,
    of_posix: Option<f64>,
    at_least: Option<f64>,
    read: fn(&str) -> Option<f64>,
) -> Figure {
    Figure {
        name,
        of_posix,
        at_least,
        read,
    }
}

pub(super) const PROGRAMS: [Program; 3] = [
    Program {
        name: "ior",
        place: "-o ",
        works: &[
            "-t 67108864 -b 268435456 -w -r",
            "-t 1048576 -b 268435456 -w -r",
        ],
        quick: &["-t 1048576 -b 33554432 -w -r"],
        figures: &[
            figure("write, MiB/s", Some(0.85), None, |text| ior(text, "write")),
            figure("read, MiB/s", None, None, |text| ior(text, "read")),
        ],
    },
    Program {
        name: "mdtest",
        place: "-d ",
        works: &[
            "-F -n 200 -w 3901 -e 3901",
            "-F -n 2000 -w 3901 -e 3901",
            "-F -n 5000 -w 3901 -e 3901",
        ],
        quick: &["-F -n 200 -w 3901 -e 3901"],
        figures: &[
            figure("creation per s", Some(0.55), None, |text| {
                mdtest(text, "creation")
            }),
            figure("stat per s", Some(0.5), None, |text| mdtest(text, "stat")),
            figure("read per s", Some(0.6), None, |text| mdtest(text, "read")),
            figure("removal per s", None, Some(120_000.0), |text| {
                mdtest(text, "removal")
            }),
        ],
    },
    Program {
        name: "md-workbench",
        place: "-o=",
        works: &["-D 10 -I 200 -P 400 -R 1"],
        quick: &["-D 2 -I 20 -P 40 -R 1"],
        figures: &[
            figure("precreate, obj/s", None, None, |text| {
                workbench(text, "precreate", "obj/s")
            }),
            figure("benchmark, obj/s", None, Some(40_000.0), |text| {
                workbench(text, "benchmark", "obj/s")
            }),
            figure("clean-up, dset/s", None, Some(250.0), |text| {
                workbench(text, "cleanup", "dset/s")
            }),
        ],
    },
];

/// The bandwidth of the only repetition, the second word of its line; the line of the summary has the same first word
/// and as its second the largest, so the first line is taken.
fn ior(text: &str, access: &str) -> Option<f64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next()? == access).then(|| words.next()?.parse().ok())?)
}

/// The largest rate of the only iteration: `File creation  MAX  MIN  MEAN  DEVIATION`.
fn mdtest(text: &str, operation: &str) -> Option<f64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| {
        (words.next()? == "File" && words.next()? == operation)
            .then(|| words.next()?.parse().ok())?
    })
}

/// The rate in `unit` of the line of a phase: `… rate:1414.4 obj/s …`.
fn workbench(text: &str, phase: &str, unit: &str) -> Option<f64> {
    let mut lines = text.lines();
    let words: Vec<&str> = lines
        .find(|line| {
            line.strip_prefix(phase)
                .is_some_and(|rest| rest.starts_with(" process"))
        })?
        .split_whitespace()
        .collect();
    let mut pairs = words.windows(2);
    pairs.find_map(|pair| (pair[1] == unit).then(|| pair[0].strip_prefix("rate:")?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_the_output() {
        let text = "access    bw(MiB/s)\nwrite     208.69     208.78     0.007842\nread      428.83     428.87\n\
                    Operation   Max(MiB)\nwrite         300.00       177.58\n";
        assert_eq!(
            (ior(text, "write"), ior(text, "read")),
            (Some(208.69), Some(428.83))
        );
        let text = "   File creation                3456.618       1639.364\n   File removal                 2266.199       1.0\n   \
                    Tree removal                 13.0\n";
        assert_eq!(
            (mdtest(text, "creation"), mdtest(text, "removal")),
            (Some(3456.618), Some(2266.199))
        );
        let text = "benchmark process max:0.14s rate:5657.7 iops/s objects:200 rate:1414.4 obj/s tp:10.5 MiB/s\n\
                    cleanup process max:0.00s rate:161150.6 iops/s objects:400 dsets: 4 rate:159555.1 obj/s rate:1595.551 dset/s\n";
        assert_eq!(workbench(text, "benchmark", "obj/s"), Some(1414.4));
        assert_eq!(workbench(text, "cleanup", "dset/s"), Some(1595.551));
        assert_eq!(workbench(text, "precreate", "obj/s"), None);
    }
}
