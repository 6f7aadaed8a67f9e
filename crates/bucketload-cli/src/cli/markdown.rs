//! The commands of the program as Markdown, one page each, for the manual.
//!
//! Like the help texts, the pages are generated from the definition of the command line ([`Cli`]). They are committed
//! in `docs/reference/commands`; `cargo xtask manual` fails if they differ.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command, CommandFactory};

use super::{Cli, EXIT_CODES};

/// File name and text of the page of each command. The page of the program itself comes first.
pub(crate) fn pages() -> Vec<(String, String)> {
    let mut root = Cli::command();
    // Adds the global flags and the full names to every command.
    root.build();
    let mut pages = vec![("bucketload.md".to_owned(), overview(&root))];
    collect(&root, &mut pages);
    pages
}

fn collect(command: &Command, pages: &mut Vec<(String, String)>) {
    for sub in command.get_subcommands().filter(|sub| is_shown(sub)) {
        let name = full_name(sub);
        pages.push((format!("{}.md", name.replace(' ', "-")), page(sub)));
        collect(sub, pages);
    }
}

fn is_shown(command: &Command) -> bool {
    command.get_name() != "help" && !command.is_hide_set()
}

/// The name as typed: `bucketload config show`.
fn full_name(command: &Command) -> String {
    let full = command.get_bin_name().unwrap_or(command.get_name());
    full.to_owned()
}

fn overview(root: &Command) -> String {
    let mut out = head(root);
    out += "\n## Commands\n\n| command | |\n|---|---|\n";
    for sub in root.get_subcommands().filter(|sub| is_shown(sub)) {
        let name = full_name(sub);
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        let file = name.replace(' ', "-");
        let _ = writeln!(out, "| [`{name}`]({file}.md) | {} |", cell(&about));
    }
    out += "\n## Options of every command\n\n";
    for arg in root.get_arguments().filter(|arg| arg.is_global_set()) {
        option(&mut out, arg);
    }
    let _ = write!(out, "## Exit codes\n\n{}", fenced(EXIT_CODES));
    out
}

fn page(command: &Command) -> String {
    let mut out = head(command);
    let subs: Vec<&Command> = command
        .get_subcommands()
        .filter(|sub| is_shown(sub))
        .collect();
    if !subs.is_empty() {
        out += "\n## Commands\n\n| command | |\n|---|---|\n";
        for sub in subs {
            let name = full_name(sub);
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(
                out,
                "| [`{name}`]({}.md) | {} |",
                name.replace(' ', "-"),
                cell(&about)
            );
        }
    }
    let mut headings: Vec<(&str, Vec<&Arg>)> = Vec::new();
    let own = command.get_arguments().filter(|arg| {
        let id = arg.get_id().as_str();
        !arg.is_hide_set() && !arg.is_global_set() && id != "help" && id != "version"
    });
    for arg in own {
        let heading = match arg.get_help_heading() {
            Some(heading) => heading,
            None if arg.is_positional() => "Arguments",
            None => "Options",
        };
        match headings.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, args)) => args.push(arg),
            None => headings.push((heading, vec![arg])),
        }
    }
    // Positional arguments come first, as in the usage line.
    headings.sort_by_key(|(heading, _)| *heading != "Arguments");
    for (heading, args) in headings {
        let _ = write!(out, "\n## {heading}\n\n");
        for arg in args {
            option(&mut out, arg);
        }
    }
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        let _ = write!(out, "\n## Notes\n\n{}", fenced(&after.to_string()));
    }
    out
}

/// Title, description and usage line.
fn head(command: &Command) -> String {
    let mut out = format!("# {}\n\n", full_name(command));
    let long = command.get_long_about().or(command.get_about());
    let text = long.map(ToString::to_string).unwrap_or_default();
    let _ = write!(out, "{}\n\n", prose(&text));
    let usage = command.clone().render_usage().to_string();
    out += &fenced(usage.trim_start_matches("Usage: "));
    out
}

/// One option: its syntax as a heading that can be linked to, then its description.
fn option(out: &mut String, arg: &Arg) {
    let mut form = String::new();
    if let Some(short) = arg.get_short() {
        let _ = write!(form, "-{short}, ");
    }
    if let Some(long) = arg.get_long() {
        let _ = write!(form, "--{long}");
    }
    let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    if takes_value {
        let names = arg.get_value_names().unwrap_or_default();
        let values: Vec<String> = names.iter().map(|name| format!("<{name}>")).collect();
        let many = if arg.is_positional() && matches!(arg.get_action(), ArgAction::Append) {
            "..."
        } else {
            ""
        };
        let gap = if form.is_empty() { "" } else { " " };
        let _ = write!(form, "{gap}{}{many}", values.join(" "));
    }
    let _ = write!(out, "#### `{form}`\n\n");
    let help = arg.get_long_help().or(arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    if !help.is_empty() {
        let _ = write!(out, "{}\n\n", prose(&help));
    }
    let values: Vec<_> = arg.get_possible_values();
    if takes_value && !arg.is_hide_possible_values_set() && !values.is_empty() {
        for value in values.iter().filter(|value| !value.is_hide_set()) {
            let help = value
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let gap = if help.is_empty() { "" } else { ": " };
            let _ = writeln!(out, "- `{}`{gap}{}", value.get_name(), prose(&help));
        }
        out.push('\n');
    }
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|v| v.to_string_lossy())
        .collect();
    if takes_value && !arg.is_hide_default_value_set() && !defaults.is_empty() {
        let _ = write!(out, "Default: `{}`\n\n", defaults.join(" "));
    }
    let aliases = arg.get_visible_aliases().unwrap_or_default();
    if !aliases.is_empty() {
        let names: Vec<String> = aliases.iter().map(|name| format!("`--{name}`")).collect();
        let _ = write!(out, "Alias: {}\n\n", names.join(", "));
    }
    if let Some(variable) = arg.get_env() {
        let _ = write!(out, "Environment: `{}`\n\n", variable.to_string_lossy());
    }
}

/// Help text for Markdown, with angle brackets, square brackets, asterisks and underscores outside code escaped.
fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_code = false;
    for line in text.trim_end().lines() {
        for c in line.trim_start().chars() {
            match c {
                '`' => in_code = !in_code,
                '<' | '>' | '*' | '_' | '[' | ']' if !in_code => out.push('\\'),
                _ => {}
            }
            out.push(c);
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

/// Help text for a table cell.
fn cell(text: &str) -> String {
    prose(text).replace('\n', " ").replace('|', "\\|")
}

fn fenced(text: &str) -> String {
    format!("```text\n{}\n```\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::{cell, pages, prose};

    #[test]
    fn every_command_has_a_page_with_its_options() {
        let pages = pages();
        let text = |name: &str| {
            let found = pages.iter().find(|(file, _)| file == name);
            found.map_or_else(|| panic!("no {name}"), |(_, text)| text.as_str())
        };
        let run = text("bucketload-run.md");
        assert!(run.contains("# bucketload run\n"), "{run}");
        assert!(run.contains("#### `-t, --target <URL>`"), "{run}");
        assert!(run.contains("- `virtual`: In the host name"), "{run}");
        assert!(
            !run.contains("--color"),
            "global flags are on the first page only"
        );
        assert!(text("bucketload-config-show.md").contains("# bucketload config show\n"));
        let all = text("bucketload.md");
        assert!(all.contains("(bucketload-serve.md)") && all.contains("--color <WHEN>"));
        assert!(all.contains("130  interrupted"), "{all}");
    }

    #[test]
    fn markup_is_escaped_outside_code_only() {
        assert_eq!(prose("a <b> `c <d>` *e*"), "a \\<b\\> `c <d>` \\*e\\*");
        assert_eq!(cell("a|b\nc"), "a\\|b c");
    }
}
