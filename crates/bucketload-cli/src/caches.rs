//! Emptying the machine's caches before a phase is measured (`--posix-drop-caches`): the kernel's page cache,
//! names and inodes, after everything has been written back (Linux, Documentation/admin-guide/sysctl/vm.rst).

use std::cell::RefCell;
use std::fs::File;
use std::io::Write as _;

use bucketload_run::PhaseHook;

/// Where the kernel is told.
const PLACE: &str = "/proc/sys/vm/drop_caches";
/// Page cache, and names and inodes.
const EVERYTHING: &[u8] = b"3\n";

fn open() -> Result<File, String> {
    File::options().write(true).open(PLACE).map_err(|e| {
        format!(
            "--posix-drop-caches: {PLACE}: {e}; it takes root outside of a container. Without any privilege \
             --posix-cache drop forgets the pages of the run's own files after each operation on them"
        )
    })
}

/// Whether this process may do it.
///
/// # Errors
/// Why not, and what to do instead.
pub(crate) fn check() -> Result<(), String> {
    open().map(drop)
}

/// Does it before each measured phase.
pub(crate) fn hook() -> PhaseHook {
    RefCell::new(Box::new(|| {
        // What is not written back stays in the cache.
        rustix::fs::sync();
        let written = open()?.write_all(EVERYTHING);
        written.map_err(|e| format!("{PLACE}: {e}"))
    }))
}
