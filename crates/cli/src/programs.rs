//! The programs beside this one, which are built apart from it because of what they need.

use std::path::PathBuf;

use crate::failure::Failure;

/// A program of the same house.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// Runs SQL in one process.
    Query,
    /// Runs SQL on several machines.
    Cluster,
    /// Speaks OpenTelemetry's protocol.
    Otlp,
}

impl Program {
    const fn name(self) -> &'static str {
        match self {
            Self::Query => "anytrace-query",
            Self::Cluster => "anytrace-cluster",
            Self::Otlp => "anytrace-otlp",
        }
    }

    fn missing(self) -> Failure {
        let what = match self {
            Self::Query => "SQL needs the program anytrace-query",
            Self::Cluster => "--cluster needs the program anytrace-cluster",
            Self::Otlp => "OTLP needs the program anytrace-otlp",
        };
        let name = self.name();
        Failure::usage(format!(
            "{what}, which is not beside anytrace and not in PATH\n  \
             `cargo install {name}` installs it\n  \
             without it, {}",
            match self {
                Self::Query =>
                    "`anytrace convert --to parquet --table NAME` writes tables for DuckDB, Polars and others",
                Self::Cluster => "`anytrace query` without --cluster runs the same SQL in one process",
                Self::Otlp => "`anytrace convert --to otlp` writes what is collected as requests in a file",
            }
        ))
    }

    /// The program: beside this one, or else in PATH.
    pub(crate) fn find(self) -> Result<PathBuf, Failure> {
        let name = format!("{}{}", self.name(), std::env::consts::EXE_SUFFIX);
        let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join(&name)));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let in_path =
            std::env::split_paths(&path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(&name));
        beside.into_iter().chain(in_path).find(|file| file.is_file()).ok_or_else(|| self.missing())
    }
}
