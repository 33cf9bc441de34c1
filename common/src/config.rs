//! Flags, their environment twins, and their places in a TOML file.
//!
//! A flag wins over the environment, which wins over the file. A key of the file is the flag's long
//! name; a flag that may be repeated takes an array.

use std::{ffi::OsString, fs, path::PathBuf, time::Duration};

use clap::{Arg, ArgAction, Command, Parser, error::ErrorKind};
use serde::Serialize;

/// Parses these arguments, of which the first is the program's name. A `--config FILE` among them is
/// read for what they, and the environment, do not say.
///
/// # Errors
/// If the arguments or the file are wrong; the message names the flag, or the file and its key.
pub fn parse_from<T: Parser>(args: impl IntoIterator<Item = impl Into<OsString>>) -> Result<T, clap::Error> {
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let mut command = T::command();
    if let Some(path) = config_path(&command, &args) {
        let text = fs::read_to_string(&path).map_err(|error| {
            command.error(ErrorKind::Io, format!("{} cannot be read: {error}", path.display()))
        })?;
        command = with_defaults(command, &text, &path.display().to_string())?;
    }
    T::from_arg_matches(&command.try_get_matches_from(args)?)
}

/// Reads a time such as `500ms`, `60s` or `2m`, as the value of a flag.
///
/// # Errors
/// What it should look like.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        _ => return Err("it is not a time such as 500ms, 60s or 2m".to_owned()),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("{digits:?} is not a whole number of {}", &text[digits.len()..]))?;
    Ok(Duration::from_millis(number.saturating_mul(unit)))
}

/// Options as a configuration file that would set them.
///
/// # Errors
/// If they contain what TOML cannot express.
pub fn dump(options: &impl Serialize) -> Result<String, toml::ser::Error> {
    toml::to_string(options)
}

fn config_path(command: &Command, args: &[OsString]) -> Option<PathBuf> {
    // Whatever else is wrong with the arguments will be said when they are parsed in full.
    let matches = command.clone().ignore_errors(true).try_get_matches_from(args).ok()?;
    matches.try_get_one::<PathBuf>("config").ok()?.cloned()
}

fn with_defaults(mut command: Command, text: &str, file: &str) -> Result<Command, clap::Error> {
    let table: toml::Table =
        text.parse().map_err(|error| command.error(ErrorKind::InvalidValue, format!("{file}: {error}")))?;
    for (key, value) in table {
        let known = |arg: &Arg| arg.get_long() == Some(&key) && key != "config";
        let Some(id) = command.get_arguments().find(|arg| known(arg)).map(|arg| arg.get_id().clone()) else {
            let message = format!("{file}: unknown key {key:?}; the keys are the long names of flags");
            return Err(command.error(ErrorKind::UnknownArgument, message));
        };
        let Some(values) = words(&value) else {
            let message = format!("{file}: {key}: a {} does not fit here", value.type_str());
            return Err(command.error(ErrorKind::InvalidValue, message));
        };
        let mut single = false;
        command = command.mut_arg(id, |arg| {
            single = matches!(arg.get_action(), ArgAction::Set | ArgAction::SetTrue);
            arg.required(false).default_values(&values)
        });
        if single && values.len() != 1 {
            let message = format!("{file}: {key}: one value is wanted, not {}", values.len());
            return Err(command.error(ErrorKind::InvalidValue, message));
        }
    }
    Ok(command)
}

fn words(value: &toml::Value) -> Option<Vec<String>> {
    match value {
        toml::Value::String(text) => Some(vec![text.clone()]),
        toml::Value::Integer(_) | toml::Value::Float(_) | toml::Value::Boolean(_) => {
            Some(vec![value.to_string()])
        }
        toml::Value::Array(items) => {
            items.iter().map(words).collect::<Option<Vec<_>>>().map(|items| items.concat())
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write, path::Path};

    use clap::CommandFactory;

    use super::*;

    #[derive(Debug, Parser, Serialize)]
    #[serde(rename_all = "kebab-case")]
    struct Options {
        #[arg(long)]
        #[serde(skip)]
        config: Option<PathBuf>,
        #[arg(long, required = true)]
        discovery: Vec<String>,
        #[arg(long, default_value_t = 5870)]
        port: u16,
        #[arg(long)]
        insecure: bool,
    }

    fn check(text: &str, args: &[&str]) -> Result<Options, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let path: &Path = file.path();
        let all = [&["x", "--config", path.to_str().unwrap()], args].concat();
        parse_from(all).map_err(|error| error.to_string())
    }

    #[test]
    fn the_file_fills_what_the_flags_leave_open() {
        let text = "discovery = ['a', 'b']\nport = 7\ninsecure = true";
        let options = check(text, &[]).unwrap();
        assert_eq!(
            (options.discovery, options.port, options.insecure),
            (vec!["a".into(), "b".into()], 7, true)
        );
        let options = check(text, &["--port", "8", "--discovery", "c"]).unwrap();
        assert_eq!((options.discovery, options.port), (vec!["c".to_owned()], 8));
    }

    #[test]
    fn errors_name_the_file_and_the_key() {
        let error = |text| check(text, &["--discovery", "c"]).unwrap_err();
        assert!(error("prot = 7").contains("unknown key \"prot\""));
        assert!(error("config = 'other'").contains("unknown key \"config\""));
        assert!(error("port = {a = 1}").contains("port: a table does not fit"));
        assert!(error("port = 70000").contains("70000"));
        assert!(error("port = [1, 2]").contains("port: one value is wanted, not 2"));
        assert!(error("port =").contains("TOML parse error"));
        let missing = parse_from::<Options>(["x", "--config", "/not/there"]).unwrap_err();
        assert!(missing.to_string().contains("/not/there cannot be read"));
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "60", "s", "1h", "-1s", "1.5s", "s60"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_dump_can_be_read_again() {
        let options = check("", &["--discovery", "c", "--insecure"]).unwrap();
        let again = check(&dump(&options).unwrap(), &[]).unwrap();
        assert_eq!((again.discovery, again.port, again.insecure), (vec!["c".to_owned()], 5870, true));
    }

    #[test]
    fn whatever_a_file_says_it_sets_flags_or_is_refused() {
        let seeds: [&[u8]; 3] =
            [b"discovery = ['a', 'b']\nport = 7\ninsecure = true\n", b"[port]\na = 1", b"port = 1979-05-27"];
        let words = ["discovery", "port", "insecure", "config", "\"\"\"", "[[", "= {", "\n"];
        tower_fuzz::fuzz("configuration file", &seeds, &words, |input| {
            let command = with_defaults(Options::command(), &String::from_utf8_lossy(input), "file");
            let matches = command.and_then(|command| command.try_get_matches_from(["x"]));
            matches.map(drop)
        });
    }
}
