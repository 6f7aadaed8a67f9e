//! Requests that must fail safely.

use axum::http::StatusCode;

use crate::support::{Site, TOKEN, multipart, request, site, state};
use bucketload_console::queue::JobState;

const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml");
/// The routes, read from the router's source, so that none is forgotten here.
const ROUTER: &str = include_str!("../../src/web/mod.rs");

/// Paths of all routes, with an existing job and a file name.
fn paths() -> Vec<String> {
    let source = ROUTER.replace(['\n', ' '], "");
    let found: Vec<String> = source
        .split(".route(\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .map(|path| path.replace("{id}", "w1").replace("{name}", "run.json"))
        .collect();
    assert!(found.len() > 20, "{found:?}");
    found
}

async fn login(site: &Site) -> String {
    let form = ("content-type", "application/x-www-form-urlencoded");
    let origin = ("origin", "https://127.0.0.1:19088");
    let body = format!("token={TOKEN}");
    let answer = site
        .ask(request("POST", "/login", &[form, origin], body))
        .await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    let cookie = answer.header("set-cookie").to_owned();
    for attribute in ["HttpOnly", "SameSite=Strict", "Secure"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains(TOKEN));
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn no_endpoint_answers_without_a_token() {
    let site = site(true);
    site.submit("x.toml", "name = \"secret-name\"").await;
    for path in paths() {
        for method in ["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS"] {
            for headers in [
                &[][..],
                &[HTML],
                &[("authorization", "Bearer wrong-wrong-wrong-wrong")],
                &[("cookie", "__Host-bucketload=0123456789abcdef")],
                &[("authorization", "Basic YTpi"), HTML],
            ] {
                let answer = site.ask(request(method, &path, headers, "id=w1")).await;
                let open = path == "/login" || path.starts_with("/assets/console.css");
                if !(open && answer.status.is_success()) {
                    let refused = matches!(
                        answer.status,
                        StatusCode::UNAUTHORIZED
                            | StatusCode::SEE_OTHER
                            | StatusCode::METHOD_NOT_ALLOWED
                            | StatusCode::UNSUPPORTED_MEDIA_TYPE
                    );
                    assert!(refused, "{method} {path} {headers:?}: {}", answer.status);
                }
                assert!(!answer.text.contains("secret-name"), "{method} {path}");
            }
        }
    }
    assert_eq!(
        state(&site.controller, "w1".parse().unwrap()),
        JobState::Queuing
    );
    let bearer = format!("Bearer {TOKEN}");
    let known = [("authorization", bearer.as_str())];
    assert!(
        site.get("/api/jobs", &known)
            .await
            .text
            .contains("secret-name")
    );
    // COSBench's client puts the token into the query.
    let path = format!("/controller/cli/index.action?username=x&password={TOKEN}");
    assert_eq!(site.get(&path, &[]).await.status, StatusCode::OK);
    let path = format!("/api/jobs?password={TOKEN}");
    assert_eq!(site.get(&path, &[]).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_a_session_ends() {
    let site = site(true);
    let form = ("content-type", "application/x-www-form-urlencoded");
    let wrong = site
        .ask(request(
            "POST",
            "/login",
            &[form],
            "token=guess-guess-guess-guess",
        ))
        .await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
    assert_eq!(wrong.header("set-cookie"), "");
    assert!(wrong.text.contains("token is wrong") && !wrong.text.contains("guess"));
    let cookie = login(&site).await;
    let session = [("cookie", cookie.as_str()), HTML];
    assert_eq!(site.get("/", &session).await.status, StatusCode::OK);
    let csrf = site.csrf(&session).await;
    let logout = [session[0], form, ("origin", "https://127.0.0.1:19088")];
    let out = site
        .ask(request("POST", "/logout", &logout, format!("csrf={csrf}")))
        .await;
    assert!(out.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(site.get("/", &session).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn requests_of_other_sites_change_nothing() {
    let site = site(false);
    let id = site.submit("x.toml", "name = \"x\"").await;
    let form = ("content-type", "application/x-www-form-urlencoded");
    let (multi, body) = multipart(&[("config", "x.toml", b"name = \"y\"")]);
    let multi = ("content-type", multi.as_str());
    let csrf = site.csrf(&[]).await;
    let good = format!("csrf={csrf}");
    let foreign = [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ];
    let targets = [
        "/jobs/w1/cancel",
        "/jobs/w1/move",
        "/jobs/w1/again",
        "/submit",
        "/api/jobs",
        "/api/jobs/w1/cancel",
        "/api/jobs/w1/move?to=up",
        "/controller/cli/submit.action",
        "/controller/cli/cancel.action?id=w1",
        "/logout",
        "/login",
    ];
    for path in targets {
        for sign in foreign {
            // Even with the right CSRF token.
            let answer = site
                .ask(request("POST", path, &[form, sign], good.clone()))
                .await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path} {sign:?}");
            let answer = site
                .ask(request("POST", path, &[multi, sign], body.clone()))
                .await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path} {sign:?}");
        }
    }
    // From a page of this site, but without the CSRF token of this session.
    let own = ("origin", "http://127.0.0.1:19088");
    for path in [
        "/jobs/w1/cancel",
        "/jobs/w1/again",
        "/api/jobs/w1/cancel",
        "/controller/cli/cancel.action?id=w1",
    ] {
        for body in ["", "csrf=", "csrf=0123"] {
            let answer = site.ask(request("POST", path, &[form, own], body)).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path} {body}");
        }
    }
    assert_eq!(state(&site.controller, id), JobState::Queuing);
    assert_eq!(
        site.controller.with_queue(|queue| queue.waiting().count()),
        1
    );
    let answer = site
        .ask(request("POST", "/jobs/w1/cancel", &[form, own], good))
        .await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    assert_eq!(state(&site.controller, id), JobState::Cancelled);
}

#[tokio::test]
async fn dns_rebinding_is_refused() {
    let site = site(false);
    for host in ["evil.example:19088", "127.0.0.1.evil.example", ""] {
        for path in ["/", "/api/jobs", "/login", "/assets/console.css"] {
            let answer = site.get(path, &[("host", host)]).await;
            assert_eq!(
                answer.status,
                StatusCode::MISDIRECTED_REQUEST,
                "{host} {path}"
            );
        }
    }
}

#[tokio::test]
async fn paths_cannot_leave_a_run_directory() {
    let site = site(false);
    let id = site.submit("x.toml", "name = \"x\"").await;
    let run = site.controller.run_dir(id);
    std::fs::create_dir_all(run.join("hist")).unwrap();
    std::fs::write(run.join("run.json"), "{}").unwrap();
    std::fs::write(run.join("hist/phase-0.hlog"), "log").unwrap();
    std::fs::write(run.join("other.txt"), "not in the list").unwrap();
    std::fs::write(site.dir.path().join("data/outside.txt"), "outside").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", run.join("events.jsonl")).unwrap();
    let good = site.get("/jobs/w1/files/run.json", &[]).await;
    assert_eq!((good.status, good.text.as_str()), (StatusCode::OK, "{}"));
    assert!(good.header("content-disposition").starts_with("attachment"));
    let good = site.get("/jobs/w1/files/phase-0.hlog", &[]).await;
    assert_eq!(good.text, "log");
    for name in [
        "..%2f..%2fqueue.json",
        "..%2frun.json",
        "%2e%2e%2f%2e%2e%2f%2e%2e%2foutside.txt",
        "%2fetc%2fpasswd",
        "..%5c..%5cqueue.json",
        "hist%2fphase-0.hlog",
        "run.json%00.txt",
        "other.txt",
        "x.toml",
        "events.jsonl",
        ".",
        "..",
    ] {
        let answer = site.get(&format!("/jobs/w1/files/{name}"), &[]).await;
        assert_eq!(
            answer.status,
            StatusCode::NOT_FOUND,
            "{name}: {}",
            answer.text
        );
    }
    for id in ["..", "..%2f..", "w1%2f..", "w99", "w1.", "1", "w-1"] {
        for tail in ["", "/report", "/files/run.json"] {
            let answer = site.get(&format!("/jobs/{id}{tail}"), &[]).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{id}{tail}");
        }
    }
    for query in ["a=../w1&b=w1", "a=w1&b=%2fetc"] {
        let answer = site.get(&format!("/compare/report?{query}"), &[]).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{query}");
    }
}

#[tokio::test]
async fn oversized_and_explosive_uploads_are_refused() {
    let site = site(false);
    let large = vec![b'#'; 3 << 20];
    for (path, field) in [
        ("/submit", "file"),
        ("/submit", "text"),
        ("/api/jobs", "file"),
        ("/api/jobs", "size"),
        ("/controller/cli/submit.action", "config"),
        ("/controller/cli/config.action", "config"),
    ] {
        let (kind, body) = multipart(&[(field, "x.toml", &large)]);
        let answer = site
            .ask(request("POST", path, &[("content-type", &kind)], body))
            .await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
    }
    let form = ("content-type", "application/x-www-form-urlencoded");
    let long = format!("token={}", "x".repeat(1 << 20));
    let answer = site.ask(request("POST", "/login", &[form], long)).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    let bomb = b"<?xml version=\"1.0\"?>\n<!DOCTYPE w [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>\n<workload name=\"&b;\"/>";
    let (kind, body) = multipart(&[("file", "bomb.xml", bomb)]);
    let answer = site
        .ask(request(
            "POST",
            "/api/jobs",
            &[("content-type", &kind)],
            body,
        ))
        .await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(answer.text.contains("line 2, column 1"), "{}", answer.text);
    let (kind, body) = multipart(&[("config", "bomb.xml", bomb)]);
    let answer = site
        .ask(request(
            "POST",
            "/controller/cli/submit.action",
            &[("content-type", &kind)],
            body,
        ))
        .await;
    assert!(
        answer.text.starts_with("line 2, column 1: `<!DOCTYPE`"),
        "{}",
        answer.text
    );
    assert_eq!(
        site.controller.with_queue(|queue| queue.waiting().count()),
        0
    );
}

#[tokio::test]
async fn scripts_in_names_are_escaped() {
    let site = site(false);
    let evil = "<script>alert(1)</script>'><img src=x onerror=alert(2)>";
    let id = site.submit("<b>.toml", &format!("name = \"{evil}\"")).await;
    *site.script.refusal.lock().unwrap() = Some(evil.to_owned());
    let csrf = site.csrf(&[]).await;
    let own = ("origin", "http://127.0.0.1:19088");
    let (kind, body) = multipart(&[
        ("csrf", "", csrf.as_bytes()),
        ("text", "", evil.as_bytes()),
        ("size", "", b"\"><script>alert(3)</script>"),
    ]);
    let refused = site
        .ask(request(
            "POST",
            "/submit",
            &[("content-type", &kind), own, HTML],
            body,
        ))
        .await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        refused.text.contains("&lt;script&gt;alert(3)"),
        "entered values are kept"
    );
    let mut pages = vec![refused];
    for path in [
        "/",
        &format!("/jobs/{id}"),
        "/history",
        "/compare",
        "/no/%3Cscript%3Ealert(4)",
    ] {
        pages.push(site.get(path, &[HTML]).await);
    }
    site.controller.cancel(id).unwrap();
    pages.push(site.get("/history", &[HTML]).await);
    for page in &pages {
        for bad in ["<script>alert", "<img src=x", "'><"] {
            assert!(!page.text.contains(bad), "{bad} in {}", page.text);
        }
        let policy = page.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'self';") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(page.header("x-content-type-options"), "nosniff");
        assert_eq!(page.header("x-frame-options"), "DENY");
    }
}

#[tokio::test]
async fn reports_have_a_separate_origin() {
    let site = site(false);
    let id = site.submit("x.toml", "name = \"x\"").await;
    let run = site.controller.run_dir(id);
    std::fs::create_dir_all(&run).unwrap();
    std::fs::write(run.join("report.html"), "<script>1</script>").unwrap();
    let early = site.get("/jobs/w1/report", &[]).await;
    assert_eq!(
        early.status,
        StatusCode::NOT_FOUND,
        "not before the run has ended"
    );
    site.controller.cancel(id).unwrap();
    let answer = site.get("/jobs/w1/report", &[]).await;
    assert_eq!(answer.status, StatusCode::OK);
    let policy = answer.header("content-security-policy");
    assert!(
        policy.contains("default-src 'none'") && policy.contains("sandbox allow-scripts"),
        "{policy}"
    );
    assert!(!policy.contains("allow-same-origin"));
    assert_eq!(answer.header("x-frame-options"), "DENY");
}

#[tokio::test]
async fn options_that_could_reach_files_are_refused() {
    let site = site(false);
    for (name, value) in [
        ("out", "/tmp/x"),
        ("client-key", "/etc/shadow"),
        ("engine", "cli:aws"),
        ("prometheus", "0.0.0.0:1"),
        ("endpoint-url", "http://user:secret@host"),
    ] {
        let (kind, body) = multipart(&[("builtin", "", b"get"), (name, "", value.as_bytes())]);
        let answer = site
            .ask(request(
                "POST",
                "/api/jobs",
                &[("content-type", &kind)],
                body,
            ))
            .await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{name}");
        assert!(!answer.text.contains("secret@"), "{}", answer.text);
    }
}
