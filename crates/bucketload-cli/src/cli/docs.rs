//! Manual pages and completions, generated from the definition of the command line.

use std::io;

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
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "bucketload", &mut script);
    script
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
    fn every_shell_completes_flags() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(completions(*shell)).unwrap();
            assert!(script.contains("max-in-flight"), "{shell}");
        }
    }
}
