//! The INI syntax of IO500: sections, `name = value`, comments after `;` or `#`.

/// A setting with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Section, without brackets.
    pub section: String,
    /// Name as written.
    pub name: String,
    /// Trimmed value; `None` if nothing follows the equals sign.
    pub value: Option<String>,
    /// Line, from 1.
    pub line: usize,
}

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ini {
    /// The sections, in order, with the line of each.
    pub sections: Vec<(String, usize)>,
    /// The settings, in order.
    pub settings: Vec<Setting>,
}

impl Ini {
    /// Reads a file.
    ///
    /// # Errors
    /// Names the first invalid line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut ini = Self::default();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let line = line.trim();
            if line.is_empty() || line.starts_with([';', '#']) {
                continue;
            }
            if let Some(rest) = line.strip_prefix('[') {
                let Some((name, _)) = rest.split_once(']') else {
                    return Err(format!("line {number}: the section lacks a closing `]`"));
                };
                ini.sections.push((name.trim().to_owned(), number));
                continue;
            }
            let Some((name, value)) = line.split_once('=') else {
                return Err(format!(
                    "line {number}: `{line}` is neither [section] nor name = value"
                ));
            };
            let Some((section, _)) = ini.sections.last() else {
                return Err(format!(
                    "line {number}: `{}` is outside any section",
                    name.trim()
                ));
            };
            let value = uncommented(value).ok_or_else(|| {
                format!(
                    "line {number}: `{line}`: a value has no ; or #, and a comment after it begins after a space"
                )
            })?;
            ini.settings.push(Setting {
                section: section.clone(),
                name: name.trim().to_owned(),
                value: (!value.is_empty()).then(|| value.to_owned()),
                line: number,
            });
        }
        Ok(ini)
    }
}

/// A value without the comment after it and the space around it; `None` if the comment does not begin after a space.
fn uncommented(text: &str) -> Option<&str> {
    match text.find([';', '#']) {
        Some(at) if text[..at].ends_with([' ', '\t']) => Some(text[..at].trim()),
        Some(_) => None,
        None => Some(text.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::Ini;

    #[test]
    fn sections_settings_and_comments() {
        let ini = Ini::parse(
            "; c\n[global]\ndatadir = ./x\napi =\n# d\n[ior-easy]\ntransferSize=2m ; = 3m # x\n",
        );
        let ini = ini.unwrap();
        assert_eq!(ini.sections.len(), 2);
        let of = |at: usize| {
            let s = &ini.settings[at];
            (
                s.section.as_str(),
                s.name.as_str(),
                s.value.as_deref(),
                s.line,
            )
        };
        assert_eq!(of(0), ("global", "datadir", Some("./x"), 3));
        assert_eq!(of(1), ("global", "api", None, 4));
        assert_eq!(of(2), ("ior-easy", "transferSize", Some("2m"), 7));
        for (wrong, line) in [
            ("x = 1", "line 1"),
            ("[a]\nx", "line 2"),
            ("[a", "line 1"),
            ("[a]\nx = y#z", "line 2"),
        ] {
            assert!(Ini::parse(wrong).unwrap_err().contains(line), "{wrong}");
        }
    }
}
