//! Empties the machine's caches before a phase is measured (`--posix-drop-caches`): the kernel's page cache, dentries
//! and inodes, after writing everything back (Linux, Documentation/admin-guide/sysctl/vm.rst).

use std::cell::RefCell;
use std::fs::File;
use std::io::Write as _;

use bucketload_run::PhaseHook;

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
/// Page cache, dentries and inodes.
const EVERYTHING: &[u8] = b"3\n";

fn open() -> Result<File, String> {
    File::options().write(true).open(DROP_CACHES).map_err(|e| {
        format!(
            "--posix-drop-caches: {DROP_CACHES}: {e}; the flag needs root, outside of a container. Without \
             privileges, use --posix-cache drop, which drops the pages of the run's own files after each operation"
        )
    })
}

/// Checks that this process may empty the caches.
///
/// # Errors
/// Why it may not, and what to do instead.
pub(crate) fn check() -> Result<(), String> {
    open().map(drop)
}

/// The hook that empties the caches before each measured phase.
pub(crate) fn hook() -> PhaseHook {
    RefCell::new(Box::new(|| {
        // Dirty pages would stay in the cache.
        rustix::fs::sync();
        let written = open()?.write_all(EVERYTHING);
        written.map_err(|e| format!("{DROP_CACHES}: {e}"))
    }))
}
