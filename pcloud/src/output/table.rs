//! Tables without lines, so that they can be cut into columns by other tools.

use anstream::adapter::strip_str;
use comfy_table::{Color, ContentArrangement, presets};

/// What a cell means. It is never told by colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it should be.
    Good,
    /// Worth a look.
    Warn,
    /// Wrong.
    Bad,
}

/// A cell of a table.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    tone: Option<Tone>,
}

/// A table: titles and rows of cells.
#[derive(Debug, Default)]
pub(crate) struct Table {
    titles: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these titles.
    pub(crate) fn new(titles: &[&'static str]) -> Self {
        Self { titles: titles.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// As text.
    pub(crate) fn render(&self) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(&self.titles);
        // Whether the terminal takes colours is decided where the text is printed.
        table.enforce_styling();
        for row in &self.rows {
            table.add_row(row.iter().map(Cell::styled));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        lines.join("\n")
    }
}

impl Cell {
    fn styled(&self) -> comfy_table::Cell {
        let cell = comfy_table::Cell::new(&self.text);
        match self.tone {
            Some(Tone::Good) => cell.fg(Color::Green),
            Some(Tone::Warn) => cell.fg(Color::Yellow),
            Some(Tone::Bad) => cell.fg(Color::Red),
            None => cell,
        }
    }

    /// With what it means.
    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { tone: Some(tone), ..Self::from(text.into()) }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        // Names and reasons come from outside: what moves the cursor stays out.
        let text = strip_str(&text).to_string().replace(|c: char| c.is_control(), " ");
        Self { text, tone: None }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::from(number.to_string())
    }
}
