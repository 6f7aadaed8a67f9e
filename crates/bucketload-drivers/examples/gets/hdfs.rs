//! The two drivers of HDFS against Hadoop itself, beside the S3 driver against the embedded server.

use std::sync::Arc;

use bucketload_core::driver::{Admin as _, Driver, Session as _, WorkerId};
use bucketload_core::op::{OpClass, Request};
use bucketload_core::payload::{Arena, PayloadKind};
use bucketload_core::record::Probe;
use bucketload_drivers::hadoop::HadoopOverrides;
use bucketload_drivers::hdfs::{HdfsConfig, HdfsDriver};
use bucketload_drivers::s3::{Credentials, Endpoint, S3Config, S3Driver};
use bucketload_drivers::webhdfs::{WebHdfsConfig, WebHdfsDriver};
use bucketload_server::{KeyPair, Server, ServerConfig, ServerHandle};
use bucketload_store::{MemoryOptions, MemoryStore};

use crate::load::{BUCKET, Load, gets, op, set_key};
use crate::{Failure, SIZE, clock};

/// What is measured of Hadoop, which answers some thousand requests a second.
const LOAD: Load = Load {
    workers: 8,
    warm: 20,
    requests: 400,
    objects: 64,
    all_threads: true,
};

/// Hadoop with the objects, and embedded servers with them.
pub(crate) struct Hadoop {
    uri: String,
    web: String,
    user: String,
    fast: ServerHandle,
    slow: ServerHandle,
}

impl Hadoop {
    /// Writes the objects to the cluster that the environment names and to embedded servers, one of which
    /// holds back each answer for `delay`.
    pub(crate) async fn prepare(delay: &str) -> Result<Self, Failure> {
        let get = |name: &str| std::env::var(name).map_err(|_| format!("{name} is not set"));
        let prepared = Self {
            uri: get("HDFS_URI")?,
            web: get("ENDPOINT")?,
            user: get("HADOOP_USER_NAME")?,
            fast: serve(&[])?,
            slow: serve(&[format!("delay,op=get,time={delay}")])?,
        };
        fill(&prepared.native(None)?).await?;
        fill(&s3(&prepared.fast)?).await?;
        fill(&s3(&prepared.slow)?).await?;
        Ok(prepared)
    }

    fn native(&self, library_reads: Option<&str>) -> Result<HdfsDriver, Failure> {
        let mut config = config(&self.uri, &self.user)?;
        config.library_reads = library_reads.map(str::to_owned);
        Ok(HdfsDriver::new(config)?)
    }

    /// CPU time per GET by `way`, in nanoseconds.
    pub(crate) async fn measure(&self, way: &str) -> Result<f64, Failure> {
        let (own_thread, many) = (
            Load {
                all_threads: false,
                ..LOAD
            },
            |requests| Load {
                requests,
                all_threads: false,
                ..LOAD
            },
        );
        match way {
            "s3" => gets(many(8000), &s3(&self.fast)?).await,
            "s3-slow" => gets(own_thread, &s3(&self.slow)?).await,
            "hdfs" => gets(LOAD, &self.native(None)?).await,
            "hdfs-library" => gets(LOAD, &self.native(Some("asked for"))?).await,
            _ => {
                let mut config = WebHdfsConfig::new(&self.web)?;
                config.files.user = Some(self.user.clone());
                gets(LOAD, &WebHdfsDriver::new(config)?).await
            }
        }
    }
}

/// Settings for the cluster at `uri`.
pub(crate) fn config(uri: &str, user: &str) -> Result<HdfsConfig, Failure> {
    let overrides = HadoopOverrides {
        endpoint_url: Some(uri.to_owned()),
        ..HadoopOverrides::default()
    };
    let env = |name: &str| (name == "HADOOP_USER_NAME").then(|| user.to_owned());
    Ok(HdfsConfig::discover(&overrides, &env)?)
}

fn serve(faults: &[String]) -> Result<ServerHandle, Failure> {
    let mut config = ServerConfig::new(KeyPair {
        access_key: "bench".into(),
        secret_key: "secret".into(),
    });
    for fault in faults {
        config.faults.push(fault.parse()?);
    }
    let store = MemoryStore::new(MemoryOptions::default());
    Ok(Server::start(config, Arc::new(store))?)
}

fn s3(server: &ServerHandle) -> Result<S3Driver, Failure> {
    let endpoint = Endpoint::parse(&server.endpoint_url(), "bench")?;
    let credentials = Credentials::new("bench", "secret");
    let config = S3Config::new(vec![endpoint], "us-east-1", Some(credentials));
    Ok(S3Driver::new(config)?)
}

/// Writes the objects.
async fn fill<D: Driver>(driver: &D) -> Result<(), Failure> {
    let id = WorkerId {
        thread: 0,
        worker: 0,
    };
    let mut session = driver.open(id, &mut Probe::new(clock)).await?;
    session.ensure_bucket(BUCKET).await?;
    let arena = Arena::new(PayloadKind::Random, 1);
    let mut key = String::new();
    let op = op(OpClass::Put);
    for number in 0..LOAD.objects {
        set_key(&mut key, number);
        let content = arena.content(0, number.into(), 0, SIZE as u64);
        let mut put = Request::new(&op, BUCKET, &key);
        put.content = Some(content);
        session.execute(&put, &mut Probe::new(clock)).await?;
    }
    Ok(())
}
