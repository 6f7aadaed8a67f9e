//! `clouds.yaml`: named clouds with their sign-in settings.
//!
//! The search path is openstacksdk's ("Configuring OpenStack SDK Applications"): `OS_CLIENT_CONFIG_FILE`, then the working
//! directory, `~/.config/openstack` and `/etc/openstack`. A `secure.yaml` in the same directory may hold the secrets.

use std::path::{Path, PathBuf};

use yaml_rust2::{Yaml, YamlLoader};

use crate::http::config::ConfigError;

/// One cloud of the file, overridden by its part of `secure.yaml`.
pub(super) struct Cloud {
    name: String,
    path: PathBuf,
    layers: Vec<Yaml>,
}

impl Cloud {
    /// Looks up the cloud `name`. `place` says in errors where the name comes from.
    pub(super) fn find(
        name: &str,
        place: &str,
        env: &dyn Fn(&str) -> Option<String>,
        home: Option<&Path>,
    ) -> Result<Self, ConfigError> {
        let named = env("OS_CLIENT_CONFIG_FILE").filter(|v| !v.is_empty());
        let folders = [
            Some(PathBuf::from(".")),
            home.map(|home| home.join(".config/openstack")),
            Some(PathBuf::from("/etc/openstack")),
        ];
        let files: Vec<PathBuf> = match named {
            Some(file) => vec![PathBuf::from(file)],
            None => folders
                .into_iter()
                .flatten()
                .flat_map(|f| [f.join("clouds.yaml"), f.join("clouds.yml")])
                .collect(),
        };
        let Some(path) = files.iter().find(|path| path.is_file()) else {
            let looked: Vec<_> = files.iter().map(|f| f.display().to_string()).collect();
            return Err(ConfigError::new(
                place,
                format!("cloud `{name}` is named, but there is no clouds.yaml"),
                format!("looked at {}; set OS_CLIENT_CONFIG_FILE", looked.join(", ")),
            ));
        };
        let mut layers = Vec::new();
        let secure = path.with_file_name("secure.yaml");
        if secure.is_file()
            && let Ok(cloud) = read(&secure)?.remove(name)
        {
            layers.push(cloud);
        }
        match read(path)?.remove(name) {
            Ok(cloud) => layers.push(cloud),
            Err(known) => {
                return Err(ConfigError::new(
                    place,
                    format!("{} has no cloud `{name}`", path.display()),
                    match known.is_empty() {
                        true => "it has none below `clouds:`".to_owned(),
                        false => format!("its clouds are {known}"),
                    },
                ));
            }
        }
        Ok(Self {
            name: name.to_owned(),
            path: path.clone(),
            layers,
        })
    }

    /// The value of a field such as `region_name`, or `auth.username`.
    pub(super) fn get(&self, field: &str) -> Option<String> {
        self.layers.iter().find_map(|layer| {
            let value = field.split('.').fold(layer, |yaml, part| &yaml[part]);
            match value {
                Yaml::String(text) | Yaml::Real(text) => Some(text.clone()),
                Yaml::Integer(number) => Some(number.to_string()),
                Yaml::Boolean(flag) => Some(flag.to_string()),
                _ => None,
            }
        })
    }

    /// Where `field` is in the file, for messages.
    pub(super) fn place(&self, field: &str) -> String {
        format!("{} [clouds.{}] {field}", self.path.display(), self.name)
    }
}

/// The clouds of one file.
struct Clouds(Vec<(String, Yaml)>);

impl Clouds {
    /// The cloud `name`, or else the known names.
    fn remove(mut self, name: &str) -> Result<Yaml, String> {
        match self.0.iter().position(|(known, _)| known == name) {
            Some(at) => Ok(self.0.swap_remove(at).1),
            None => {
                let names: Vec<String> = self.0.into_iter().map(|(name, _)| name).collect();
                Err(names.join(", "))
            }
        }
    }
}

fn read(path: &Path) -> Result<Clouds, ConfigError> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|e| ConfigError::new(&file, format!("it cannot be read: {e}"), "check it"))?;
    // The scanner's message contains the position, but no text of the file.
    let documents = YamlLoader::load_from_str(&text).map_err(|e| {
        let at = e.marker();
        let place = format!("{file}:{}:{}", at.line(), at.col() + 1);
        ConfigError::new(
            place,
            format!("it is not YAML ({})", e.info()),
            "correct it",
        )
    })?;
    let clouds = documents
        .into_iter()
        .next()
        .and_then(|mut document| match &mut document {
            Yaml::Hash(top) => top.remove(&Yaml::String("clouds".to_owned())),
            _ => None,
        });
    let Some(Yaml::Hash(clouds)) = clouds else {
        return Ok(Clouds(Vec::new()));
    };
    let named = |(name, cloud): (Yaml, Yaml)| Some((name.into_string()?, cloud));
    Ok(Clouds(clouds.into_iter().filter_map(named).collect()))
}

#[cfg(test)]
mod tests {
    use super::Cloud;

    const FILE: &str = "
clouds:
  dev:
    auth:
      auth_url: http://k:5000/v3
      username: alice
      project_name: 42
    region_name: one
    verify: false
  prod:
    auth: {auth_url: 'https://k'}
";

    fn find(name: &str, clouds: &str, secure: Option<&str>) -> Result<Cloud, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("clouds.yaml");
        std::fs::write(&file, clouds).unwrap();
        if let Some(secure) = secure {
            std::fs::write(dir.path().join("secure.yaml"), secure).unwrap();
        }
        let env =
            |name: &str| (name == "OS_CLIENT_CONFIG_FILE").then(|| file.display().to_string());
        Cloud::find(name, "OS_CLOUD", &env, None).map_err(|e| e.to_string())
    }

    #[test]
    fn fields_are_found_and_secrets_may_be_in_their_own_file() {
        let secure = "clouds: {dev: {auth: {password: hidden}}}";
        let cloud = find("dev", FILE, Some(secure)).unwrap();
        assert_eq!(cloud.get("auth.username").as_deref(), Some("alice"));
        assert_eq!(cloud.get("auth.project_name").as_deref(), Some("42"));
        assert_eq!(cloud.get("auth.password").as_deref(), Some("hidden"));
        assert_eq!(cloud.get("verify").as_deref(), Some("false"));
        assert_eq!(cloud.get("auth.user_domain_name"), None);
        assert!(
            cloud
                .place("auth.username")
                .contains("[clouds.dev] auth.username")
        );
    }

    #[test]
    fn unknown_clouds_and_broken_files_are_named() {
        let error = find("test", FILE, None).err().unwrap();
        assert!(
            error.contains("dev, prod") && error.contains("OS_CLOUD"),
            "{error}"
        );
        let error = find("dev", "clouds: {dev: [}", None).err().unwrap();
        assert!(error.contains("clouds.yaml:1:"), "{error}");
        let error = find("dev", "nothing: here", None).err().unwrap();
        assert!(error.contains("no cloud `dev`"), "{error}");
    }

    #[test]
    fn a_missing_file_is_an_error_with_the_search_path() {
        let home = tempfile::tempdir().unwrap();
        let error = Cloud::find("x", "--profile", &|_| None, Some(home.path()))
            .err()
            .unwrap();
        let text = error.to_string();
        assert!(text.contains(".config/openstack/clouds.yaml"), "{text}");
    }
}
