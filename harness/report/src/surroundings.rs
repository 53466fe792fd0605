//! Where the output goes: to a person, a CI job or a program.

use std::io::IsTerminal;

/// What form output has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// One JSON document a line.
    Json,
}

/// What the environment says about output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Whether colours are shown.
    pub colour: bool,
    /// Whether lines can be drawn anew, for progress.
    pub live: bool,
    /// Whether annotations of GitHub Actions are understood.
    pub github: bool,
}

// === impl Surroundings ===

impl Surroundings {
    /// Looks at standard output and standard error, `NO_COLOR`, `TERM`, `CI` and `GITHUB_ACTIONS`.
    pub fn look() -> Self {
        Self::of(|name| std::env::var(name).ok(), std::io::stdout().is_terminal(), std::io::stderr().is_terminal())
    }

    fn of(env: impl Fn(&str) -> Option<String>, stdout: bool, stderr: bool) -> Self {
        let set = |name: &str| env(name).is_some_and(|value| !value.is_empty() && value != "false" && value != "0");
        let dumb = env("TERM").is_some_and(|term| term == "dumb");
        Self {
            // https://no-color.org: whatever the value is.
            colour: stdout && !dumb && env("NO_COLOR").is_none_or(|value| value.is_empty()),
            live: stdout && stderr && !dumb && !set("CI"),
            github: set("GITHUB_ACTIONS"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Surroundings;

    fn of(env: &[(&str, &str)], terminal: bool) -> Surroundings {
        let env = |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        Surroundings::of(env, terminal, terminal)
    }

    #[test]
    fn a_terminal_is_drawn_on_unless_something_speaks_against_it() {
        let all = Surroundings { colour: true, live: true, github: false };
        let still = Surroundings { live: false, ..all };
        let bare = Surroundings { colour: false, ..all };
        assert_eq!(of(&[], true), all);
        assert_eq!(of(&[("NO_COLOR", "1")], true), bare);
        assert_eq!(of(&[("NO_COLOR", "")], true), all);
        assert_eq!(of(&[("CI", "true")], true), still);
        assert_eq!(of(&[("TERM", "dumb")], true), Surroundings::default());
        assert_eq!(of(&[], false), Surroundings::default());
        assert!(of(&[("GITHUB_ACTIONS", "true"), ("CI", "true")], false).github);
    }
}
