//! Expressions as trees.

use std::sync::Arc;

/// An expression and where it stands in the text, counted in characters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expr {
    pub(crate) at: usize,
    /// How many levels there are below, and this one.
    pub(super) depth: usize,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Literal(Literal),
    Ident(String),
    Select {
        operand: Box<Expr>,
        field: String,
    },
    /// `has(operand.field)`
    Has {
        operand: Box<Expr>,
        field: String,
    },
    /// `operand.?field`
    Optional {
        operand: Box<Expr>,
        field: String,
    },
    /// A function, a method or an operator (`_+_`). Of `_&&_` and `_||_` there may be more than two arguments.
    Call {
        function: String,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    /// The items, and whether each is there only if its optional has a value.
    List(Vec<(Expr, bool)>),
    Map(Vec<(Expr, Expr, bool)>),
    Macro(Box<Macro>),
}

/// An expression that is evaluated for the members of another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Macro {
    pub(crate) word: Word,
    pub(crate) range: Expr,
    /// One name for the members, or two: of the index or key, and of the member.
    pub(crate) names: Vec<String>,
    /// Of those that take one: which members count.
    pub(crate) filter: Option<Expr>,
    pub(crate) body: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    TransformList,
    TransformMap,
    OptMap,
    OptFlatMap,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
}

impl Expr {
    /// Everything directly below.
    pub(crate) fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            Kind::Literal(_) | Kind::Ident(_) => Vec::new(),
            Kind::Select { operand, .. } | Kind::Has { operand, .. } | Kind::Optional { operand, .. } => {
                vec![operand]
            }
            Kind::Call { target, args, .. } => target.iter().map(AsRef::as_ref).chain(args).collect(),
            Kind::List(items) => items.iter().map(|(item, _)| item).collect(),
            Kind::Map(entries) => entries.iter().flat_map(|(key, value, _)| [key, value]).collect(),
            Kind::Macro(inner) => {
                let Macro { range, filter, body, .. } = inner.as_ref();
                [Some(range), filter.as_ref(), Some(body)].into_iter().flatten().collect()
            }
        }
    }

    /// Whether a variable of this name is read anywhere.
    pub(crate) fn reads(&self, name: &str) -> bool {
        matches!(&self.kind, Kind::Ident(found) if found == name)
            || self.children().into_iter().any(|child| child.reads(name))
    }
}
