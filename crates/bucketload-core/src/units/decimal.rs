//! Exact decimal numbers that precede units.

/// `mantissa / 10^scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    mantissa: u128,
    scale: u32,
}

/// More digits than any 64-bit quantity with nine decimal places needs.
const MAX_DIGITS: u32 = 30;

impl Decimal {
    /// Splits `text` after its longest decimal prefix (`12`, `1_000`, `1.5`, `.5`). `None` if it does not
    /// begin with a number or the number is absurdly long.
    pub(super) fn split(text: &str) -> Option<(Self, &str)> {
        let mut number = Self {
            mantissa: 0,
            scale: 0,
        };
        let (mut digits, mut point, mut end) = (0u32, false, 0);
        for (at, c) in text.char_indices() {
            match c {
                '0'..='9' => {
                    digits += 1;
                    number.mantissa = number.mantissa * 10 + u128::from(c as u32 - '0' as u32);
                    number.scale += u32::from(point);
                }
                '.' if !point => point = true,
                '_' if digits > 0 => {}
                _ => break,
            }
            end = at + c.len_utf8();
            if digits > MAX_DIGITS {
                return None;
            }
        }
        (digits > 0).then(|| (number, &text[end..]))
    }

    /// The number times `unit`, or `None` if the result is not a whole number below 2^64.
    pub(super) fn whole(self, unit: u64) -> Option<u64> {
        let product = self.mantissa.checked_mul(u128::from(unit))?;
        let divisor = 10u128.checked_pow(self.scale)?;
        (product % divisor == 0)
            .then(|| product / divisor)
            .and_then(|whole| u64::try_from(whole).ok())
    }

    /// Whether the number times `unit` is 2^64 or more.
    pub(super) fn too_large(self, unit: u64) -> bool {
        let divisor = 10u128.pow(self.scale.min(38));
        self.mantissa
            .checked_mul(u128::from(unit))
            .is_none_or(|product| product / divisor > u128::from(u64::MAX))
    }
}

/// Parses the whole text as a floating-point number: digits with an optional sign, point, exponent, and `_`
/// between digits. Rejects `inf` and `nan`.
pub(super) fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim();
    let plausible = text
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'e' | b'E' | b'+' | b'-'));
    if !plausible || text.starts_with('_') || text.ends_with('_') {
        return None;
    }
    let digits: String = text.chars().filter(|&c| c != '_').collect();
    digits.parse().ok().filter(|x: &f64| x.is_finite())
}
