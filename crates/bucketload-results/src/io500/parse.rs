//! Reads IO500's own result texts: `result.txt` and `result_summary.txt` (since 2021).

/// A phase as recorded in a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedPhase {
    /// Its name.
    pub name: String,
    /// The score as text.
    pub score: String,
    /// Whether the file marks it as invalid.
    pub invalid: bool,
}

/// A result as recorded in a file. Figures stay texts because the hash is computed from texts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Version of the program that wrote it.
    pub version: String,
    /// Hash of the configuration; empty in a summary.
    pub config_hash: String,
    /// The phases that have a score, in order.
    pub phases: Vec<RecordedPhase>,
    /// The mean of metadata rates.
    pub md: String,
    /// The mean of bandwidths.
    pub bw: String,
    /// The total.
    pub total: String,
    /// Whether the total is marked as invalid.
    pub invalid: bool,
    /// The hash of the scores; empty in a summary.
    pub hash: String,
}

/// Strips the mark of an invalid figure; returns whether it was there.
fn marked(text: &str) -> (String, bool) {
    match text.trim().strip_suffix("[INVALID]") {
        Some(rest) => (rest.trim().to_owned(), true),
        None => (text.trim().to_owned(), false),
    }
}

impl Recorded {
    /// Reads either file.
    ///
    /// # Errors
    /// Names the missing or invalid part, with its line if it has one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let summary = text.lines().any(|line| line.starts_with("[RESULT"));
        match summary {
            true => Self::parse_summary(text),
            false => Self::parse_result(text),
        }
    }

    /// Reads `result.txt`.
    ///
    /// # Errors
    /// As for [`Recorded::parse`].
    pub fn parse_result(text: &str) -> Result<Self, String> {
        let mut out = Self::default();
        let mut section = String::new();
        let mut phase = RecordedPhase::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if let Some(name) = line
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
            {
                if !phase.score.is_empty() {
                    out.phases.push(std::mem::take(&mut phase));
                }
                section = name.to_owned();
                phase = RecordedPhase {
                    name: section.clone(),
                    ..RecordedPhase::default()
                };
                continue;
            }
            if line.starts_with([';', '#']) {
                phase.invalid |= line.contains("INVALID");
                continue;
            }
            if line.is_empty() {
                continue;
            }
            let Some((key, value)) = line.split_once('=') else {
                return Err(format!("line {}: `{line}` is not `key = value`", index + 1));
            };
            let (key, value) = (key.trim(), value.trim());
            match (section.as_str(), key) {
                ("run", "version") => out.version = value.to_owned(),
                ("run", "config-hash") => out.config_hash = value.to_owned(),
                ("SCORE", "MD") => out.md = marked(value).0,
                ("SCORE", "BW") => out.bw = marked(value).0,
                ("SCORE", "SCORE") => (out.total, out.invalid) = marked(value),
                ("SCORE", "hash") => out.hash = value.to_owned(),
                ("run" | "SCORE" | "SCOREX", _) => {}
                (_, "score") => {
                    let invalid;
                    (phase.score, invalid) = marked(value);
                    phase.invalid |= invalid;
                }
                _ => {}
            }
        }
        if !phase.score.is_empty() {
            out.phases.push(phase);
        }
        out.checked()
    }

    /// Reads `result_summary.txt`.
    ///
    /// # Errors
    /// As for [`Recorded::parse`].
    pub fn parse_summary(text: &str) -> Result<Self, String> {
        let mut out = Self::default();
        for (index, line) in text.lines().enumerate() {
            let wrong = || format!("line {}: `{line}` is not a line of a summary", index + 1);
            if let Some(rest) = line.strip_prefix("IO500 version ") {
                out.version = rest
                    .split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .to_owned();
            } else if let Some(rest) = line.strip_prefix("[RESULT]") {
                if rest.contains(" phase ") {
                    return Err(format!(
                        "line {}: this summary is older than 2021, when phases had numbers and \
                         bandwidths were GB/s; its scores are defined differently",
                        index + 1
                    ));
                }
                let mut words = rest.split_whitespace();
                let (Some(name), Some(score)) = (words.next(), words.next()) else {
                    return Err(wrong());
                };
                out.phases.push(RecordedPhase {
                    name: name.to_owned(),
                    score: score.to_owned(),
                    invalid: rest.contains("[INVALID]"),
                });
            } else if let Some(rest) = line.strip_prefix("[SCORE ] ") {
                let (rest, invalid) = marked(rest);
                out.invalid = invalid;
                for part in rest.split(" : ") {
                    let mut words = part.split_whitespace();
                    let figure = |word: Option<&str>| word.unwrap_or_default().to_owned();
                    match words.next() {
                        Some("Bandwidth") => out.bw = figure(words.next()),
                        Some("IOPS") => out.md = figure(words.next()),
                        Some("TOTAL") => out.total = figure(words.next()),
                        _ => return Err(wrong()),
                    }
                }
            }
        }
        out.checked()
    }

    fn checked(self) -> Result<Self, String> {
        let figures = [("MD", &self.md), ("BW", &self.bw), ("SCORE", &self.total)];
        for (name, text) in figures {
            if text.parse::<f64>().is_err() {
                return Err(format!(
                    "{name} = {text:?} is missing or not a number; is this an IO500 result?"
                ));
            }
        }
        for phase in &self.phases {
            if phase.score.parse::<f64>().is_err() {
                return Err(format!(
                    "[{}] score = {:?} is not a number",
                    phase.name, phase.score
                ));
            }
        }
        Ok(self)
    }
}
