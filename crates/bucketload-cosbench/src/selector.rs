//! Number selectors: `c(n)`, `u(lo,hi)`, `r(lo,hi)`, `s(lo,hi)`, `h(lo|hi|weight,…)` and `lo-hi`
//! (specification section 1.7). Sizes are selectors with a unit.

/// The largest number that a selector can name, 2^31-1.
const MOST: u32 = i32::MAX as u32;

/// How numbers are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Always the same number.
    Constant(u32),
    /// Each number of the range with the same probability.
    Uniform {
        /// Smallest.
        lo: u32,
        /// Largest.
        hi: u32,
    },
    /// Consecutive numbers, starting over at the end; divided among workers if the work is divided.
    Range {
        /// First.
        lo: u32,
        /// Last.
        hi: u32,
    },
    /// Consecutive numbers from one counter for all workers, whatever the division.
    Sequential {
        /// First.
        lo: u32,
        /// Last.
        hi: u32,
    },
    /// A bucket by weight, then uniform within it.
    Histogram(Vec<Bucket>),
    /// `r(0,0)`: no numbers.
    Empty,
}

/// A bucket of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest number.
    pub lo: u32,
    /// Largest number.
    pub hi: u32,
    /// Relative frequency.
    pub weight: u32,
}

/// A problem with a selector, without its location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {remedy}")]
pub struct SelectorError {
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub remedy: &'static str,
}

const FORMS: &str =
    "write c(n), u(lo,hi), r(lo,hi), s(lo,hi) or h(lo|hi|weight,...) without blanks";

fn wrong(problem: impl Into<String>, remedy: &'static str) -> SelectorError {
    SelectorError {
        problem: problem.into(),
        remedy,
    }
}

impl Selector {
    /// Parses a selector of containers or objects; the old form `lo-hi` is a range.
    ///
    /// # Errors
    /// The problem that COSBench's drivers would reject, and its remedy.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let text = text.trim();
        if let Some((lo, hi)) = text.split_once('-')
            && !text.contains('(')
        {
            return Self::range(lo, hi).map(|(lo, hi)| Self::of_range(lo, hi));
        }
        let inner = text
            .strip_suffix(')')
            .and_then(|text| text.split_once('('))
            .ok_or_else(|| wrong(format!("`{text}` is not a selector"), FORMS))?;
        let (kind, arguments) = inner;
        let mut numbers = arguments.split(',');
        let (first, second) = (numbers.next().unwrap_or(""), numbers.next());
        match kind {
            // Anything after the first number is ignored; shipped samples rely on it.
            "c" => number(first).map(Self::Constant),
            "u" => {
                let (lo, hi) = match second {
                    None => (positive(first)?, MOST),
                    Some(second) => Self::positive_range(first, second)?,
                };
                Ok(Self::Uniform { lo, hi })
            }
            "r" | "s" => {
                let second =
                    second.ok_or_else(|| wrong(format!("`{text}` has only one number"), FORMS))?;
                let (lo, hi) = Self::range(first, second)?;
                match kind {
                    "r" => Ok(Self::of_range(lo, hi)),
                    _ if lo == 0 => Err(wrong(format!("`{text}` begins at 0"), FORMS)),
                    _ => Ok(Self::Sequential { lo, hi }),
                }
            }
            "h" => histogram(arguments),
            _ => Err(wrong(format!("there is no selector `{kind}(...)`"), FORMS)),
        }
    }

    fn of_range(lo: u32, hi: u32) -> Self {
        match (lo, hi) {
            (0, _) => Self::Empty,
            _ => Self::Range { lo, hi },
        }
    }

    /// `lo` to `hi`, or 0 to 0.
    fn range(lo: &str, hi: &str) -> Result<(u32, u32), SelectorError> {
        if (lo.trim(), hi.trim()) == ("0", "0") {
            return Ok((0, 0));
        }
        Self::positive_range(lo, hi)
    }

    fn positive_range(lo: &str, hi: &str) -> Result<(u32, u32), SelectorError> {
        let (lo, hi) = (positive(lo)?, positive(hi)?);
        if lo > hi {
            return Err(wrong(
                format!("{lo} is larger than {hi}"),
                "write the smaller number first",
            ));
        }
        Ok((lo, hi))
    }
}

fn number(text: &str) -> Result<u32, SelectorError> {
    let parsed = text.trim().parse::<u32>().ok().filter(|n| *n <= MOST);
    parsed.ok_or_else(|| {
        wrong(
            format!("`{}` is not a number", text.trim()),
            "write a whole number up to 2147483647",
        )
    })
}

fn positive(text: &str) -> Result<u32, SelectorError> {
    match number(text)? {
        0 => Err(wrong("a bound is 0", "numbers begin at 1")),
        n => Ok(n),
    }
}

fn histogram(text: &str) -> Result<Selector, SelectorError> {
    let mut buckets = Vec::new();
    for part in text.split(',') {
        let fields: Vec<&str> = part.split('|').collect();
        let [lo, hi, weight] = fields.as_slice() else {
            return Err(wrong(
                format!("`{part}` is not a bucket"),
                "write lo|hi|weight with a whole number as weight",
            ));
        };
        let lo = positive(lo)?;
        let hi = match hi.trim() {
            "" => MOST,
            hi => positive(hi)?,
        };
        if lo > hi {
            return Err(wrong(
                format!("{lo} is larger than {hi}"),
                "write the smaller number first",
            ));
        }
        // Buckets of weight 0 are never chosen.
        buckets.push(Bucket {
            lo,
            hi,
            weight: number(weight)?,
        });
    }
    if buckets.iter().all(|bucket| bucket.weight == 0) {
        return Err(wrong("all weights are 0", "give a bucket a weight above 0"));
    }
    buckets.sort_by_key(|bucket| bucket.lo);
    Ok(Selector::Histogram(buckets))
}

/// Object sizes: a selector and the number of bytes per unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Numbers before the unit is applied.
    pub selector: Selector,
    /// Bytes per unit.
    pub unit_bytes: u64,
    /// Name of the unit, if COSBench itself would take it as bytes.
    pub misread: Option<String>,
}

/// Units by suffix. COSBench knows powers of 1000 (GB, MB, KB, B), its fork also powers of 1024.
const UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

impl Sizes {
    /// Parses sizes such as `c(64)KB`.
    ///
    /// # Errors
    /// If the selector is wrong, the unit is missing, or COSBench would silently take the unit as bytes.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let text = text.trim();
        let at = text.rfind(')').map_or(text.len(), |at| at + 1);
        let (selector, unit) = text.split_at(at);
        let remedy = "end with B, KB, MB, GB (powers of 1000), KiB, MiB or GiB, as in c(64)KB";
        if unit.is_empty() {
            return Err(wrong(format!("`{text}` has no unit"), remedy));
        }
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        let Some((name, unit_bytes)) = known else {
            let problem = match unit.ends_with('B') {
                true => format!("COSBench would take the unit `{unit}` as bytes"),
                false => format!("there is no unit `{unit}`"),
            };
            return Err(wrong(problem, remedy));
        };
        let selector = match Selector::parse(selector)? {
            Selector::Empty => {
                return Err(wrong(
                    "a range from 0 has no sizes",
                    "use c(0)B for empty objects",
                ));
            }
            selector => selector,
        };
        Ok(Self {
            selector,
            unit_bytes: *unit_bytes,
            misread: name.contains('i').then(|| (*name).to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Bucket, Selector, Sizes};

    #[test]
    fn forms_are_read() {
        let is = |text: &str, wanted: Selector| assert_eq!(Selector::parse(text), Ok(wanted));
        is("c(5)", Selector::Constant(5));
        is("c(1,10)", Selector::Constant(1));
        is("c(0)", Selector::Constant(0));
        is("u(1,9)", Selector::Uniform { lo: 1, hi: 9 });
        is(
            "u(3)",
            Selector::Uniform {
                lo: 3,
                hi: 2_147_483_647,
            },
        );
        is("r(1,100)", Selector::Range { lo: 1, hi: 100 });
        is("1-100", Selector::Range { lo: 1, hi: 100 });
        is("s(2,2)", Selector::Sequential { lo: 2, hi: 2 });
        is("r(0,0)", Selector::Empty);
        is("0-0", Selector::Empty);
        let bucket = |lo, hi, weight| Bucket { lo, hi, weight };
        is(
            "h(64|128|3,1|64|1,512||6)",
            Selector::Histogram(vec![
                bucket(1, 64, 1),
                bucket(64, 128, 3),
                bucket(512, 2_147_483_647, 6),
            ]),
        );
    }

    #[test]
    fn selectors_that_drivers_reject_are_rejected() {
        for text in [
            "",
            "5",
            "f(1,2)",
            "u(0,5)",
            "r(5,1)",
            "r(3)",
            "s(0,0)",
            "u(1,2",
            "u(a,b)",
            "c(2147483648)",
            "h(1|2|0.5)",
            "h(1|2)",
            "h(5|1|1)",
            "h(1|2|0)",
            "u(1-5)",
        ] {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_have_units() {
        let kb = Sizes::parse("c(64)KB").unwrap();
        assert_eq!((kb.unit_bytes, kb.misread), (1000, None));
        let kib = Sizes::parse("u(1,10)KiB").unwrap();
        assert_eq!(
            (kib.unit_bytes, kib.misread.as_deref()),
            (1024, Some("KiB"))
        );
        assert_eq!(Sizes::parse("c(0)B").unwrap().unit_bytes, 1);
        for text in ["c(64)", "c(3)TB", "c(1)kb", "64KB", "r(0,0)B", "c(1)TiB"] {
            assert!(Sizes::parse(text).is_err(), "{text}");
        }
        let error = Sizes::parse("c(3)TB").unwrap_err().to_string();
        assert!(error.contains("as bytes"), "{error}");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[curshf0-9(),|KMGTiB -]{0,20}") {
            let _ = Selector::parse(&text);
            let _ = Sizes::parse(&text);
        }
    }
}
