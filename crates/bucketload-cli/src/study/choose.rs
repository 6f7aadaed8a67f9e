//! Applies the command line's choice of targets and experiments to a study.

use std::collections::BTreeMap;
use std::path::{Path, absolute};

use bucketload_study::model::{OptionValue, Study, Target};
use bucketload_study::spec::is_name;

use super::library::SCHEMES;
use crate::exit::Failure;

/// Keeps only the named experiments, or all if none are named.
///
/// # Errors
/// When the study has no experiment of a given name.
pub(super) fn experiments(study: &mut Study, only: &[String]) -> Result<(), Failure> {
    for name in only {
        if study
            .experiments
            .iter()
            .all(|experiment| experiment.name != *name)
        {
            let names: Vec<&str> = study.experiments.iter().map(|e| e.name.as_str()).collect();
            return Err(Failure::usage(format!(
                "--only {name}: the study {} has no such experiment; it has {}",
                study.name,
                names.join(", ")
            )));
        }
    }
    if !only.is_empty() {
        study
            .experiments
            .retain(|experiment| only.contains(&experiment.name));
    }
    Ok(())
}

/// Replaces the targets with those of the command line, if it names any.
///
/// # Errors
/// When a target cannot be parsed, or nothing is left to measure.
pub(super) fn targets(
    study: &mut Study,
    wanted: &[String],
    endpoints: &[String],
) -> Result<(), Failure> {
    let endpoints = Endpoints::parse(endpoints)?;
    if !wanted.is_empty() {
        let mut chosen: Vec<Target> = Vec::new();
        let mut new = Vec::new();
        for text in wanted {
            let target = match study.targets.iter().find(|target| target.name == *text) {
                Some(known) => known.clone(),
                None => {
                    let target = given(text, &endpoints, study)?;
                    new.push(target.name.clone());
                    target
                }
            };
            if chosen.iter().any(|known| known.name == target.name) {
                return Err(Failure::usage(format!(
                    "--target {text}: there are two targets named {}; write OTHER-NAME={text}",
                    target.name
                )));
            }
            chosen.push(target);
        }
        // Every experiment measures a new target. A target of the study is measured where the study says.
        for experiment in &mut study.experiments {
            if !experiment.targets.is_empty() {
                experiment
                    .targets
                    .retain(|name| chosen.iter().any(|target| target.name == *name));
                experiment.targets.extend(new.iter().cloned());
                if experiment.targets.is_empty() {
                    experiment.targets.push(String::new());
                }
            }
        }
        study
            .experiments
            .retain(|experiment| experiment.targets != [""]);
        if chosen.iter().all(|target| target.name != study.baseline) {
            study.baseline.clear();
        }
        study.targets = chosen;
    }
    endpoints.check(&study.targets)?;
    for target in &mut study.targets {
        target.url = form(&target.url)?;
    }
    if study.experiments.is_empty() {
        return Err(Failure::usage(
            "--target: no experiment of the study measures this target",
        ));
    }
    if study.targets.is_empty() {
        return Err(Failure::usage(format!(
            "study {}: it has no targets; name one with --target",
            study.name
        )));
    }
    Ok(())
}

/// Lets the targets that are named by URL, as services, create their bucket.
pub(super) fn create_buckets(study: &mut Study, wanted: &[String]) {
    for target in &mut study.targets {
        let named = wanted.contains(&target.name);
        if !named && target.server.is_empty() && is_service(&target.url) {
            let options = &mut target.options;
            options.insert("create-bucket".to_owned(), OptionValue::Switch(true));
        }
    }
}

/// Whether a target is a service with an endpoint.
fn is_service(url: &str) -> bool {
    url.contains("://") && !url.starts_with("file:") && !url.starts_with("serve:")
}

/// The endpoints of the command line: of all targets, or of named ones.
struct Endpoints<'a> {
    all: Option<&'a str>,
    named: BTreeMap<&'a str, &'a str>,
}

impl<'a> Endpoints<'a> {
    fn parse(given: &'a [String]) -> Result<Self, Failure> {
        let mut endpoints = Self {
            all: None,
            named: BTreeMap::new(),
        };
        for text in given {
            let before = match text.split_once('=') {
                Some((name, url)) if is_name(name) => endpoints.named.insert(name, url),
                _ => endpoints.all.replace(text),
            };
            if before.is_some() {
                return Err(Failure::usage(format!(
                    "--endpoint-url {text}: given twice for the same targets; write NAME=URL for each target"
                )));
            }
        }
        Ok(endpoints)
    }

    fn of(&self, name: &str) -> Option<&'a str> {
        self.named.get(name).copied().or(self.all)
    }

    /// Refuses an endpoint of a target that has none.
    fn check(&self, targets: &[Target]) -> Result<(), Failure> {
        for (name, url) in &self.named {
            let mut found = targets.iter().filter(|target| target.name == *name);
            if !found.any(|target| target.endpoint == *url) {
                let names: Vec<&str> = targets.iter().map(|t| t.name.as_str()).collect();
                return Err(Failure::usage(format!(
                    "--endpoint-url {name}={url}: {name} is not a target of --target with a URL of a service; targets: {}",
                    names.join(", ")
                )));
            }
        }
        Ok(())
    }
}

fn given(text: &str, endpoints: &Endpoints<'_>, study: &Study) -> Result<Target, Failure> {
    let (name, rest) = match text.split_once('=') {
        Some((name, rest)) if is_name(name) => (Some(name), rest),
        _ => (None, text),
    };
    if let Some(server) = rest.strip_prefix("server:") {
        return Ok(Target {
            name: name.unwrap_or(server).to_owned(),
            server: server.to_owned(),
            ..Target::default()
        });
    }
    if !rest.contains(':') && !rest.starts_with('/') && rest != "embedded" {
        let names: Vec<&str> = study
            .targets
            .iter()
            .map(|target| target.name.as_str())
            .collect();
        return Err(Failure::usage(format!(
            "--target {text}: this is neither a target of the study ({}) nor a URL; you can also write \
             server:NAME, embedded, posix:DIR, serve:DIR, libs3:DIR, gateway:DIR, gateway-unix:DIR, or a URL such \
             as s3://BUCKET",
            names.join(", ")
        )));
    }
    let name = name.map_or_else(|| called(rest), str::to_owned);
    Ok(Target {
        // Only services have an endpoint.
        endpoint: match (endpoints.of(&name), is_service(rest)) {
            (Some(endpoint), true) => endpoint.to_owned(),
            _ => String::new(),
        },
        name,
        url: rest.to_owned(),
        ..Target::default()
    })
}

/// A name for a target without one.
fn called(url: &str) -> String {
    match url {
        "embedded" | "mem:" => "embedded".to_owned(),
        "null:" => "null".to_owned(),
        _ => {
            let (scheme, rest) = url.split_once(':').unwrap_or(("posix", url));
            let last = rest
                .rsplit('/')
                .find(|part| !part.is_empty())
                .unwrap_or_default();
            let name: String = format!("{scheme}-{last}")
                .to_ascii_lowercase()
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
                .take(40)
                .collect();
            name.trim_end_matches('-').to_owned()
        }
    }
}

/// Translates the study's forms of a target into those of `--target`.
fn form(url: &str) -> Result<String, Failure> {
    let at = |scheme: &str, dir: &str| {
        let dir = absolute(Path::new(dir)).map_err(|e| Failure::usage(format!("{url}: {e}")))?;
        Ok(format!("{scheme}://{}", dir.display()))
    };
    match url.split_once(':') {
        _ if url == "embedded" => Ok("mem:".to_owned()),
        // The placeholder for the study's own directory is filled in later.
        Some((_, "{dir}")) => Ok(url.to_owned()),
        Some((scheme, dir)) if SCHEMES.contains(&scheme) && !dir.starts_with("//") => {
            let dir =
                absolute(Path::new(dir)).map_err(|e| Failure::usage(format!("{url}: {e}")))?;
            Ok(format!("{scheme}:{}", dir.display()))
        }
        Some(("posix", dir)) => at("file", dir),
        Some(("serve", dir)) if !dir.starts_with("//") => at("serve", dir),
        _ => Ok(url.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use bucketload_study::model::Study;
    use bucketload_study::spec::{builtin, parse};

    use super::{experiments, targets};

    fn study() -> Study {
        parse("s3-hpc", builtin("s3-hpc").unwrap(), false).unwrap()
    }

    fn chosen(wanted: &[&str]) -> Result<Study, String> {
        with_endpoints(wanted, &["http://h:9000"])
    }

    fn with_endpoints(wanted: &[&str], endpoints: &[&str]) -> Result<Study, String> {
        let endpoints: Vec<String> = endpoints.iter().map(|text| (*text).to_owned()).collect();
        let mut study = study();
        let wanted: Vec<String> = wanted.iter().map(|text| (*text).to_owned()).collect();
        targets(&mut study, &wanted, &endpoints).map_err(|failure| failure.message)?;
        Ok(study)
    }

    #[test]
    fn targets_are_those_of_the_study_or_new_ones() {
        let study = chosen(&[
            "minio-4",
            "ours=s3://b/p",
            "embedded",
            "posix:x",
            "server:versitygw",
            "own=libs3:/d",
            "gateway-unix:g",
        ])
        .unwrap();
        let seen: Vec<(&str, &str, &str)> = study
            .targets
            .iter()
            .map(|t| (t.name.as_str(), t.server.as_str(), t.endpoint.as_str()))
            .collect();
        assert_eq!(
            seen,
            [
                ("minio-4", "minio", ""),
                ("ours", "", "http://h:9000"),
                ("embedded", "", ""),
                ("posix-x", "", ""),
                ("versitygw", "versitygw", ""),
                ("own", "", ""),
                ("gateway-unix-g", "", "")
            ]
        );
        assert_eq!(study.targets[5].url, "libs3:/d");
        let socket = &study.targets[6].url;
        assert!(
            socket.starts_with("gateway-unix:/") && socket.ends_with("/g"),
            "{socket}"
        );
        assert_eq!(study.targets[2].url, "mem:");
        assert!(
            study.targets[3].url.starts_with("file:///") && study.targets[3].url.ends_with("/x")
        );
        // The study's list for IO500 does not name minio-4; new targets are added to it.
        let io500 = study
            .experiments
            .iter()
            .find(|e| e.name == "io500")
            .unwrap();
        let new = [
            "ours",
            "embedded",
            "posix-x",
            "versitygw",
            "own",
            "gateway-unix-g",
        ];
        assert_eq!(io500.targets, new);
        assert_eq!(study.baseline, "");
    }

    #[test]
    fn each_target_may_have_an_endpoint_of_its_own() {
        let two = ["a=s3://b", "c=s3://b"];
        let study = with_endpoints(&two, &["http://h:1", "c=http://h:2/?x=y"]).unwrap();
        let seen: Vec<&str> = study.targets.iter().map(|t| t.endpoint.as_str()).collect();
        assert_eq!(seen, ["http://h:1", "http://h:2/?x=y"]);
        for (wrong, word) in [
            (["http://h:1", "http://h:2"], "given twice"),
            (["a=http://h:1", "d=http://h:2"], "targets: a, c"),
        ] {
            let refused = with_endpoints(&two, &wrong).unwrap_err();
            assert!(refused.contains(word), "{refused}");
        }
    }

    #[test]
    fn an_experiment_without_targets_is_dropped() {
        let study = chosen(&["minio-4"]).unwrap();
        assert!(study.experiments.iter().all(|e| e.name != "io500"));
        assert!(chosen(&["nowhere"]).unwrap_err().contains("posix:DIR"));
        assert!(
            chosen(&["mem:", "embedded"])
                .unwrap_err()
                .contains("two targets named")
        );
    }

    #[test]
    fn experiments_are_chosen_by_name() {
        let mut some = study();
        experiments(&mut some, &["io500".to_owned()]).unwrap();
        assert_eq!(some.experiments.len(), 1);
        let refused = experiments(&mut some, &["ladders".to_owned()]).unwrap_err();
        assert!(
            refused.message.contains("it has io500"),
            "{}",
            refused.message
        );
    }
}
