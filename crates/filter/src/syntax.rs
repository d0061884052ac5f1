//! The syntax tree of a filter: what was written, with positions, before names mean anything.

/// One part of a filter.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// The byte of the text that errors about this part point at.
    pub(super) at: usize,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Literal(Literal),
    /// A name; a leading dot is dropped.
    Name(String),
    Select(Box<Node>, String),
    Index(Box<Node>, Box<Node>),
    /// `name(args)` or `of.name(args)`. Macros are calls too.
    Call {
        of: Option<Box<Node>>,
        name: String,
        args: Vec<Node>,
    },
    Not(Box<Node>),
    Negate(Box<Node>),
    /// `condition ? then : otherwise`.
    If(Box<[Node; 3]>),
    Binary(Operator, Box<[Node; 2]>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    And,
    Or,
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    /// As it is written.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::And => "&&",
            Self::Or => "||",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
            Self::In => "in",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}
