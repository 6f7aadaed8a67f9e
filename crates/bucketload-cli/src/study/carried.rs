//! The scripts of `servers/`, built into the program so that a study can start servers without a clone of the
//! repository. They are written below the directory in which the scripts install programs.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

macro_rules! scripts {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../servers/", $name)))),*]
    };
}

/// File name and text of every script, sorted by name.
const SCRIPTS: &[(&str, &str)] = scripts![
    "azurite.sh",
    "ceph.sh",
    "clients.sh",
    "cluster.sh",
    "common.sh",
    "fake-gcs-server.sh",
    "garage.sh",
    "gofakes3.sh",
    "hdfs.sh",
    "kubernetes-schema.sh",
    "minio.sh",
    "mint.sh",
    "moto.sh",
    "netns.sh",
    "nginx.sh",
    "rclone-s3.sh",
    "s3-tests.sh",
    "s3fs.sh",
    "s3mock.sh",
    "s3proxy.sh",
    "s3rver.sh",
    "s3s-fs.sh",
    "seaweedfs.sh",
    "slurm.sh",
    "swift.sh",
    "versitygw.sh",
];

/// Whether this file is built in.
pub(super) fn contains(file: &str) -> bool {
    SCRIPTS.iter().any(|(name, _)| *name == file)
}

/// The directory of the scripts below `home`. Each version of the scripts has its own directory.
pub(super) fn directory(home: &Path) -> PathBuf {
    let mut hash = Sha256::new();
    for (name, text) in SCRIPTS {
        // Names and texts contain no NUL.
        for part in [name, "\0", text, "\0"] {
            hash.update(part.as_bytes());
        }
    }
    let digest = hash.finalize();
    let short: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
    home.join(format!("scripts-{short}"))
}

/// Writes the scripts into `dir`, readable for this user only. The scripts stay there, so that the user can repeat a
/// command that stops a server. Correct files are not rewritten. Other processes may write the same files concurrently.
///
/// # Errors
/// When the directory cannot be written; the message names the path.
pub(super) fn write(dir: &Path) -> Result<(), String> {
    let at = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let mut private = std::fs::DirBuilder::new();
    private.recursive(true).mode(0o700);
    private.create(dir).map_err(|e| at(dir, e))?;
    for (name, text) in SCRIPTS {
        let path = dir.join(name);
        if is_right(&path, text) {
            continue;
        }
        let put = || {
            let mut file = tempfile::NamedTempFile::new_in(dir)?;
            file.write_all(text.as_bytes())?;
            file.as_file()
                .set_permissions(std::fs::Permissions::from_mode(0o700))?;
            // A file that is still open for writing cannot be executed.
            file.into_temp_path().persist(&path)?;
            Ok(())
        };
        put().map_err(|e| at(&path, e))?;
    }
    Ok(())
}

/// Whether `path` contains the script `text` and is executable by this user only.
fn is_right(path: &Path, text: &str) -> bool {
    let mode = path.metadata().map(|meta| meta.permissions().mode());
    mode.is_ok_and(|mode| mode & 0o777 == 0o700)
        && std::fs::read(path).is_ok_and(|known| known == text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::process::Command;

    use super::{SCRIPTS, contains, directory, write};

    #[test]
    fn every_script_of_the_repository_is_built_in() {
        let servers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../servers");
        let mut there: Vec<String> = fs::read_dir(servers)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".sh"))
            .collect();
        there.sort_unstable();
        let carried: Vec<&str> = SCRIPTS.iter().map(|(name, _)| *name).collect();
        assert_eq!(there, carried);
        assert!(contains("minio.sh") && !contains("minio"));
    }

    #[test]
    fn scripts_are_private_executable_and_repaired() {
        let home = tempfile::tempdir().unwrap();
        let dir = directory(home.path());
        write(&dir).unwrap();
        assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let said = Command::new(dir.join("minio.sh"))
            .arg("help")
            .env("HOME", home.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.contains("minio.sh install"), "{said}");

        fs::write(dir.join("common.sh"), "false").unwrap();
        let locked = fs::Permissions::from_mode(0o600);
        fs::set_permissions(dir.join("minio.sh"), locked).unwrap();
        write(&dir).unwrap();
        for (name, text) in SCRIPTS {
            let path = dir.join(name);
            assert_eq!(&fs::read_to_string(&path).unwrap(), text);
            let mode = path.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{name}");
        }
        assert_eq!(fs::read_dir(&dir).unwrap().count(), SCRIPTS.len());
    }
}
