//! Expressions about requests: what conditions of webhooks and policies are written in.
//!
//! They see `object`, `oldObject`, `request` and `namespaceObject`, and policies also `params` and `variables`. There is no
//! `authorizer` here: an expression that names it is refused when it is written.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Attributes, request};
use crate::cel::ast::{Expr, Kind};
use crate::cel::{Fault, Names, PER_CALL_LIMIT, Program, Type, Value as Cel, to_dyn};
use crate::registry::Resource;

/// How deep values of variables may be nested, so that no chain of them exhausts the stack.
const DEEPEST: usize = 500;
/// How deep objects are nested at most.
const OBJECTS: usize = 128;

/// The names that expressions may use.
#[derive(Clone, Debug)]
pub(crate) struct Around {
    names: Names,
    /// How deep the values of variables may be.
    depths: BTreeMap<String, usize>,
}

impl Around {
    /// Those that are always there, and perhaps parameters.
    pub(crate) fn new(params: bool) -> Self {
        let mut names = Names::default();
        for name in ["object", "oldObject"] {
            names.add(name, Type::Dyn);
        }
        names.add("request", request_type());
        names.add("namespaceObject", namespace_type());
        if params {
            names.add("params", Type::Dyn);
        }
        Self { names, depths: BTreeMap::new() }
    }

    /// With the variables of a policy, as far as they are known.
    pub(crate) fn with_variables(&mut self, known: &[(String, Expression)]) {
        let types = known.iter().map(|(name, expression)| (name.clone(), expression.result()));
        self.names.add("variables", Type::object("kubernetes.variables", types));
        if let Some((name, expression)) = known.last() {
            self.depths.insert(name.clone(), expression.depth);
        }
    }

    /// How deep the values are that an expression reads.
    fn depth(&self, reads: &Reads) -> usize {
        let read = self.depths.iter().filter(|(name, _)| reads.all || reads.names.contains(*name));
        read.map(|(_, depth)| *depth).max().unwrap_or(0).max(OBJECTS)
    }
}

/// An expression, and why it cannot be evaluated if it cannot.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    source: String,
    program: Result<Program, String>,
    /// The variables that it reads.
    reads: Reads,
    /// How deep its value may be nested.
    depth: usize,
}

#[derive(Clone, Debug, Default)]
struct Reads {
    names: BTreeSet<String>,
    /// Whether it looks at all of them.
    all: bool,
}

impl Expression {
    /// Reads an expression that must come to one of the types; to any if there are none.
    pub(crate) fn compile(source: &str, around: &Around, wanted: &[Type]) -> Self {
        let program = match Program::compile(source, &around.names) {
            Err(why) => Err(format!("compilation failed: {why}")),
            Ok(program) if wanted.is_empty() || wanted.contains(&program.result) => Ok(program),
            Ok(program) => {
                let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
                let found = &program.result;
                Err(match wanted.as_slice() {
                    [only] => format!("must evaluate to {only} but got {found}"),
                    _ => format!("must evaluate to one of [{}] but got {found}", wanted.join(" ")),
                })
            }
        };
        let mut reads = Reads::default();
        let mut depth = OBJECTS;
        if let Ok(program) = &program {
            reads.collect(&program.expr);
            depth = around.depth(&reads).saturating_add(program.depth());
        }
        let program = program.and_then(|program| match depth > DEEPEST {
            true => Err(format!("compilation failed: expression recursion limit exceeded: {DEEPEST}")),
            false => Ok(program),
        });
        Self { source: source.to_owned(), program, reads, depth }
    }

    /// What is wrong with it.
    pub(crate) fn error(&self) -> Option<&str> {
        self.program.as_ref().err().map(String::as_str)
    }

    /// The type that it comes to.
    pub(crate) fn result(&self) -> Type {
        self.program.as_ref().map_or(Type::Dyn, |program| program.result.clone())
    }
}

impl Reads {
    fn collect(&mut self, expr: &Expr) {
        match &expr.kind {
            Kind::Select { operand, field } if matches!(&operand.kind, Kind::Ident(name) if name == "variables") =>
            {
                self.names.insert(field.clone());
            }
            Kind::Ident(name) if name == "variables" => self.all = true,
            _ => expr.children().into_iter().for_each(|child| self.collect(child)),
        }
    }
}

/// A request as expressions see it, made when it is first looked at.
pub(crate) struct Input<'a> {
    request: Cel,
    object: Lazy<'a>,
    old: Lazy<'a>,
    namespace: Cel,
    params: Cel,
}

struct Lazy<'a> {
    json: Option<&'a Value>,
    value: OnceCell<Cel>,
}

impl<'a> Lazy<'a> {
    fn new(json: Option<&'a Value>) -> Self {
        Self { json, value: OnceCell::new() }
    }

    fn get(&self) -> Cel {
        self.value.get_or_init(|| self.json.map_or(Cel::Null, to_dyn)).clone()
    }
}

impl<'a> Input<'a> {
    /// A request whose objects are shown in the version of `resource`.
    pub(crate) fn new(
        attributes: &Attributes<'_>,
        resource: &Resource,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> Self {
        Self {
            request: to_dyn(&request::about(attributes, resource, object.or(old))),
            object: Lazy::new(object),
            old: Lazy::new(old),
            namespace: Cel::Null,
            params: Cel::Null,
        }
    }

    /// With the namespace that the object is in.
    pub(crate) fn in_namespace(mut self, namespace: Option<&Value>) -> Self {
        self.namespace = namespace.map_or(Cel::Null, |namespace| to_dyn(&shown_namespace(namespace)));
        self
    }

    /// With parameters of a policy.
    pub(crate) fn with_params(mut self, params: Option<&Value>) -> Self {
        self.params = params.map_or(Cel::Null, to_dyn);
        self
    }

    fn get(&self, name: &str) -> Option<Cel> {
        match name {
            "object" => Some(self.object.get()),
            "oldObject" => Some(self.old.get()),
            "request" => Some(self.request.clone()),
            "namespaceObject" => Some(self.namespace.clone()),
            "params" => Some(self.params.clone()),
            _ => None,
        }
    }
}

/// Of metadata, expressions see what says something about the namespace.
fn shown_namespace(namespace: &Value) -> Value {
    const SHOWN: [&str; 11] = [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
    ];
    let metadata = namespace.get("metadata").and_then(Value::as_object);
    let shown = metadata
        .into_iter()
        .flatten()
        .filter(|(key, _)| SHOWN.contains(&key.as_str()) || key.as_str() == "finalizers");
    let metadata: Value =
        shown.map(|(key, value)| (key.clone(), value.clone())).collect::<serde_json::Map<_, _>>().into();
    json!({"metadata": metadata, "spec": namespace.get("spec"), "status": namespace.get("status")})
}

/// The expressions cost more than they may; nothing more is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfBudget;

impl std::fmt::Display for OutOfBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "validation failed due to running out of cost budget, no further validation rules will be run",
        )
    }
}

/// The evaluation of some expressions about one request, within one budget.
pub(crate) struct Session<'s> {
    input: &'s Input<'s>,
    variables: &'s [(String, Expression)],
    worked_out: BTreeMap<&'s str, Result<Cel, Fault>>,
    budget: u64,
}

impl<'s> Session<'s> {
    pub(crate) fn new(input: &'s Input<'s>, variables: &'s [(String, Expression)], budget: u64) -> Self {
        Self { input, variables, worked_out: BTreeMap::new(), budget }
    }

    /// What an expression comes to; the text says why it comes to nothing.
    pub(crate) fn value(&mut self, expression: &Expression) -> Result<Result<Cel, String>, OutOfBudget> {
        let program = match &expression.program {
            Ok(program) => program,
            Err(why) => return Ok(Err(format!("compilation error: {why}"))),
        };
        self.work_out(&expression.reads)?;
        let outcome = self.run(program)?;
        Ok(outcome.map_err(|fault| format!("expression '{}' resulted in error: {fault}", expression.source)))
    }

    /// Works out the variables that are read, and those that these read. A variable only reads earlier ones, so one pass
    /// is enough, and no chain of variables can exhaust the stack.
    fn work_out(&mut self, reads: &Reads) -> Result<(), OutOfBudget> {
        let mut needed = reads.clone();
        let mut due = Vec::new();
        for (name, expression) in self.variables.iter().rev() {
            if needed.all || needed.names.contains(name) {
                needed.all |= expression.reads.all;
                needed.names.extend(expression.reads.names.iter().cloned());
                due.push((name, expression));
            }
        }
        for (name, expression) in due.into_iter().rev() {
            if self.worked_out.contains_key(name.as_str()) {
                continue;
            }
            let outcome = match &expression.program {
                Ok(program) => self.run(program)?.map_err(|fault| {
                    Fault::Error(format!("composited variable {name:?} fails to evaluate: {fault}"))
                }),
                Err(why) => {
                    Err(Fault::Error(format!("composited variable {name:?} fails to compile: {why}")))
                }
            };
            self.worked_out.insert(name, outcome);
        }
        Ok(())
    }

    fn run(&mut self, program: &Program) -> Result<Result<Cel, Fault>, OutOfBudget> {
        let variables = |name: &str| match name.strip_prefix("variables.") {
            Some(variable) => self.worked_out.get(variable).cloned(),
            None if name == "variables" => Some(Ok(self.all_variables())),
            None => self.input.get(name).map(Ok),
        };
        let limit = self.budget.min(PER_CALL_LIMIT);
        let (outcome, cost) = program.evaluate(&variables, limit);
        match (self.budget.checked_sub(cost), outcome) {
            (None, _) => Err(OutOfBudget),
            // An expression that is too dear fails alone, unless the others have left too little for it.
            (_, Err(Fault::TooExpensive)) if limit < PER_CALL_LIMIT => Err(OutOfBudget),
            (Some(left), outcome) => {
                self.budget = left;
                Ok(outcome)
            }
        }
    }

    fn all_variables(&self) -> Cel {
        let known = self.worked_out.iter().filter_map(|(name, value)| {
            Some((crate::cel::Key::Text((*name).into()), value.as_ref().ok()?.clone()))
        });
        Cel::Map(std::sync::Arc::new(known.collect()))
    }
}

fn object(name: &str, fields: &[(&str, Type)]) -> Type {
    Type::object(name, fields.iter().map(|(name, of)| ((*name).to_owned(), of.clone())))
}

fn texts(names: &[&'static str]) -> Vec<(&'static str, Type)> {
    names.iter().map(|name| (*name, Type::Text)).collect()
}

fn request_type() -> Type {
    let kind = object("kubernetes.GroupVersionKind", &texts(&["group", "version", "kind"]));
    let resource = object("kubernetes.GroupVersionResource", &texts(&["group", "version", "resource"]));
    let mut user = texts(&["username", "uid"]);
    user.push(("groups", Type::list(Type::Text)));
    user.push(("extra", Type::map(Type::Text, Type::list(Type::Text))));
    let mut request = texts(&["subResource", "requestSubResource", "name", "namespace", "operation"]);
    request.extend([
        ("kind", kind.clone()),
        ("resource", resource.clone()),
        ("requestKind", kind),
        ("requestResource", resource),
        ("userInfo", object("kubernetes.UserInfo", &user)),
        ("dryRun", Type::Bool),
        ("options", Type::Dyn),
    ]);
    object("kubernetes.AdmissionRequest", &request)
}

fn namespace_type() -> Type {
    let labels = || Type::map(Type::Text, Type::Text);
    let mut metadata = texts(&["name", "generateName", "namespace", "UID", "resourceVersion"]);
    metadata.extend([
        ("labels", labels()),
        ("annotations", labels()),
        ("creationTimestamp", Type::Timestamp),
        ("deletionTimestamp", Type::Timestamp),
        ("deletionGracePeriodSeconds", Type::Int),
        ("generation", Type::Int),
        ("finalizers", Type::list(Type::Text)),
    ]);
    let mut condition = texts(&["status", "type", "message", "reason"]);
    condition.push(("lastTransitionTime", Type::Timestamp));
    let conditions = Type::list(object("kubernetes.NamespaceCondition", &condition));
    let status = object("kubernetes.NamespaceStatus", &[("conditions", conditions), ("phase", Type::Text)]);
    let spec = object("kubernetes.NamespaceSpec", &[("finalizers", Type::list(Type::Text))]);
    object(
        "kubernetes.Namespace",
        &[
            ("metadata", object("kubernetes.NamespaceMetadata", &metadata)),
            ("spec", spec),
            ("status", status),
        ],
    )
}
