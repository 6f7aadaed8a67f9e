//! Placement in OpenStack Swift, from the object ring that the proxies use. Proxies read from any copy.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use super::ring::{HashPath, Ring};
use bucketload_core::driver::DriverFacts;
use flate2::read::GzDecoder;

use bucketload_target::{Locate, OnCopy, OpenError, RingStore};

/// Maximum size of a ring, in bytes: 2^24 partitions with 16 replicas take 512 MiB.
const MOST_BYTES: u64 = 1 << 30;

/// A ring, and the inputs for looking up objects in it.
pub(crate) struct Swift {
    ring: Ring,
    hash: HashPath,
    account: String,
}

/// Reads the ring.
pub(crate) fn open(args: &RingStore, run: &DriverFacts) -> Result<Swift, OpenError> {
    let bad = |path: &Path, what: String| OpenError::usage(format!("{}: {what}", path.display()));
    let account = match &args.account {
        Some(account) => account.clone(),
        None => account_of(run).ok_or_else(|| {
            OpenError::usage("--account: the run did not use the Swift API; name the account")
        })?,
    };
    let file = fs::File::open(&args.ring)
        .map_err(|e| bad(&args.ring, format!("{e}; name the object ring with --ring")))?;
    let mut bytes = Vec::new();
    GzDecoder::new(file)
        .take(MOST_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|e| bad(&args.ring, e.to_string()))?;
    let ring = Ring::parse(&bytes).map_err(|e| bad(&args.ring, e))?;
    let conf = fs::read_to_string(&args.conf)
        .map_err(|e| bad(&args.conf, format!("{e}; name it with --swift-conf")))?;
    let hash = HashPath::parse(&conf).map_err(|e| bad(&args.conf, e))?;
    Ok(Swift {
        ring,
        hash,
        account,
    })
}

/// The account in a run's storage URL: the last part of its path.
fn account_of(run: &DriverFacts) -> Option<String> {
    let url = run.endpoints.first().filter(|_| run.driver == "swift")?;
    let account = url.trim_end_matches('/').rsplit('/').next()?;
    (!account.is_empty()).then(|| account.to_owned())
}

impl Locate for Swift {
    fn locate(
        &mut self,
        bucket: &str,
        keys: &[String],
        on_copy: OnCopy<'_>,
    ) -> Result<(), OpenError> {
        for (i, key) in keys.iter().enumerate() {
            let devices = self.ring.devices(&self.hash, &self.account, bucket, key);
            devices.for_each(|device| on_copy(i, device));
        }
        Ok(())
    }
}
