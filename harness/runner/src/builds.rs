//! What is made before the first run: operators' programs, and the images of those that run inside a cluster.

use crate::{
    Error,
    arrange::{absolute, text},
    files,
    session::{Listener, SessionEvent},
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use spiritlevel_model::{
    bindings::Bindings,
    plan::Plan,
    suite::{Build, DeploymentSpec, ImageBuild},
};
use std::{
    collections::BTreeMap,
    fs::Permissions,
    os::unix::fs::PermissionsExt,
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

/// What an image is made of: names in its build context, and what is copied there.
type Recipe = BTreeMap<String, Vec<u8>>;

/// Recipes by content: suites name one file by different ways, and a build may put another program in its place.
type Made = BTreeMap<String, String>;

/// The image of an operator that runs inside: its program and a Dockerfile in a folder of their own. Another program under the
/// same name would be tested in the place of the first.
async fn build_image(
    deployment: &DeploymentSpec,
    plan: &Plan,
    built: &Built,
    made: &mut Made,
    tell: &Listener,
) -> Result<(), Error> {
    let (Some(image), Some(how)) = (&deployment.image, &deployment.image_build) else { return Ok(()) };
    let recipe = recipe(how, plan, built)?;
    if !is_new(image, &recipe, made)? {
        return Ok(());
    }
    tell(SessionEvent::Say(format!("{}: building the image {image}", plan.suite_name)));
    let context = tempfile::Builder::new()
        .prefix("spiritlevel-image-")
        .tempdir()
        .map_err(|e| Error::file("create", Path::new("a temporary folder"), e))?;
    for (name, bytes) in &recipe {
        let to = context.path().join(name);
        std::fs::write(&to, bytes).map_err(|e| Error::file("write", &to, e))?;
        // Nothing but programs and configuration: what need not run may.
        std::fs::set_permissions(&to, Permissions::from_mode(0o755)).map_err(|e| Error::file("write", &to, e))?;
    }
    let ended = tokio::process::Command::new("docker")
        .args(["build", "--quiet", "--tag", image, "."])
        .current_dir(context.path())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|e| Error::file("run", Path::new("docker"), e))?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Err(Error::Input(format!("`docker build` of {image} failed: {}", said.trim())))
}

/// Whether an image has still to be made in this session.
fn is_new(image: &str, recipe: &Recipe, made: &mut Made) -> Result<bool, Error> {
    let content = recipe.iter().fold(Sha256::new(), |hash, (name, bytes)| {
        hash.chain_update(name).chain_update([0]).chain_update(Sha256::digest(bytes))
    });
    let content = hex::encode(content.finalize());
    match made.get(image) {
        Some(same) if *same == content => Ok(false),
        Some(_) => Err(Error::Input(format!(
            "the image {image} was made from another program already: run the variants one at a time (--variant)"
        ))),
        None => {
            made.insert(image.to_owned(), content);
            Ok(true)
        }
    }
}

fn recipe(how: &ImageBuild, plan: &Plan, built: &Built) -> Result<Recipe, Error> {
    let mut known = Bindings::new();
    for (name, path) in [("binary", &built.binary), ("module", &built.module)] {
        known.extend(path.as_ref().map(|p| (name.to_owned(), Value::from(p.to_string_lossy().into_owned()))));
    }
    let own = std::iter::once(("Dockerfile", &how.dockerfile));
    let all = own.chain(how.files.iter().map(|(name, from)| (name.as_str(), from)));
    all.map(|(name, from)| {
        let from = Path::new(&plan.suite_dir).join(text(from, &known)?);
        let bytes = std::fs::read(&from).map_err(|e| Error::file("read", &from, e))?;
        Ok((name.to_owned(), bytes))
    })
    .collect()
}

/// What became of each build: one that fails is an error of its own runs only.
pub(crate) async fn build_all(plans: &[Plan], tell: &Listener) -> BTreeMap<String, Result<Built, String>> {
    let mut all = BTreeMap::new();
    let mut images = BTreeMap::new();
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
            (Ok(built), Some(deployment)) => {
                let made = build_image(deployment, plan, &built, &mut images, tell).await;
                made.map(|()| built).map_err(|e| e.chain())
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
                replace: module.replace.iter().map(|(old, new)| (old.clone(), replacement(&dir, new))).collect(),
            })
        }
        (None, None) => return Ok(built),
    };
    built.binary = Some(build(&spec, &cache_dir(), &say).await?);
    Ok(built)
}

/// A folder is meant from the suite's own.
fn replacement(dir: &Path, by: &str) -> String {
    if by.starts_with('.') { dir.join(by).display().to_string() } else { by.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_made_from_one_content_only() {
        let recipe = |program: &str| Recipe::from([("op".to_owned(), program.as_bytes().to_vec())]);
        let mut made = Made::new();
        assert!(is_new("a:1", &recipe("one"), &mut made).unwrap());
        assert!(!is_new("a:1", &recipe("one"), &mut made).unwrap());
        assert!(is_new("a:1", &recipe("two"), &mut made).unwrap_err().to_string().contains("another program"));
        assert!(is_new("a:2", &recipe("two"), &mut made).unwrap());
    }
}
