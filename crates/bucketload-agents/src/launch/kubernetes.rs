//! An Indexed Job with a headless Service: every pod runs the same `bucketload run … --launch k8s`, and pod
//! 0 is the coordinator.
//!
//! The pods of an Indexed Job are called `JOB-INDEX`, and with the Service's name as subdomain each has
//! the DNS name `JOB-INDEX.SERVICE` (Kubernetes documentation, "Job with Pod-to-Pod Communication"). The
//! completion index is the rank.

use serde_json::{Value, json};

use super::rank::{AGENTS_ENV, CONTROLLER_ENV};
use super::yaml;
use crate::access::TOKEN_ENV;
use crate::error::AgentsError;

/// The settings of the job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Name of the job and of its Service.
    pub name: String,
    /// Namespace; `None` for kubectl's current namespace.
    pub namespace: Option<String>,
    /// Number of pods.
    pub agents: u32,
    /// Container image with the program as entry point.
    pub image: String,
    /// Secret whose key `token` holds the agents' token.
    pub token_secret: String,
    /// Secret whose keys are environment variables with the target's credentials.
    pub credentials_secret: Option<String>,
    /// PersistentVolumeClaim for results; `None` for a folder that is deleted with the pod.
    pub results_claim: Option<String>,
    /// CPU request and limit of each pod, such as `4` or `500m`.
    pub cpu: Option<String>,
    /// Memory request and limit of each pod, such as `2Gi`.
    pub memory: Option<String>,
    /// Port of the coordinator.
    pub port: u16,
    /// Name and contents of the workload file, if the workload comes from a file.
    pub workload: Option<(String, String)>,
    /// Arguments of `bucketload run`.
    pub arguments: Vec<String>,
}

/// Maximum length of the name. Pod names append `-INDEX` and must be DNS labels (RFC 1123).
const MAX_NAME: usize = 55;

impl Job {
    /// Renders the manifest.
    ///
    /// # Errors
    /// When the name is not allowed.
    pub fn render(&self) -> Result<String, AgentsError> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let sound = |name: &str| {
            let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
            name.chars().all(fits)
                && ends(name.chars().next())
                && ends(name.chars().last())
                && name.len() <= MAX_NAME
        };
        if !sound(&self.name) {
            return Err(AgentsError::usage(format!(
                "`{}` cannot be the name of the job: at most {MAX_NAME} lower-case letters, digits and \
                 dashes, with a letter or digit at both ends",
                self.name
            )));
        }
        let mut documents: Vec<Value> = Vec::new();
        if let Some((file, contents)) = &self.workload {
            documents.push(json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": self.metadata(&format!("{}-workload", self.name)),
                "data": {(file.as_str()): contents},
            }));
        }
        documents.push(json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self.metadata(&self.name),
            "spec": {
                "clusterIP": "None",
                // Agents look for the coordinator before it is ready.
                "publishNotReadyAddresses": true,
                "selector": {"job-name": self.name},
                "ports": [{"name": "agents", "port": self.port, "targetPort": self.port}],
            },
        }));
        documents.push(self.job());
        Ok(documents.iter().map(yaml::document).collect())
    }

    fn metadata(&self, name: &str) -> Value {
        let mut metadata = json!({
            "name": name,
            "labels": {"app.kubernetes.io/name": "bucketload"},
        });
        if let Some(namespace) = &self.namespace {
            metadata["namespace"] = json!(namespace);
        }
        metadata
    }

    fn job(&self) -> Value {
        let mut arguments = vec!["run".to_owned()];
        arguments.extend(self.arguments.iter().cloned());
        for word in ["--launch", "k8s", "--out", "/results/run"] {
            arguments.push(word.to_owned());
        }
        let mut mounts = vec![json!({"name": "results", "mountPath": "/results"})];
        let mut volumes = vec![match &self.results_claim {
            Some(claim) => {
                json!({"name": "results", "persistentVolumeClaim": {"claimName": claim}})
            }
            None => json!({"name": "results", "emptyDir": {}}),
        }];
        if self.workload.is_some() {
            mounts.push(json!({"name": "workload", "mountPath": "/workload", "readOnly": true}));
            let map = format!("{}-workload", self.name);
            volumes.push(json!({"name": "workload", "configMap": {"name": map}}));
        }
        let mut container = json!({
            "name": "bucketload",
            "image": self.image,
            "args": arguments,
            "workingDir": "/results",
            "env": [
                {"name": AGENTS_ENV, "value": self.agents.to_string()},
                {"name": CONTROLLER_ENV,
                 "value": format!("{0}-0.{0}:{1}", self.name, self.port)},
                {"name": TOKEN_ENV,
                 "valueFrom": {"secretKeyRef": {"name": self.token_secret, "key": "token"}}},
            ],
            "ports": [{"name": "agents", "containerPort": self.port}],
            "volumeMounts": mounts,
        });
        if let Some(secret) = &self.credentials_secret {
            container["envFrom"] = json!([{"secretRef": {"name": secret}}]);
        }
        // Requests equal limits: with more CPU at times, a pod would measure the cluster's other load.
        let sizes = [("cpu", &self.cpu), ("memory", &self.memory)];
        let sizes = sizes
            .into_iter()
            .filter_map(|(name, size)| Some((name, size.as_ref()?)));
        let sizes: serde_json::Map<String, Value> = sizes
            .map(|(name, size)| (name.to_owned(), json!(size)))
            .collect();
        if !sizes.is_empty() {
            container["resources"] = json!({"requests": sizes, "limits": sizes});
        }
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": self.metadata(&self.name),
            "spec": {
                "completionMode": "Indexed",
                "completions": self.agents,
                "parallelism": self.agents,
                // A run that has lost an agent is incomplete; a restarted pod could not rejoin it.
                "backoffLimit": 0,
                "template": {
                    "metadata": {"labels": {"app.kubernetes.io/name": "bucketload"}},
                    "spec": {
                        "subdomain": self.name,
                        "restartPolicy": "Never",
                        "topologySpreadConstraints": [{
                            "maxSkew": 1,
                            "topologyKey": "kubernetes.io/hostname",
                            "whenUnsatisfiable": "ScheduleAnyway",
                            "labelSelector": {"matchLabels": {"job-name": self.name}},
                        }],
                        "containers": [container],
                        "volumes": volumes,
                    },
                },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Job;

    fn job() -> Job {
        Job {
            name: "bench".to_owned(),
            agents: 4,
            image: "registry/bucketload:1".to_owned(),
            token_secret: "bench-token".to_owned(),
            credentials_secret: Some("s3".to_owned()),
            port: 7401,
            workload: Some(("my.toml".to_owned(), "a = 1\nb = 2\n".to_owned())),
            arguments: vec!["/workload/my.toml".to_owned()],
            ..Job::default()
        }
    }

    #[test]
    fn pods_can_find_the_coordinator() {
        let text = job().render().unwrap();
        for part in [
            "kind: \"ConfigMap\"",
            "clusterIP: \"None\"",
            "completionMode: \"Indexed\"",
            "completions: 4",
            "subdomain: \"bench\"",
            "\"bench-0.bench:7401\"",
            "key: \"token\"",
            "- \"/workload/my.toml\"",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert_eq!(text.matches("---").count(), 3);
    }

    #[test]
    fn names_must_be_dns_labels() {
        for name in ["", "Bench", "-a", "a-", "a.b", &"a".repeat(56)] {
            let job = Job {
                name: name.to_owned(),
                ..job()
            };
            assert!(job.render().is_err(), "{name}");
        }
    }
}
