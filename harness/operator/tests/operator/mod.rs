//! The operator under test: this test's own binary, seen from the inside of a sandbox.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, ExitCode};
use std::{env, fs, io};

pub(crate) fn main(args: &[String]) -> ExitCode {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match &args[..] {
        ["exit", code] => return ExitCode::from(code.parse::<u8>().expect("a code")),
        ["speak", text] => speak(text),
        ["tell"] => tell(),
        ["call", times] => call(times.parse().expect("a number")),
        ["serve", address] => serve(address),
        ["family"] => family(),
        _ => Err(io::Error::other(format!("unknown {args:?}"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("operator: {error} ({:?})", error.kind());
            ExitCode::FAILURE
        }
    }
}

fn speak(text: &str) -> io::Result<()> {
    println!("{text}");
    eprintln!("aside");
    print!("no end of line");
    io::stdout().flush()
}

/// What it finds around itself, `key=value` a line.
fn tell() -> io::Result<()> {
    let account = "/var/run/secrets/kubernetes.io/serviceaccount";
    for name in ["token", "ca.crt", "namespace"] {
        println!("{name}={}", fs::read_to_string(format!("{account}/{name}")).unwrap_or_default());
    }
    println!("read-only={}", fs::write(format!("{account}/token"), "mine").is_err());
    let variables =
        ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBECONFIG", "HOME", "HTTPS_PROXY", "COLOUR"];
    for name in variables {
        println!("{name}={}", env::var(name).unwrap_or("unset".into()));
    }
    println!("pid={}", std::process::id());
    println!("proc={}", fs::read_link("/proc/self")?.display());
    println!("dir={}", env::current_dir()?.display());
    println!("host={}", fs::read_to_string("/proc/sys/kernel/hostname")?.trim());
    println!("hosts={}", fs::read_to_string("/etc/hosts")?.trim().replace('\n', "|"));
    let status = fs::read_to_string("/proc/self/status")?;
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or_default();
    println!("capabilities={}", capabilities.trim());
    println!("pod={:?}", TcpStream::connect("10.1.2.3:8000").map(drop).map_err(|error| error.kind()));
    println!("outside={}", TcpStream::connect("192.0.2.1:80").is_err());
    println!("low-port={}", TcpListener::bind("127.0.0.1:443").is_ok());
    Ok(())
}

/// Calls the API server, a line out and a line in each time, and says how each call went.
fn call(times: u32) -> io::Result<()> {
    let variable = |name| env::var(name).map_err(io::Error::other);
    let address = format!("{}:{}", variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
    for _ in 0..times {
        let called = TcpStream::connect(&address).and_then(|mut stream| {
            stream.write_all(b"hello\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).map(|_| answer)
        });
        match called {
            Ok(answer) => println!("answer {answer}"),
            Err(error) => println!("error {:?}", error.kind()),
        }
    }
    Ok(())
}

/// Greets each who connects.
fn serve(address: &str) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    println!("listening");
    for stream in listener.incoming() {
        stream?.write_all(b"from inside")?;
    }
    Ok(())
}

/// Six busy processes, three of which have left the process group.
fn family() -> io::Result<()> {
    let script = "i=0; while :; do i=$((i+1)); done";
    for program in ["sh", "sh", "setsid", "setsid", "setsid"] {
        let mut command = Command::new(program);
        if program == "setsid" {
            command.arg("sh");
        }
        command.args(["-c", script]).spawn()?;
    }
    println!("family");
    let mut wait = 0_u64;
    loop {
        wait = std::hint::black_box(wait.wrapping_add(1));
    }
}
