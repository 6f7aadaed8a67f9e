//! The descriptors of the HDFS drivers.

use bucketload_target::doctor::Examined;
use bucketload_target::{
    Descriptor, OpenError, OpenRequest, Semantics, Service, UrlForm, any_bucket, any_cleanup, flags,
};

use super::HadoopOverrides;
#[cfg(feature = "hdfs")]
use crate::hdfs::{HdfsConfig, HdfsDriver};
use crate::http::{Endpoint, TlsConfig, doctor};
use crate::webhdfs::{WebHdfsConfig, WebHdfsDriver};

const REPLACED: &str =
    "the old file is deleted, then the new one is written: readers may find neither";

/// The driver of `webhdfs://`.
pub static WEBHDFS: Descriptor = Descriptor {
    name: "webhdfs",
    schemes: &["webhdfs"],
    form: UrlForm::ServerAndBucket,
    page: "drivers/hdfs.md",
    semantics: Semantics {
        write: "2 requests, name node and data node; the file appears before its bytes",
        overwrite: REPLACED,
        parts: Semantics::NONE,
        append: "2 requests; one writer at a time",
        rename: "1 request to the name node; no bytes move",
        list: "directory by directory; empty directories stay",
        delete_nothing: Semantics::MISSED,
        delete_many: Semantics::NONE,
    },
    flags: &[&flags::HTTP],
    dialect: &[],
    endpoint_variables: &[],
    files: &[],
    secret: None,
    check_bucket: any_bucket,
    open: |request| {
        let config = webhdfs_config(request)?;
        one_endpoint(request)?;
        let url = |e: &Endpoint| format!("{}{}", e.url(), config.files.root);
        Ok(Service {
            endpoints: config.endpoints.iter().map(url).collect(),
            driver: WebHdfsDriver::new(config.clone())?.into(),
        })
    },
    origins: |request| Ok(webhdfs_config(request)?.origins),
    check_cleanup: any_cleanup,
    doctor: |request, exam| {
        let config = webhdfs_config(request)?;
        doctor::way(&config.endpoints, &config.tls, exam)?;
        Ok(Examined::Way)
    },
};

/// The driver of `hdfs://`.
#[cfg(feature = "hdfs")]
pub static HDFS: Descriptor = Descriptor {
    name: "hdfs",
    schemes: &["hdfs"],
    semantics: Semantics {
        write: "create, blocks, complete; the file appears before its bytes",
        overwrite: REPLACED,
        parts: Semantics::NONE,
        append: "native; one writer at a time",
        rename: "1 call to the name node; no bytes move",
        list: "directory by directory; empty directories stay",
        delete_nothing: Semantics::MISSED,
        delete_many: Semantics::NONE,
    },
    flags: &[&[&flags::ENDPOINT_URL]],
    open: |request| {
        let config = hdfs_config(request)?;
        one_endpoint(request)?;
        Ok(Service {
            endpoints: vec![format!("{}{}", config.url, config.files.root)],
            driver: HdfsDriver::new(config.clone())?.into(),
        })
    },
    origins: |request| Ok(hdfs_config(request)?.origins),
    doctor: |request, exam| {
        let config = hdfs_config(request)?;
        // The addresses of a name service's nodes stand in Hadoop's files, and the library finds the active one.
        if config.name_nodes == 1 {
            let url = config.url.replacen("hdfs://", "http://", 1);
            doctor::reach(&[Endpoint::parse(&url, "the name node")?], exam)?;
            for finding in &mut exam.findings {
                finding.remedy = finding.remedy.replace(&url, &config.url);
            }
        }
        Ok(Examined::Way)
    },
    ..WEBHDFS
};

fn webhdfs_config(request: &OpenRequest<'_>) -> Result<WebHdfsConfig, OpenError> {
    Ok(WebHdfsConfig::discover(
        &overrides(request)?,
        request.variable,
    )?)
}

#[cfg(feature = "hdfs")]
fn hdfs_config(request: &OpenRequest<'_>) -> Result<HdfsConfig, OpenError> {
    Ok(HdfsConfig::discover(
        &overrides(request)?,
        request.variable,
    )?)
}

fn overrides(request: &OpenRequest<'_>) -> Result<HadoopOverrides, OpenError> {
    let settings = request.settings;
    let endpoint_url = settings.joined(&flags::ENDPOINT_URL);
    if let (Some(server), Some(url)) = (request.server, &endpoint_url) {
        return Err(OpenError::Usage(format!(
            "--endpoint-url: the target names the server {server} and this flag {url}; omit one of them \
             (with the flag, write the target as SCHEME://BUCKET/PREFIX)"
        )));
    }
    Ok(HadoopOverrides {
        authority: request.server.map(str::to_owned),
        endpoint_url,
        tls: TlsConfig::of(settings),
        source_addresses: settings.parse_all(&flags::SOURCE_ADDRESS)?,
    })
}

/// Refuses to spread load over several name nodes: only one is active.
fn one_endpoint(request: &OpenRequest<'_>) -> Result<(), OpenError> {
    match request.endpoints {
        None | Some(1) => Ok(()),
        Some(n) => Err(OpenError::Usage(format!(
            "endpoints: {n} are requested, but only one name node of HDFS is active"
        ))),
    }
}
