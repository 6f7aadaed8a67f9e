//! COSBench workloads in the queue: submitted as COSBench's users do, with the files that they expect.

use std::path::Path;

use super::support::Controller;

const HEAD: &str =
    "<workload name=\"demo one\" description=\"d\"><storage type=\"mock\"/><workflow>";
const TAIL: &str = "</workflow></workload>";
/// Prepares, reads and writes, and cleans up; `Ratio` is not an attribute.
const STAGES: &str = r#"
<workstage name="init"><work type="init" workers="1" config="cprefix=queue;containers=r(1,2)"/></workstage>
<workstage name="prepare"><work type="prepare" workers="2" config="cprefix=queue;containers=r(1,2);objects=r(1,5);sizes=c(1)KB"/></workstage>
<workstage name="main"><work name="main" workers="2" totalOps="40" Runtime="5">
<operation type="read" ratio="80" config="cprefix=queue;containers=u(1,2);objects=u(1,5)"/>
<operation type="write" ratio="20" config="cprefix=queue;containers=u(1,2);objects=u(6,9);sizes=c(1)KB"/></work></workstage>
<workstage name="cleanup"><work type="cleanup" workers="2" config="cprefix=queue;containers=r(1,2);objects=r(1,9)"/></workstage>
<workstage name="dispose"><work type="dispose" workers="1" config="cprefix=queue;containers=r(1,2)"/></workstage>"#;

fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

/// A workload file that runs without changes.
pub(crate) fn good(dir: &Path) -> String {
    write(dir, "good.xml", &format!("{HEAD}{STAGES}{TAIL}"))
}

/// The body that `curl -F config=@w.xml URL` sends, with further fields.
fn form(file: &str, fields: &[(&str, &str)]) -> String {
    let part = |head: &str, value: &str| {
        format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\n{value}\r\n")
    };
    let mut body = part("name=\"config\"; filename=\"w.xml\"", file);
    for (name, value) in fields {
        body += &part(&format!("name=\"{name}\""), value);
    }
    body + "--b--\r\n"
}

#[test]
fn cosbench_users_find_their_workloads_and_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let controller = Controller::start(dir, &[]);
    let good = format!("{HEAD}{STAGES}{TAIL}");
    // Refused with place and reason, before a number is assigned.
    let bad = write(
        dir,
        "bad.xml",
        &good.replace("ratio=\"80\"", "ratio=\"70\""),
    );
    controller
        .submit(dir, &[&bad])
        .expect(2, &["bad.xml", "line 4", "100"]);
    let text = good.replace("type=\"mock\"", "type=\"librados\"");
    let elsewhere = write(dir, "elsewhere.xml", &text);
    controller
        .submit(dir, &[&elsewhere])
        .expect(2, &["librados"]);
    let file = self::good(dir);
    controller
        .submit(dir, &[&file, "--", "--rate", "5/s"])
        .expect(2, &["--rate", "change the XML"]);
    // Accepted, with a warning about what COSBench silently ignores.
    let accepted = controller.submit(dir, &[&file]);
    accepted.expect(0, &["Runtime", "runtime"]);
    assert_eq!(accepted.stdout, "Accepted with ID: w1\n");
    // The same workload through COSBench's own interface, with a smaller size.
    let head = "POST /controller/cli/submit.action?username=anonymous&password=cosbench HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b";
    let (status, text) = controller.ask(head, &form(&good, &[("rate", "5/s")]));
    assert_eq!(status, 200);
    assert!(text.contains("--rate"), "{text}");
    let (status, text) =
        controller.ask(head, &form(&good, &[("size", "10B"), ("compat", "strict")]));
    assert_eq!(
        (status, text.trim()),
        (200, "Accepted with ID: w2"),
        "{text}"
    );
    for id in ["w1", "w2"] {
        let job = controller.over(dir, id);
        assert_eq!(job["state"], "finished", "{job}");
        assert_eq!(job["name"], "demo one");
        let (status, text) = controller.ask(
            &format!("POST /controller/cli/workload.action?id={id} HTTP/1.1"),
            "",
        );
        assert!(
            status == 200 && text.trim_end().ends_with("\tFINISHED"),
            "{text}"
        );
        // The files of COSBench's archive, with COSBench's names.
        let names = [
            format!("{id}-demo%20one.csv"),
            format!("{id}-demo%20one-rt-histogram.csv"),
            "s3-main.csv".to_owned(),
            "s3-main-worker.csv".to_owned(),
            "driver1.csv".to_owned(),
            "workload-config.xml".to_owned(),
            "workload.log".to_owned(),
        ];
        let (_, page) = controller.get(&format!("/jobs/{id}"));
        for name in names {
            let path = format!("/jobs/{id}/files/{name}");
            assert!(page.contains(&path), "{path} in {page}");
            assert_eq!(controller.get(&path).0, 200, "{path}");
        }
        let (_, figures) = controller.get(&format!("/jobs/{id}/files/{id}-demo%20one.csv"));
        assert!(
            figures.starts_with("Stage,Op-Name,Op-Type,Op-Count,Byte-Count,"),
            "{figures}"
        );
        let main = figures.lines().filter(|line| line.starts_with("s3-main,"));
        let ops: u64 = main
            .map(|line| line.split(',').nth(3).unwrap().parse::<u64>().unwrap())
            .sum();
        assert_eq!(ops, 40, "{figures}");
        assert!(
            dir.join(format!("data/archive/{id}-demo one/{id}-demo one.csv"))
                .is_file()
        );
    }
    let (_, sizes) = controller.get("/jobs/w2/files/w2-demo%20one.csv");
    let written = sizes.lines().find(|line| line.contains(",write,")).unwrap();
    let cells: Vec<&str> = written.split(',').collect();
    let count: u64 = cells[3].parse().unwrap();
    assert_eq!(
        cells[4],
        (count * 10).to_string(),
        "--size was honoured: {sizes}"
    );
    for (table, lines) in [("run-history.csv", 3), ("workloads.csv", 5)] {
        let (status, text) = controller.get(&format!("/archive/{table}"));
        assert_eq!(status, 200);
        assert!(text.lines().count() >= lines, "{text}");
        assert!(text.contains("w1") && text.contains("w2"), "{text}");
    }
}
