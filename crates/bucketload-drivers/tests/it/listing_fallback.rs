//! Listings of the control plane if a server fails at ListObjectsV2: they continue with ListObjects (V1).

use crate::support::{Answer, Received, Responder, run};
use bucketload_core::driver::Admin;
use bucketload_core::error::ErrorKind;

const KEYS: [&str; 5] = ["p/a", "p/b", "p/c d", "p/e", "p/f"];

/// A page of two keys after the key `after`.
fn page(after: &str, v2: bool) -> Answer {
    let left: Vec<&str> = KEYS.into_iter().filter(|key| *key > after).collect();
    let shown = &left[..left.len().min(2)];
    let entry = |key: &&str| format!("<Contents><Key>{key}</Key></Contents>");
    let entries: String = shown.iter().map(entry).collect();
    let token = match (v2, shown.last()) {
        (true, Some(key)) => format!("<NextContinuationToken>t-{key}</NextContinuationToken>"),
        _ => String::new(),
    };
    let truncated = left.len() > shown.len();
    Answer::ok(format!(
        "<R><IsTruncated>{truncated}</IsTruncated>{token}{entries}</R>"
    ))
}

/// The value of a parameter, decoded as far as these tests need.
fn parameter(request: &Received, name: &str) -> Option<String> {
    let (_, query) = request.target.split_once('?')?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(n, _)| *n == name)?;
    Some(value.replace("%2F", "/").replace("%20", " "))
}

/// A server whose V2 answers come from `refuse`, if it returns one. Its argument is false for the first page.
async fn server(refuse: impl Fn(bool) -> Option<Answer> + 'static) -> Responder {
    Responder::start(move |request| {
        let token = parameter(request, "continuation-token");
        let from = token.as_ref().and_then(|token| token.strip_prefix("t-"));
        match parameter(request, "list-type").is_some() {
            true => refuse(token.is_some()).unwrap_or_else(|| page(from.unwrap_or(""), true)),
            false => page(&parameter(request, "marker").unwrap_or_default(), false),
        }
    })
    .await
}

/// All keys, page by page, and the notes.
async fn all(session: &mut impl Admin) -> (Vec<String>, Vec<String>) {
    let (mut keys, mut notes, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let page = session
            .list_keys("bucket", "p/", after.as_deref())
            .await
            .unwrap();
        keys.extend(page.keys);
        notes.extend(page.note.map(String::from));
        after = page.next;
        if after.is_none() {
            return (keys, notes);
        }
    }
}

#[test]
fn a_server_that_fails_at_the_second_page_is_listed_with_v1() {
    run(async {
        let server = server(|more| more.then(|| Answer::error(500, "InternalError"))).await;
        let mut session = server.session().await;
        let (keys, notes) = all(&mut session).await;
        assert_eq!(keys, KEYS);
        assert_eq!(notes.len(), 1, "only one note: {notes:?}");
        for word in ["ListObjects (V1)", "`bucket`", "InternalError", "500"] {
            assert!(notes[0].contains(word), "{notes:?} lacks {word}");
        }
        let lines = server.lines();
        assert!(lines[2].contains("marker=p%2Fb&"), "{lines:?}");
        // The session does not try V2 again.
        let before = lines.len();
        let (keys, notes) = all(&mut session).await;
        assert_eq!((keys.len(), notes.len()), (5, 0));
        let later = &server.lines()[before..];
        assert!(!later.iter().any(|l| l.contains("list-type")), "{later:?}");
        assert_eq!(later.len(), 3);
    });
}

#[test]
fn servers_that_do_not_offer_v2_are_listed_with_v1() {
    run(async {
        // The first server refuses V2. The second ignores `list-type` and answers as for V1, without a token.
        for refused in [Answer::error(501, "NotImplemented"), page("", false)] {
            let server = server(move |_| Some(refused.clone())).await;
            let (keys, notes) = all(&mut server.session().await).await;
            assert_eq!(keys, KEYS);
            assert_eq!(notes.len(), 1, "{notes:?}");
        }
    });
}

#[test]
fn a_refusal_that_v1_would_get_too_is_returned_unchanged() {
    run(async {
        for (status, code, kind) in [
            (403, "AccessDenied", ErrorKind::Auth),
            (404, "NoSuchBucket", ErrorKind::NotFound),
            (503, "SlowDown", ErrorKind::Throttled),
        ] {
            let server = server(move |_| Some(Answer::error(status, code))).await;
            let mut session = server.session().await;
            let error = session.list_keys("bucket", "p/", None).await.unwrap_err();
            assert_eq!(error.kind, kind);
            assert_eq!(server.lines().len(), 1, "V1 was not asked");
        }
        // If both fail, the error of V2 is returned, and V2 is tried again next time.
        let server = Responder::start(|request| match request.target.contains("list-type") {
            true => Answer::error(500, "FirstFailure"),
            false => Answer::error(500, "SecondFailure"),
        })
        .await;
        let mut session = server.session().await;
        for requests in [2, 4] {
            let error = session.list_keys("bucket", "p/", None).await.unwrap_err();
            assert!(error.detail.contains("FirstFailure"), "{error}");
            assert_eq!(server.lines().len(), requests);
        }
    });
}
