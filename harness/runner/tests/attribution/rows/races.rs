//! Two at a time, and exchanges that do not end as they should.

use super::writes::config;
use crate::{
    ground::DEADLINE,
    row::{
        ADDED,
        By::{Among, This},
        DELETED, MODIFIED, Outcome, Row, Sent, url,
    },
};
use serde_json::json;
use spiritlevel_cluster::Component;
use spiritlevel_model::{
    attribution::Claim,
    history::{Event, ReplyOutcome},
};
use spiritlevel_runner::recorder::Live;
use std::{error::Error, time::Duration};

pub(crate) async fn alternating(row: &Row<'_>) -> Outcome {
    let at = url("configmaps", "alternating");
    let mut expected =
        vec![(ADDED, This(row.send("user", "POST", &url("configmaps", ""), &config("alternating", "0")).await?))];
    for n in 1..=6 {
        let who = if n % 2 == 0 { "user" } else { "operator/0" };
        let sent = row.send(who, "PATCH", &at, &json!({"data": {"key": n.to_string()}})).await?;
        expected.push((MODIFIED, This(sent)));
    }
    row.made("configmaps/alternating", &expected).await
}

/// The field's manager is the one whose patch came first; the other's changed nothing.
pub(crate) async fn equal_patches(row: &Row<'_>) -> Outcome {
    let made = row.send("user", "POST", &url("configmaps", ""), &config("raced", "start")).await?;
    let mut expected = vec![(ADDED, This(made))];
    let at = |manager: &str| format!("{}?fieldManager={manager}", url("configmaps", "raced"));
    let mut told = 0;
    for n in 0..10 {
        let patch = json!({"data": {"key": n.to_string()}});
        let (by_user, by_operator) = (at("by-user"), at("by-operator"));
        let user = row.send("user", "PATCH", &by_user, &patch);
        let operator = row.send("operator/0", "PATCH", &by_operator, &patch);
        let (user, operator) = tokio::join!(user, operator);
        let (user, operator) = (user?, operator?);
        expected.push((MODIFIED, Among(vec![user, operator])));
        let life = row.until("configmaps/raced", |made| made.len() >= expected.len()).await?;
        let last = &life[expected.len() - 1];
        let managers = last.object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let owner =
            managers.iter().find(|m| m["fieldsV1"]["f:data"]["f:key"].is_object()).map(|m| m["manager"].clone());
        let right = if owner == Some(json!("by-user")) { user.id } else { operator.id };
        match &last.claim {
            Claim::By(id) if *id != right => return Err(format!("round {n}: {owner:?} made it, not {id}").into()),
            Claim::By(_) => told += 1,
            _ => {}
        }
    }
    println!("  {}: {told} of 10 told, the others ambiguous", row.name);
    row.made("configmaps/raced", &expected).await
}

/// The write is done, and its author does not know.
pub(crate) async fn reply_lost(row: &Row<'_>) -> Outcome {
    let a = row.send("operator/0", "POST", &url("configmaps", ""), &config("reply-lost", "a")).await?;
    row.answered(a, 201)?;
    let broken =
        row.ground.guest.recorder.live().records.iter().any(
            |r| matches!(&r.event, Event::Reply(reply) if reply.id == a.id && reply.outcome == ReplyOutcome::Broken),
        );
    if !broken {
        return Err("the reply was not lost".into());
    }
    row.made("configmaps/reply-lost", &[(ADDED, This(a))]).await
}

/// The client's connection breaks while the API server, which stands still, has the request and has not answered.
pub(crate) async fn client_gone(row: &Row<'_>) -> Outcome {
    for attempt in 1..=20 {
        let name = format!("client-gone-{attempt}");
        let sent = cut_off(row, &name, Duration::from_millis(10 * attempt)).await?;
        // Cut too early, the request has not left the proxy; too late, a thread of the API server was still running.
        if sent.status.is_none()
            && row.ground.guest.recorder.live().ledger.write(sent.id).is_some_and(|w| w.answer.is_some())
        {
            return row.made(&format!("configmaps/{name}"), &[(ADDED, This(sent))]).await;
        }
    }
    Err("the request never left the proxy without being answered".into())
}

async fn cut_off(row: &Row<'_>, name: &str, after: Duration) -> Result<Sent, Box<dyn Error>> {
    let recorder = &row.ground.guest.recorder;
    let cluster = row.ground.lane.cluster().local().ok_or("not a local control plane")?;
    let from = recorder.live().records.len();
    let (path, body) = (url("configmaps", ""), config(name, "a"));
    cluster.freeze(Component::ApiServer).await?;
    let sending = row.send("operator/0", "POST", &path, &body);
    let cutting = async {
        let arrived = |live: &Live| {
            let is = |e: &Event| matches!(e, Event::Request(q) if q.info.name.as_deref() == Some(name));
            live.records[from..].iter().any(|r| is(&r.event)).then_some(())
        };
        let arrived = recorder.wait_for(DEADLINE, arrived).await;
        tokio::time::sleep(after).await;
        row.ground.operator.drop_connections();
        arrived
    };
    let (sent, arrived) = tokio::join!(sending, cutting);
    cluster.thaw(Component::ApiServer).await?;
    arrived.ok_or("the request never arrived")?;
    let sent = sent?;
    let over = |live: &Live| {
        live.records.iter().any(|r| matches!(&r.event, Event::Reply(reply) if reply.id == sent.id)).then_some(())
    };
    recorder.wait_for(DEADLINE, over).await.ok_or("the exchange never ended")?;
    Ok(sent)
}

/// A fault's refusal never reached the API server: it is not among those who may have made what follows.
pub(crate) async fn kept_back_by_a_fault(row: &Row<'_>) -> Outcome {
    let at = url("configmaps", "refused");
    let a = row.send("user", "POST", &url("configmaps", ""), &config("refused", "a")).await?;
    let patch = json!({"data": {"key": "b"}});
    let refused = row.send("operator/0", "PATCH", &at, &patch).await?;
    if refused.status.is_some() {
        return Err("the request reached the API server".into());
    }
    let b = row.send("user", "PATCH", &at, &patch).await?;
    let c = row.send("user", "DELETE", &at, &json!(null)).await?;
    row.made("configmaps/refused", &[(ADDED, This(a)), (MODIFIED, This(b)), (DELETED, This(c))]).await
}
