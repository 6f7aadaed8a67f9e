//! Elements and attributes with their locations. Anything that COSBench would ignore becomes a warning.

use roxmltree::{Document, Node};

use crate::error::{Location, Rejection, Warning, near};

/// Reads the attributes of one element.
pub(crate) struct Element<'d, 'w> {
    node: Node<'d, 'd>,
    /// Its name in messages: `work "main"`.
    title: String,
    warnings: &'w mut Vec<Warning>,
}

/// Parses `text`.
///
/// # Errors
/// If it is not well-formed XML.
pub(crate) fn document(text: &str) -> Result<Document<'_>, Rejection> {
    Document::parse(text).map_err(|error| {
        let at = error.pos();
        let location = Location {
            line: at.row,
            column: at.col,
            what: "XML".to_owned(),
        };
        Rejection::new(&location, error.to_string(), "write well-formed XML 1.0")
    })
}

impl<'d, 'w> Element<'d, 'w> {
    /// Wraps `node`, adding a warning for each attribute outside `attributes` and each child outside
    /// `children`, because COSBench ignores them.
    pub(crate) fn new(
        node: Node<'d, 'd>,
        attributes: &[&str],
        children: &[&str],
        warnings: &'w mut Vec<Warning>,
    ) -> Self {
        let title = title(node);
        for attribute in node.attributes() {
            let name = attribute.name();
            if attributes.contains(&name) {
                continue;
            }
            let location = location(node, attribute.range().start, format!("{title} @{name}"));
            let meant = near(name, attributes).map_or_else(
                || "COSBench ignores it".to_owned(),
                |meant| format!("COSBench ignores it; did you mean `{meant}`?"),
            );
            warnings.push(Warning {
                location,
                text: format!(
                    "`{name}` is not an attribute of {}: {meant}",
                    node.tag_name().name()
                ),
            });
        }
        for child in node.children().filter(Node::is_element) {
            let name = child.tag_name().name();
            if !children.contains(&name) {
                let meant = near(name, children)
                    .map(|meant| format!("; did you mean `{meant}`?"))
                    .unwrap_or_default();
                warnings.push(Warning {
                    location: location(child, child.range().start, title.clone()),
                    text: format!(
                        "the element `{name}` is ignored here, with all its content{meant}"
                    ),
                });
            }
        }
        Self {
            node,
            title,
            warnings,
        }
    }

    pub(crate) fn warn(&mut self, attribute: &str, text: impl Into<String>) {
        let location = self.location(attribute);
        self.warnings.push(Warning {
            location,
            text: text.into(),
        });
    }

    /// The location of an attribute, or of the element if the attribute is absent or the name empty.
    pub(crate) fn location(&self, attribute: &str) -> Location {
        let what = match attribute {
            "" => self.title.clone(),
            name => format!("{} @{name}", self.title),
        };
        let found = self.node.attribute_node(attribute);
        let at = found.map_or(self.node.range().start, |a| a.range().start);
        location(self.node, at, what)
    }

    pub(crate) fn reject(
        &self,
        attribute: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Rejection {
        Rejection::new(&self.location(attribute), problem, remedy)
    }

    /// The value of an attribute.
    pub(crate) fn text(&self, name: &str) -> Option<&'d str> {
        self.node.attribute(name)
    }

    /// A whole number within `least..=most`; `default` if the attribute is absent or empty.
    ///
    /// # Errors
    /// If it is not a number, or out of range.
    pub(crate) fn number(
        &self,
        name: &str,
        default: i64,
        least: i64,
        most: i64,
    ) -> Result<i64, Rejection> {
        let Some(text) = self.text(name).map(str::trim).filter(|t| !t.is_empty()) else {
            return Ok(default);
        };
        let limits = || format!("write a whole number from {least} to {most}");
        let Ok(value) = text.parse::<i64>() else {
            return Err(self.reject(name, format!("`{text}` is not a whole number"), limits()));
        };
        if !(least..=most).contains(&value) {
            return Err(self.reject(name, format!("{value} is out of range"), limits()));
        }
        Ok(value)
    }

    /// The first child element called `name`.
    pub(crate) fn child(&self, name: &str) -> Option<Node<'d, 'd>> {
        self.children(name).next()
    }

    /// The child elements called `name`.
    pub(crate) fn children(&self, name: &str) -> impl Iterator<Item = Node<'d, 'd>> + use<'d> {
        let name = name.to_owned();
        self.node
            .children()
            .filter(move |child| child.is_element() && child.tag_name().name() == name)
    }
}

fn title(node: Node<'_, '_>) -> String {
    let tag = node.tag_name().name();
    let name = node.attribute("name").or_else(|| node.attribute("type"));
    name.map_or_else(|| tag.to_owned(), |name| format!("{tag} \"{name}\""))
}

fn location(node: Node<'_, '_>, at: usize, what: String) -> Location {
    let position = node.document().text_pos_at(at);
    Location {
        line: position.row,
        column: position.col,
        what,
    }
}
