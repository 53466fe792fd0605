//! Colours, or none.

use anstyle::{AnsiColor, Style};

/// How text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// Bare characters.
    #[default]
    Plain,
    /// With colours.
    Coloured,
}

// === impl Look ===

impl Look {
    /// What is well.
    pub fn good(self, text: &str) -> String {
        self.styled(AnsiColor::Green.on_default(), text)
    }

    /// What is wrong.
    pub fn bad(self, text: &str) -> String {
        self.styled(AnsiColor::Red.on_default().bold(), text)
    }

    /// What is doubtful.
    pub fn doubtful(self, text: &str) -> String {
        self.styled(AnsiColor::Yellow.on_default(), text)
    }

    /// What matters.
    pub fn strong(self, text: &str) -> String {
        self.styled(Style::new().bold(), text)
    }

    /// What is there for completeness.
    pub fn faint(self, text: &str) -> String {
        self.styled(Style::new().dimmed(), text)
    }

    fn styled(self, style: Style, text: &str) -> String {
        match self {
            Self::Plain => text.into(),
            Self::Coloured => format!("{style}{text}{style:#}"),
        }
    }
}
