//! The texts of packages: contents, requirements, first steps.

use super::elf::{Machine, Version};

/// One-line summary of the program.
pub(super) const SUMMARY: &str = "The benchmark for object storage, with a verdict on every result";

/// A version as `2.34`.
pub(super) fn dotted((major, minor): Version) -> String {
    format!("{major}.{minor}")
}

/// The requirements in words.
fn needs(floor: Version, machine: Machine) -> String {
    format!(
        "It runs on Linux, {}, with glibc {} or newer (`ldd --version` shows yours). The only libraries it needs are\n\
         glibc and libgcc_s, which every distribution has.",
        machine.name,
        dotted(floor)
    )
}

/// The README of the program's packages.
pub(super) fn program(version: &str, floor: Version, machine: Machine) -> String {
    format!(
        "# Bucketload {version}\n\n\
         {SUMMARY}: load generator, embedded S3 server, reports and studies in one program.\n\n\
         {}\n\n\
         \x20   bucketload run online-service\n\n\
         measures the embedded server and ends with a verdict; `--target s3://BUCKET --endpoint-url URL` measures your\n\
         store, with the credentials of the AWS CLI. `bucketload study ossperf --quick --target embedded` is a first\n\
         study. For more, see `bucketload help`, `man bucketload` and `man bucketload-run`.\n\n\
         The `.tar.gz` holds `bin/bucketload`, manual pages in `share/man` and completions for bash, zsh and fish in\n\
         `share`. Unpack it into a prefix, for example `/usr/local`:\n\n\
         \x20   tar -xzf bucketload-*.tar.gz --strip-components=1 -C /usr/local\n\n\
         Licence: Apache-2.0 or MIT, at your choice. The crates inside have licences of their own:\n\
         `THIRD-PARTY-LICENSES.txt`.\n",
        needs(floor, machine)
    )
}

/// The README of the library's packages.
pub(super) fn library(version: &str, floor: Version, machine: Machine) -> String {
    format!(
        "# libs3-bucketload {version}\n\n\
         `libs3.so.4`: applications of libs3 (IOR, mdtest, IO500, MD-Workbench) work on a directory instead of a server,\n\
         without recompilation.\n\n\
         {}\n\n\
         \x20   export LD_LIBRARY_PATH=/where/it/is BUCKETLOAD_S3_ROOT=/scratch/project/s3\n\n\
         and start the application. If a package installed the library into the system's own directory,\n\
         `LD_LIBRARY_PATH` is not needed. `bucketload study s3-hpc` and `libs3:DIR` also find it in `../lib` next to\n\
         `bin/bucketload`.\n\n\
         Licence: Apache-2.0 or MIT, at your choice. The crates inside have licences of their own:\n\
         `THIRD-PARTY-LICENSES.txt`.\n",
        needs(floor, machine)
    )
}

/// The copyright file of a Debian package, in its machine-readable form.
pub(super) fn copyright(name: &str, mit: &str) -> String {
    // Debian wants licence paragraphs indented, and a dot for an empty line.
    let indented: String = mit
        .lines()
        .map(|line| match line.trim() {
            "" => " .\n".to_owned(),
            line => format!(" {line}\n"),
        })
        .collect();
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: {name}\n\
         Comment: the licences of the crates inside are in THIRD-PARTY-LICENSES.txt.gz\n\n\
         Files: *\nCopyright: The Bucketload authors\nLicense: Apache-2.0 or Expat\n\n\
         License: Apache-2.0\n On Debian systems, see /usr/share/common-licenses/Apache-2.0\n\n\
         License: Expat\n{indented}"
    )
}

#[cfg(test)]
mod tests {
    use super::{Machine, copyright, library, program};

    #[test]
    fn the_oldest_glibc_is_stated() {
        let machine = Machine {
            name: "x86_64",
            debian: "amd64",
            triplet: "x86_64-linux-gnu",
        };
        for text in [
            program("0.1.0", (2, 34), machine),
            library("0.1.0", (2, 34), machine),
        ] {
            assert!(text.contains("glibc 2.34 or newer"), "{text}");
            assert!(text.contains("\n\n    "), "{text}");
        }
        let text = copyright("x", "MIT License\n\nDo what you like.\n");
        assert!(
            text.ends_with("License: Expat\n MIT License\n .\n Do what you like.\n"),
            "{text}"
        );
    }
}
