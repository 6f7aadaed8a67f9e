//! Resources that the client used in the measured window.

use super::gather::PhaseGather;
use crate::result::ClientUse;
use crate::rundir::Manifest;

/// Computes the shares from the readings at both ends of the window. The verdict adds the headroom.
pub(crate) fn usage(manifest: &Manifest, gathered: &PhaseGather, rss_max_bytes: u64) -> ClientUse {
    let mut used = ClientUse {
        rss_max_bytes,
        ..ClientUse::default()
    };
    let Some((a, b)) = gathered.gauges else {
        return used;
    };
    let (ops, elapsed_ns) = (gathered.gauges_ops, gathered.gauges_ns);
    // A reading of 0 was never taken.
    let measured =
        |before: u64, after: u64| Some(after.saturating_sub(before)).filter(|_| after > 0);
    let per_op = |ns: Option<u64>| {
        ns.filter(|_| ops > 0)
            .map(|ns| ns as f64 / 1e3 / ops as f64)
    };
    used.cpu_us_per_op = per_op(measured(a.process_cpu_ns, b.process_cpu_ns));
    used.load_cpu_us_per_op = per_op(measured(a.load_cpu_ns, b.load_cpu_ns));
    if elapsed_ns > 0 && !manifest.client.spinning {
        used.busiest_thread = measured(a.busiest_thread_cpu_ns, b.busiest_thread_cpu_ns)
            .map(|ns| ns as f64 / elapsed_ns as f64);
    }
    let total = b.machine_total_ns.saturating_sub(a.machine_total_ns);
    if total > 0 {
        let share =
            |before: u64, after: u64| Some(after.saturating_sub(before) as f64 / total as f64);
        used.machine_busy = share(a.machine_busy_ns, b.machine_busy_ns);
        used.machine_softirq = share(a.machine_softirq_ns, b.machine_softirq_ns);
        used.machine_steal = share(a.machine_steal_ns, b.machine_steal_ns);
        used.process_share = share(a.process_cpu_ns, b.process_cpu_ns);
    }
    let line_rate = manifest.host.nic_bits_per_s / 8;
    if line_rate > 0 && elapsed_ns > 0 {
        let rx = b.nic_rx_bytes.saturating_sub(a.nic_rx_bytes);
        let tx = b.nic_tx_bytes.saturating_sub(a.nic_tx_bytes);
        used.nic = Some(rx.max(tx) as f64 * 1e9 / elapsed_ns as f64 / line_rate as f64);
    }
    used
}
