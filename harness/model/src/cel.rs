//! CEL expressions, compiled once, with Kubernetes' libraries.

use crate::{cel_value::cel_value, world::World};
use kube_cel::{
    KubeCelExt,
    cel::{Context, Program, ResolveResult, Value as CelValue},
};
use serde_json::Value;
use std::{collections::BTreeMap, fmt, sync::Arc};

/// A compiled expression; keeps its text for messages.
pub struct Cel {
    text: String,
    program: Program,
}

impl fmt::Debug for Cel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cel").field(&self.text).finish()
    }
}

/// Why an expression has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CelError {
    /// It is not CEL.
    #[error("{0:?} is not a CEL expression: {1}")]
    Compile(String, String),
    /// It failed on this input.
    #[error("{0:?} cannot be answered: {1}; guard optional fields with has()")]
    Execute(String, String),
    /// It answered something else than true or false.
    #[error("{0:?} is {1}, not true or false")]
    NotBool(String, String),
}

impl Cel {
    /// Compiles `text`.
    pub fn compile(text: &str) -> Result<Self, CelError> {
        let program = Program::compile(text).map_err(|e| CelError::Compile(text.into(), e.to_string()))?;
        Ok(Self { text: text.into(), program })
    }

    /// The expression as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Evaluates to true or false with these variables.
    pub fn test(&self, variables: &[(&str, &Value)]) -> Result<bool, CelError> {
        let mut context = Self::context();
        for (name, value) in variables {
            context.add_variable_from_value(*name, cel_value(value));
        }
        self.test_in(&context)
    }

    /// Evaluates over the live objects, which `objects(apiVersion, kind)` lists.
    pub fn test_world(&self, world: &World) -> Result<bool, CelError> {
        let mut by_kind: BTreeMap<(String, String), Vec<CelValue>> = BTreeMap::new();
        for live in world.live() {
            let text = |key: &str| live.object[key].as_str().unwrap_or_default().to_owned();
            by_kind.entry((text("apiVersion"), text("kind"))).or_default().push(cel_value(&live.object));
        }
        let mut context = Self::context();
        context.add_function("objects", move |api_version: Arc<String>, kind: Arc<String>| -> ResolveResult {
            let objects = by_kind.get(&((*api_version).clone(), (*kind).clone())).cloned().unwrap_or_default();
            Ok(CelValue::List(objects.into()))
        });
        self.test_in(&context)
    }

    /// Evaluates in a context that the caller prepared with [`Cel::context`].
    pub fn test_in(&self, context: &Context<'_>) -> Result<bool, CelError> {
        match self.program.execute(context) {
            Ok(CelValue::Bool(b)) => Ok(b),
            Ok(other) => Err(CelError::NotBool(self.text.clone(), format!("{other:?}"))),
            Err(e) => Err(CelError::Execute(self.text.clone(), e.to_string())),
        }
    }

    /// A context with the Kubernetes libraries.
    pub fn context<'a>() -> Context<'a> {
        Context::default().with_all()
    }
}
