//! `spiritlevel judge`.

use crate::{
    Error, Exit,
    args::{Form, Judge},
    recorded,
    voice::{aside, say},
};
use serde_json::json;
use spiritlevel_report::{Detail, Finished, Look, Surroundings, block};
use spiritlevel_runner::run::judged;

/// Judges a recorded run again. The folder stays as it is.
pub(super) fn judge(args: &Judge) -> Result<Exit, Error> {
    let plan = recorded::plan(&args.dir)?;
    let records = recorded::history(&args.dir)?;
    let before = recorded::verdict(&args.dir)?;
    let verdict = judged(&plan, &records);
    let exit = Exit::from(verdict.outcome());
    if args.output == Form::Json {
        say(&format!("{:#}\n", json!(verdict)));
    } else {
        let look = if Surroundings::look().colour { Look::Coloured } else { Look::Plain };
        let (key, title) = (plan.namespace.clone(), plan.title());
        let run = Finished { key, title, verdict: verdict.clone(), dir: args.dir.clone(), file: None };
        say(&block(&run, Detail::Verbose, look));
    }
    match before {
        Some(before) if json!(before.findings) == json!(verdict.findings) => {
            aside("the findings are those of verdict.json, byte for byte\n");
        }
        Some(_) => {
            aside("note: the findings differ from those of verdict.json: another version of spiritlevel wrote it\n");
        }
        None => {}
    }
    Ok(exit)
}
