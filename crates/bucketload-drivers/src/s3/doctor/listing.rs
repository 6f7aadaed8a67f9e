//! Listings: both versions, completeness, order, pages, folders, and unusual keys.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use bucketload_s3::encode;

use super::answer::{Answer, Ask, words};
use super::lab::Lab;
use super::verdict::Verdict;

/// Longest wait until a new key appears in a listing.
const SOON: Duration = Duration::from_secs(4);
/// How often it is looked for.
const AGAIN: Duration = Duration::from_millis(250);

/// The objects that listings are about, below `l/`.
const LISTED: [&str; 5] = ["l/1", "l/2", "l/d/1", "l/d/2", "l/z"];
/// Unusual keys; the content of each is its name.
const ODD: [&str; 4] = ["k/a b", "k/a+b", "k/100%41", "k/\u{e4}\u{65e5}"];

/// The two kinds of listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListVersion {
    V1,
    V2,
}

/// One page.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) keys: Vec<String>,
    folders: Vec<String>,
    truncated: bool,
    /// Where the next page continues.
    next: Option<String>,
    encoded: bool,
    said: String,
}

/// What to list; empty texts and 0 leave a parameter out.
#[derive(Clone, Copy, Default)]
struct Wanted<'a> {
    below: &'a str,
    after: Option<&'a str>,
    max_keys: u32,
    delimiter: &'a str,
    encoded: bool,
}

impl Lab {
    /// Lists below the doctor's prefix.
    async fn list(&mut self, wanted: Wanted<'_>) -> Result<Page, String> {
        let Some(version) = self.list_version() else {
            return Err("no listing works".to_owned());
        };
        let mut parameters: Vec<(&str, String)> = vec![("prefix", self.key(wanted.below))];
        if let Some(after) = wanted.after {
            let name = match version {
                ListVersion::V1 => "marker",
                ListVersion::V2 => "continuation-token",
            };
            parameters.push((name, after.to_owned()));
        }
        if wanted.max_keys > 0 {
            parameters.push(("max-keys", wanted.max_keys.to_string()));
        }
        if !wanted.delimiter.is_empty() {
            parameters.push(("delimiter", wanted.delimiter.to_owned()));
        }
        if wanted.encoded {
            parameters.push(("encoding-type", "url".to_owned()));
        }
        if version == ListVersion::V2 {
            parameters.push(("list-type", "2".to_owned()));
        }
        parameters.sort();
        let mut query = String::new();
        for (name, value) in parameters {
            let and = if query.is_empty() { "" } else { "&" };
            // Writing to a string cannot fail.
            let _ = write!(query, "{and}{name}={}", encode::query_text(&value));
        }
        match self.ask(Ask::new("GET", "").query(&query)).await {
            Ok(answer) if answer.is_ok() => Ok(page(&answer)),
            other => Err(words(&other)),
        }
    }

    /// Every key below the doctor's prefix, page by page, in at most 20 pages.
    pub(super) async fn every_key(&mut self) -> Result<BTreeSet<String>, String> {
        let encoded = self.works("list-encoding");
        let (mut all, mut after) = (BTreeSet::new(), None::<String>);
        for _ in 0..20 {
            let wanted = Wanted {
                after: after.as_deref(),
                encoded,
                ..Wanted::default()
            };
            let page = self.list(wanted).await?;
            all.extend(page.keys);
            match page.next {
                Some(next) if page.truncated => after = Some(next),
                _ => break,
            }
        }
        Ok(all)
    }

    /// Writes the objects for listings, once.
    async fn populate(&mut self) {
        if !self.population.is_empty() {
            return;
        }
        for name in ODD.into_iter().chain(LISTED) {
            let key = self.key(name);
            let answer = self.ask(Ask::new("PUT", &key).body(name.as_bytes())).await;
            self.population.insert(name.to_owned(), answer);
        }
    }
}

/// Reads a page. Keys are decoded if the server says that they are encoded.
fn page(answer: &Answer) -> Page {
    let mut page = Page {
        said: answer.words().to_owned(),
        ..Page::default()
    };
    answer.leaves(|path, text| match path {
        [_, "Contents", "Key"] => page.keys.push(text),
        [_, "CommonPrefixes", "Prefix"] => page.folders.push(text),
        [_, "IsTruncated"] => page.truncated = text == "true",
        [_, "NextContinuationToken" | "NextMarker"] => page.next = Some(text),
        [_, "EncodingType"] => page.encoded = text == "url",
        _ => {}
    });
    if page.encoded {
        for key in page.keys.iter_mut().chain(&mut page.folders) {
            *key = encode::decode(key);
        }
    }
    // V1 names the next page only with a delimiter.
    if page.truncated && page.next.is_none() {
        page.next = page.keys.iter().max().cloned();
    }
    page
}

pub(super) async fn version_2(lab: &mut Lab) -> Verdict {
    let query = format!(
        "list-type=2&max-keys=1&prefix={}",
        encode::query_text(&lab.prefix)
    );
    match lab.ask(Ask::new("GET", "").query(&query)).await {
        Ok(answer) if answer.is_ok() => {
            let marks = ["KeyCount", "NextContinuationToken"];
            match marks.into_iter().any(|name| answer.element(name).is_some()) {
                true => Verdict::ok(answer.words()),
                // Some servers leave out a count of 0, so without keys an answer proves nothing.
                false if !lab.works("put") => Verdict::not_tried("it needs `put`"),
                false => Verdict::differs(format!(
                    "{}: an answer in the form of V1, without KeyCount",
                    answer.words()
                )),
            }
        }
        other => Verdict::differs(words(&other)),
    }
}

pub(super) async fn version_1(lab: &mut Lab) -> Verdict {
    let query = format!("max-keys=1&prefix={}", encode::query_text(&lab.prefix));
    match lab.ask(Ask::new("GET", "").query(&query)).await {
        Ok(answer) if answer.is_ok() && answer.element("IsTruncated").is_some() => {
            Verdict::ok(answer.words())
        }
        Ok(answer) if answer.is_ok() => {
            Verdict::differs(format!("{}: not a listing", answer.words()))
        }
        other => Verdict::differs(words(&other)),
    }
}

/// The keys of `names` that `listed` lacks, without the prefix.
fn missing<'n>(lab: &Lab, names: &[&'n str], listed: &[String]) -> Vec<&'n str> {
    let lacks = |name: &&&str| !listed.contains(&lab.key(name));
    names.iter().filter(lacks).copied().collect()
}

pub(super) async fn complete(lab: &mut Lab) -> Verdict {
    if lab.list_version().is_none() {
        return Verdict::not_tried("it needs `list-v2` or `list-v1`");
    }
    lab.populate().await;
    if let Some(said) = refusal(lab, &LISTED) {
        return Verdict::differs(said);
    }
    let began = Instant::now();
    loop {
        let wanted = Wanted {
            below: "l/",
            ..Wanted::default()
        };
        let page = match lab.list(wanted).await {
            Ok(page) => page,
            Err(said) => return Verdict::differs(said),
        };
        let missing = missing(lab, &LISTED, &page.keys);
        if missing.is_empty() {
            let strange = page.keys.len() - LISTED.len();
            return match strange {
                0 => Verdict::ok(format!("{} of {}", page.keys.len(), LISTED.len())),
                _ => Verdict::differs(format!("{}: {strange} keys too many", page.said)),
            };
        }
        if began.elapsed() > SOON {
            return Verdict::differs(format!(
                "{}: {} of {} keys, without {}",
                page.said,
                page.keys.len(),
                LISTED.len(),
                missing.join(", ")
            ));
        }
        tokio::time::sleep(AGAIN).await;
        lab.list_delay_ms = Some(began.elapsed().as_millis());
    }
}

/// What the server said of the first of `names` that it did not accept.
fn refusal(lab: &Lab, names: &[&str]) -> Option<String> {
    names
        .iter()
        .find_map(|name| match lab.population.get(*name) {
            Some(Ok(answer)) if answer.is_ok() => None,
            Some(answer) => Some(format!("PUT of `{name}`: {}", words(answer))),
            None => Some(format!("`{name}` was not written")),
        })
}

pub(super) async fn after_write(lab: &mut Lab) -> Verdict {
    match lab.list_delay_ms {
        None => Verdict::ok("in the first listing"),
        Some(ms) => Verdict::differs(format!("some new keys appear only {ms} ms after the write")),
    }
}

pub(super) async fn order(lab: &mut Lab) -> Verdict {
    let wanted = Wanted {
        below: "l/",
        ..Wanted::default()
    };
    match lab.list(wanted).await {
        Ok(page) if page.keys.is_sorted() => Verdict::ok("sorted"),
        Ok(page) => Verdict::differs(format!("{}: {}", page.said, names(lab, &page.keys))),
        Err(said) => Verdict::differs(said),
    }
}

/// Keys without the doctor's prefix, as text.
fn names(lab: &Lab, keys: &[String]) -> String {
    let names = keys
        .iter()
        .map(|key| key.strip_prefix(&lab.prefix).unwrap_or(key));
    names.collect::<Vec<_>>().join(", ")
}

pub(super) async fn max_keys(lab: &mut Lab) -> Verdict {
    let wanted = Wanted {
        below: "l/",
        max_keys: 2,
        ..Wanted::default()
    };
    match lab.list(wanted).await {
        Ok(page) if page.keys.len() <= 2 => {
            Verdict::ok(format!("{} of max-keys=2", page.keys.len()))
        }
        Ok(page) => Verdict::differs(format!(
            "{}: {} keys for max-keys=2",
            page.said,
            page.keys.len()
        )),
        Err(said) => Verdict::differs(said),
    }
}

pub(super) async fn paging(lab: &mut Lab) -> Verdict {
    let (mut all, mut after, mut pages) = (Vec::new(), None::<String>, 0);
    while pages < 6 {
        let wanted = Wanted {
            below: "l/",
            after: after.as_deref(),
            max_keys: 2,
            ..Wanted::default()
        };
        let page = match lab.list(wanted).await {
            Ok(page) => page,
            Err(said) => return Verdict::differs(format!("page {}: {said}", pages + 1)),
        };
        pages += 1;
        all.extend(page.keys);
        match (page.truncated, page.next) {
            (false, _) => break,
            (true, None) => {
                return Verdict::differs(format!("page {pages} does not say where to continue"));
            }
            (true, Some(next)) => after = Some(next),
        }
    }
    let missing = missing(lab, &LISTED, &all);
    match (missing.is_empty(), all.len() == LISTED.len()) {
        (true, true) => Verdict::ok(format!("{} keys in {pages} pages", all.len())),
        (true, false) => {
            Verdict::differs(format!("{pages} pages repeat keys: {}", names(lab, &all)))
        }
        (false, _) => Verdict::differs(format!(
            "IsTruncated is false after {pages} of 3 pages: {} are missing",
            missing.join(", ")
        )),
    }
}

pub(super) async fn delimiter(lab: &mut Lab) -> Verdict {
    let wanted = Wanted {
        below: "l/",
        delimiter: "/",
        ..Wanted::default()
    };
    match lab.list(wanted).await {
        Ok(page) => {
            let keys = missing(lab, &["l/1", "l/2", "l/z"], &page.keys);
            let folders = missing(lab, &["l/d/"], &page.folders);
            match keys.is_empty() && folders.is_empty() && page.keys.len() == 3 {
                true => Verdict::ok("3 keys and 1 folder"),
                false => Verdict::differs(format!(
                    "{}: {} keys and {} folders instead of 3 and 1",
                    page.said,
                    page.keys.len(),
                    page.folders.len()
                )),
            }
        }
        Err(said) => Verdict::differs(said),
    }
}

pub(super) async fn encoding(lab: &mut Lab) -> Verdict {
    if refusal(lab, &["k/a b"]).is_some() {
        return Verdict::not_tried("it needs a key with a blank");
    }
    let wanted = Wanted {
        below: "k/a",
        encoded: true,
        ..Wanted::default()
    };
    match lab.list(wanted).await {
        Ok(page) if page.encoded && page.keys.contains(&lab.key("k/a b")) => {
            Verdict::ok("keys come encoded")
        }
        Ok(page) => Verdict::differs(format!("{}: keys come as they are", page.said)),
        Err(said) => Verdict::differs(said),
    }
}

pub(super) async fn keys(lab: &mut Lab) -> Verdict {
    lab.populate().await;
    if let Some(said) = refusal(lab, &ODD) {
        return Verdict::differs(said);
    }
    if lab.works("get") {
        for name in ODD {
            let key = lab.key(name);
            match lab.ask(Ask::new("GET", &key)).await {
                Ok(answer) if answer.is_ok() && answer.body == name.as_bytes() => {}
                Ok(answer) if answer.is_ok() => {
                    let content = String::from_utf8_lossy(&answer.body).into_owned();
                    return Verdict::differs(format!(
                        "GET of `{name}` returns the content of `{content}`"
                    ));
                }
                other => return Verdict::differs(format!("GET of `{name}`: {}", words(&other))),
            }
        }
    }
    if !lab.works("list-complete") {
        return Verdict::ok("written and read");
    }
    let wanted = Wanted {
        below: "k/",
        encoded: lab.works("list-encoding"),
        ..Wanted::default()
    };
    match lab.list(wanted).await {
        Ok(page) => match missing(lab, &ODD, &page.keys)[..] {
            [] => Verdict::ok("written, read and listed"),
            [first, ..] => Verdict::differs(format!(
                "the listing lacks `{first}`: {}",
                names(lab, &page.keys)
            )),
        },
        Err(said) => Verdict::differs(said),
    }
}
