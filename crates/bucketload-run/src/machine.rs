//! Readings of the process and the machine that show whether the client was the bottleneck.
//!
//! They cover the whole machine: on a busy network the kernel handles soft interrupts on other cores, where they count
//! as no process's time.

use std::fs::File;
use std::os::unix::fs::FileExt;

use bucketload_core::tally::Gauges;

use crate::clock::{now_ns, process_cpu_ns, wall_offset_ns};

/// CPU times of the whole machine since boot, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MachineCpu {
    busy_ns: u64,
    softirq_ns: u64,
    steal_ns: u64,
    cores: u64,
}

/// Open files of `/proc`, and the first reading, from which cumulative figures are counted.
pub(crate) struct Machine {
    stat: Option<File>,
    statm: Option<File>,
    net: Option<File>,
    tick_ns: u64,
    page_bytes: u64,
    base: MachineCpu,
    base_ns: u64,
    buffer: Vec<u8>,
}

impl Machine {
    /// Opens the files. Figures stay 0 if their file is missing.
    pub(crate) fn new() -> Self {
        let open = |path: &str| File::open(path).ok();
        let mut machine = Self {
            stat: open("/proc/stat"),
            statm: open("/proc/self/statm"),
            net: open("/proc/self/net/dev"),
            tick_ns: 1_000_000_000 / sysconf(libc::_SC_CLK_TCK).max(1),
            page_bytes: sysconf(libc::_SC_PAGESIZE),
            base: MachineCpu::default(),
            base_ns: now_ns(),
            buffer: vec![0; 64 * 1024],
        };
        machine.base = machine.cpu();
        machine
    }

    fn read(&mut self, which: fn(&Self) -> Option<&File>) -> String {
        let mut buffer = std::mem::take(&mut self.buffer);
        let len = which(self)
            .and_then(|file| file.read_at(&mut buffer, 0).ok())
            .unwrap_or(0);
        let text = String::from_utf8_lossy(&buffer[..len]).into_owned();
        self.buffer = buffer;
        text
    }

    fn cpu(&mut self) -> MachineCpu {
        let tick_ns = self.tick_ns;
        parse_stat(&self.read(|m| m.stat.as_ref()), tick_ns)
    }

    /// Fills in all readings except those of the load threads.
    pub(crate) fn read_into(&mut self, gauges: &mut Gauges) {
        let cpu = self.cpu();
        gauges.process_cpu_ns = process_cpu_ns();
        gauges.machine_busy_ns = cpu.busy_ns.saturating_sub(self.base.busy_ns);
        gauges.machine_softirq_ns = cpu.softirq_ns.saturating_sub(self.base.softirq_ns);
        gauges.machine_steal_ns = cpu.steal_ns.saturating_sub(self.base.steal_ns);
        gauges.machine_total_ns = cpu.cores * now_ns().saturating_sub(self.base_ns);
        let pages = parse_statm(&self.read(|m| m.statm.as_ref()));
        gauges.rss_bytes = pages * self.page_bytes;
        (gauges.nic_rx_bytes, gauges.nic_tx_bytes) = parse_net(&self.read(|m| m.net.as_ref()));
        gauges.wall_offset_ns = wall_offset_ns();
    }
}

fn sysconf(name: libc::c_int) -> u64 {
    // SAFETY: sysconf has no preconditions; it only reads a configuration value.
    u64::try_from(unsafe { libc::sysconf(name) }).unwrap_or(0)
}

/// Reads the summary line of `/proc/stat` (proc(5)): user nice system idle iowait irq softirq steal, in ticks. Counts
/// the cores by their lines.
fn parse_stat(text: &str, tick_ns: u64) -> MachineCpu {
    let mut cpu = MachineCpu::default();
    for line in text.lines().take_while(|line| line.starts_with("cpu")) {
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some("cpu") {
            cpu.cores += 1;
            continue;
        }
        let mut ticks = [0u64; 8];
        for (tick, word) in ticks.iter_mut().zip(words) {
            *tick = word.parse().unwrap_or(0);
        }
        let [user, nice, system, _idle, _iowait, irq, softirq, steal] = ticks;
        cpu.busy_ns = (user + nice + system + irq + softirq) * tick_ns;
        cpu.softirq_ns = softirq * tick_ns;
        cpu.steal_ns = steal * tick_ns;
    }
    cpu
}

/// Resident pages: the second field of `/proc/self/statm`.
fn parse_statm(text: &str) -> u64 {
    let word = text.split_ascii_whitespace().nth(1);
    word.and_then(|w| w.parse().ok()).unwrap_or(0)
}

/// Received and sent bytes of the busiest non-loopback interface, from `/proc/net/dev`.
fn parse_net(text: &str) -> (u64, u64) {
    text.lines()
        .filter_map(|line| {
            let (name, counters) = line.split_once(':')?;
            let mut words = counters.split_ascii_whitespace();
            let rx: u64 = words.next()?.parse().ok()?;
            let tx: u64 = words.nth(7)?.parse().ok()?;
            (name.trim() != "lo").then_some((rx, tx))
        })
        .max_by_key(|(rx, tx)| rx + tx)
        .unwrap_or((0, 0))
}

#[cfg(test)]
mod tests {
    use bucketload_core::tally::Gauges;

    use super::{Machine, MachineCpu, parse_net, parse_stat, parse_statm};

    #[test]
    fn proc_files_are_parsed() {
        let stat = "cpu  100 1 20 999 50 3 4 7 0 0\ncpu0 1 1\ncpu1 1 1\nintr 5\n";
        let expected = MachineCpu {
            busy_ns: 1280,
            softirq_ns: 40,
            steal_ns: 70,
            cores: 2,
        };
        assert_eq!(parse_stat(stat, 10), expected);
        assert_eq!(parse_statm("900 321 5 1 0 1 0"), 321);
        let net = "Inter-|  Receive\n face |bytes packets\n    lo: 9999 1 0 0 0 0 0 0 9999 1 0\n  \
                   eth0: 70 1 0 0 0 0 0 0 30 1 0 0\n  eth1:5 1 0 0 0 0 0 0 6 1 0 0\n";
        assert_eq!(parse_net(net), (70, 30));
        assert_eq!(parse_net(""), (0, 0));
    }

    #[test]
    fn this_machine_has_readings() {
        let mut gauges = Gauges::default();
        Machine::new().read_into(&mut gauges);
        assert!(gauges.rss_bytes > 0 && gauges.machine_total_ns > 0);
        assert!(gauges.process_cpu_ns > 0 && gauges.wall_offset_ns > 0);
    }
}
