//! A program's or library's requirements, read from its ELF file: machine, loader, libraries, and versions of their
//! symbols. The newest glibc version among them is the oldest glibc that runs it.

use std::collections::BTreeSet;

use crate::sh::Result;

/// `SHT_DYNAMIC`: the libraries.
const DYNAMIC: u32 = 6;
/// `SHT_GNU_verneed`: the versions of symbols of other libraries.
const NEEDS: u32 = 0x6fff_fffe;
/// `PT_INTERP`: the loader.
const LOADER: u32 = 3;
/// `DT_NEEDED`.
const LIBRARY: u64 = 1;
/// `DT_SONAME`.
const OWN_NAME: u64 = 14;

/// A version such as 2.34.
pub(super) type Version = (u32, u32);

/// The requirements of an ELF file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Elf {
    /// `e_machine`.
    machine: u16,
    /// Path of the loader; empty for a library.
    pub(super) loader: String,
    /// Names of the required libraries.
    pub(super) libraries: Vec<String>,
    /// The library's own name; empty for a program.
    pub(super) name: String,
    /// Versions of symbols, such as `GLIBC_2.34`.
    versions: BTreeSet<String>,
}

/// A machine's names in different systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Machine {
    /// The name in the kernel, Rust and Python.
    pub(super) name: &'static str,
    /// The name in Debian and in images.
    pub(super) debian: &'static str,
    /// The name of Debian's library directory.
    pub(super) triplet: &'static str,
}

impl Elf {
    /// Reads a 64-bit little-endian file.
    ///
    /// # Errors
    /// The file is of another kind, or truncated.
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        if bytes.get(..6) != Some(b"\x7fELF\x02\x01") {
            return Err("not a 64-bit little-endian ELF file".to_owned());
        }
        let mut elf = Self {
            machine: u16_at(bytes, 18)?,
            ..Self::default()
        };
        let (first, size, count) = (u64_at(bytes, 32)?, u16_at(bytes, 54)?, u16_at(bytes, 56)?);
        for i in 0..u64::from(count) {
            let at = place(first, i, u64::from(size))?;
            if u32_at(bytes, at)? == LOADER {
                elf.loader = text_at(bytes, usize_of(u64_at(bytes, at + 8)?)?)?;
            }
        }
        let (first, size, count) = (u64_at(bytes, 40)?, u16_at(bytes, 58)?, u16_at(bytes, 60)?);
        for i in 0..u64::from(count) {
            let at = place(first, i, u64::from(size))?;
            let kind = u32_at(bytes, at + 4)?;
            if kind != DYNAMIC && kind != NEEDS {
                continue;
            }
            let (start, length) = (u64_at(bytes, at + 24)?, u64_at(bytes, at + 32)?);
            let texts = place(first, u64::from(u32_at(bytes, at + 40)?), u64::from(size))?;
            let texts = usize_of(u64_at(bytes, texts + 24)?)?;
            if kind == DYNAMIC {
                elf.dynamic(bytes, usize_of(start)?, usize_of(length)?, texts)?;
            } else {
                elf.needs(bytes, usize_of(start)?, texts)?;
            }
        }
        Ok(elf)
    }

    fn dynamic(&mut self, bytes: &[u8], start: usize, length: usize, texts: usize) -> Result {
        for i in 0..length / 16 {
            let at = start + 16 * i;
            let value = || usize_of(u64_at(bytes, at + 8)?);
            match u64_at(bytes, at)? {
                0 => break,
                LIBRARY => self.libraries.push(text_at(bytes, texts + value()?)?),
                OWN_NAME => self.name = text_at(bytes, texts + value()?)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// A chain of libraries, each with a chain of versions.
    fn needs(&mut self, bytes: &[u8], start: usize, texts: usize) -> Result {
        let step = |at: usize, offset: usize| -> Result<usize> {
            Ok(u32_at(bytes, at + offset)? as usize)
        };
        let mut library = start;
        loop {
            let mut version = library + step(library, 8)?;
            for _ in 0..u16_at(bytes, library + 2)? {
                let name = text_at(bytes, texts + step(version, 8)?)?;
                self.versions.insert(name);
                version += step(version, 12)?;
            }
            match step(library, 12)? {
                0 => return Ok(()),
                next => library += next,
            }
        }
    }

    /// The newest version among symbols with this prefix (`GLIBC_`); `None` if there are none.
    pub(super) fn newest(&self, prefix: &str) -> Option<Version> {
        let versions = self.versions.iter();
        let numbers = versions.filter_map(|version| {
            let mut parts = version.strip_prefix(prefix)?.split('.');
            let major = parts.next()?.parse().ok()?;
            let minor = parts.next().unwrap_or("0").parse().ok()?;
            Some((major, minor))
        });
        numbers.max()
    }

    /// The file's machine.
    ///
    /// # Errors
    /// We make no packages for the machine.
    pub(super) fn machine(&self) -> Result<Machine> {
        match self.machine {
            62 => Ok(Machine {
                name: "x86_64",
                debian: "amd64",
                triplet: "x86_64-linux-gnu",
            }),
            183 => Ok(Machine {
                name: "aarch64",
                debian: "arm64",
                triplet: "aarch64-linux-gnu",
            }),
            other => Err(format!(
                "packages are made for x86_64 and aarch64, this is ELF machine {other}"
            )),
        }
    }
}

fn cut() -> String {
    "the ELF file is truncated".to_owned()
}

fn usize_of(value: u64) -> Result<usize> {
    usize::try_from(value).map_err(|_| cut())
}

fn place(first: u64, index: u64, size: u64) -> Result<usize> {
    let end = index.checked_mul(size).and_then(|o| o.checked_add(first));
    usize_of(end.ok_or_else(cut)?)
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    let end = at.checked_add(N).ok_or_else(cut)?;
    let part = bytes.get(at..end).ok_or_else(cut)?;
    part.try_into().map_err(|_| cut())
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16> {
    part(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32> {
    part(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64> {
    part(bytes, at).map(u64::from_le_bytes)
}

fn text_at(bytes: &[u8], at: usize) -> Result<String> {
    let rest = bytes.get(at..).ok_or_else(cut)?;
    let end = rest.iter().position(|&byte| byte == 0).ok_or_else(cut)?;
    String::from_utf8(rest[..end].to_vec()).map_err(|_| cut())
}

#[cfg(test)]
mod tests {
    use super::{Elf, Machine};

    #[test]
    fn requirements_of_this_program_are_read() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let elf = Elf::read(&own).unwrap();
        assert!(elf.libraries.contains(&"libc.so.6".to_owned()), "{elf:?}");
        assert!(elf.loader.starts_with("/lib"), "{elf:?}");
        assert_eq!(elf.name, "");
        // Rust 1.95 itself needs 2.17; no glibc 3 is in sight.
        let floor = elf.newest("GLIBC_").unwrap();
        assert!(((2, 17)..(3, 0)).contains(&floor), "{floor:?}");
        assert_eq!(elf.machine().unwrap().name, std::env::consts::ARCH);
        assert!(Elf::read(&own[..4096]).is_err());
        assert!(Elf::read(b"#!/bin/sh").is_err());
    }

    #[test]
    fn versions_are_numbers() {
        let versions = [
            "GLIBC_2.9",
            "GLIBC_2.34",
            "GLIBC_2.2.5",
            "GLIBC_PRIVATE",
            "GCC_4.2.0",
        ];
        let elf = Elf {
            machine: 183,
            versions: versions.map(str::to_owned).into(),
            ..Elf::default()
        };
        assert_eq!(elf.newest("GLIBC_"), Some((2, 34)));
        assert_eq!(elf.newest("GCC_"), Some((4, 2)));
        assert_eq!(elf.newest("CXX_"), None);
        let Machine { debian, .. } = elf.machine().unwrap();
        assert_eq!(debian, "arm64");
    }
}
