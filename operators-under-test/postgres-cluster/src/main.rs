//! The operator's binary; everything is in the library, where tests can reach it.

fn main() -> std::process::ExitCode {
    postgres_cluster::cli::main()
}
