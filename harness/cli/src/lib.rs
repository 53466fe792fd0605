//! spiritlevel tells whether a Kubernetes operator is level-triggered: whether it still reaches the declared state, stays
//! quiet there and leaves nothing behind, whatever it missed on the way.
//!
//! This is the binary, and a facade for tests in Rust:
//!
//! ```no_run
//! # async fn example() -> Result<(), spiritlevel::Error> {
//! use spiritlevel::{Suite, run};
//!
//! let outcome = run(Suite::at("scenarios/postgres").filter("drift")).await?;
//! outcome.assert_passed();
//! # Ok(())
//! # }
//! ```
//!
//! Serves the whole spine: from the paths of a command line to verdicts and an exit code.

mod args;
mod bug;
mod command_line;
mod commands;
mod complain;
mod error;
mod exit;
mod facade;
mod invocation;
mod recorded;
mod stop;
mod stretch;
mod voice;

pub use command_line::command_line;
pub use error::Error;
pub use exit::Exit;
pub use facade::{Outcome, Suite, lacking, plans, run, run_plans};
pub use spiritlevel_model as model;
pub use spiritlevel_operator::intercept;
pub use spiritlevel_report::Finished;
