//! Services by API: from flags to a driver, one module and one arm per API. `flags` refuses what
//! means nothing for a target; `engines` puts another client in front of S3.

mod azblob;
pub(crate) mod engines;
pub(crate) mod flags;
mod gcs;
mod hadoop;
mod libs3;
pub(crate) mod posix;
pub(crate) mod s3;
pub(crate) mod seaweedfs;
pub(crate) mod swift;

use bucketload_core::driver::AnyDriver;
use bucketload_drivers::http::Origin;

use crate::cli::target::TargetArgs;
use crate::exit::Failure;
use crate::target::Api;

/// A driver and where its requests go.
pub(crate) struct Service {
    /// The driver.
    pub(crate) driver: AnyDriver,
    /// URLs of the service's endpoints.
    pub(crate) endpoints: Vec<String>,
}

/// Sets up the driver of a service (at `server`, where its URL names one), with the first `wanted` of
/// its endpoints (`None`: all). Nothing is sent yet, except that Swift's token is obtained.
///
/// # Errors
/// When settings contradict each other, there are fewer endpoints than wanted, or signing in fails.
pub(crate) fn open(
    api: Api,
    server: Option<&str>,
    args: &TargetArgs,
    wanted: Option<usize>,
) -> Result<Service, Failure> {
    if !matches!(api, Api::S3 | Api::Swift | Api::Azblob | Api::Gcs) {
        engines::refuse(args, &format!("{}://", api.scheme()))?;
    }
    match api {
        Api::S3 => s3::open(args, wanted),
        Api::Azblob => azblob::open(args, wanted),
        Api::Gcs => gcs::open(args, wanted),
        Api::Seaweedfs => seaweedfs::open(args, wanted),
        Api::Libs3 => libs3::open(args, wanted),
        Api::Swift => swift::service(args, wanted),
        Api::WebHdfs => hadoop::webhdfs(server, args, wanted),
        #[cfg(feature = "hdfs")]
        Api::Hdfs => hadoop::hdfs(server, args, wanted),
    }
}

/// The effective settings of a service and where each comes from.
///
/// # Errors
/// As [`open`].
pub(crate) fn origins(
    api: Api,
    server: Option<&str>,
    args: &TargetArgs,
) -> Result<Vec<Origin>, Failure> {
    match api {
        Api::S3 => Ok(s3::config(args)?.origins),
        Api::Azblob => Ok(azblob::config(args)?.origins),
        Api::Gcs => Ok(gcs::config(args)?.origins),
        Api::Seaweedfs => Ok(seaweedfs::config(args)?.origins),
        Api::Libs3 => libs3::origins(args),
        Api::Swift => Ok(swift::config(args)?.origins),
        Api::WebHdfs => Ok(hadoop::webhdfs_config(server, args)?.origins),
        #[cfg(feature = "hdfs")]
        Api::Hdfs => Ok(hadoop::hdfs_config(server, args)?.origins),
    }
}

/// Keeps the first `wanted` endpoints.
fn limit<E>(endpoints: &mut Vec<E>, wanted: Option<usize>) -> Result<(), Failure> {
    let Some(wanted) = wanted else { return Ok(()) };
    let known = endpoints.len();
    if wanted > known {
        return Err(Failure::usage(format!(
            "endpoints: {wanted} are wanted, {known} are known; name more with --endpoint-url"
        )));
    }
    endpoints.truncate(wanted);
    Ok(())
}
