//! The questions of `bucketload init` on a terminal. An answer that cannot be used is explained and asked for again.

use std::io::{BufRead, Write};

use bucketload_target::{Flag, flags};

use crate::cli::init::name;
use crate::cli::target::TargetArgs;
use crate::exit::{Failure, OrFail};
use crate::target::Target;

/// Where questions and answers go, and what is wrong with an answer.
pub(super) struct Questions<'a> {
    pub(super) answers: &'a mut dyn BufRead,
    pub(super) shown: &'a mut dyn Write,
    /// What prevents a target of this name from being saved.
    pub(super) refuses_name: &'a dyn Fn(&str) -> Option<String>,
    /// What is wrong with the settings so far: a URL, a certificate, a profile.
    pub(super) wrong: &'a dyn Fn(&TargetArgs) -> Option<String>,
}

impl Questions<'_> {
    /// Asks until `check` accepts the answer; an empty one stands for `default`.
    fn ask<T>(
        &mut self,
        question: &str,
        default: &str,
        mut check: impl FnMut(&Self, String) -> Result<T, String>,
    ) -> Result<T, Failure> {
        loop {
            match default {
                "" => write!(self.shown, "{question}: "),
                default => write!(self.shown, "{question} [{default}]: "),
            }
            .or_aborted()?;
            self.shown.flush().or_aborted()?;
            let mut line = String::new();
            if self.answers.read_line(&mut line).or_aborted()? == 0 {
                return Err(Failure::usage("init: no answer; nothing was saved"));
            }
            let answer = match line.trim() {
                "" => default.to_owned(),
                text => text.to_owned(),
            };
            match check(self, answer) {
                Ok(accepted) => return Ok(accepted),
                Err(problem) => writeln!(self.shown, "  {problem}").or_aborted()?,
            }
        }
    }

    /// Asks for the value of `flag` unless it was given; no answer leaves it out.
    fn ask_flag(
        &mut self,
        target: &mut TargetArgs,
        flag: &'static Flag,
        question: &str,
    ) -> Result<(), Failure> {
        if target.settings.has(flag) {
            return Ok(());
        }
        let before = target.clone();
        *target = self.ask(question, "", |this, answer| {
            let mut with = before.clone();
            if !answer.is_empty() {
                let values = answer.split(',').map(str::trim);
                with.settings.set(flag, values);
            }
            match (this.wrong)(&with) {
                Some(problem) if !answer.is_empty() => Err(problem),
                _ => Ok(with),
            }
        })?;
        Ok(())
    }

    /// Asks for name and target, and keeps the flags that were given.
    pub(super) fn ask_all(
        &mut self,
        given: Option<&str>,
        target: &mut TargetArgs,
    ) -> Result<String, Failure> {
        let named = match given {
            Some(given) => given.to_owned(),
            None => self.ask("Name of the target", "desk", |this, answer| {
                let named = name(&answer)?;
                (this.refuses_name)(&named).map_or(Ok(named), Err)
            })?,
        };
        self.ask_flag(
            target,
            &flags::ENDPOINT_URL,
            "URL of the store, such as http://host:9000 (nothing: Amazon S3)",
        )?;
        let urls = target.settings.all(&flags::ENDPOINT_URL);
        if urls.iter().any(|url| url.starts_with("https://")) {
            self.ask_flag(
                target,
                &flags::CA_BUNDLE,
                "PEM file with the authority of its certificate (nothing: the system's)",
            )?;
        }
        let url = self.ask("Bucket, or BUCKET/PREFIX", "", |_, answer| {
            let place = answer.strip_prefix("s3://").unwrap_or(&answer);
            let url = format!("s3://{}", place.trim_matches('/'));
            match place.trim_matches('/').is_empty() {
                true => Err("name the bucket in which to write, such as bench/tests".to_owned()),
                false => Target::parse(&url).map(|_| url),
            }
        })?;
        target.target = Some(url);
        self.ask_flag(
            target,
            &flags::PROFILE,
            "Profile in ~/.aws with the keys (nothing: AWS_ACCESS_KEY_ID and\n  AWS_SECRET_ACCESS_KEY)",
        )?;
        Ok(named)
    }
}

#[cfg(test)]
mod tests {
    use bucketload_target::flags;

    use super::Questions;
    use crate::cli::target::TargetArgs;
    use crate::exit::Failure;

    /// The name, the target and what was shown for `answers`.
    fn asked(given: Option<&str>, answers: &str) -> (Result<String, Failure>, TargetArgs, String) {
        let mut target = TargetArgs::default();
        let (mut answers, mut shown) = (answers.as_bytes(), Vec::new());
        let named = Questions {
            answers: &mut answers,
            shown: &mut shown,
            refuses_name: &|name| (name == "taken").then(|| "it is taken".to_owned()),
            wrong: &|target| {
                let url = target.settings.get(&flags::ENDPOINT_URL);
                url.filter(|url| !url.contains("://"))
                    .map(|url| format!("write http://{url}"))
            },
        }
        .ask_all(given, &mut target);
        (named, target, String::from_utf8(shown).unwrap())
    }

    #[test]
    fn answers_become_a_target() {
        let (name, target, shown) = asked(None, "\nhttps://h:9000\nca.pem\nbench\ndesk-keys\n");
        assert_eq!(name.unwrap(), "desk");
        assert_eq!(target.target.as_deref(), Some("s3://bench"));
        assert_eq!(target.settings.get(&flags::CA_BUNDLE), Some("ca.pem"));
        assert_eq!(target.settings.get(&flags::PROFILE), Some("desk-keys"));
        assert!(shown.contains("AWS_ACCESS_KEY_ID"), "{shown}");
    }

    #[test]
    fn what_cannot_be_used_is_explained_and_asked_for_again() {
        let answers = "a b\ntaken\nlab\nh:9000\nhttp://h:9000\n\ns3://bench/p/\n\n";
        let (name, target, shown) = asked(None, answers);
        assert_eq!(name.unwrap(), "lab");
        assert_eq!(target.target.as_deref(), Some("s3://bench/p"));
        assert_eq!(target.settings.all(&flags::ENDPOINT_URL), ["http://h:9000"]);
        for words in [
            "letters, digits",
            "it is taken",
            "write http://h:9000",
            "name the bucket",
        ] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
    }

    #[test]
    fn the_end_of_the_answers_saves_nothing() {
        let (name, ..) = asked(Some("desk"), "");
        assert!(name.unwrap_err().message.contains("nothing was saved"));
    }
}
