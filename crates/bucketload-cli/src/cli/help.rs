//! Help that fits a screen: commands by topic, the usual flags first, and hints for words of other tools.
//!
//! clap lists every command and every flag. That is right for `--help`, the manual and man pages; it is too much for
//! somebody who typed `bucketload` or `bucketload run -h` for the first time.

use std::fmt::Write as _;

use bucketload_workload::spec::{BUILTIN_WORKLOADS, closest};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Command, CommandFactory as _};

use super::{Cli, EXAMPLES};
use crate::exit::Failure;

/// The topics of `bucketload help`: name, what it is about, commands.
const TOPICS: [(&str, &str, &[&str]); 9] = [
    (
        "measure",
        "Measure a store: one workload, its limits, a whole study",
        &[
            "init",
            "run",
            "capacity",
            "sweep",
            "study",
            "drill",
            "workloads",
            "show",
        ],
    ),
    (
        "compare",
        "Find out which of two stores, settings or versions is faster",
        &["compare"],
    ),
    (
        "hosts",
        "Generate load from many hosts",
        &["agent", "slurm", "k8s"],
    ),
    (
        "hpc",
        "Measure high-performance storage: files, objects, libs3",
        &["io500", "md-workbench", "s3-hpc", "study-grid"],
    ),
    (
        "ai",
        "Measure storage for AI: training, its checkpoints, caches of language models",
        &["train", "checkpoint", "kvcache"],
    ),
    (
        "replay",
        "Use recorded requests and COSBench workloads",
        &["replay", "model", "convert"],
    ),
    (
        "results",
        "Look at results, and pass them on",
        &["report", "top", "placement", "bundle", "verify-bundle"],
    ),
    (
        "serve",
        "Run servers: a store, a gateway, a queue with a web console",
        &["serve", "gateway", "controller", "submit", "info", "cancel"],
    ),
    (
        "maintain",
        "Examine stores, clean up, explain settings, help editors and shells",
        &[
            "doctor",
            "cleanup",
            "config",
            "schema",
            "man",
            "completions",
            "help",
        ],
    ),
];

/// The flags that `-h` shows of the groups in [`SHARED`].
const USUAL: [&str; 24] = [
    "target",
    "dialect",
    "endpoint-url",
    "region",
    "profile",
    "create-bucket",
    "rate",
    "workers",
    "duration",
    "ops",
    "size",
    "objects",
    "mix",
    "verify",
    "oracle",
    "keep",
    "set",
    "dry-run",
    "threads",
    "agents",
    "slo",
    "output",
    "out",
    "op-log",
];

/// Flags of other programs, and what takes their place. clap proposes flags that are spelt alike.
const FOREIGN: [(&[&str], &str); 11] = [
    (
        &[
            "--access-key",
            "--secret-key",
            "--access-key-id",
            "--secret-access-key",
            "--secret",
            "--user",
            "--password",
        ],
        "credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or from --profile, never from flags, which \
         every user of this host can read",
    ),
    (
        &["--host", "--hosts", "--server", "--url", "--endpoint"],
        "write --endpoint-url http://HOST:PORT",
    ),
    (
        &["--bucket", "--container"],
        "write --target s3://BUCKET/PREFIX",
    ),
    (
        &["--tls", "--ssl", "--use-ssl"],
        "write https:// in --endpoint-url",
    ),
    (
        &["--time", "--runtime", "--run-time"],
        "write --duration 60s",
    ),
    (
        &["--iodepth", "--numjobs", "--jobs", "--clients", "--vus"],
        "write --workers N",
    ),
    (
        &["--bs", "--block-size", "--object-size"],
        "write --size SIZE",
    ),
    (
        &["--obj-count", "--num-objects", "--object-count"],
        "write --objects N",
    ),
    (
        &["--warmup", "--warm-up", "--ramp-up", "--ramp-time"],
        "the warm-up is found and left out by itself; --duration counts it",
    ),
    (&["--autoterm"], "write --until-precise 2%"),
    (
        &["--benchdata", "--resfile", "--csvfile"],
        "write --out DIR; `bucketload report DIR --output csv` prints a table from it",
    ),
];

/// Programs whose users type their name or their verbs, and how to begin here instead.
const NEIGHBOURS: [(&[&str], &str); 7] = [
    (
        &["warp", "hsbench", "s3bench", "elbencho"],
        "here it is `bucketload run get`, and `put`, `mixed`, `list`",
    ),
    (
        &["cosbench"],
        "`bucketload run FILE.xml` runs its workloads, `bucketload controller` has its queue and web console",
    ),
    (
        &["io500.sh", "ior", "mdtest"],
        "`bucketload io500` does what IO500 does, on files and objects",
    ),
    (
        &["ossperf.sh"],
        "`bucketload run ossperf` goes through its steps",
    ),
    (
        &["bench", "benchmark", "test", "start", "load"],
        "`bucketload run WORKLOAD` measures; `bucketload workloads` lists the workloads",
    ),
    (
        &["prepare", "fill", "populate"],
        "`bucketload run WORKLOAD --prepare-only` prepares and keeps the objects, and goes on with --data DIR",
    ),
    (
        &["analyze", "analyse", "show-result", "result", "results"],
        "`bucketload report DIR` shows a result, `bucketload compare` compares two",
    ),
];

/// Groups of flags that many commands have, by the beginning of their heading.
const SHARED: [&str; 8] = [
    "Target options",
    "File system options",
    "Workload options",
    "Run options",
    "Gate options",
    "COSBench options",
    "Options for many hosts",
    "Output options",
];

/// Explain a topic or a command; without either, list the topics
#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// Topic such as `measure`, or command such as `run` or `config show`
    #[arg(value_name = "TOPIC")]
    pub(crate) topic: Vec<String>,
}

/// The command line whose `-h` shows the usual flags only.
pub(crate) fn command() -> Command {
    let is_usual = |arg: &clap::Arg| {
        let heading = arg.get_help_heading().unwrap_or_default();
        let shared = SHARED.iter().any(|shared| heading.starts_with(shared));
        !shared || arg.get_long().is_some_and(|long| USUAL.contains(&long))
    };
    Cli::command().mut_subcommands(|sub| {
        sub.mut_args(|arg| match is_usual(&arg) {
            true => arg,
            false => arg.hide_short_help(true),
        })
    })
}

/// The first thing that a new user sees: examples, and commands by topic.
pub(crate) fn overview() -> String {
    let about = Cli::command().get_about().map(ToString::to_string);
    let mut out = format!("{}\n\n{EXAMPLES}\n\nCommands:\n", about.unwrap_or_default());
    for (name, _, commands) in TOPICS {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {name:9} {}", commands.join(", "));
    }
    out += "\n  bucketload help measure   explains the commands of a topic\n  \
            bucketload run -h         shows the usual flags of a command, --help all of them\n  \
            bucketload --help         explains every command in a line\n";
    out
}

/// The text of `bucketload help WORDS`.
///
/// # Errors
/// When the words name neither a topic nor a command.
pub(crate) fn explain(words: &[String]) -> Result<String, Failure> {
    let Some(first) = words.first() else {
        return Ok(overview());
    };
    let mut command = command();
    command.build();
    if let ([_], Some((_, about, names))) =
        (words, TOPICS.iter().find(|(topic, ..)| topic == first))
        && !names.contains(&first.as_str())
    {
        let mut out = format!("{about}\n");
        for sub in names
            .iter()
            .filter_map(|name| command.find_subcommand(name))
        {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = write!(out, "\nbucketload {}\n    {about}\n", sub.get_name());
        }
        return Ok(out);
    }
    let mut found = &mut command;
    for word in words {
        let names = found.get_subcommands().map(|sub| sub.get_name().to_owned());
        let names: Vec<String> = names.collect();
        found = match names.contains(word) {
            true => found
                .find_subcommand_mut(word)
                .expect("it is among the names"),
            false => {
                let topics = TOPICS.iter().map(|(topic, ..)| *topic);
                let known = names.iter().map(String::as_str).chain(topics);
                let advice = match closest(word, known) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => "`bucketload help` lists the topics and commands".to_owned(),
                };
                return Err(Failure::usage(format!(
                    "{word}: there is no such topic or command\n  help: {advice}"
                )));
            }
        };
    }
    Ok(found.render_long_help().to_string())
}

/// What to type instead, for mistakes that clap cannot explain.
pub(crate) fn hint(error: &clap::Error) -> Option<String> {
    match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) => {
            let workloads = || BUILTIN_WORKLOADS.iter().map(|(name, _)| *name);
            if workloads().any(|name| name == word) {
                return Some(format!(
                    "{word} is a workload, not a command\n  help: bucketload run {word}"
                ));
            }
            let mut neighbours = NEIGHBOURS.iter();
            if let Some((_, advice)) = neighbours.find(|(names, _)| names.contains(&word.as_str()))
            {
                return Some(format!(
                    "{word}: there is no such command\n  help: {advice}"
                ));
            }
            let commands = TOPICS.iter().flat_map(|(_, _, names)| *names).copied();
            let advice = match (closest(word, commands), closest(word, workloads())) {
                (Some(name), _) => format!("did you mean `{name}`?"),
                (None, Some(name)) => format!("did you mean `bucketload run {name}`?"),
                (None, None) => "`bucketload help` lists the commands".to_owned(),
            };
            Some(format!(
                "{word}: there is no such command\n  help: {advice}"
            ))
        }
        (ErrorKind::UnknownArgument, _) => {
            let flag = error.get(ContextKind::InvalidArg)?.to_string();
            let flag = flag.split([' ', '=']).next().unwrap_or_default();
            let mut foreign = FOREIGN.iter();
            let (_, advice) = foreign.find(|(names, _)| names.contains(&flag))?;
            Some(format!("{flag}: there is no such flag\n  help: {advice}"))
        }
        (ErrorKind::MissingRequiredArgument, _) => {
            let missing = error.get(ContextKind::InvalidArg)?;
            missing.to_string().contains("<WORKLOAD>").then(|| {
                "name a workload\n  help: online-service models a service; get, put, mixed and list are single \
                 operations; smoke tries everything. For example: bucketload run online-service\n  \
                 `bucketload workloads` lists all of them; a file (TOML, or COSBench's XML) is a workload too"
                    .to_owned()
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{TOPICS, command, explain, hint, overview};
    use crate::cli::Cli;

    #[test]
    fn every_command_belongs_to_one_topic() {
        let mut by_topic: Vec<&str> = TOPICS
            .iter()
            .flat_map(|(_, _, names)| *names)
            .copied()
            .collect();
        by_topic.sort_unstable();
        let definition = Cli::command();
        let mut all: Vec<&str> = definition
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        all.sort_unstable();
        assert_eq!(by_topic, all);
    }

    #[test]
    fn the_first_help_fits_a_screen_and_the_help_of_run_fits_two() {
        assert!(overview().lines().count() <= 30, "{}", overview());
        let mut command = command();
        command.build();
        let run = command.find_subcommand_mut("run").unwrap();
        let short = run.render_help().to_string();
        assert!(short.lines().count() <= 96, "{short}");
        assert!(
            short.contains("--endpoint-url") && !short.contains("--posix-io"),
            "{short}"
        );
        assert!(run.render_long_help().to_string().contains("--posix-io"));
    }

    #[test]
    fn help_knows_topics_commands_and_typing_errors() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let measure = explain(&words("measure")).unwrap();
        assert!(measure.contains("bucketload capacity\n"), "{measure}");
        // A topic with the name of a command explains the command.
        assert!(explain(&words("compare")).unwrap().contains("--margin"));
        assert!(explain(&words("config show")).unwrap().contains("--target"));
        let error = explain(&words("mesure")).unwrap_err().message;
        assert!(error.contains("did you mean `measure`?"), "{error}");
        assert!(explain(&words("run nothing")).is_err());
    }

    #[test]
    fn words_of_other_tools_lead_to_the_command() {
        let said = |line: &str| {
            let error = command().try_get_matches_from(line.split(' ')).unwrap_err();
            hint(&error).unwrap_or_default()
        };
        assert!(said("bucketload get --size 1MiB").contains("bucketload run get"));
        assert!(said("bucketload run").contains("bucketload run online-service"));
        assert!(said("bucketload run --workers 3").contains("bucketload workloads"));
        assert!(said("bucketload rnu").contains("did you mean `run`?"));
        assert!(said("bucketload gett").contains("`bucketload run get`"));
        assert!(said("bucketload quux").contains("bucketload help"));
        assert!(said("bucketload benchmark").contains("`bucketload run WORKLOAD`"));
        assert!(said("bucketload prepare --resume").contains("--prepare-only"));
        assert!(said("bucketload warp get").contains("`bucketload run get`"));
        assert!(said("bucketload run get --warmup 5s").contains("by itself"));
        assert!(said("bucketload run get --secret-key abc").contains("AWS_SECRET_ACCESS_KEY"));
        assert!(said("bucketload run get --host=h:9000").contains("--endpoint-url"));
        assert_eq!(said("bucketload run get --worker 3"), "");
        for flag in [
            "--concurrency 4",
            "--concurrent 4",
            "--obj.size 1MiB",
            "--obj-size 1MiB",
        ] {
            let line = format!("bucketload run get {flag}");
            assert!(
                command().try_get_matches_from(line.split(' ')).is_ok(),
                "{flag}"
            );
        }
    }
}
