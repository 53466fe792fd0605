//! `spiritlevel schema`.

use crate::{
    Exit,
    args::{FileKind, Schema},
    voice::say,
};

/// Prints the JSON Schema of the files that users write.
pub(super) fn schema(args: &Schema) -> Exit {
    let mut all = spiritlevel_model::schema::schema();
    let wanted = match args.file {
        None => all,
        Some(FileKind::Suite) => all["suite"].take(),
        Some(FileKind::Scenario) => all["scenario"].take(),
        Some(FileKind::Expect) => all["expect"].take(),
    };
    say(&format!("{wanted:#}\n"));
    Exit::Pass
}
