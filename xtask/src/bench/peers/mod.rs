//! Whole load generators beside ours: what a request costs them, how much memory they take, and whether what they
//! report is true.

mod cost;
mod tools;
mod truth;

use std::path::{Path, PathBuf};
use std::process::Command;

use tools::{Load, OTHERS, TOOLS, Tool};

use super::candidate::{CLIENT_CORE, pinned};
use crate::files;
use crate::sh::{Result, ensure, none_of, root, words, write_between};

/// A tool that can be measured.
struct Peer {
    name: String,
    sends: &'static str,
    call: Call,
    version: String,
}

/// How a tool is called.
enum Call {
    /// By the command lines of this bench.
    Known(&'static Tool, PathBuf),
    /// By lines of the caller, for costs only.
    Lines {
        get: Option<String>,
        put: Option<String>,
    },
}

impl Peer {
    /// The command that creates a load, on the client's core; `None` if no line is known for it.
    fn load(&self, load: &Load<'_>) -> Option<Command> {
        let (program, rest) = match &self.call {
            Call::Known(tool, program) => (
                program.to_string_lossy().into_owned(),
                words(&(tool.load)(load)),
            ),
            Call::Lines { get, put } => {
                let line = if load.put { put } else { get };
                let mut words = words(&load.filled(line.as_ref()?));
                (words.remove(0), words)
            }
        };
        let mut command = pinned(&program, CLIENT_CORE);
        command.args(rest).current_dir(load.dir);
        Some(command)
    }
}

/// How much is measured.
#[derive(Clone, Copy)]
struct Extent {
    /// Turns of each tool in each row of the costs.
    turns: u32,
    /// Length of a measurement of truth, in seconds: a multiple of the stall's period.
    pub(super) seconds: u32,
}

const FULL: Extent = Extent {
    turns: 50,
    seconds: 40,
};
const QUICK: Extent = Extent {
    turns: 5,
    seconds: 10,
};

/// Measures costs and truth, or one of them if it is named.
///
/// `--tool NAME=PATH` names the program of a tool that this bench has command lines for. `--get NAME=LINE` and `--put NAME=LINE` add
/// any other tool to the costs: a command line with the placeholders of [`Load::filled`] that reads or writes until it
/// is stopped. `--quick` measures a tenth, `--write` puts the tables into `docs/other-tools.md`. Tools without a path
/// come from `PATH` or are installed from their registry. A tool that cannot be had is named below the table.
///
/// # Errors
/// An argument is unknown, our program fails, a percentile of ours is wrong, or ours costs more than its share of warp.
pub(super) fn main(args: &[String]) -> Result {
    let asked = Asked::read(args)?;
    let (peers, missing) = asked.peers();
    let extent = if asked.has("--quick") { QUICK } else { FULL };
    let page = root().join("docs/other-tools.md");
    let keep = |name: &str, table: &str| {
        println!("{table}");
        match asked.has("--write") {
            true => write_between(&page, name, table),
            false => Ok(()),
        }
    };
    let is_wanted = |part: &str| asked.has(part) || !asked.has("cost") && !asked.has("truth");
    let mut missed = Vec::new();
    if is_wanted("cost") {
        let table = cost::table(&peers, extent.turns, &mut missed)?;
        let conditions = conditions(&peers)?;
        keep("peers-cost", &format!("{conditions}\n{table}\n{missing}"))?;
    }
    if is_wanted("truth") {
        let table = truth::table(&peers, extent.seconds, &mut missed)?;
        keep("peers-truth", &table)?;
    }
    none_of(&missed)
}

/// The arguments, read.
#[derive(Default)]
struct Asked<'a> {
    tools: Vec<(&'a str, &'a Path)>,
    /// Name, line, and whether it writes.
    lines: Vec<(&'a str, &'a str, bool)>,
    words: Vec<&'a str>,
}

impl<'a> Asked<'a> {
    fn read(args: &'a [String]) -> Result<Self> {
        let mut asked = Self::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let option = arg.as_str();
            match option {
                "--quick" | "--write" | "cost" | "truth" => asked.words.push(option),
                "--tool" | "--get" | "--put" => {
                    let pair = rest.next().and_then(|pair| pair.split_once('='));
                    let (name, value) = pair.ok_or_else(|| format!("{option} needs NAME=VALUE"))?;
                    asked.add(option, name, value)?;
                }
                _ => {
                    return Err(format!(
                        "unknown argument {arg}: cost, truth, --tool NAME=PATH, --get NAME=LINE, --put NAME=LINE, \
                         --quick, --write"
                    ));
                }
            }
        }
        Ok(asked)
    }

    fn add(&mut self, option: &str, name: &'a str, value: &'a str) -> Result {
        let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        match (option, known.contains(&name)) {
            ("--tool", true) => {
                ensure(Path::new(value).is_file(), || {
                    format!("--tool {name}={value}: no such file")
                })?;
                self.tools.push((name, Path::new(value)));
                Ok(())
            }
            ("--tool", false) => Err(format!(
                "--tool {name}: this bench has command lines for {}; give others with --get and --put",
                known.join(", ")
            )),
            (_, true) => Err(format!(
                "{option} {name}: this bench has a line; use --tool {name}=PATH"
            )),
            (_, false) => {
                let has_words = shlex::split(value).is_some_and(|words| !words.is_empty());
                ensure(has_words, || {
                    format!("{option} {name}: not a command line: {value}")
                })?;
                self.lines.push((name, value, option == "--put"));
                Ok(())
            }
        }
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    /// The tools that can be had, and a text about those that cannot.
    fn peers(&self) -> (Vec<Peer>, String) {
        let (mut peers, mut missing) = (Vec::new(), Vec::new());
        for tool in &TOOLS {
            let path = self.tools.iter().find(|(name, _)| *name == tool.name);
            match tool.program(path.map(|(_, path)| *path)) {
                Ok(program) => peers.push(Peer {
                    name: tool.name.to_owned(),
                    sends: tool.sends,
                    call: Call::Known(tool, program),
                    version: match path {
                        Some(_) => "(given by path)".to_owned(),
                        None => tool.version(),
                    },
                }),
                Err(why) => missing.push((tool.name, why)),
            }
        }
        let mut names: Vec<&str> = self.lines.iter().map(|line| line.0).collect();
        names.sort_unstable();
        names.dedup();
        let line = |name: &str, put: bool| {
            let line = self
                .lines
                .iter()
                .find(|line| line.0 == name && line.2 == put);
            line.map(|line| line.1.to_owned())
        };
        peers.extend(names.iter().map(|name| Peer {
            name: (*name).to_owned(),
            sends: "as its line says",
            call: Call::Lines {
                get: line(name, false),
                put: line(name, true),
            },
            version: "(given by line)".to_owned(),
        }));
        let others = OTHERS.iter().filter(|(name, _)| !names.contains(name));
        missing.extend(others.map(|(name, why)| (*name, (*why).to_owned())));
        let missing: Vec<String> = (missing.iter())
            .inspect(|(name, why)| eprintln!("NOT MEASURED: {name}: {why}"))
            .map(|(name, why)| format!("{name} ({why})"))
            .collect();
        (peers, format!("Not measured: {}.\n", missing.join(", ")))
    }
}

/// What the tables were measured on, and with which versions.
fn conditions(peers: &[Peer]) -> Result<String> {
    let info = files::read("/proc/cpuinfo")?;
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(": "))
            .map_or("unknown", |(_, value)| value)
    };
    let cores = info
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let versions: Vec<String> = (peers.iter())
        .map(|peer| format!("{} {}", peer.name, peer.version))
        .collect();
    Ok(format!(
        "Measured on {cores} virtual cores of {} (family {}, model {}), which other work shares. Versions: {}.\n",
        field("model name"),
        field("cpu family"),
        field("model\t"),
        versions.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_without_meaning_are_refused() {
        let refused = |line: &str| Asked::read(&words(line)).err().unwrap_or_default();
        for (line, why) in [
            ("--quik", "unknown argument --quik"),
            ("--tool warp", "needs NAME=VALUE"),
            ("--tool warp=/nowhere/warp", "no such file"),
            ("--tool k6=/bin/true", "--get and --put"),
            ("--get wrk=x", "use --tool"),
            ("--get k6=", "not a command line"),
        ] {
            assert!(refused(line).contains(why), "{line}: {}", refused(line));
        }
    }

    #[test]
    fn a_line_of_the_caller_gets_the_load() {
        let args =
            words("--get 'mine=/bin/mine -u http://{address} -z {size} -t {connections}' cost");
        let asked = Asked::read(&args).expect("the arguments");
        let lines = &asked.lines;
        assert_eq!(
            (lines.len(), lines[0].2, asked.has("cost")),
            (1, false, true)
        );
        let load = Load {
            address: "127.0.0.1:1",
            access_key: "a",
            secret_key: "s",
            put: false,
            size: 4096,
            connections: 64,
            dir: "/tmp",
        };
        assert_eq!(
            load.filled(lines[0].1),
            "/bin/mine -u http://127.0.0.1:1 -z 4096 -t 64"
        );
    }
}
