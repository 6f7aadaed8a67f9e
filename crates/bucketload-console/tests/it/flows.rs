//! What users do, as requests to the router.

use axum::http::StatusCode;
use bucketload_console::queue::{JobState, ProcessExit};

use crate::support::{multipart, request, site, until};

const HTML: (&str, &str) = ("accept", "text/html");
const OWN: (&str, &str) = ("origin", "http://127.0.0.1:19088");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

#[tokio::test]
async fn an_empty_console_has_all_its_pages() {
    let site = site(false);
    for (path, words) in [
        ("/", "No workload is running or waiting"),
        ("/submit", "Built-in workload"),
        ("/history", "No workload has finished yet"),
        ("/compare", "There are no runs to compare yet"),
        ("/agents", "No agents are configured"),
        ("/matrix", "one mix per line"),
    ] {
        let page = site.get(path, &[HTML]).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert!(page.text.contains(words), "{path}: {}", page.text);
        assert!(page.text.contains("<main id=\"main\""), "{path}");
    }
    for (path, kind) in [
        ("/assets/console.css", "text/css"),
        ("/assets/console.js", "text/javascript"),
        ("/assets/hover.js", "text/javascript"),
        ("/assets/charts.css", "text/css"),
        ("/assets/icon.svg", "image/svg+xml"),
        ("/metrics", "text/plain"),
    ] {
        let file = site.get(path, &[]).await;
        assert_eq!(file.status, StatusCode::OK, "{path}");
        assert!(file.header("content-type").starts_with(kind), "{path}");
        assert!(
            !file.text.contains("https://") && !file.text.contains("@import"),
            "{path}"
        );
    }
    assert_eq!(
        site.get("/nothing", &[]).await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn a_workload_is_submitted_moved_cancelled_and_repeated_by_forms() {
    let site = site(false);
    let csrf = site.csrf(&[]).await;
    let (kind, body) = multipart(&[
        ("csrf", "", csrf.as_bytes()),
        ("file", "", b""),
        ("text", "", b""),
        ("builtin", "", b"get"),
        ("rate", "", b"100/s"),
        ("duration", "", b""),
        ("verify", "", b"true"),
        ("endpoint-url", "", b"http://a:1\r\nhttp://b:2\r\n"),
    ]);
    let answer = site
        .ask(request(
            "POST",
            "/submit",
            &[("content-type", &kind), OWN, HTML],
            body,
        ))
        .await;
    assert_eq!(answer.header("location"), "/jobs/w1", "{}", answer.text);
    let options = site.controller.with_queue(|queue| {
        queue
            .get("w1".parse().unwrap())
            .unwrap()
            .options
            .arguments()
    });
    assert_eq!(
        options,
        [
            "--rate=100/s",
            "--verify",
            "--endpoint-url=http://a:1",
            "--endpoint-url=http://b:2"
        ]
    );
    let small = format!("csrf={csrf}");
    let again = site
        .ask(request(
            "POST",
            "/jobs/w1/again",
            &[FORM, OWN],
            small.clone(),
        ))
        .await;
    assert_eq!(again.header("location"), "/jobs/w2", "{}", again.text);
    let moved = site
        .ask(request(
            "POST",
            "/jobs/w2/move",
            &[FORM, OWN],
            format!("{small}&to=up"),
        ))
        .await;
    assert_eq!(moved.status, StatusCode::SEE_OTHER);
    let order: Vec<u64> = site
        .controller
        .with_queue(|queue| queue.waiting().map(|job| job.id.0).collect());
    assert_eq!(order, [2, 1]);
    let overview = site.get("/", &[HTML]).await.text;
    assert!(
        overview.contains("queuing") && overview.contains("Move w1 up"),
        "{overview}"
    );
    site.ask(request("POST", "/jobs/w1/cancel", &[FORM, OWN], small))
        .await;
    assert!(
        site.get("/jobs/w1", &[HTML])
            .await
            .text
            .contains("cancelled")
    );
    let metrics = site.get("/metrics", &[]).await.text;
    assert!(
        metrics.contains("bucketload_workloads{state=\"cancelled\"} 1"),
        "{metrics}"
    );
}

#[tokio::test]
async fn one_of_three_sources_is_needed() {
    let site = site(false);
    for (parts, words) in [
        (&[("builtin", "", &b""[..])][..], "there is no workload"),
        (
            &[("builtin", "", b"get"), ("text", "", b"name = \"x\"")],
            "give only one of",
        ),
        (&[("builtin", "", b"gett")], "no built-in workload"),
        (
            &[("builtin", "", b"get"), ("bogus", "", b"1")],
            "is not allowed",
        ),
    ] {
        let (kind, body) = multipart(parts);
        let answer = site
            .ask(request(
                "POST",
                "/api/jobs",
                &[("content-type", &kind)],
                body,
            ))
            .await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(answer.text.contains(words), "{}", answer.text);
    }
}

#[tokio::test]
async fn cosbench_clients_get_cosbench_answers() {
    let site = site(false);
    let submit = async |query: &str, fields: &[(&str, &str, &[u8])]| {
        let file: (&str, &str, &[u8]) = ("config", "w.xml", b"<workload name=\"demo\"/>");
        let (kind, body) = multipart(&[&[file], fields].concat());
        let path = format!("/controller/cli/submit.action{query}");
        site.ask(request("POST", &path, &[("content-type", &kind)], body))
            .await
    };
    // Options are applied or refused, never ignored; COSBench's own parameters do not count as options.
    for (query, fields) in [
        ("?out=/tmp/x", &[][..]),
        ("", &[("out", "", &b"/tmp/x"[..])]),
    ] {
        let refused = submit(query, fields).await;
        assert_eq!(refused.status, StatusCode::OK);
        assert!(
            refused.text.contains("option `out` is not allowed"),
            "{}",
            refused.text
        );
    }
    let answer = submit(
        "?username=anonymous&password=cosbench&duration=5s",
        &[("size", "", b"4KiB"), ("delete-named", "", b"true")],
    )
    .await;
    assert_eq!(answer.text, "Accepted with ID: w1\n");
    let options = site.controller.with_queue(|queue| {
        let job = queue.get("w1".parse().unwrap()).unwrap();
        job.options.arguments()
    });
    assert_eq!(options, ["--size=4KiB", "--delete-named", "--duration=5s"]);
    let index = site.get("/controller/cli/index.action", &[]).await.text;
    let lines: Vec<&str> = index.lines().collect();
    assert_eq!(
        lines[..4],
        ["Drivers:", "Total: 0 drivers", "", "Active Workloads:"]
    );
    let parts: Vec<&str> = lines[4].split('\t').collect();
    assert_eq!((parts[0], parts[2], parts[3]), ("w1", "QUEUING", "None"));
    assert_eq!(lines[5], "Total: 1 active workloads");
    let cancel = site
        .ask(request(
            "POST",
            "/controller/cli/cancel.action",
            &[FORM],
            "id=w1",
        ))
        .await;
    assert!(
        cancel.text.starts_with("w1\t") && cancel.text.ends_with("\tCANCELLED\n"),
        "{}",
        cancel.text
    );
    let workload = site
        .ask(request(
            "POST",
            "/controller/cli/workload.action?id=w1",
            &[],
            "",
        ))
        .await;
    assert_eq!(workload.text, cancel.text);
    *site.script.refusal.lock().unwrap() = Some("w.xml:2:5: no workers".to_owned());
    let (kind, body) = multipart(&[("config", "w.xml", b"<workload/>")]);
    let refused = site
        .ask(request(
            "POST",
            "/controller/cli/submit.action",
            &[("content-type", &kind)],
            body,
        ))
        .await;
    assert_eq!(
        (refused.status, refused.text.as_str()),
        (StatusCode::OK, "w.xml:2:5: no workers\n")
    );
}

#[tokio::test]
async fn the_archive_is_offered_under_cosbenchs_names() {
    let site = site(false);
    site.submit("x.xml", "<workload name=\"a b\"/>").await;
    site.submit("y.xml", "<workload name=\"c\"/>").await;
    let tables = site.get("/archive/run-history.csv", &[]).await;
    assert_eq!(tables.status, StatusCode::NOT_FOUND);
    let archive = site.dir.path().join("data/archive");
    // The name of a workload may contain anything but a slash.
    let evil = "w1-a \"><script>é";
    std::fs::create_dir_all(archive.join(evil)).unwrap();
    std::fs::create_dir_all(archive.join("w10-other")).unwrap();
    for (name, text) in [
        ("run-history.csv".to_owned(), "history"),
        (".meta".to_owned(), "1"),
        ("w10-other/workload.log".to_owned(), "another's"),
        (format!("{evil}/{evil}.csv"), "figures"),
        (format!("{evil}/s1-init.csv"), "stage"),
    ] {
        std::fs::write(archive.join(name), text).unwrap();
    }
    let page = site.get("/jobs/w1", &[HTML]).await.text;
    assert!(page.contains("s1-init.csv") && !page.contains("workload.log"));
    assert!(!page.contains("<script>é"), "{page}");
    assert!(
        page.contains("&lt;b&gt;`Ratio`"),
        "notes from the check: {page}"
    );
    let path = "/jobs/w1/files/w1-a%20%22%3E%3Cscript%3E%C3%A9.csv";
    assert!(page.contains(path), "{page}");
    let file = site.get(path, &[]).await;
    assert_eq!(
        (file.status, file.text.as_str()),
        (StatusCode::OK, "figures")
    );
    assert!(
        file.header("content-disposition")
            .ends_with("filename*=UTF-8''w1-a%20%22%3E%3Cscript%3E%C3%A9.csv")
    );
    for path in ["/jobs/w2/files/s1-init.csv", "/jobs/w1/files/workload.log"] {
        assert_eq!(site.get(path, &[]).await.status, StatusCode::NOT_FOUND);
    }
    let history = site.get("/history", &[HTML]).await.text;
    assert!(history.contains("/archive/run-history.csv"), "{history}");
    let table = site.get("/archive/run-history.csv", &[]).await;
    assert_eq!(table.text, "history");
    for name in [".meta", "..%2fqueue.json", "w10-other", "workloads.csv"] {
        let answer = site.get(&format!("/archive/{name}"), &[]).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{name}");
    }
}

#[tokio::test]
async fn a_run_that_was_cut_off_has_a_report_and_its_verdict() {
    use bucketload_core::plan::Plan;
    use bucketload_results::rundir::{Manifest, RunDirSink};
    use bucketload_workload::resolve::{Overrides, ResolveContext, resolve};
    use bucketload_workload::spec::WorkloadFile;

    let site = site(false);
    let id = site.submit("x.toml", "name = \"x\"").await;
    let driving = {
        let controller = site.controller.clone();
        tokio::spawn(async move { controller.drive().await })
    };
    let process = site.script.process(0).await;
    // A run directory as a killed process leaves it: the manifest says `running`.
    let plan: Plan = {
        let file = WorkloadFile::builtin("get").unwrap();
        let context = ResolveContext {
            memory_budget: None,
        };
        resolve(&file, &Overrides::default(), &context)
            .unwrap()
            .plan
    };
    let run = site.controller.run_dir(id);
    drop(RunDirSink::create(&run, Manifest::new("r", "0", plan)).unwrap());
    process.end(ProcessExit::Signal(9));
    until(&site.controller, id, JobState::Terminated).await;
    let page = site.get("/jobs/w1", &[HTML]).await.text;
    assert!(
        page.contains("killed by signal 9") && page.contains("href=\"/jobs/w1/report\""),
        "{page}"
    );
    let report = site.get("/jobs/w1/report", &[]).await;
    assert_eq!(report.status, StatusCode::OK, "{}", report.text);
    assert!(report.text.contains("INCOMPLETE"));
    assert!(run.join("report.html").is_file());
    let verdict = site
        .controller
        .with_queue(|queue| queue.get(id).unwrap().verdict.clone());
    assert_eq!(verdict.as_deref(), Some("INCOMPLETE"));
    site.controller.stop();
    driving.await.unwrap();
}

#[tokio::test]
async fn a_matrix_becomes_one_submission() {
    let site = site(false);
    let query = "name=grid&sizes=1KiB%2C4KiB&workers=1%2C2&operations=get%0Aget%3D50%2C+put%3D50&objects=10&duration=2s";
    let page = site.get(&format!("/matrix?{query}"), &[HTML]).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    for words in [
        "8 phases of 2s each",
        "[phases.1KiB-w1-get]",
        "[phases.4KiB-w2-get50-put50]",
    ] {
        assert!(page.text.contains(words), "{words} in {}", page.text);
    }
    let wrong = query.replace("1KiB", "1KiB%3Cscript%3E");
    let refused = site.get(&format!("/matrix?{wrong}"), &[HTML]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        refused.text.contains("Object sizes: `1KiB&lt;script&gt;`"),
        "{}",
        refused.text
    );
    assert!(
        refused.text.contains("value=\"grid\""),
        "entered values are kept"
    );
    assert_eq!(
        site.controller.with_queue(|queue| queue.waiting().count()),
        0
    );
}
