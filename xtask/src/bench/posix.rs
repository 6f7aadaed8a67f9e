//! The file system driver compared with fio: the same pattern on the same file system, in turn.
//!
//! Both sides use one thread on one core. Random reads go to the same file, a shared file of objects at fixed
//! positions that our side has just written: two files of the same size lie at different places of a disk and in
//! pages of different sizes, which changes the result by one or two per cent. In sequence, each side reads and writes
//! its own file: a side that follows the other through one file would find that data in the processor's cache. The
//! measure is throughput, so a ratio above the goal is good. Both sides run the whole time and take turns ten times a
//! second ([`slices`](super::slices)).

use std::path::{Path, PathBuf};
use std::process::Command;

use super::candidate::{CLIENT_CORE, ENOUGH_S, pinned};
use super::slices::{Moved, Slice, Sliced, alternating};
use super::{finish, median, option, quartiles, value_of};
use crate::files;
use crate::program::{bucketload, done};
use crate::sh::{Result, need_programs, root, words};

/// Smallest ratio of throughputs, ours over fio's.
const GOAL: f64 = 0.97;
/// Size of the file that is read or written, in bytes.
const FILE: u64 = 512 << 20;
/// Prefix of the name of our file.
const SHARED: &[u8] = b".bucketload-posix-shared-";

/// An access pattern.
struct Row {
    name: &'static str,
    /// fio's name for the pattern.
    rw: &'static str,
    block: u64,
    direct: bool,
    /// Requests in flight: 1 makes plain system calls one at a time, more uses io_uring.
    depth: u32,
    /// True if our objects differ in content. fio writes one buffer again and again, which stays in the processor's
    /// cache, so only rows that do the same have a goal.
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
    let directory = value_of(args, "--directory")?;
    let base = directory.map_or_else(|| root().join("target"), PathBuf::from);
    let base = base.canonicalize().map_err(files::at(&base))?;
    let place = base.join(format!("bench-posix-{}", std::process::id()));
    files::make_dir(&place)?;
    let words: Vec<&String> = args
        .iter()
        .filter(|arg| {
            !arg.starts_with("--") && arg.parse::<u32>().is_err() && Some(*arg) != directory
        })
        .collect();
    let outcome = rows(&place, &words, pairs);
    files::remove_dir(&place)?;
    let (table, missed) = outcome?;
    finish("posix", args, &table, &missed)
}

/// Returns the table and the missed goals.
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
        let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| a / b).collect();
        let (lo, hi) = quartiles(&ratios);
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
    /// More than a program reads while it starts.
    const BEGUN: u64 = 128 << 20;
    let (moved, prepared) = match (row.rw, row.direct) {
        ("write", true) => (Moved::ToDisk, FILE),
        ("write", false) => (Moved::ByWriteCalls, FILE),
        (_, true) => (Moved::FromDisk, 0),
        (_, false) => (Moved::ByReadCalls, 0),
    };
    let (mut command, out) = own_command(row, place)?;
    // A paused program must not count its requests as late.
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

/// The file that our side prepared.
fn own_file(place: &Path) -> Result<PathBuf> {
    let all = files::below(place)?;
    let is_shared = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(SHARED)
    };
    let found = all.iter().find(is_shared).map(|path| place.join(path));
    found.ok_or_else(|| format!("{}: contains no shared file", place.display()))
}

/// Writes fio's own file the way ours is written: a new file, with or without the page cache.
fn lay_out(row: &Row, place: &Path) -> Result<PathBuf> {
    let file = place.join("fio.dat");
    match std::fs::remove_file(&file) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(files::at(&file)(e)),
        _ => {}
    }
    let direct = u8::from(row.direct);
    done(&mut fio(
        &format!("--name=layout --rw=write --bs=1M --ioengine=psync --direct={direct}"),
        &file,
    ))?;
    Ok(file)
}

/// A pinned fio on `file`.
fn fio(line: &str, file: &Path) -> Command {
    let mut command = pinned("fio", CLIENT_CORE);
    command
        .args(words(line))
        .arg(format!("--size={FILE}"))
        .arg(format!("--filename={}", file.display()));
    command
}

/// The call of fio that we compare with.
fn fio_command(row: &Row, file: &Path) -> Command {
    let engine = if row.depth == 1 { "psync" } else { "io_uring" };
    let (rw, block, direct, depth) = (row.rw, row.block, u8::from(row.direct), row.depth);
    let line = format!(
        "--name=bench --time_based --norandommap --invalidate=0 --thread --output-format=json --rw={rw} --bs={block} \
         --direct={direct} --ioengine={engine} --iodepth={depth} --runtime={ENOUGH_S}"
    );
    fio(&line, file)
}

/// The call of our program, and its run directory.
fn own_command(row: &Row, place: &Path) -> Result<(Command, String)> {
    // Random reads are ranges of one object; the other patterns use whole objects in turn.
    let whole = (FILE / row.block, row.block);
    let ((count, size), mix) = match row.rw {
        "randread" => (
            (1, FILE),
            "range-get = { keys = \"sequential\", range = \"4KiB\", range-align = \"4KiB\" }",
        ),
        "read" => (whole, "get = { keys = \"sequential\" }"),
        _ => (whole, "put = { keys = \"sequential\" }"),
    };
    let text = format!(
        "name = \"bench-posix\"\n[keysets.data]\ncount = {count}\nsize = {size}\n\
         [phases.run]\nduration = \"{ENOUGH_S}s\"\nworkers = {}\nmix = {{ {mix} }}\n",
        row.depth
    );
    files::write(place.join("workload.toml"), text)?;
    let place = place.display();
    let io = if row.depth == 1 { "sync" } else { "uring" };
    let payload = if row.varied { "random" } else { "duplicate(1)" };
    let direct = if row.direct { "--posix-direct" } else { "" };
    let line = format!(
        "run '{place}/workload.toml' --target 'file://{place}' --posix-layout shared-file --posix-slot {size} \
         --posix-io {io} --threads 1 --cores {CLIENT_CORE} --payload {payload} --no-calibration --out '{place}/run' \
         --output json --quiet {direct}"
    );
    Ok((bucketload(&line)?, format!("{place}/run")))
}
