//! Steady-state calls of a libs3 library allocate nothing in the driver. The library of the tests has its own allocator,
//! which is not counted.
#![cfg(unix)]

use bucketload_core::driver::{Admin, Driver, Session};
use bucketload_core::op::{ByteRange, Op, OpClass};
use bucketload_core::payload::{Arena, PayloadKind};
use bucketload_local::libs3::{Libs3Config, Libs3Driver};
use bucketload_testkit::alloc::calls;

use crate::support::{WORKER, libs3_library, op, probe, request, run};

#[test]
fn operations_allocate_nothing() {
    let driver = Libs3Driver::new(Libs3Config::new(libs3_library(None))).unwrap();
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        let mut probe = probe();
        let mut session = driver.open(WORKER, &mut probe).await.unwrap();
        session.ensure_bucket("bucket").await.unwrap();
        for key in 0..60 {
            let key = format!("list/{key}");
            session.put_small("bucket", &key, b"x").await.unwrap();
        }
        let classes = [
            OpClass::Put,
            OpClass::Head,
            OpClass::Get,
            OpClass::RangeGet,
            OpClass::Copy,
            OpClass::List,
            OpClass::MultipartPut,
            OpClass::Delete,
            OpClass::HeadBucket,
            OpClass::ListBuckets,
        ];
        // The session keeps the buffers that the first round allocates.
        for round in 0..2 {
            for class in classes {
                let op = Op {
                    range: (class == OpClass::RangeGet).then_some(ByteRange {
                        offset: 9,
                        len: 500,
                    }),
                    count: match class {
                        OpClass::List => 25,
                        OpClass::MultipartPut => 100_000,
                        _ => 0,
                    },
                    ..op(class, 70_000)
                };
                let mut request = request(&op);
                request.content = Some(arena.content(0, 0, 0, 70_000));
                request.verify = class.reads_body();
                request.source = "key";
                match class {
                    OpClass::Copy => request.key = "copy",
                    OpClass::List => request.key = "list/",
                    _ => {}
                }
                probe.reset();
                let before = calls();
                let done = session.execute(&request, &mut probe).await;
                let allocated = calls() - before;
                done.unwrap();
                assert!(
                    round == 0 || allocated == 0,
                    "{class}: {allocated} allocations"
                );
            }
        }
    });
}
