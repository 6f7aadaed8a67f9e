//! Whole load generators beside ours: what a request costs them, how much memory they take, and whether what they
//! report is true.

mod cost;
mod tools;
mod truth;

use std::path::{Path, PathBuf};

use tools::{OTHERS, Source, TOOLS, Tool};

use crate::files;
use crate::sh::{Result, ensure, none_of, root, write_between};

/// A tool that can be measured.
struct Peer {
    tool: &'static Tool,
    program: PathBuf,
    /// False if the program was named by path: its version is not known then.
    is_installed: bool,
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
/// `--tool NAME=PATH` names the program of a tool (may be repeated), `--quick` measures a tenth, `--write` puts the
/// tables into `docs/other-tools.md`. Tools without a path come from `PATH` or are installed from their registry.
/// A tool that cannot be had is named in the table.
///
/// # Errors
/// An argument is unknown, our program fails, or a percentile of ours is wrong.
pub(super) fn main(args: &[String]) -> Result {
    sorted_out(args).and_then(|(peers, missing, words)| {
        let extent = match words.iter().any(|word| word == "--quick") {
            true => QUICK,
            false => FULL,
        };
        let write = words.iter().any(|word| word == "--write");
        let page = root().join("docs/other-tools.md");
        let keep = |name: &str, table: &str| {
            println!("{table}");
            match write {
                true => write_between(&page, name, table),
                false => Ok(()),
            }
        };
        let is_wanted = |part: &str| {
            words.iter().any(|word| word == part) || words.iter().all(|word| word.starts_with("--"))
        };
        let mut wrong = Vec::new();
        if is_wanted("cost") {
            let table = cost::table(&peers, extent.turns)?;
            keep(
                "peers-cost",
                &format!("{}\n{table}\n{missing}", conditions(&peers)?),
            )?;
        }
        if is_wanted("truth") {
            let (table, ours) = truth::table(&peers, extent.seconds)?;
            wrong = ours;
            keep("peers-truth", &table)?;
        }
        none_of(&wrong)
    })
}

/// The tools that can be had, a text about those that cannot, and the other arguments.
fn sorted_out(args: &[String]) -> Result<(Vec<Peer>, String, Vec<String>)> {
    let (mut paths, mut words) = (Vec::new(), Vec::new());
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--tool" => paths.push(rest.next().ok_or("--tool needs NAME=PATH")?),
            "--quick" | "--write" | "cost" | "truth" => words.push(arg.clone()),
            _ => {
                return Err(format!(
                    "unknown argument {arg}: cost, truth, --tool NAME=PATH, --quick, --write"
                ));
            }
        }
    }
    let mut given: Vec<(&str, &Path)> = Vec::new();
    for pair in paths {
        let (name, path) = pair
            .split_once('=')
            .ok_or_else(|| format!("--tool {pair}: NAME=PATH is expected"))?;
        ensure(TOOLS.iter().any(|tool| tool.name == name), || {
            let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            format!(
                "--tool {pair}: this bench has command lines for {} only",
                known.join(", ")
            )
        })?;
        ensure(Path::new(path).is_file(), || {
            format!("--tool {pair}: no such file")
        })?;
        given.push((name, Path::new(path)));
    }
    let mut peers = Vec::new();
    let mut missing = String::from("Not measured:");
    for tool in &TOOLS {
        let path = given.iter().find(|(name, _)| *name == tool.name);
        match tool.program(path.map(|(_, path)| *path)) {
            Ok(program) => peers.push(Peer {
                tool,
                program,
                is_installed: path.is_none(),
            }),
            Err(why) => {
                eprintln!("NOT MEASURED: {}: {why}", tool.name);
                missing += &format!(" {} ({why}),", tool.name);
            }
        }
    }
    for (name, why) in OTHERS {
        eprintln!("NOT MEASURED: {name}: {why}");
        missing += &format!(" {name} ({why}),");
    }
    missing.pop();
    Ok((peers, missing + ".\n", words))
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
    let versions: Vec<String> = peers.iter().map(version).collect();
    Ok(format!(
        "Measured on {cores} virtual cores of {} (family {}, model {}), which other work shares. Versions: {}.\n",
        field("model name"),
        field("cpu family"),
        field("model\t"),
        versions.join(", ")
    ))
}

fn version(peer: &Peer) -> String {
    let name = peer.tool.name;
    if !peer.is_installed {
        return format!("{name} (given by path)");
    }
    match peer.tool.source {
        Source::Debian => {
            let query = crate::sh::line(&format!("dpkg-query -W -f ${{Version}} {name}")).output();
            let text = query.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
            format!("{name} {}", text.unwrap_or_default())
                .trim_end()
                .to_owned()
        }
        _ => format!("{name} {}", peer.tool.version())
            .trim_end()
            .to_owned(),
    }
}
