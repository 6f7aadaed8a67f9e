//! The commands of README, manual and `--help`, run exactly as written.
//!
//! ```text
//! pages ── block: commands of code blocks, and the files that they promise
//! command ── table: quick, long, never, serves ── places: hosts, keys and directories of this machine
//!         ── shell: run in the directory of its page, in the order of the page
//! ```
//!
//! A command promises its exit code (0 unless the table says otherwise), the output files that it names, and the
//! report that it says it wrote. The `table` gives a reason for every command that does not run.

mod block;
mod places;
mod shell;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use block::Example;
use places::StandIns;
use shell::{Ended, Served, Shell};
use table::{Handling, RULES};

use crate::files;
use crate::sh::{Result, ensure, no_faults, root};

/// Pages outside `docs` whose commands are run.
const PAGES: [&str; 3] = ["README.md", "CONTRIBUTING.md", "servers/README.md"];

/// Time limits of quick commands, and of those that only conformance runs.
const QUICK: Duration = Duration::from_secs(300);
const LONG: Duration = Duration::from_secs(45 * 60);

/// Runs the quick commands of all pages, or of the named ones; `--long` adds the other commands.
pub(crate) fn main(args: &[String]) -> Result {
    let (flags, names): (Vec<_>, Vec<_>) = args.iter().partition(|arg| arg.starts_with("--"));
    if let Some(unknown) = flags.iter().find(|flag| **flag != "--long") {
        return Err(format!("unknown option {unknown}: --long"));
    }
    let mut pages = pages()?;
    if !names.is_empty() {
        let named = |page: &Path| {
            names
                .iter()
                .any(|name| page.to_string_lossy().ends_with(*name))
        };
        pages.retain(|page| named(page));
        if pages.is_empty() {
            return Err(format!(
                "no page is called {names:?}: name one such as docs/tutorial.md"
            ));
        }
    }
    run(&pages, !flags.is_empty(), names.is_empty())
}

/// Runs every command of every page, for conformance.
pub(crate) fn all() -> Result {
    run(&pages()?, true, true)
}

/// The pages that may have commands, relative to the root.
fn pages() -> Result<Vec<PathBuf>> {
    let mut pages: Vec<PathBuf> = PAGES.iter().map(PathBuf::from).collect();
    let docs = files::below(&root().join("docs"))?;
    let docs = docs.into_iter().map(|path| Path::new("docs").join(path));
    pages.extend(docs.filter(|path| files::is_kind(path, "md")));
    Ok(pages)
}

fn run(pages: &[PathBuf], long: bool, whole: bool) -> Result {
    let places = StandIns::start()?;
    let (slow, others): (Vec<_>, Vec<_>) = pages.iter().enumerate().partition(|(_, path)| {
        let path = path.to_string_lossy();
        table::BESIDE.iter().any(|page| table::page_is(&path, page))
    });
    let (beside, mut lane) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| Lane::run(&slow, &places, long));
        let lane = Lane::run(&others, &places, long);
        let beside = beside.join().map_err(|_| "panicked".to_owned());
        Ok::<_, String>((beside??, lane?))
    })?;
    lane.used.extend(beside.used);
    lane.faults.extend(beside.faults);
    let Lane { used, mut faults } = lane;
    if whole {
        let stale = RULES.iter().enumerate().filter(|(n, _)| !used.contains(n));
        faults.extend(stale.map(|(_, (page, words, _))| {
            format!(
                "xtask/src/examples/table.rs: no command matches the rule for {page:?}, {words:?}"
            )
        }));
    }
    no_faults("faults in examples", &faults)
}

/// Results of pages whose commands run one after another.
#[derive(Default)]
struct Lane {
    /// Rules of the table that matched a command.
    used: BTreeSet<usize>,
    faults: Vec<String>,
}

impl Lane {
    fn run(pages: &[(usize, &PathBuf)], places: &StandIns, long: bool) -> Result<Self> {
        let mut lane = Self::default();
        for (n, path) in pages {
            let text = files::read(root().join(path))?;
            let (examples, unknown) = block::examples(&text);
            let at = path.display();
            for (line, command) in unknown {
                lane.faults.push(format!(
                    "{at}:{line}: neither a command of ours nor of a known program: {command}"
                ));
            }
            if examples.is_empty() {
                continue;
            }
            let mut page = Page {
                path,
                places,
                dir: places.page_dir(*n)?,
                long,
                served: Vec::new(),
                left: BTreeMap::new(),
                made: BTreeSet::new(),
                ran: 0,
                mapped: 0,
                faults: Vec::new(),
            };
            page.run(&examples, &mut lane.used);
            eprintln!("{}", page.summary());
            lane.faults.append(&mut page.faults);
            let _ = std::fs::remove_dir_all(&page.dir);
        }
        Ok(lane)
    }
}

/// A run of one page's commands.
struct Page<'a> {
    path: &'a Path,
    places: &'a StandIns,
    dir: PathBuf,
    long: bool,
    served: Vec<Served>,
    /// Number of skipped commands, by reason.
    left: BTreeMap<String, usize>,
    /// Files that its commands have promised so far.
    made: BTreeSet<String>,
    ran: usize,
    mapped: usize,
    faults: Vec<String>,
}

impl Page<'_> {
    fn run(&mut self, examples: &[Example], used: &mut BTreeSet<usize>) {
        let name = self.path.to_string_lossy().into_owned();
        if table::WITH_CONTROLLER
            .iter()
            .any(|page| name.ends_with(page))
            && let Err(fault) = self.serve("bucketload controller")
        {
            self.faults.push(format!("{name}: {fault}"));
        }
        for example in examples {
            let rule = table::rule(&name, &example.text);
            used.extend(rule);
            let how = rule.map_or(Handling::Quick, |n| RULES[n].2);
            let left = match how {
                Handling::Never(why) => Some(format!("not here: {why}")),
                Handling::Long(why) if !self.long => Some(format!("conformance: {why}")),
                _ => None,
            };
            if let Some(left) = left {
                *self.left.entry(left).or_insert(0) += 1;
                continue;
            }
            let start = Instant::now();
            let outcome = self.one(example, how);
            let word = if outcome.is_ok() { "ok" } else { "FAILED" };
            eprintln!(
                "{name}:{}: {word} in {:.1} s: {}",
                example.line,
                start.elapsed().as_secs_f64(),
                example.text
            );
            self.ran += 1;
            if let Err(fault) = outcome {
                let fault = format!("{name}:{}: {}\n  {fault}", example.line, example.text);
                self.faults.push(fault);
            }
        }
        // Clients of a server started after it and end first.
        for served in std::mem::take(&mut self.served).into_iter().rev() {
            if let Err(fault) = served.end() {
                self.faults.push(format!("{name}: {fault}"));
            }
        }
    }

    fn one(&mut self, example: &Example, how: Handling) -> Result {
        let command = self.places.mapped(&example.text, &self.dir);
        self.mapped += usize::from(command != example.text);
        let before: String = example
            .before
            .iter()
            .map(|line| self.places.mapped(line, &self.dir) + "; ")
            .collect();
        if matches!(how, Handling::Serves) {
            return self.serve(&format!("{before}{command}"));
        }
        let shell = Shell {
            dir: &self.dir,
            env: &self.places.env,
        };
        let deadline = if matches!(how, Handling::Long(_)) {
            LONG
        } else {
            QUICK
        };
        let promised = block::promised(&command);
        for file in &promised {
            // The page's directory may contain a file of this name that other pages need. It would pass for the
            // command's output, and some commands refuse to replace a file.
            let path = self.dir.join(file);
            if self.made.insert(file.clone()) && path.starts_with(&self.dir) {
                let _ = std::fs::remove_file(path);
            }
        }
        let ended = shell.run(&format!("{before}{command}"), deadline)?;
        judge(&ended, how)?;
        for file in promised {
            self.expect(&file)?;
        }
        for (page, words, file) in table::FILES {
            if table::page_is(&self.path.to_string_lossy(), page) && example.text.contains(words) {
                self.expect(file)?;
            }
        }
        for line in ended.stderr.lines() {
            if let Some(file) = line.strip_prefix("bucketload: report: ") {
                self.expect(file)?;
            }
        }
        Ok(())
    }

    fn serve(&mut self, command: &str) -> Result {
        let shell = Shell {
            dir: &self.dir,
            env: &self.places.env,
        };
        let name = format!("served{}", self.served.len());
        self.served
            .push(shell.serve(block::without_comment(command), &name)?);
        Ok(())
    }

    /// Fails unless a promised file exists and is not empty. The name may end in `*`.
    fn expect(&self, file: &str) -> Result {
        let path = self.dir.join(file);
        let there = match file.strip_suffix('*') {
            Some(start) => std::fs::read_dir(&self.dir)
                .map_err(|e| e.to_string())?
                .flatten()
                .any(|entry| entry.file_name().to_string_lossy().starts_with(start)),
            None => std::fs::metadata(&path).is_ok_and(|meta| meta.is_dir() || meta.len() > 0),
        };
        ensure(there, || {
            format!("it promises to write {file}, which is missing or empty")
        })
    }

    /// The number of commands that ran, and why others were skipped.
    fn summary(&self) -> String {
        let mut text = format!(
            "{}: {} ran, {} of them with hosts, keys or directories of this machine",
            self.path.display(),
            self.ran,
            self.mapped
        );
        for (why, count) in &self.left {
            text += &format!("\n  {count} skipped: {why}");
        }
        text
    }
}

/// Fails unless a command ended as expected.
fn judge(ended: &Ended, how: Handling) -> Result {
    let allowed = match (ended.code, how) {
        (Some(0), _) => true,
        (Some(code), Handling::Or(other, says)) => code == other && ended.stderr.contains(says),
        _ => false,
    };
    if allowed {
        return Ok(());
    }
    let code = ended.code.map_or("no end in time".to_owned(), |code| {
        format!("exit code {code}")
    });
    let text = format!("{}{}", ended.stdout, ended.stderr);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(8)..].join("\n  ");
    Err(format!("{code}\n  {last}"))
}

#[cfg(test)]
mod tests {
    use super::judge;
    use super::shell::Ended;
    use super::table::Handling;

    #[test]
    fn commands_end_with_success_or_as_the_table_says() {
        let ended = |code, stderr: &str| Ended {
            code,
            stdout: String::new(),
            stderr: stderr.to_owned(),
        };
        let or = Handling::Or(2, "refused");
        assert!(judge(&ended(Some(0), ""), Handling::Quick).is_ok());
        assert!(judge(&ended(Some(2), "refused"), or).is_ok());
        assert!(judge(&ended(Some(2), "another"), or).is_err());
        assert!(judge(&ended(Some(1), "refused"), or).is_err());
        assert!(judge(&ended(Some(2), "refused"), Handling::Quick).is_err());
        assert!(judge(&ended(None, ""), Handling::Quick).is_err());
    }
}
