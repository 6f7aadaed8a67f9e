//! Manual pages and completions, generated from the definition of the command line.

use std::io;

use bucketload_workload::spec::BUILTIN_WORKLOADS;
use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use clap_complete::Shell;

use super::Cli;

/// The manual page of the program itself, in roff.
///
/// # Errors
/// None in practice: writing to memory does not fail.
pub(crate) fn man_page() -> io::Result<Vec<u8>> {
    render(Cli::command())
}

/// File name and text of the manual page of the program and of each of its commands.
///
/// # Errors
/// None in practice: writing to memory does not fail.
pub(crate) fn man_pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut root = Cli::command();
    // Adds the global flags to every command.
    root.build();
    let mut pages = Vec::new();
    collect(&root, &mut pages)?;
    Ok(pages)
}

fn collect(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let name = clap_mangen::Man::new(command.clone()).get_filename();
    pages.push((name, render(command.clone())?));
    for sub in command.get_subcommands() {
        if sub.get_name() != "help" {
            collect(sub, pages)?;
        }
    }
    Ok(())
}

fn render(command: Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(page)
}

/// The completion script for a shell.
pub(crate) fn completions(shell: Shell) -> Vec<u8> {
    let names: Vec<&str> = BUILTIN_WORKLOADS.iter().map(|(name, _)| *name).collect();
    let mut command = Cli::command();
    if shell == Shell::Bash {
        command = with_workloads(command, &names);
    }
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "bucketload", &mut script);
    let names = names.join(" ");
    match (shell, String::from_utf8(script)) {
        (Shell::Zsh, Ok(text)) => zsh_workloads(&text, &names).into_bytes(),
        (Shell::Fish, Ok(mut text)) => {
            for command in WITH_WORKLOAD {
                let when = format!("__fish_bucketload_using_subcommand {command}");
                text += &format!("complete -c bucketload -n \"{when}\" -a \"{names}\"\n");
            }
            text.into_bytes()
        }
        (_, Ok(text)) => text.into_bytes(),
        (_, Err(error)) => error.into_bytes(),
    }
}

/// The commands whose argument is a workload: a name or, for all but the last, a file.
const WITH_WORKLOAD: [&str; 5] = ["run", "capacity", "sweep", "submit", "show"];

/// The definition in which workloads have one of `names`; bash proposes files besides.
fn with_workloads(command: Command, names: &[&'static str]) -> Command {
    let names = names.to_vec();
    WITH_WORKLOAD.into_iter().fold(command, |command, name| {
        let names = names.clone();
        command.mut_subcommand(name, |sub| {
            sub.mut_args(|arg| match arg.is_positional() {
                true => arg.value_parser(PossibleValuesParser::new(names.clone())),
                false => arg,
            })
        })
    })
}

/// A script for zsh that proposes names where a workload is due, besides files.
fn zsh_workloads(script: &str, names: &str) -> String {
    let is_workload = |line: &str| {
        let line = line.trim_start_matches("':").trim_start_matches(':');
        line.starts_with("workload -- ")
    };
    let mut out = String::new();
    for line in script.lines() {
        match is_workload(line) {
            true => out += &line.replace(":_files'", ":_bucketload_workloads'"),
            false => out += line,
        }
        out.push('\n');
    }
    let function = format!(
        "_bucketload_workloads() {{\n    _alternative 'workloads:workload:({names})' 'files:file:_files'\n}}\n\n"
    );
    out.replace(
        "if [ \"$funcstack[1]\"",
        &format!("{function}if [ \"$funcstack[1]\""),
    )
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use clap_complete::Shell;

    use super::{completions, man_page, man_pages};

    #[test]
    fn every_command_has_a_page() {
        let pages = man_pages().unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for name in [
            "bucketload.1",
            "bucketload-run.1",
            "bucketload-serve.1",
            "bucketload-config-show.1",
        ] {
            assert!(names.contains(&name), "{names:?}");
        }
        for (name, page) in &pages {
            let text = String::from_utf8(page.clone()).unwrap();
            assert!(text.contains(".TH") && text.contains(".SH NAME"), "{name}");
        }
        let run = &pages
            .iter()
            .find(|(name, _)| name == "bucketload-run.1")
            .unwrap()
            .1;
        let run = String::from_utf8(run.clone()).unwrap();
        assert!(run.contains("max\\-in\\-flight"), "{run}");
        let main = String::from_utf8(man_page().unwrap()).unwrap();
        assert!(main.contains("Exit codes"), "{main}");
    }

    #[test]
    fn workloads_are_completed_by_name() {
        let script = |shell| String::from_utf8(completions(shell)).unwrap();
        let bash = script(Shell::Bash);
        let run = bash.split("bucketload__subcmd__run)\n").nth(1).unwrap();
        let words = run.lines().next().unwrap();
        assert!(
            words.contains("opts=") && words.contains(" online-service "),
            "{words}"
        );
        let zsh = script(Shell::Zsh);
        assert!(zsh.matches(":_bucketload_workloads'").count() >= 4, "{zsh}");
        let function = zsh.find("_bucketload_workloads() {").unwrap();
        assert!(function < zsh.find("funcstack[1]").unwrap());
        let fish = script(Shell::Fish);
        assert!(
            fish.contains("using_subcommand run\" -a \"online-service "),
            "{fish}"
        );
    }

    #[test]
    fn every_shell_completes_flags() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(completions(*shell)).unwrap();
            assert!(script.contains("max-in-flight"), "{shell}");
        }
    }
}
