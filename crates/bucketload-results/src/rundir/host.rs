//! Facts about the machine that ran the client, read from the kernel's files.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The machine. Fields are empty or 0 if unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct HostFacts {
    /// Operating system and processor architecture, such as `linux x86_64`.
    pub platform: String,
    /// Kernel release.
    pub kernel: String,
    /// Processor model.
    pub cpu_model: String,
    /// Cores that this process may use.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// CPU frequency governor of the first core.
    pub governor: String,
    /// Line rate of the fastest network interface other than loopback, bits per second.
    pub nic_bits_per_s: u64,
}

bucketload_core::serde_once!(HostFacts);

impl HostFacts {
    /// Reads the facts of this machine.
    #[must_use]
    pub fn collect() -> Self {
        Self::read(Path::new("/"))
    }

    fn read(root: &Path) -> Self {
        let file = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let line = |path: &str| file(path).trim().to_owned();
        Self {
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            kernel: line("proc/sys/kernel/osrelease"),
            cpu_model: field(&file("proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
            memory_bytes: field(&file("proc/meminfo"), "MemTotal")
                .split_whitespace()
                .next()
                .and_then(|kib| kib.parse::<u64>().ok())
                .map_or(0, |kib| kib * 1024),
            governor: line("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            nic_bits_per_s: fastest_interface(&root.join("sys/class/net")),
        }
    }
}

/// The value of the first `name : value` line.
fn field(text: &str, name: &str) -> String {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

fn fastest_interface(net: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(net) else {
        return 0;
    };
    entries
        .flatten()
        .filter(|entry| entry.file_name() != "lo")
        // `speed` is in Mbit/s; if unknown, it is -1 or unreadable.
        .filter_map(|entry| fs::read_to_string(entry.path().join("speed")).ok())
        .filter_map(|speed| speed.trim().parse::<u64>().ok())
        .max()
        .map_or(0, |mbit| mbit * 1_000_000)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::HostFacts;

    #[test]
    fn reads_the_kernel_files() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("proc/sys/kernel/osrelease", "6.1.0\n");
        put(
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n",
        );
        put("proc/meminfo", "MemFree: 1 kB\nMemTotal:       2048 kB\n");
        put("sys/class/net/lo/speed", "99999\n");
        put("sys/class/net/eth0/speed", "1000\n");
        put("sys/class/net/eth1/speed", "-1\n");
        let facts = HostFacts::read(root.path());
        assert_eq!(facts.kernel, "6.1.0");
        assert_eq!(facts.cpu_model, "Some CPU @ 2 GHz");
        assert_eq!(facts.memory_bytes, 2_097_152);
        assert_eq!(facts.nic_bits_per_s, 1_000_000_000);
        assert_eq!(facts.governor, "");
        assert!(facts.cores >= 1);
    }
}
