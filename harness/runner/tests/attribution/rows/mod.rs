//! The rows, by topic.

mod controllers;
mod deletions;
mod pods;
mod races;
mod writes;

use crate::ground::Test;

/// A row from an async function.
macro_rules! rows {
    ($($topic:ident :: $row:ident),* $(,)?) => {
        vec![$((concat!(stringify!($topic), "::", stringify!($row)), (|row| Box::pin($topic::$row(row))) as Test)),*]
    };
}

/// All rows, in the order in which they are done.
pub(crate) fn all() -> Vec<(&'static str, Test)> {
    rows![
        writes::create,
        writes::create_with_generated_name,
        writes::update,
        writes::merge_and_json_patch,
        writes::strategic_patch,
        writes::apply,
        writes::status_of_custom_resource,
        writes::status_of_built_in,
        writes::scale,
        writes::nothing_stored,
        writes::side_effects_of_the_api_server,
        deletions::at_once,
        deletions::refused,
        deletions::dry,
        deletions::last_finalizer_by_patch,
        deletions::last_finalizer_by_update,
        deletions::collection,
        deletions::background,
        deletions::foreground,
        deletions::orphan,
        deletions::namespace,
        pods::graceful,
        pods::binding,
        pods::eviction_of_a_running_pod,
        pods::eviction_of_a_pending_pod,
        pods::status_of_a_terminating_pod,
        pods::same_name_again,
        pods::claim_grows,
        races::alternating,
        races::equal_patches,
        races::reply_lost,
        races::client_gone,
        races::kept_back_by_a_fault,
        controllers::deployment,
        controllers::stateful_set,
        controllers::everything_has_an_author,
    ]
}
