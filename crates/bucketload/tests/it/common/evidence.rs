//! Packing, changing and verifying bundles.

use std::fs;
use std::path::Path;

use super::{Outcome, bucketload, call};

/// Calls the program in `dir`.
pub fn run(dir: &Path, args: &[&str]) -> Outcome {
    call(&mut bucketload(dir, args))
}

/// Packs `from` as `to`, replacing an earlier bundle.
pub fn pack(dir: &Path, from: &str, to: &str) -> Outcome {
    let _ = fs::remove_file(dir.join(to));
    run(dir, &["bundle", from, "-o", to])
}

/// Replaces the first `from` in a file during `check`, and restores the file afterwards.
pub fn with_change(file: &Path, from: &str, to: &str, check: impl FnOnce()) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{}: {from}", file.display());
    fs::write(file, text.replacen(from, to, 1)).unwrap();
    check();
    fs::write(file, text).unwrap();
}

/// Checks that verification fails and prints these words.
#[track_caller]
pub fn refuted(dir: &Path, bundle: &str, words: &[&str]) {
    let outcome = run(dir, &["verify-bundle", bundle]);
    outcome.expect(1, &[]);
    for word in words {
        assert!(
            outcome.stdout.contains(word),
            "{word:?} is missing in\n{}",
            outcome.stdout
        );
    }
}

/// Changes `most` numbers spread over a file, one at a time, and checks that each change is found.
pub fn every_change_is_found(dir: &Path, from: &str, file: &str, most: usize) {
    let path = dir.join(from).join(file);
    let text = fs::read_to_string(&path).unwrap();
    let bytes = text.as_bytes();
    // Positions at which a number starts, after a colon, an equals sign or a comma.
    let begins: Vec<usize> = (2..bytes.len())
        .filter(|&at| {
            let before = text[..at].trim_end_matches(' ');
            bytes[at].is_ascii_digit()
                && !bytes[at - 1].is_ascii_digit()
                && before.ends_with([':', '=', ','])
                && before.len() + 1 >= at
        })
        .collect();
    assert!(begins.len() >= most, "{file}: {} numbers", begins.len());
    for i in 0..most {
        let at = begins[i * begins.len() / most];
        // Changes the value with an additional leading digit.
        fs::write(&path, format!("{}9{}", &text[..at], &text[at..])).unwrap();
        pack(dir, from, "forged").expect(0, &[]);
        let outcome = run(dir, &["verify-bundle", "forged"]);
        let around = &text[at.saturating_sub(60)..(at + 40).min(text.len())];
        assert_eq!(
            outcome.code, 1,
            "{file}: a change at {at} is not found: …{around}…\n{}",
            outcome.stdout
        );
        assert!(
            outcome.stdout.contains("stored "),
            "{file}: …{around}…\n{}",
            outcome.stdout
        );
    }
    fs::write(&path, text).unwrap();
}
