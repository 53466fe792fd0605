//! The binary.

fn main() -> std::process::ExitCode {
    // First of all: this process may be a supervisor or a sandbox, which must not have threads.
    if let Some(code) = spiritlevel::intercept() {
        return code;
    }
    spiritlevel::command_line()
}
