//! Requests of the harness's own on objects of any kind, by their JSON.

use crate::{Error, harness_writes::merge_patch};
use kube::Client;
use serde_json::{Value, json};
use spiritlevel_model::{Meta, history::KindInfo, operation::Ref, world::World};

/// The field manager of the harness's applies.
const MANAGER: &str = "spiritlevel";

/// Objects of any kind in one run.
pub(crate) struct Objects<'a> {
    /// As whom.
    pub(crate) client: &'a Client,
    /// The kinds that are served.
    pub(crate) kinds: &'a [KindInfo],
    /// Where namespaced objects go that name no namespace.
    pub(crate) namespace: &'a str,
}

impl Objects<'_> {
    /// The kind of an object; unknown kinds are an input error that says what to do.
    pub(crate) fn kind(&self, api_version: &str, kind: &str) -> Result<&KindInfo, Error> {
        let group = api_version.split_once('/').map_or("", |(g, _)| g);
        let found = self.kinds.iter().find(|k| k.group == group && k.kind == kind);
        found.ok_or_else(|| {
            let same = self.kinds.iter().find(|k| k.kind == kind).map(KindInfo::api_version);
            let hint = same.map_or_else(
                || "is its CRD among the suite's `crds`?".to_owned(),
                |api| format!("the kind {kind} is served as {api}"),
            );
            Error::Input(format!("the API server has no kind {kind} in {api_version}: {hint}"))
        })
    }

    /// The URL of an object, or of its collection without a name.
    pub(crate) fn url(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Result<String, Error> {
        let info = self.kind(api_version, kind)?;
        let root = if info.group.is_empty() { "api" } else { "apis" };
        let mut url = format!("/{root}/{api_version}");
        if info.namespaced {
            url.push_str(&format!("/namespaces/{}", namespace.unwrap_or(self.namespace)));
        }
        url.push_str(&format!("/{}", info.resource));
        if let Some(name) = name {
            url.push_str(&format!("/{name}"));
        }
        Ok(url)
    }

    fn url_of(&self, object: &Value, with_name: bool) -> Result<String, Error> {
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        self.url(text("apiVersion"), text("kind"), object.namespace(), object.name().filter(|_| with_name))
    }

    /// Server-side apply, with force: a user's intent.
    pub(crate) async fn apply(&self, object: &Value) -> Result<Value, Error> {
        let url = format!("{}?fieldManager={MANAGER}&force=true", self.url_of(object, true)?);
        self.send("PATCH", &url, "application/apply-patch+yaml", object, &format!("apply {}", describe(object))).await
    }

    /// POST.
    pub(crate) async fn create(&self, object: &Value) -> Result<Value, Error> {
        let url = format!("{}?fieldManager={MANAGER}", self.url_of(object, false)?);
        self.send("POST", &url, "application/json", object, &format!("create {}", describe(object))).await
    }

    /// Merge patch.
    pub(crate) async fn patch(&self, object: &Value) -> Result<Value, Error> {
        let url = self.url_of(object, true)?;
        merge_patch(self.client, &url, object).await.map_err(Error::request(format!("patch {}", describe(object))))
    }

    /// PUT over the latest version.
    pub(crate) async fn update(&self, object: &Value) -> Result<Value, Error> {
        let url = self.url_of(object, true)?;
        let current = self.get(&url).await?;
        let mut next = object.clone();
        next["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
        self.send("PUT", &url, "application/json", &next, &format!("update {}", describe(object))).await
    }

    /// GET.
    pub(crate) async fn get(&self, url: &str) -> Result<Value, Error> {
        let request = http::Request::get(url).body(Vec::new()).map_err(kube::Error::HttpError);
        let request = request.map_err(Error::request(format!("get {url}")))?;
        self.client.request(request).await.map_err(Error::request(format!("get {url}")))
    }

    /// DELETE; a 404 is fine.
    pub(crate) async fn delete(&self, url: &str, propagation: Option<&str>) -> Result<(), Error> {
        let body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation.unwrap_or("Background")});
        match self.send("DELETE", url, "application/json", &body, &format!("delete {url}")).await {
            Err(Error::Request { source, .. }) if is_not_found(&source) => Ok(()),
            other => other.map(drop),
        }
    }

    async fn send(
        &self,
        method: &str,
        url: &str,
        content_type: &str,
        body: &Value,
        what: &str,
    ) -> Result<Value, Error> {
        let request = http::Request::builder()
            .method(method)
            .uri(url)
            .header(http::header::CONTENT_TYPE, content_type)
            .body(body.to_string().into_bytes())
            .map_err(kube::Error::HttpError)
            .map_err(Error::request(what))?;
        self.client.request(request).await.map_err(Error::request(what))
    }
}

/// Whether the API server said that the object is not there.
pub(crate) fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// `Pod shop/pg-1-0`.
pub(crate) fn describe(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or("object");
    let name = object.name().or_else(|| object["metadata"]["generateName"].as_str()).unwrap_or("without a name");
    object.namespace().map_or_else(|| format!("{kind} {name}"), |n| format!("{kind} {n}/{name}"))
}

/// The live objects that a reference means.
pub(crate) fn referred<'a>(world: &'a World, target: &Ref, namespace: &str) -> Vec<&'a Value> {
    let labels = |o: &Value| target.labels.iter().all(|(k, v)| o.label(k) == Some(v));
    let place = |o: &Value| o.namespace().is_none_or(|n| n == target.namespace.as_deref().unwrap_or(namespace));
    let named = |o: &Value| target.name.as_deref().is_none_or(|n| o.name() == Some(n));
    let all = world.of_kind(&target.api_version, &target.kind).map(|l| &l.object);
    all.filter(|o| place(o) && named(o) && labels(o)).collect()
}
