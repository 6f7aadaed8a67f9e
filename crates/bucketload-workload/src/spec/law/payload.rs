//! The content of objects.

use std::fmt;

use super::table::Kind::{Positive, Share};
use super::table::{LawDef, build, family_schema, read_expr, required};
use crate::spec::decode::{Cx, Decode, json_schema_of};
use crate::spec::node::Node;
use bucketload_core::payload::PayloadKind;

/// A kind of content, such as `"random"` or `"compressible(2)"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PayloadSpec(pub PayloadKind);

const WHAT: &str = "a kind of payload";

const LAWS: &[LawDef<PayloadKind>] = &[
    LawDef {
        name: "random",
        params: &[],
        doc: "Unique, incompressible bytes per object",
        build: |_| Ok(PayloadKind::Random),
    },
    LawDef {
        name: "zeros",
        params: &[],
        doc: "Zero bytes",
        build: |_| Ok(PayloadKind::Zeros),
    },
    LawDef {
        name: "compressible",
        params: &[required(
            "ratio",
            Positive,
            "the original size divided by the compressed size, 1 to 1000",
        )],
        doc: "Random bytes mixed with zeros so that a compressor reaches about this ratio",
        build: |v| {
            let ratio = v[0].f();
            if !(1.0..=1000.0).contains(&ratio) {
                return Err((0, "the compression ratio must be between 1 and 1000".into()));
            }
            Ok(PayloadKind::Compressible { ratio })
        },
    },
    LawDef {
        name: "duplicate",
        params: &[required(
            "fraction",
            Share,
            "the share of objects with common content",
        )],
        doc: "Random bytes, but a share of the objects is byte-identical",
        build: |v| Ok(PayloadKind::Duplicate { fraction: v[0].f() }),
    },
];

impl Decode for PayloadSpec {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let expr = read_expr(node, WHAT, cx)?;
        build(LAWS, WHAT, &expr, cx).map(Self)
    }
}

impl fmt::Display for PayloadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            PayloadKind::Random => f.write_str("random"),
            PayloadKind::Zeros => f.write_str("zeros"),
            PayloadKind::Compressible { ratio } => write!(f, "compressible({ratio})"),
            PayloadKind::Duplicate { fraction } => write!(f, "duplicate({fraction})"),
            // Workload files cannot select it.
            PayloadKind::Timestamp(_) => f.write_str("timestamp"),
        }
    }
}

json_schema_of!(
    PayloadSpec,
    "Payload",
    family_schema(LAWS, &[], "The content of objects", &[])
);
