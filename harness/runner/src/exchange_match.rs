//! A fault's `match` applied to a request of the history, for holds and `await: {exchange: …}`.

use spiritlevel_model::{
    fault::{Bodies, Exchange, Match},
    history::Request,
};

/// Whether the recorded request is meant. Its `body` expression sees the redacted body.
pub(crate) fn is(wanted: &Match, request: &Request) -> bool {
    let bodies = Bodies { json: request.body.clone(), ..Bodies::default() };
    let exchange = Exchange {
        id: request.id,
        actor: &request.actor,
        user_agent: request.user_agent.as_deref(),
        info: &request.info,
        bodies: &bodies,
    };
    wanted.is_request(&exchange)
}
