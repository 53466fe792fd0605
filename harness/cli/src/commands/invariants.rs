//! `spiritlevel invariants`.

use crate::{
    Exit,
    args::{Form, Invariants},
    voice::say,
};
use serde_json::json;
use spiritlevel_judge::all;
use std::fmt::Write;

/// Lists what is judged, and what is planned.
pub(super) fn invariants(args: &Invariants) -> Exit {
    if args.output == Form::Json {
        let one = |i: &spiritlevel_judge::Invariant| json!({"name": i.name, "code": i.code, "meaning": i.meaning, "onByDefault": i.on_by_default, "available": i.available});
        say(&format!("{:#}\n", json!(all().iter().map(one).collect::<Vec<_>>())));
        return Exit::Pass;
    }
    let mut text = String::new();
    for i in all() {
        let state = match (i.available, i.on_by_default) {
            (true, true) => "on",
            (true, false) => "on request",
            (false, _) => "planned",
        };
        let _ = writeln!(text, "{:<15} {:<10}  {}", i.name, state, i.meaning);
    }
    text +=
        "\nA suite's defaults or a scenario switch one off with `invariants: {NAME: false}`, or give it settings.\n";
    say(&text);
    Exit::Pass
}
