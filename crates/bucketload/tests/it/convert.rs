//! COSBench workloads on the command line.

use crate::common::{bucketload, call};

const WORKLOAD: &str = r#"<workload name="w">
  <storage type="s3" config="accesskey=AK;secretkey=SECRET;endpoint=http://127.0.0.1:1" />
  <workflow>
    <workstage name="main">
      <work name="main" workers="2" totalOps="4" Runtime="3">
        <operation type="read" ratio="100" config="containers=u(1,2);objects=u(1,3)" />
      </work>
    </workstage>
  </workflow>
</workload>"#;

#[test]
fn a_workload_is_checked_and_expanded() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("w.xml");
    std::fs::write(&file, WORKLOAD).unwrap();
    let outcome = call(&mut bucketload(dir.path(), &["convert", "w.xml"]));
    outcome.expect(0, &["w.xml: line 5", "did you mean `runtime`"]);
    assert!(
        outcome.stdout.contains("secretkey=***"),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stdout.contains("division=\"none\""),
        "{}",
        outcome.stdout
    );

    let args = ["convert", "w.xml", "--show-secrets", "--out", "full.xml"];
    call(&mut bucketload(dir.path(), &args)).expect(0, &[]);
    let again = call(&mut bucketload(
        dir.path(),
        &["convert", "full.xml", "--quiet"],
    ));
    again.expect(0, &[]);
    assert_eq!(again.stdout, outcome.stdout);

    std::fs::write(&file, WORKLOAD.replace("\"100\"", "\"60\"")).unwrap();
    let refused = call(&mut bucketload(dir.path(), &["convert", "w.xml"]));
    refused.expect(2, &["w.xml: line 5", "sum to 60", "sum to 100"]);
    let absent = call(&mut bucketload(dir.path(), &["convert", "absent.xml"]));
    absent.expect(2, &["absent.xml"]);
}
