//! The native drivers against a thread that answers everything.

use bucketload_drivers::azblob::{AzureConfig, AzureDriver, AzureOverrides};
use bucketload_drivers::gcs::{GcsConfig, GcsDriver, GcsOverrides};
use bucketload_drivers::s3::{S3Config, S3Driver, S3Overrides};
use bucketload_drivers::seaweedfs::{Mode, SeaweedConfig, SeaweedDriver, SeaweedOverrides};
use bucketload_drivers::swift::{SwiftConfig, SwiftDriver, SwiftOverrides};
use bucketload_drivers::webhdfs::{WebHdfsConfig, WebHdfsDriver};

use crate::Failure;
use crate::load::{Load, gets};

/// What is measured: 64 connections, each with one request in flight; so few requests that neighbours are
/// measured within the same tenths of a second, for the speed of a shared machine changes from second to second.
pub(crate) const LOAD: Load = Load {
    workers: 64,
    warm: 50,
    requests: 200,
    objects: u32::MAX,
    all_threads: false,
};

/// The same with so few requests that the ports of finished connections do not run out.
pub(crate) const FEW: Load = Load {
    warm: 0,
    requests: 60,
    ..LOAD
};

/// CPU time per GET of the driver of `api`, in nanoseconds.
pub(crate) async fn measure(load: Load, api: &str, address: &str) -> Result<f64, Failure> {
    let url = format!("http://{address}");
    let storage = format!("{url}/v1/AUTH_bench");
    let env = |name: &str| {
        let value = match name {
            "AWS_ACCESS_KEY_ID" | "AZURE_STORAGE_ACCOUNT" => "bench",
            "AWS_SECRET_ACCESS_KEY" | "OS_AUTH_TOKEN" => "secret",
            "AZURE_STORAGE_KEY" => "c2VjcmV0",
            "AWS_REGION" => "us-east-1",
            "AWS_ENDPOINT_URL" | "STORAGE_EMULATOR_HOST" => &url,
            "OS_STORAGE_URL" => &storage,
            _ => return None,
        };
        Some(value.to_owned())
    };
    match api {
        "s3" => {
            let config = S3Config::discover(&S3Overrides::default(), &env, None)?;
            gets(load, &S3Driver::new(config)?).await
        }
        "swift" => {
            let config = SwiftConfig::discover(&SwiftOverrides::default(), &env, None)?;
            gets(load, &SwiftDriver::sign_in(config)?).await
        }
        "azblob" => {
            let overrides = AzureOverrides {
                endpoint_url: Some(format!("{url}/bench")),
                ..AzureOverrides::default()
            };
            gets(
                load,
                &AzureDriver::new(AzureConfig::discover(&overrides, &env)?)?,
            )
            .await
        }
        "seaweedfs" => {
            let overrides = SeaweedOverrides {
                endpoint_url: Some(url.clone()),
                mode: Some(Mode::Filer),
                ..SeaweedOverrides::default()
            };
            let config = SeaweedConfig::new(&overrides, &env)?;
            gets(load, &SeaweedDriver::new(config)?).await
        }
        "webhdfs" => {
            let driver = WebHdfsDriver::new(WebHdfsConfig::new(&url)?)?;
            gets(load, &driver).await
        }
        #[cfg(feature = "hdfs")]
        "hdfs" => {
            let config = crate::hdfs::config(&format!("hdfs://{address}"), "bench")?;
            gets(load, &bucketload_drivers::hdfs::HdfsDriver::new(config)?).await
        }
        _ => {
            let config = GcsConfig::discover(&GcsOverrides::default(), &env, None)?;
            gets(load, &GcsDriver::new(config)?).await
        }
    }
}
