//! A script for `sbatch`: every task runs the same `bucketload run … --launch slurm`, and task 0 is the
//! coordinator.

use std::fmt::Write as _;

use crate::access::TOKEN_ENV;

/// The settings of a batch job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Job name.
    pub name: String,
    /// Number of nodes, with one agent on each.
    pub nodes: u32,
    /// Time limit in Slurm's format; `None` for the partition's limit.
    pub time: Option<String>,
    /// Partition; `None` for the default partition.
    pub partition: Option<String>,
    /// Path of the program.
    pub program: String,
    /// Arguments of `bucketload run`.
    pub arguments: Vec<String>,
}

impl Batch {
    /// Renders the script. It asks for exclusive nodes, because other jobs on them would distort the result.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::from("#!/bin/bash\n");
        let mut option = |text: &str| {
            // Slurm reads options up to the first command; a line break would end the comment.
            let _ = writeln!(out, "#SBATCH {}", text.replace(['\n', '\r'], " "));
        };
        option(&format!("--job-name={}", self.name));
        option(&format!("--nodes={}", self.nodes));
        option(&format!("--ntasks={}", self.nodes));
        option("--ntasks-per-node=1");
        option("--exclusive");
        option("--output=%x-%j.log");
        if let Some(time) = &self.time {
            option(&format!("--time={time}"));
        }
        if let Some(partition) = &self.partition {
            option(&format!("--partition={partition}"));
        }
        let arguments = self.arguments.iter().map(|word| quoted(word));
        let words: Vec<String> = std::iter::once(quoted(&self.program))
            .chain(std::iter::once("run".to_owned()))
            .chain(arguments)
            .chain(["--launch", "slurm", "--out"].map(str::to_owned))
            .chain(std::iter::once(
                "\"$SLURM_JOB_NAME-$SLURM_JOB_ID\"".to_owned(),
            ))
            .collect();
        let _ = write!(
            out,
            "set -euo pipefail\n\n# Known to the tasks of this job only; srun passes it on.\n\
             {TOKEN_ENV}=$(head -c 24 /dev/urandom | base64)\nexport {TOKEN_ENV}\n\n\
             # --wait=0: task 0 writes the result after the others have ended.\n\
             srun --wait=0 {}\n",
            words.join(" ")
        );
        out
    }
}

/// Quotes a word for the shell where needed.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::{Batch, quoted};

    #[test]
    fn words_stay_words() {
        assert_eq!(quoted("--rate=5/s"), "--rate=5/s");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn the_script_starts_a_task_per_node_with_a_token() {
        let script = Batch {
            name: "bench\nx".to_owned(),
            nodes: 8,
            time: Some("1:00:00".to_owned()),
            program: "bucketload".to_owned(),
            arguments: vec!["my load.toml".to_owned()],
            ..Batch::default()
        }
        .render();
        assert!(script.starts_with("#!/bin/bash\n#SBATCH --job-name=bench x\n"));
        for part in [
            "#SBATCH --nodes=8\n",
            "#SBATCH --ntasks=8\n",
            "#SBATCH --time=1:00:00\n",
            "export BUCKETLOAD_AGENT_TOKEN\n",
            "srun --wait=0 bucketload run 'my load.toml' --launch slurm --out ",
        ] {
            assert!(script.contains(part), "{part}\n{script}");
        }
    }
}
