//! What is printed: data on standard output, everything else on standard error.

mod filter;
mod table;

use std::io::{self, IsTerminal, Write};

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;

pub(crate) use self::table::{Cell, Table, Tone};
use crate::failure::{Exit, Failure};

/// How data is printed.
#[derive(Debug, Clone, Args)]
pub(crate) struct Output {
    /// How data is printed
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "table", global = true)]
    pub(crate) output: Format,

    /// A jq filter for the data as JSON
    #[arg(long, value_name = "FILTER", global = true)]
    pub(crate) jq: Option<String>,

    /// No colours, whatever the terminal can do (also by NO_COLOR)
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
}

/// A format of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people.
    Table,
    /// The same with more columns.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Names alone, one on a line.
    Name,
}

impl Output {
    /// Whether people read a table.
    pub(crate) fn is_table(&self) -> bool {
        self.jq.is_none() && matches!(self.output, Format::Table | Format::Wide)
    }

    /// Whether what is printed may be coloured: a terminal, `CLICOLOR_FORCE`, and no `NO_COLOR`.
    pub(crate) fn apply_color(&self) {
        if self.no_color {
            anstream::ColorChoice::Never.write_global();
        }
    }

    /// Prints data. The table and the names are made only if they are wanted.
    pub(crate) fn print<T: Serialize>(
        &self,
        data: &T,
        table: impl FnOnce(bool) -> Table,
        names: impl FnOnce() -> Vec<String>,
    ) -> Result<(), Failure> {
        if self.is_table() {
            return line(&table(self.output == Format::Wide).render());
        }
        if self.jq.is_none() && self.output == Format::Name {
            return names().iter().try_for_each(|name| line(name));
        }
        let value = serde_json::to_value(data).map_err(|error| Failure::new(Exit::Failed, error))?;
        self.structured(&value)
    }

    /// Prints a text for people, or the data that it is made of.
    pub(crate) fn text<T: Serialize>(
        &self,
        data: &T,
        name: &str,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if self.is_table() {
            return line(text().trim_end());
        }
        self.print(data, |_| Table::default(), || vec![name.to_owned()])
    }

    fn structured(&self, value: &Value) -> Result<(), Failure> {
        if let Some(filter) = &self.jq {
            return filter::run(filter, value)?.iter().try_for_each(|result| line(result));
        }
        match self.output {
            Format::Yaml => {
                let yaml =
                    serde_saphyr::to_string(value).map_err(|error| Failure::new(Exit::Failed, error))?;
                line(yaml.trim_end())
            }
            Format::Json | Format::Table | Format::Wide | Format::Name => line(
                &serde_json::to_string_pretty(value).map_err(|error| Failure::new(Exit::Failed, error))?,
            ),
        }
    }
}

/// Prints a line of data.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        // Who reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::new(Exit::Failed, format!("standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Tells how it goes, beside the data.
pub(crate) fn note(text: &str) {
    // Nobody is left to hear that standard error is gone.
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Whether a person sits at it, who can be asked.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks before something that is hard to take back. Without a terminal it fails, and names the flag.
pub(crate) fn confirm(question: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !is_interactive() {
        return Err(Failure::usage(format!("{question} There is no terminal to ask at")).next("add --yes"));
    }
    let mut err = anstream::stderr();
    let _ = write!(err, "{question} [y/N] ").and_then(|()| err.flush());
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(Failure::usage)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::usage("cancelled")),
    }
}
