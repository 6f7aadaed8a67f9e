//! The page of environment variables: the meaning of each, and a check that the list is complete.
//!
//! The sources are searched for names of variables. A name without a meaning here is an error, and so is a meaning
//! whose name does not occur in the sources.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::files;
use crate::sh::{Result, root};

/// A string that is one word with such a prefix names an environment variable.
const PREFIXES: [&str; 18] = [
    "AWS_",
    "AZURE_",
    "BUCKETLOAD_",
    "CEPH_",
    "CLICOLOR_",
    "CLOUDSDK_",
    "GCE_",
    "GOOGLE_",
    "HADOOP_",
    "JOB_COMPLETION_",
    "OMPI_",
    "OS_",
    "PMIX_",
    "PMI_",
    "SEAWEEDFS_",
    "SLURM_",
    "ST_",
    "WEBHDFS_",
];

/// Names without such a prefix.
const SINGLE: [&str; 7] = [
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_COLOR",
    "NO_PROXY",
    "STORAGE_EMULATOR_HOST",
    "XDG_CONFIG_HOME",
];

/// Skipped sources: they set variables for other programs, or are build scripts, tests or examples.
const LEFT_OUT: [&str; 6] = [
    "/engines/cli/",
    "/bucketload-cli/src/study/",
    "/tests/",
    "/examples/",
    "/benches/",
    "tests.rs",
];

/// Headings with the names and meanings of their variables.
const GROUPS: &[(&str, &[(&str, &str)])] = &[
    (
        "The program",
        &[
            (
                "NO_COLOR",
                "no colour on a terminal, unless `--color always`",
            ),
            ("CLICOLOR_FORCE", "colour also without a terminal"),
            (
                "BUCKETLOAD_VARIABLES",
                "`off`: `run` takes no flags from the environment; studies and the controller set it for their runs",
            ),
            (
                "HTTP_PROXY",
                "not used, as `HTTPS_PROXY` and `ALL_PROXY`: a run says so once, unless `NO_PROXY` names the host",
            ),
            ("HTTPS_PROXY", "likewise"),
            ("ALL_PROXY", "likewise"),
            (
                "NO_PROXY",
                "hosts for which a run says nothing about proxies",
            ),
            (
                "XDG_CONFIG_HOME",
                "folder of `bucketload/targets.toml` with the targets that `init` saves, instead of `~/.config`",
            ),
            (
                "BUCKETLOAD_TOKEN",
                "token for the metrics endpoint (`--prometheus`) off loopback, and for `submit`, `cancel`, `info` and `top` that talk to a controller",
            ),
            (
                "BUCKETLOAD_CONTROLLER",
                "`submit`, `cancel`, `info`, `top`: URL of the controller. Processes started by a scheduler: `HOST:PORT` of process 0",
            ),
            (
                "BUCKETLOAD_SERVE_ACCESS_KEY",
                "`serve`: access key that clients must use",
            ),
            ("BUCKETLOAD_SERVE_SECRET_KEY", "`serve`: its secret"),
        ],
    ),
    (
        "Many hosts",
        &[
            (
                "BUCKETLOAD_AGENT_TOKEN",
                "token of agents and coordinator, at least 16 characters",
            ),
            (
                "BUCKETLOAD_AGENTS",
                "number of processes, if the launcher does not provide it",
            ),
            (
                "BUCKETLOAD_SSH",
                "program to use instead of `ssh` for `--launch ssh:`",
            ),
            ("OMPI_COMM_WORLD_RANK", "Open MPI: number of the process"),
            ("OMPI_COMM_WORLD_SIZE", "Open MPI: number of processes"),
            ("SLURM_PROCID", "Slurm, inside a step: number of the task"),
            ("SLURM_STEP_NUM_TASKS", "Slurm: tasks of the step"),
            (
                "SLURM_NTASKS",
                "Slurm: tasks of the job, if the step does not provide them",
            ),
            (
                "SLURM_STEP_ID",
                "Slurm: shows that the process belongs to a step",
            ),
            (
                "SLURM_STEP_NODELIST",
                "Slurm: the first node of the step holds task 0",
            ),
            ("SLURM_JOB_ID", "Slurm: determines the port of process 0"),
            (
                "SLURM_JOB_NODELIST",
                "Slurm: the first node of a job whose processes Open MPI started",
            ),
            ("PMIX_RANK", "PMIx: number of the process"),
            ("PMIX_NAMESPACE", "PMIx: name of the job"),
            ("PMI_RANK", "PMI: number of the process"),
            ("PMI_SIZE", "PMI: number of processes"),
            ("PMI_JOBID", "PMI: name of the job"),
            ("JOB_COMPLETION_INDEX", "Kubernetes: number of the pod"),
        ],
    ),
    (
        "S3",
        &[
            ("AWS_ACCESS_KEY_ID", "access key"),
            ("AWS_ACCESS_KEY", "older name for the access key"),
            ("AWS_SECRET_ACCESS_KEY", "secret key"),
            ("AWS_SESSION_TOKEN", "token of temporary credentials"),
            ("AWS_PROFILE", "profile of the configuration files"),
            ("AWS_DEFAULT_PROFILE", "older name for the profile"),
            ("AWS_CONFIG_FILE", "file to use instead of `~/.aws/config`"),
            (
                "AWS_SHARED_CREDENTIALS_FILE",
                "file to use instead of `~/.aws/credentials`",
            ),
            ("AWS_REGION", "region"),
            ("AWS_DEFAULT_REGION", "region if `AWS_REGION` is not set"),
            ("AWS_ENDPOINT_URL_S3", "URL of the service"),
            (
                "AWS_ENDPOINT_URL",
                "URL of the service if `AWS_ENDPOINT_URL_S3` is not set",
            ),
            (
                "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
                "`true`: ignore endpoints in environment and files",
            ),
            (
                "AWS_CA_BUNDLE",
                "certificates to trust instead of the system's, PEM",
            ),
            (
                "AWS_REQUEST_CHECKSUM_CALCULATION",
                "`when_supported`: writes carry a checksum (CRC-64/NVME)",
            ),
            (
                "BUCKETLOAD_SSE_C_KEY",
                "the customer's key for SSE-C, 32 bytes in base64 or hexadecimal, unless `--sse-c` names its file",
            ),
        ],
    ),
    (
        "Swift",
        &[
            ("OS_CLOUD", "cloud in `clouds.yaml`"),
            (
                "OS_CLIENT_CONFIG_FILE",
                "file to use instead of `clouds.yaml` in its usual locations",
            ),
            ("OS_AUTH_URL", "URL of Keystone"),
            ("OS_AUTH_TYPE", "authentication method"),
            ("OS_USERNAME", "user"),
            ("OS_USER_ID", "user by identifier"),
            ("OS_PASSWORD", "password"),
            ("OS_USER_DOMAIN_NAME", "domain of the user"),
            ("OS_USER_DOMAIN_ID", "domain of the user by identifier"),
            ("OS_PROJECT_NAME", "project"),
            ("OS_PROJECT_ID", "project by identifier"),
            ("OS_PROJECT_DOMAIN_NAME", "domain of the project"),
            (
                "OS_PROJECT_DOMAIN_ID",
                "domain of the project by identifier",
            ),
            ("OS_APPLICATION_CREDENTIAL_ID", "application credential"),
            ("OS_APPLICATION_CREDENTIAL_SECRET", "its secret"),
            ("OS_REGION_NAME", "region of the catalogue"),
            ("OS_INTERFACE", "interface of the catalogue"),
            (
                "OS_STORAGE_URL",
                "account's URL, used instead of the catalogue's; with `OS_AUTH_TOKEN` there is no login",
            ),
            ("OS_AUTH_TOKEN", "token for `OS_STORAGE_URL`"),
            ("OS_CACERT", "certificates to trust, PEM"),
            ("ST_AUTH", "URL of the older authentication (v1)"),
            ("ST_AUTH_VERSION", "version of the older authentication"),
            ("ST_USER", "user of the older authentication"),
            ("ST_KEY", "key of the older authentication"),
        ],
    ),
    (
        "Azure Blob Storage",
        &[
            (
                "AZURE_STORAGE_CONNECTION_STRING",
                "account, key or signature, and endpoint in one",
            ),
            ("AZURE_STORAGE_ACCOUNT", "account"),
            ("AZURE_STORAGE_KEY", "its key"),
            ("AZURE_STORAGE_SAS_TOKEN", "shared access signature"),
            (
                "AZURE_STORAGE_SERVICE_ENDPOINT",
                "URL of the account's blob service",
            ),
            (
                "AZURE_CLIENT_ID",
                "an unsupported authentication method: the error names it if nothing else is set",
            ),
            ("AZURE_TENANT_ID", "likewise"),
            ("AZURE_FEDERATED_TOKEN_FILE", "likewise"),
        ],
    ),
    (
        "Google Cloud Storage",
        &[
            ("GOOGLE_OAUTH_ACCESS_TOKEN", "access token"),
            (
                "CLOUDSDK_AUTH_ACCESS_TOKEN",
                "access token, under gcloud's name",
            ),
            (
                "GOOGLE_APPLICATION_CREDENTIALS",
                "file of a service account or a login",
            ),
            ("GOOGLE_CLOUD_PROJECT", "project for new buckets"),
            (
                "CLOUDSDK_CONFIG",
                "folder with gcloud's login, instead of `~/.config/gcloud`",
            ),
            ("GCE_METADATA_HOST", "metadata server"),
            (
                "STORAGE_EMULATOR_HOST",
                "URL of an emulator; requests are not signed",
            ),
        ],
    ),
    (
        "HDFS",
        &[
            (
                "HADOOP_CONF_DIR",
                "folder with `core-site.xml` and `hdfs-site.xml`",
            ),
            (
                "HADOOP_HOME",
                "installation whose `etc/hadoop` is used as that folder",
            ),
            ("HADOOP_USER_NAME", "user"),
            (
                "HADOOP_PROXY_USER",
                "user to impersonate; only the client library of `hdfs://` supports it, and is then used",
            ),
            (
                "HADOOP_TOKEN_FILE_LOCATION",
                "file with delegation tokens; likewise",
            ),
            ("WEBHDFS_DELEGATION_TOKEN", "delegation token for WebHDFS"),
        ],
    ),
    (
        "SeaweedFS",
        &[
            ("SEAWEEDFS_FILER_URL", "URL of the filer"),
            (
                "SEAWEEDFS_MASTER_URL",
                "URL of the master, with `--seaweedfs-mode master`",
            ),
        ],
    ),
    (
        "Ceph",
        &[(
            "CEPH_CONF",
            "`placement ceph`: configuration file of the cluster",
        )],
    ),
    (
        "The libs3 library",
        &[
            ("BUCKETLOAD_S3_ROOT", "directory of the objects"),
            (
                "BUCKETLOAD_S3_REMOTE",
                "gateway to use instead of a directory: `tcp://HOST:PORT` or `unix:PATH`",
            ),
            (
                "BUCKETLOAD_S3_REMOTE_TOKEN_FILE",
                "file with the gateway's token",
            ),
            (
                "BUCKETLOAD_S3_ETAG",
                "entity tags: `opaque` (default), which cost nothing, or `md5`",
            ),
            (
                "BUCKETLOAD_S3_SYNC",
                "what a write waits for: `none` (default), `file` or `directory`",
            ),
            (
                "BUCKETLOAD_S3_INDEX_ENTRIES",
                "largest number of names kept in memory to list large directories",
            ),
        ],
    ),
];

/// The page.
pub(super) fn page() -> Result<String> {
    let explained: BTreeSet<&str> = GROUPS
        .iter()
        .flat_map(|(_, all)| all.iter().map(|(name, _)| *name))
        .collect();
    let used = used()?;
    let unexplained: Vec<&String> = used
        .iter()
        .filter(|name| !explained.contains(name.as_str()))
        .collect();
    if !unexplained.is_empty() {
        return Err(format!(
            "{unexplained:?} are read, but xtask/src/manual/environment.rs does not explain them"
        ));
    }
    let unused: Vec<&&str> = explained
        .iter()
        .filter(|name| !used.contains(**name))
        .collect();
    if !unused.is_empty() {
        return Err(format!(
            "{unused:?} are explained in xtask/src/manual/environment.rs, but no source reads them"
        ));
    }
    let mut out = String::from("# Environment variables\n\n");
    out += "Flags take precedence over variables, and variables over configuration files. `bucketload config show` \
            prints every effective setting and its source; it never shows secrets. With \
            `--engine cli:PROGRAM` the program gets a separate environment: see \
            [other clients](../engines.md#command-line-clients).\n\n\
            `bucketload run` also takes its own flags from the environment: `BUCKETLOAD_DURATION=30s` stands for \
            `--duration 30s`, `BUCKETLOAD_ENDPOINT_URL` for `--endpoint-url`, and so on for each flag that its help lists \
            under target, file system, workload, run and output options. The variable of a switch is `true` or `false`. A \
            flag that is typed takes precedence, also over the variable of a flag that contradicts it. The run names the \
            variables that it used.\n";
    for (heading, variables) in GROUPS {
        let _ = write!(out, "\n## {heading}\n\n| variable | |\n|---|---|\n");
        for (name, meaning) in *variables {
            let _ = writeln!(out, "| `{name}` | {meaning} |");
        }
    }
    Ok(out)
}

/// The names of all variables in the sources.
fn used() -> Result<BTreeSet<String>> {
    let crates = root().join("crates");
    let mut names = BTreeSet::new();
    for file in files::below(&crates)? {
        let path = format!("/{}", file.display());
        if !path.ends_with(".rs") || LEFT_OUT.iter().any(|part| path.contains(part)) {
            continue;
        }
        let text = files::read(crates.join(&file))?;
        // A module's inner tests come last.
        let code = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        names.extend(
            code.split('"')
                .filter(|word| is_variable(word))
                .map(str::to_owned),
        );
    }
    Ok(names)
}

fn is_variable(word: &str) -> bool {
    let form = word
        .chars()
        .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let whole = form && !word.ends_with('_');
    whole && (SINGLE.contains(&word) || PREFIXES.iter().any(|prefix| word.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use super::{is_variable, page};

    #[test]
    fn every_variable_of_the_sources_is_explained() {
        let page = page().unwrap_or_else(|e| panic!("{e}"));
        assert!(page.contains("| `AWS_ACCESS_KEY_ID` |"));
    }

    #[test]
    fn variable_names_are_recognised() {
        assert!(is_variable("OS_CLOUD") && is_variable("NO_COLOR"));
        assert!(!is_variable("OS_") && !is_variable("O_DIRECT") && !is_variable("os_cloud"));
    }
}
