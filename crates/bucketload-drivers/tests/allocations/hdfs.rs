//! Steady-state reads over Hadoop's own protocols allocate nothing. The fake cluster runs on other threads, whose
//! allocations are not counted.
#![cfg(feature = "hdfs")]

use bucketload_core::driver::{Driver, Session};
use bucketload_core::op::{OpClass, Request};
use bucketload_core::payload::{Arena, PayloadKind};
use bucketload_drivers::hadoop::HadoopOverrides;
use bucketload_drivers::hdfs::{HdfsConfig, HdfsDriver};
use bucketload_testkit::alloc::calls;
use bucketload_testkit::hdfs::FakeHdfs;

use crate::support::{WORKER, op, probe, run};

#[test]
fn a_steady_state_allocates_nothing() {
    let arena = Arena::new(PayloadKind::Random, 1);
    let fake = FakeHdfs::start();
    let files = [4096, 250_000].map(|size| {
        let content = arena.content(0, size, 0, size);
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < size {
            let left = size as usize - bytes.len();
            bytes.extend_from_slice(content.segment(bytes.len() as u64, left).as_bytes());
        }
        fake.add_file(&format!("/b/{size}"), &bytes, 100_000);
        (size.to_string(), content)
    });
    let overrides = HadoopOverrides {
        endpoint_url: Some(fake.url.clone()),
        ..HadoopOverrides::default()
    };
    let env = |name: &str| (name == "HADOOP_USER_NAME").then(|| "ann".to_owned());
    let config = HdfsConfig::discover(&overrides, &env).unwrap();
    assert_eq!(config.library_reads, None);
    let driver = HdfsDriver::new(config).unwrap();
    run(async {
        let mut probe = probe();
        let mut session = driver.open(WORKER, &mut probe).await.unwrap();
        let mut before = 0;
        for turn in 0..40 {
            if turn == 20 {
                before = calls();
            }
            for (key, content) in &files {
                for class in [OpClass::Get, OpClass::Head] {
                    let op = op(class, content.size());
                    let mut request = Request::new(&op, "b", key);
                    request.content = Some(*content);
                    request.verify = true;
                    probe.reset();
                    session.execute(&request, &mut probe).await.unwrap();
                }
            }
        }
        assert_eq!(calls() - before, 0);
    });
}
