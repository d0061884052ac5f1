//! Where a command looks.

use clap::Args;

/// The namespaces a command looks in.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// Only this namespace (parent)
    #[arg(
        short,
        long,
        value_name = "NAMESPACE",
        default_value = "default",
        value_parser = one,
        conflicts_with = "all_namespaces"
    )]
    namespace: String,

    /// Look in all namespaces instead of one
    #[arg(short = 'A', long)]
    all_namespaces: bool,
}

/// Refuses a list of namespaces, for commands that show those of one or of all.
fn one(text: &str) -> Result<String, String> {
    match text.contains(',') {
        true => Err("want one namespace; -A asks for all".to_owned()),
        false => Ok(text.to_owned()),
    }
}

impl Place {
    /// The parent to ask for.
    pub(super) fn parent(&self) -> &str {
        if self.all_namespaces {
            "-"
        } else {
            &self.namespace
        }
    }

    /// Whether all namespaces are meant.
    pub(super) fn is_everywhere(&self) -> bool {
        self.all_namespaces
    }

    /// The parent of the records of a result, which is given by its id or its full name; of those
    /// of all results without one.
    pub(super) fn within(&self, result: Option<&str>) -> String {
        match result {
            Some(name) if name.contains('/') => name.to_owned(),
            result => format!("{}/results/{}", self.parent(), result.unwrap_or("-")),
        }
    }

    /// How to say it when nothing was found there.
    pub(super) fn said(&self) -> String {
        if self.all_namespaces {
            "in any namespace".to_owned()
        } else {
            format!("in namespace {} (-A looks in all)", self.namespace)
        }
    }
}
