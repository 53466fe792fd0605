//! `load`: many creates or patches, evenly over a time or as fast as they are answered.

use super::play::{Failure, Play};
use crate::{Error, api, harness_writes::merge_patch};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use spiritlevel_model::{
    Meta,
    operation::{Load, LoadCreate, LoadPatch, Manifest},
};
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tokio::time::Instant;

/// Without `parallel`.
const PARALLEL: usize = 20;

/// One request of a load.
enum Shot {
    Create(Value),
    Patch { url: String, patch: Value },
}

impl Play<'_> {
    pub(super) async fn load(&self, load: &Load, limit: Duration) -> Result<(), Failure> {
        let shots = match (&load.create, &load.patch) {
            (Some(create), _) => self.creates(create)?,
            (None, Some(patch)) => self.patches(patch)?,
            (None, None) => return Err(Failure::Broken("neither `create` nor `patch` is given".into())),
        };
        let (all, done, begun) = (shots.len(), AtomicUsize::new(0), Instant::now());
        let number = u32::try_from(all.max(1)).unwrap_or(u32::MAX);
        let pace = load.within.map_or(Duration::ZERO, |within| within.0 / number);
        let one = async |(shot, number): (Shot, u32)| {
            tokio::time::sleep_until(begun + pace * number).await;
            let answer = tokio::time::timeout(limit, self.shoot(&shot)).await;
            let late =
                |_| Failure::Broken(format!("a request of the load was not answered within {} s", limit.as_secs()));
            let answer = answer.map_err(late)??;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            self.stage.say(format!("load: {done} of {all}"));
            Ok::<Value, Failure>(answer)
        };
        let parallel = load.parallel.unwrap_or(PARALLEL).max(1);
        let sent = stream::iter(shots.into_iter().zip(0..)).map(one).buffer_unordered(parallel);
        let answers: Vec<Value> = sent.try_collect().await?;
        self.note(format!("{all} requests of the load were answered within {:.1} s", begun.elapsed().as_secs_f64()));
        for answer in &answers {
            self.until_seen(answer).await;
        }
        Ok(())
    }

    async fn shoot(&self, shot: &Shot) -> Result<Value, Error> {
        let client = &self.around.lane.clients().user;
        match shot {
            Shot::Create(object) => self.objects(client).create(object).await,
            Shot::Patch { url, patch } => {
                merge_patch(client, url, patch).await.map_err(Error::request(format!("patch {url}")))
            }
        }
    }

    fn creates(&self, create: &LoadCreate) -> Result<Vec<Shot>, Failure> {
        let manifest = Manifest { file: Some(create.file.clone()), ..Manifest::default() };
        let objects = self.manifest(&manifest)?;
        let [object] = objects.as_slice() else {
            let count = objects.len();
            return Err(Failure::Broken(format!("{} has {count} objects; a load is made of one", create.file)));
        };
        let name = object.name().unwrap_or_default().to_owned();
        // The probe's second subject is made from what was applied first.
        self.remember(object);
        let copy = |number: u32| {
            let mut copy = object.clone();
            copy["metadata"]["name"] = json!(format!("{name}-{number}"));
            Shot::Create(copy)
        };
        Ok((1..=create.count).map(copy).collect())
    }

    fn patches(&self, patch: &LoadPatch) -> Result<Vec<Shot>, Failure> {
        let target = &patch.target;
        let client = &self.around.lane.clients().user;
        let objects = self.objects(client);
        objects.kind(&target.api_version, &target.kind)?;
        let urls: Vec<String> = {
            let live = self.stage.recorder.live();
            let found = api::referred(&live.world, target, self.namespace());
            let url = |o: &&Value| objects.url(&target.api_version, &target.kind, o.namespace(), o.name());
            found.iter().map(url).collect::<Result<_, Error>>()?
        };
        if urls.is_empty() {
            return Err(Failure::Broken(format!("there is no such {} to patch", target.kind)));
        }
        let count = patch.count.unwrap_or(u32::try_from(urls.len()).unwrap_or(u32::MAX));
        let numbers = urls.iter().cycle().zip(1..=count);
        Ok(numbers.map(|(url, n)| Shot::Patch { url: url.clone(), patch: numbered(&patch.set, n) }).collect())
    }
}

/// Puts the number in the place of `$i`.
fn numbered(value: &Value, number: u32) -> Value {
    match value {
        Value::String(text) if text == "$i" => json!(number),
        Value::String(text) => json!(text.replace("$i", &number.to_string())),
        Value::Array(items) => items.iter().map(|item| numbered(item, number)).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, item)| (key.clone(), numbered(item, number))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::numbered;
    use serde_json::json;

    #[test]
    fn a_patch_is_numbered_in_strings_and_alone_as_a_number() {
        let patch = json!({"metadata": {"labels": {"round": "r$i"}}, "spec": {"replicas": "$i", "list": ["$i", 3]}});
        let expected = json!({"metadata": {"labels": {"round": "r7"}}, "spec": {"replicas": 7, "list": [7, 3]}});
        assert_eq!(numbered(&patch, 7), expected);
    }
}
