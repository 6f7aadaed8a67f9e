//! Studies: page, tables and figures follow from the specification, the plan, the journal, the facts of the targets,
//! and the cells, which are directories of other kinds.

use std::path::Path;

use bucketload_results::bundle::Role;
use bucketload_study::report;
use bucketload_study::{conversations, layout};

use super::kinds::{Emit, Kind};
use crate::exit::{Failure, OrFail};

/// The directory of a study.
pub(super) struct Study;

impl Kind for Study {
    fn name(&self) -> &'static str {
        "study"
    }

    fn is(&self, dir: &Path) -> bool {
        layout::is_study(dir)
    }

    fn role(&self, path: &str) -> Option<Role> {
        let inside = |dir: &str, ends: &[&str]| {
            let name = path
                .strip_prefix(dir)
                .and_then(|rest| rest.strip_prefix('/'));
            name.is_some_and(|name| {
                !name.contains('/') && ends.iter().any(|end| name.ends_with(end))
            })
        };
        match path {
            layout::STUDY | layout::PLAN | layout::JOURNAL | conversations::FILE => {
                Some(Role::Data)
            }
            layout::REPORT => Some(Role::Derived),
            _ if inside(layout::TARGETS, &[".json"]) => Some(Role::Data),
            _ if inside(layout::TABLES, &[".csv", ".md", ".tex"]) => Some(Role::Derived),
            _ if inside(layout::FIGURES, &[".svg"]) => Some(Role::Derived),
            _ => None,
        }
    }

    fn derive(&self, dir: &Path, emit: &mut Emit<'_>) -> Result<(), Failure> {
        let rendered = report::render(dir).or_usage()?;
        for (name, text) in rendered {
            emit(&name, text.into_bytes())?;
        }
        Ok(())
    }
}
