//! What is made before the first run: operators' programs, and the images of those that run inside a cluster.

use crate::{
    Error,
    arrange::{absolute, text},
    files,
    session::{Listener, SessionEvent},
};
use serde_json::Value;
use spiritlevel_model::{
    bindings::Bindings,
    plan::Plan,
    suite::{Build, DeploymentSpec},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// What was made for a suite's operator.
#[derive(Clone, Default)]
pub(crate) struct Built {
    /// The program.
    pub(crate) binary: Option<PathBuf>,
    /// The module's folder.
    pub(crate) module: Option<PathBuf>,
}

/// The CRDs of a suite.
pub(crate) fn crds(plan: &Plan, built: &Built) -> Result<Vec<Value>, Error> {
    let mut known = Bindings::new();
    if let Some(module) = &built.module {
        known.insert("module".into(), Value::from(module.to_string_lossy().into_owned()));
    }
    let mut crds = Vec::new();
    for name in &plan.suite.crds {
        let name = text(name, &known)?;
        let found = files::foreign_manifests(Path::new(&plan.suite_dir), &name)?;
        crds.extend(found.into_iter().filter(|o| o["kind"] == "CustomResourceDefinition"));
    }
    Ok(crds)
}

/// The same for plans that share a program.
pub(crate) fn build_key(plan: &Plan) -> String {
    let operator = &plan.suite.operator;
    // Arguments differ between variants of one program.
    let image = operator.inside().map(|d| (&d.image, &d.image_build));
    serde_json::to_string(&(&plan.suite_dir, &operator.build, image)).unwrap_or_default()
}

/// The image of an operator that runs inside: its program and a Dockerfile in a folder of their own.
async fn build_image(deployment: &DeploymentSpec, plan: &Plan, built: &Built, tell: &Listener) -> Result<(), Error> {
    let (Some(image), Some(how)) = (&deployment.image, &deployment.image_build) else { return Ok(()) };
    tell(SessionEvent::Say(format!("{}: building the image {image}", plan.suite_name)));
    let mut known = Bindings::new();
    for (name, path) in [("binary", &built.binary), ("module", &built.module)] {
        known.extend(path.as_ref().map(|p| (name.to_owned(), Value::from(p.to_string_lossy().into_owned()))));
    }
    let context = tempfile::Builder::new()
        .prefix("spiritlevel-image-")
        .tempdir()
        .map_err(|e| Error::file("create", Path::new("a temporary folder"), e))?;
    let dir = absolute(Path::new(&plan.suite_dir))?;
    let own = std::iter::once(("Dockerfile", &how.dockerfile));
    for (name, from) in own.chain(how.files.iter().map(|(name, from)| (name.as_str(), from))) {
        let from = dir.join(text(from, &known)?);
        std::fs::copy(&from, context.path().join(name)).map_err(|e| Error::file("copy", &from, e))?;
    }
    let made = tokio::process::Command::new("docker")
        .args(["build", "--quiet", "--tag", image, "."])
        .current_dir(context.path())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|e| Error::file("run", Path::new("docker"), e))?;
    if made.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&made.stderr);
    Err(Error::Input(format!("`docker build` of {image} failed: {}", said.trim())))
}

/// What became of each build: one that fails is an error of its own runs only.
pub(crate) async fn build_all(plans: &[Plan], tell: &Listener) -> BTreeMap<String, Result<Built, String>> {
    let mut all = BTreeMap::new();
    let mut images = BTreeSet::new();
    for plan in plans {
        let key = build_key(plan);
        if all.contains_key(&key) {
            continue;
        }
        let built = match &plan.suite.operator.build {
            Some(spec) => build(spec, plan, tell).await.map_err(|e| e.chain()),
            None => Ok(Built::default()),
        };
        let built = match (built, plan.suite.operator.inside()) {
            // Another program under the same name would be tested in the place of this one.
            (Ok(_), Some(DeploymentSpec { image: Some(image), image_build: Some(_), .. }))
                if !images.insert(image.clone()) =>
            {
                Err(format!(
                    "the image {image} was made from another program already: run the variants one at a time (--variant)"
                ))
            }
            (Ok(built), Some(deployment)) => {
                build_image(deployment, plan, &built, tell).await.map(|()| built).map_err(|e| e.chain())
            }
            (built, _) => built,
        };
        all.insert(key, built);
    }
    all
}

async fn build(spec: &Build, plan: &Plan, tell: &Listener) -> Result<Built, Error> {
    use spiritlevel_operator::{BuildSpec, CommandBuild, GoModule, build, cache_dir, module_dir};
    let dir = absolute(Path::new(&plan.suite_dir))?;
    let say = |line: &str| tell(SessionEvent::Say(format!("{}: {line}", plan.suite_name)));
    let mut built = Built::default();
    let spec = match (&spec.command, &spec.go_module) {
        (Some(command), _) => BuildSpec::Command(CommandBuild {
            command: command.clone(),
            dir: dir.clone(),
            produces: dir.join(spec.produces.clone().unwrap_or_default()),
        }),
        (None, Some(module)) => {
            built.module = Some(module_dir(&module.module, &module.version, &say).await?);
            BuildSpec::GoModule(GoModule {
                module: module.module.clone(),
                version: module.version.clone(),
                package: module.package.clone(),
                replace: BTreeMap::new(),
            })
        }
        (None, None) => return Ok(built),
    };
    built.binary = Some(build(&spec, &cache_dir(), &say).await?);
    Ok(built)
}
