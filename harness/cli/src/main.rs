//! The binary.
fn main() -> std::process::ExitCode {
    if let Some(code) = spiritlevel_supervise::intercept().or_else(spiritlevel_operator::intercept) {
        return code;
    }
    let paths: Vec<std::path::PathBuf> = std::env::args().skip(1).map(Into::into).collect();
    let rt = tokio::runtime::Runtime::new().expect("rt");
    rt.block_on(async move {
        let suites = spiritlevel_runner::project::find(&paths).expect("find");
        let filter = std::env::var("FILTER").ok();
        let sel = spiritlevel_runner::project::Selection { repeat: 1, filter, nonce: std::process::id().into(), ..Default::default() };
        let plans = match spiritlevel_runner::project::all_plans(&suites, &sel) { Ok(p) => p, Err(e) => { for p in e { println!("{}", p.to_line()); } return std::process::ExitCode::from(4) } };
        let tell: spiritlevel_runner::session::Listener = std::sync::Arc::new(|e| { use spiritlevel_runner::session::SessionEvent as E; match e {
            E::Say(s) => println!("  .. {s}"), E::Notice(s) => println!("notice {s}"), E::LaneReady(t) => println!("lane {t:?}"),
            E::RunStarted(p) => println!("start {}", p.title()), E::RunPhase(t, p) => println!("   {t} {p:?}"),
            E::RunFinished(o) => { println!("{} => {} in {} ms {:?}", o.plan.title(), o.verdict.verdict, o.verdict.duration_ms, o.verdict.reasons); 
               for f in &o.verdict.findings { println!("    {:?} {}: {}\n        cause {} fault {:?} step {:?}", f.class, f.invariant, f.message, f.cause, f.fault, f.step); for d in &f.details { println!("        {} {}", d.key, d.text); } }
               for s in &o.verdict.settle { println!("    settle {s:?}"); }
               if let Some(e) = &o.verdict.expected { println!("    expected {e:?}"); } }
            E::RunSkipped(p, w) => println!("skip {} {w}", p.title()), E::CleanupFailed(t, w) => println!("cleanup {t}: {w}"),
        }});
        let o = spiritlevel_runner::session::SessionOptions { jobs: std::env::var("JOBS").ok().and_then(|j| j.parse().ok()).unwrap_or(4), report_dir: "reports".into(), fail_fast: false };
        let r = spiritlevel_runner::session::session(plans, o, tell, tokio_util::sync::CancellationToken::new()).await;
        if let Err(e) = r { println!("{}", e.chain()); }
        std::process::ExitCode::SUCCESS
    })
}
