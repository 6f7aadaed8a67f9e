//! The driver of file systems beside fio: the same pattern on the same file system, in turn.
//!
//! Both use one thread on one core. They read at random places of the same file, a shared file of objects at fixed
//! places that ours has just written anew: two files of the same size lie in different places of a disk, and in pages
//! of different sizes, which is worth one or two per cent. In sequence each reads and writes a file of its own: one
//! that follows the other through the same file finds in the processor's cache what that has read. The measure is
//! throughput, so a ratio above the goal is good. Both are under way all the time and take turns ten times a second
//! ([`slices`](super::slices)).

use std::path::{Path, PathBuf};
use std::process::Command;

use super::candidate::{CLIENT_CORE, pinned};
use super::slices::{Moved, Slice, Sliced, alternating};
use super::{median, option, write_table};
use crate::own::{bucketload, call};
use crate::sh::{Result, need_programs};

/// Least ratio of the throughputs, ours over fio's.
const GOAL: f64 = 0.97;
/// Bytes of the file that is read or written.
const FILE: u64 = 512 << 20;
/// How the name of our file begins.
const SHARED: &[u8] = b".bucketload-posix-shared-";
/// How long both would go on if they were not ended, seconds.
const ENOUGH_S: u32 = 3600;

/// A pattern.
struct Row {
    name: &'static str,
    /// fio's name of it.
    rw: &'static str,
    block: u64,
    direct: bool,
    /// Requests in flight; 1 is a plain system call at a time, more is io_uring.
    depth: u32,
    /// Whether our objects have different contents. fio writes one buffer again and again, which stays in
    /// the processor's cache; only a row that does the same has a goal.
    varied: bool,
}

const ROWS: [Row; 7] = [
    Row {
        name: "4 KiB random read, O_DIRECT",
        rw: "randread",
        block: 4096,
        direct: true,
        depth: 16,
        varied: false,
    },
    Row {
        name: "4 KiB random read, page cache",
        rw: "randread",
        block: 4096,
        direct: false,
        depth: 1,
        varied: false,
    },
    Row {
        name: "1 MiB sequential read, O_DIRECT",
        rw: "read",
        block: 1 << 20,
        direct: true,
        depth: 4,
        varied: false,
    },
    Row {
        name: "1 MiB sequential read, page cache",
        rw: "read",
        block: 1 << 20,
        direct: false,
        depth: 1,
        varied: false,
    },
    Row {
        name: "1 MiB sequential write, O_DIRECT",
        rw: "write",
        block: 1 << 20,
        direct: true,
        depth: 4,
        varied: false,
    },
    Row {
        name: "1 MiB sequential write, page cache",
        rw: "write",
        block: 1 << 20,
        direct: false,
        depth: 1,
        varied: false,
    },
    Row {
        name: "1 MiB sequential write, page cache, ours with different contents",
        rw: "write",
        block: 1 << 20,
        direct: false,
        depth: 1,
        varied: true,
    },
];

/// Measures all rows, or those whose name contains one of the arguments. `--directory DIR` (default:
/// the build directory), `--repetitions N` (pairs of slices, default 250), `--write`.
pub(super) fn main(args: &[String]) -> Result {
    need_programs(&[("fio", "fio")])?;
    let pairs = option(args, "--repetitions", 250)?;
    let directory = args
        .iter()
        .position(|arg| arg == "--directory")
        .map(|at| args.get(at + 1).ok_or("--directory needs a path"))
        .transpose()?;
    let base = match directory {
        Some(path) => Path::new(path).to_path_buf(),
        None => crate::sh::root().join("target"),
    };
    let at = |e: std::io::Error| format!("{}: {e}", base.display());
    let base = base.canonicalize().map_err(at)?;
    let place = base.join(format!("bench-posix-{}", std::process::id()));
    std::fs::create_dir(&place).map_err(at)?;
    let words: Vec<&String> = args
        .iter()
        .filter(|arg| {
            !arg.starts_with("--") && arg.parse::<u32>().is_err() && Some(*arg) != directory
        })
        .collect();
    let outcome = rows(&place, &words, pairs);
    std::fs::remove_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    let (table, missed) = outcome?;
    println!("{table}");
    if args.iter().any(|arg| arg == "--write") {
        write_table("posix", &table)?;
    }
    match missed.is_empty() {
        true => Ok(()),
        false => Err(missed.join("\n")),
    }
}

/// The table and the goals that were missed.
fn rows(place: &Path, words: &[&String], pairs: u32) -> Result<(String, Vec<String>)> {
    let mut table = String::from(
        "| pattern | in flight | goal | ours over fio's: median (quartiles, n) | ours | fio |\n\
         |---|--:|--:|--:|--:|--:|\n",
    );
    let mut missed = Vec::new();
    let wanted = |row: &&Row| words.is_empty() || words.iter().any(|word| row.name.contains(*word));
    for row in ROWS.iter().filter(wanted) {
        let pairs = in_slices(row, place, pairs)?;
        let n = pairs.len();
        let (ours, theirs): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let mut ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| a / b).collect();
        ratios.sort_by(f64::total_cmp);
        // Of hundreds of slices the outermost tell nothing.
        let (lo, hi) = (ratios[n / 4], ratios[n - 1 - n / 4]);
        let shown = |values: &[f64]| match row.block {
            4096 => format!("{:.1} k/s", median(values) / 1e3),
            block => format!(
                "{:.0} MiB/s",
                median(values) * block as f64 / f64::from(1 << 20)
            ),
        };
        let ratio = median(&ratios);
        let line = format!(
            "| {} | {} | {} | {ratio:.3} ({lo:.3}-{hi:.3}, n={n}) | {} | {} |",
            row.name,
            row.depth,
            if row.varied {
                "none".to_owned()
            } else {
                format!("≥ {GOAL}")
            },
            shown(&ours),
            shown(&theirs)
        );
        eprintln!("{line}");
        table += &line;
        table.push('\n');
        if ratio < GOAL && !row.varied {
            missed.push(format!("{}: {ratio:.3} is below the goal {GOAL}", row.name));
        }
    }
    Ok((table, missed))
}

/// Blocks per second of both sides in each of `pairs` pairs of slices.
fn in_slices(row: &Row, place: &Path, pairs: u32) -> Result<Vec<(f64, f64)>> {
    /// More than a program reads to be started.
    const BEGUN: u64 = 128 << 20;
    let (moved, prepared) = match (row.rw, row.direct) {
        ("write", true) => (Moved::Written, FILE),
        ("write", false) => (Moved::Put, FILE),
        (_, true) => (Moved::Read, 0),
        (_, false) => (Moved::Got, 0),
    };
    let (mut command, out) = own_command(row, place)?;
    // What is stopped is not late.
    command.args(["--timeout", "1h"]);
    let ours = Sliced::start(&mut command, moved, prepared + BEGUN)?;
    let file = match row.rw {
        "randread" => own_file(place)?,
        _ => lay_out(row, place)?,
    };
    let theirs = Sliced::start(&mut fio_command(row, &file), moved, BEGUN)?;
    let rate = |slice: Slice| slice.moved / row.block as f64 / slice.wall_ns * 1e9;
    let pairs = alternating(
        pairs,
        || ours.slice().map(rate),
        || theirs.slice().map(rate),
    )?;
    drop(ours);
    std::fs::remove_dir_all(&out).map_err(|e| format!("{out}: {e}"))?;
    Ok(pairs)
}

/// The file that ours has prepared.
fn own_file(place: &Path) -> Result<PathBuf> {
    let mut directories = vec![place.to_path_buf()];
    while let Some(directory) = directories.pop() {
        let at = |e: std::io::Error| format!("{}: {e}", directory.display());
        for entry in std::fs::read_dir(&directory).map_err(at)? {
            let entry = entry.map_err(at)?;
            if entry.file_type().map_err(at)?.is_dir() {
                directories.push(entry.path());
            } else if entry.file_name().as_encoded_bytes().starts_with(SHARED) {
                return Ok(entry.path());
            }
        }
    }
    Err(format!(
        "{}: there is no shared file in it",
        place.display()
    ))
}

/// Writes the file that fio uses alone as ours is written: a new one, with or without the page cache.
fn lay_out(row: &Row, place: &Path) -> Result<PathBuf> {
    let file = place.join("fio.dat");
    match std::fs::remove_file(&file) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{}: {e}", file.display()));
        }
        _ => {}
    }
    let mut command = pinned("fio", CLIENT_CORE);
    command.args(["--name=layout", "--rw=write", "--bs=1M", "--ioengine=psync"]);
    command.args([
        format!("--filename={}", file.display()),
        format!("--size={FILE}"),
        format!("--direct={}", u8::from(row.direct)),
    ]);
    call(&mut command)?.expect_code(0)?;
    Ok(file)
}

/// fio on `file`.
fn fio_command(row: &Row, file: &Path) -> Command {
    let mut command = pinned("fio", CLIENT_CORE);
    let engine = if row.depth == 1 { "psync" } else { "io_uring" };
    command.args([
        "--name=bench",
        "--time_based",
        "--norandommap",
        "--invalidate=0",
        "--thread",
        "--output-format=json",
    ]);
    command.args([
        format!("--filename={}", file.display()),
        format!("--size={FILE}"),
        format!("--rw={}", row.rw),
        format!("--bs={}", row.block),
        format!("--direct={}", u8::from(row.direct)),
        format!("--ioengine={engine}"),
        format!("--iodepth={}", row.depth),
        format!("--runtime={ENOUGH_S}"),
    ]);
    command
}

/// Our program, and the directory of its run.
fn own_command(row: &Row, place: &Path) -> Result<(Command, String)> {
    // Random reads take ranges of one object, the others whole objects in turn.
    let (count, size, mix) = match row.rw {
        "randread" => (
            1,
            FILE,
            "range-get = { keys = \"sequential\", range = \"4KiB\", range-align = \"4KiB\" }",
        ),
        "read" => (
            FILE / row.block,
            row.block,
            "get = { keys = \"sequential\" }",
        ),
        _ => (
            FILE / row.block,
            row.block,
            "put = { keys = \"sequential\" }",
        ),
    };
    let text = format!(
        "name = \"bench-posix\"\n[keysets.data]\ncount = {count}\nsize = {size}\n\
         [phases.run]\nduration = \"{ENOUGH_S}s\"\nworkers = {}\nmix = {{ {mix} }}\n",
        row.depth
    );
    let file = place.join("workload.toml");
    std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    let (workload, out) = (
        file.display().to_string(),
        place.join("run").display().to_string(),
    );
    let (target, slot, core) = (
        format!("file://{}", place.display()),
        size.to_string(),
        CLIENT_CORE.to_string(),
    );
    let mut args = vec![
        "run",
        &workload,
        "--target",
        &target,
        "--posix-layout",
        "shared-file",
        "--posix-slot",
        &slot,
        "--posix-io",
        if row.depth == 1 { "sync" } else { "uring" },
        "--threads",
        "1",
        "--cores",
        &core,
        "--payload",
        if row.varied { "random" } else { "duplicate(1)" },
        "--no-calibration",
        "--out",
        &out,
        "--output",
        "json",
        "--quiet",
    ];
    if row.direct {
        args.push("--posix-direct");
    }
    Ok((bucketload(&args)?, out))
}
