//! From a request to a verb and back.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use http::request::Parts;
use http::{Method, Response, StatusCode};

use super::accept::{self, Answered, Encoding, Objects};
use super::path::{ObjectPath, Route, route};
use super::response;
use crate::access::tokens;
use crate::admission::{User, Warnings};
use crate::body::ApiBody;
use crate::discovery;
use crate::metrics;
use crate::openapi;
use crate::patch::{Accepts, Patch};
use crate::protobuf;
use crate::registry::Resource;
use crate::rest::{
    Answer, DeleteOptions, Deleted, Expected, FieldValidation, Frames, ListOptions, Page, Query, Selection,
    Shape, Target, WatchOptions, WriteOptions, decode, duplicates, parse, settle_shape,
};
use crate::server::ApiServer;
use crate::status::Status;
use crate::table::IncludeObject;

/// Subresources of the real server that need a connection into a pod or to a node.
const CONNECTIONS: [&str; 4] = ["exec", "attach", "portforward", "proxy"];

/// A request with its parts looked up once.
struct Call<'r> {
    server: &'r ApiServer,
    head: &'r Parts,
    body: Bytes,
    query: Query,
    target: Target,
    /// What the client is told besides, whether the request succeeds or not.
    warnings: Warnings,
}

impl ApiServer {
    pub(super) async fn dispatch(&self, head: &Parts, body: Bytes) -> Result<Response<ApiBody>, Status> {
        match route(head.uri.path()) {
            Route::Object(path) => self.object(head, body, path).await,
            _ if !matches!(head.method, Method::GET | Method::HEAD) => Err(Status::http_method_not_allowed()),
            Route::Version => Ok(response::json(StatusCode::OK, discovery::version().to_string())),
            Route::Health(_) => {
                Ok(response::typed(StatusCode::OK, "text/plain; charset=utf-8", ApiBody::full("ok")))
            }
            Route::CoreVersions | Route::Groups => Ok(self.groups(head)),
            Route::Group(group) => discovery::group(self.registry(), &group)
                .map(|group| listing(head, &group))
                .ok_or_else(unknown_path),
            Route::Resources(group, version) => discovery::resources(self.registry(), &group, &version)
                .map(|list| listing(head, &list))
                .ok_or_else(unknown_path),
            Route::OpenApi(path) => self.open_api(head, &path),
            Route::Keys => {
                let keys = self.access().signer.jwks()?.to_string();
                Ok(cached("application/jwk-set+json", keys))
            }
            Route::Issuer => Ok(cached("application/json", tokens::configuration().to_string())),
            Route::Unknown => Err(unknown_path()),
        }
    }

    /// `/api` and `/apis`, in the form that the client accepts.
    fn groups(&self, head: &Parts) -> Response<ApiBody> {
        let core = matches!(route(head.uri.path()), Route::CoreVersions);
        let Some(version) = accept::aggregated(&head.headers) else {
            let list = if core { discovery::core_versions() } else { discovery::groups(self.registry()) };
            return listing(head, &list);
        };
        let list = discovery::aggregated(self.registry(), core, version).to_string();
        let etag = format!("\"{}\"", discovery::hash(list.as_bytes()));
        let content_type = match version {
            "v2" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            _ => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        };
        let mut response = tagged(head, &etag, content_type, list.into());
        response.headers_mut().insert(http::header::VARY, HeaderValue::from_static("Accept"));
        response
    }

    /// `/openapi/v3` and the documents below it. Of version 2 there is a document without any kind: clients that ask it about
    /// lists and about kinds that nobody serves go on with what the server itself says of them.
    fn open_api(&self, head: &Parts, path: &str) -> Result<Response<ApiBody>, Status> {
        if path == "v2" {
            return Ok(response::open_api_v2(&head.headers));
        }
        let path = path.strip_prefix("v3").ok_or_else(unknown_path)?.trim_start_matches('/');
        let documents = self.documents();
        if path.is_empty() {
            return Ok(plain(&openapi::index(&documents)));
        }
        let document = documents.iter().find(|document| document.path == path).ok_or_else(unknown_path)?;
        let etag = format!("\"{}\"", document.hash);
        Ok(tagged(head, &etag, "application/json", document.json.clone()))
    }

    async fn object(&self, head: &Parts, body: Bytes, path: ObjectPath) -> Result<Response<ApiBody>, Status> {
        let resource =
            self.registry().find(&path.group, &path.version, &path.plural).ok_or_else(unknown_path)?;
        if crate::connect::is_connection(head.uri.path()) {
            return Err(self.refuse_plain(head).await);
        }
        if CONNECTIONS.contains(&path.subresource.as_str()) {
            return Err(Status::not_implemented(format_args!("{}/{}", path.plural, path.subresource)));
        }
        let misplaced = !path.namespace.is_empty() && !resource.namespaced;
        let named_without_namespace =
            path.namespace.is_empty() && resource.namespaced && !path.name.is_empty();
        let unknown_sub = !path.subresource.is_empty() && resource.subresource(&path.subresource).is_none();
        if misplaced || named_without_namespace || unknown_sub || !path.rest.is_empty() {
            return Err(unknown_path());
        }
        let target = Target {
            resource,
            namespace: path.namespace,
            name: path.name,
            subresource: Some(path.subresource).filter(|sub| !sub.is_empty()),
        };
        let query = Query::parse(head.uri.query());
        let warnings = Warnings::default();
        if let Some(text) = &target.resource.deprecation {
            warnings.add(text.as_ref());
        }
        let call = Call { server: self, head, body, query, target, warnings: warnings.clone() };
        let mut response =
            call.run().await.unwrap_or_else(|refusal| response::status(&head.headers, &refusal));
        response::warn(&mut response, &warnings.take());
        Ok(response)
    }
}

impl Call<'_> {
    async fn run(&self) -> Result<Response<ApiBody>, Status> {
        let verb = self.verb()?;
        let resource = &self.target.resource;
        let verbs: &[&str] = match &self.target.subresource {
            Some(sub) => resource.subresource(sub).map(|sub| sub.verbs.as_slice()).unwrap_or_default(),
            None => &resource.verbs,
        };
        if !verbs.contains(&verb) {
            return Err(Status::http_method_not_allowed());
        }
        match verb {
            "get" => self.get().await,
            "list" => self.list().await,
            "watch" => self.watch(),
            "create" => self.create().await,
            "update" => self.update().await,
            "patch" => self.patch().await,
            "delete" => self.delete().await,
            _ => self.delete_collection().await,
        }
    }

    fn verb(&self) -> Result<&'static str, Status> {
        let collection = self.target.name.is_empty();
        Ok(match self.head.method {
            Method::GET | Method::HEAD if !collection => "get",
            Method::GET if self.query.flag("watch") => "watch",
            Method::GET | Method::HEAD => "list",
            Method::POST if collection || self.target.subresource.is_some() => "create",
            Method::PUT if !collection => "update",
            Method::PATCH if !collection => "patch",
            Method::DELETE if collection => "deletecollection",
            Method::DELETE if self.target.subresource.is_none() => "delete",
            _ => return Err(Status::http_method_not_allowed()),
        })
    }

    fn include(&self) -> Result<IncludeObject, Status> {
        let text = self.query.text("includeObject");
        IncludeObject::parse(text)
            .ok_or_else(|| Status::bad_request(format!("unrecognized includeObject value: \"{text}\"")))
    }

    fn negotiate(&self, answered: Answered) -> Result<(Encoding, Shape), Status> {
        let headers = &self.head.headers;
        match accept::nothing_accepted(headers, answered) {
            Some(refusal) if !self.target.resource.custom => Err(refusal),
            _ => accept::negotiate(headers, answered, self.include()?, self.objects()),
        }
    }

    /// Whether what is answered has a form in protobuf. Scales do, whatever they are the scale of; figures do not, here.
    fn objects(&self) -> Objects {
        let resource = &self.target.resource;
        let scale = self.target.subresource.as_deref() == Some("scale");
        let plain = resource.custom && !scale || resource.group == metrics::GROUP;
        if plain { Objects::Custom } else { Objects::BuiltIn }
    }

    async fn get(&self) -> Result<Response<ApiBody>, Status> {
        if self.target.subresource.is_some() {
            let answer = self.server.get_sub(&self.target, &self.query).await?;
            return self.answer(StatusCode::OK, answer).await;
        }
        let record = match self.target.resource.group == metrics::GROUP {
            true => self.server.metrics(&self.target)?,
            false => self.server.get(&self.target)?,
        };
        self.answer(StatusCode::OK, Answer::Record(record)).await
    }

    async fn list(&self) -> Result<Response<ApiBody>, Status> {
        let (encoding, shape) = self.negotiate(Answered::List)?;
        let resource = &self.target.resource;
        let options = ListOptions::from_query(resource, &self.query)?;
        let page = match resource.group == metrics::GROUP {
            true => self.server.list_metrics(&self.target, &options),
            false => self.server.list(&self.target, &options)?,
        };
        self.page(&page, shape, encoding).await
    }

    async fn page(&self, page: &Page, shape: Shape, encoding: Encoding) -> Result<Response<ApiBody>, Status> {
        let resource = &self.target.resource;
        if encoding == Encoding::Protobuf {
            let bytes = self.server.list_protobuf(resource, page, shape).await?;
            return Ok(response::typed(StatusCode::OK, protobuf::CONTENT_TYPE, ApiBody::full(bytes)));
        }
        response::encoded(StatusCode::OK, self.server.list_bytes(resource, page, shape).await?, encoding)
    }

    fn watch(&self) -> Result<Response<ApiBody>, Status> {
        if let Some(refusal) = accept::nothing_accepted(&self.head.headers, Answered::List)
            && !self.target.resource.custom
        {
            return Err(refusal);
        }
        let (encoding, shape) = accept::negotiate_watch(&self.head.headers, self.include()?, self.objects())?;
        let resource = &self.target.resource;
        let options = WatchOptions::from_query(resource, &self.query)?;
        let watch = self.server.watch(&self.target, options)?;
        let (frames, content_type) = match encoding {
            Encoding::Protobuf => (Frames::Protobuf, protobuf::WATCH_CONTENT_TYPE),
            _ => (Frames::Json, "application/json"),
        };
        let stream = self.server.watch_bytes(resource.clone(), watch, shape, frames);
        Ok(response::typed(StatusCode::OK, content_type, ApiBody::stream(stream)))
    }

    async fn create(&self) -> Result<Response<ApiBody>, Status> {
        let resource = &self.target.resource;
        let (mut object, options) = self.body_and_options("CreateOptions")?;
        if self.target.subresource.is_some() {
            let answer = self.server.post_sub(&self.target, object, &options).await?;
            return self.answer(StatusCode::CREATED, answer).await;
        }
        decode(&mut object, resource)?;
        if matches!(resource.group.as_ref(), "authentication.k8s.io" | "authorization.k8s.io") {
            settle_shape(resource, &mut object)?;
            let review = self.server.review(&self.target, object, &options)?;
            return self.answer(StatusCode::CREATED, Answer::Value(review)).await;
        }
        if resource.group.is_empty() && resource.plural == "bindings" {
            return self.bind(object, &options).await;
        }
        if resource.namespaced && self.target.namespace.is_empty() {
            // A collection of all namespaces takes no new objects.
            return Err(Status::http_method_not_allowed());
        }
        let record = self.server.create(&self.target, object, &options).await?;
        self.answer(StatusCode::CREATED, Answer::Record(record)).await
    }

    /// The old way to bind: a `Binding` posted to its own collection.
    async fn bind(
        &self,
        object: serde_json::Value,
        options: &WriteOptions,
    ) -> Result<Response<ApiBody>, Status> {
        let Some(pods) = self.server.registry().find("", "v1", "pods") else { return Err(unknown_path()) };
        let name = object.pointer("/metadata/name").and_then(serde_json::Value::as_str).unwrap_or_default();
        let target = Target::object(&pods, &self.target.namespace, name).with_subresource("binding");
        let answer = self.server.post_sub(&target, object.clone(), options).await?;
        self.answer(StatusCode::CREATED, answer).await
    }

    async fn update(&self) -> Result<Response<ApiBody>, Status> {
        let (mut object, options) = self.body_and_options("UpdateOptions")?;
        if self.target.subresource.as_deref() == Some("scale") {
            let answer = self.server.put_sub(&self.target, object, &options).await?;
            return self.answer(StatusCode::OK, answer).await;
        }
        decode(&mut object, &self.target.resource)?;
        if self.target.subresource.is_some() {
            let answer = self.server.put_sub(&self.target, object, &options).await?;
            return self.answer(StatusCode::OK, answer).await;
        }
        let written = self.server.update(&self.target, object, &options).await?;
        let code = if written.created { StatusCode::CREATED } else { StatusCode::OK };
        self.answer(code, Answer::Record(written.record)).await
    }

    async fn patch(&self) -> Result<Response<ApiBody>, Status> {
        let accepts = if self.target.resource.custom { Accepts::NoStrategic } else { Accepts::All };
        let mut options = self.write_options_of("PatchOptions", accepts.is_apply(self.content_type()))?;
        let mut patch = Patch::parse(self.content_type(), &self.body, accepts)?;
        if let Patch::Apply(applying) = &mut patch {
            applying.force = self.query.flag("force");
            options.field_manager = self.query.text("fieldManager").to_owned();
            if self.target.subresource.is_none() {
                let written = self.server.apply(&self.target, applying, &options).await?;
                let code = if written.created { StatusCode::CREATED } else { StatusCode::OK };
                return self.answer(code, Answer::Record(written.record)).await;
            }
        }
        let answer = match self.target.subresource {
            Some(_) => self.server.patch_sub(&self.target, &patch, &options).await?,
            None => Answer::Record(self.server.patch(&self.target, &patch, &options).await?),
        };
        self.answer(StatusCode::OK, answer).await
    }

    fn delete_options(&self) -> Result<DeleteOptions, Status> {
        let body = match self.body.is_empty() {
            true => None,
            false => Some(self.parse(&Expected::new("v1", "DeleteOptions"))?),
        };
        DeleteOptions::read(body.as_ref(), &self.query)
    }

    async fn delete(&self) -> Result<Response<ApiBody>, Status> {
        let options = self.delete_options()?;
        let write =
            WriteOptions { user: self.user(), warnings: self.warnings.clone(), ..WriteOptions::default() };
        let resource = &self.target.resource;
        let deleted = self.server.delete(&self.target, &options, &write).await?;
        let (record, gone) = match deleted {
            Deleted::Gone(record) => (record, true),
            Deleted::Pending(record) => (record, false),
        };
        if gone && !resource.returns_deleted {
            let status = Status::success(resource.group_resource(), &record.name, &record.uid);
            return Ok(response::status(&self.head.headers, &status));
        }
        // The answer to a caller who asked for cascading deletion in the old way says that it goes on.
        let accepted = !gone && options.orphan_dependents == Some(false);
        let code = if accepted { StatusCode::ACCEPTED } else { StatusCode::OK };
        self.answer(code, Answer::Record(record)).await
    }

    async fn delete_collection(&self) -> Result<Response<ApiBody>, Status> {
        let options = self.delete_options()?;
        let resource = &self.target.resource;
        if resource.namespaced && self.target.namespace.is_empty() {
            return Err(Status::http_method_not_allowed());
        }
        let selection = Selection::from_query(resource, &self.query)?;
        let write =
            WriteOptions { user: self.user(), warnings: self.warnings.clone(), ..WriteOptions::default() };
        let records = self.server.delete_collection(&self.target, &selection, &options, &write).await?;
        let version = self.server.store().version();
        let page = Page { version, records, continuation: None, remaining: None };
        let (encoding, shape) = self.negotiate(Answered::List)?;
        self.page(&page, shape, encoding).await
    }

    /// The object in the body, and what accompanies it.
    fn body_and_options(&self, kind: &'static str) -> Result<(serde_json::Value, WriteOptions), Status> {
        let mut options = self.write_options(kind)?;
        let object = self.parse(&self.expected())?;
        // A YAML body that repeats a key was refused above.
        if options.field_validation != FieldValidation::Ignore && self.body.starts_with(b"{") {
            options.duplicates = duplicates(&self.body);
        }
        Ok((object, options))
    }

    fn parse(&self, expected: &Expected) -> Result<serde_json::Value, Status> {
        parse(self.content_type(), &self.body, expected)
    }

    /// What the body must be.
    fn expected(&self) -> Expected {
        let resource: &Resource = &self.target.resource;
        let sub = self.target.subresource.as_deref().and_then(|sub| resource.subresource(sub));
        let own = resource.api_version();
        let api_version = match sub.and_then(|sub| sub.group_version.as_ref()) {
            Some((group, version)) => crate::registry::api_version(group, version),
            None => own,
        };
        let kind = sub.map_or(&resource.kind, |sub| &sub.kind);
        let custom = resource.custom && sub.is_none_or(|sub| sub.group_version.is_none());
        Expected { custom, ..Expected::new(&api_version, kind) }
    }

    fn content_type(&self) -> &str {
        self.head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn user(&self) -> User {
        self.head.extensions.get::<User>().cloned().unwrap_or_default()
    }

    fn write_options(&self, kind: &'static str) -> Result<WriteOptions, Status> {
        self.write_options_of(kind, false)
    }

    fn write_options_of(&self, kind: &'static str, apply: bool) -> Result<WriteOptions, Status> {
        let mut options = self.query.write_options(kind, apply)?;
        if options.field_manager.is_empty() {
            options.field_manager = self.user_agent();
        }
        Ok(WriteOptions { user: self.user(), warnings: self.warnings.clone(), ..options })
    }

    /// What a client calls itself, before the first slash: the manager of what it writes.
    fn user_agent(&self) -> String {
        const MOST: usize = 128;
        let agent = self.head.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok());
        let name = agent.unwrap_or_default().split('/').next().unwrap_or_default();
        // Headers hold nothing but ASCII, so that a place is a letter.
        name.chars().filter(|letter| !letter.is_control()).take(MOST).collect()
    }

    async fn answer(&self, code: StatusCode, answer: Answer) -> Result<Response<ApiBody>, Status> {
        match answer {
            Answer::Record(record) => {
                let (encoding, shape) = self.negotiate(Answered::One)?;
                let bytes = self.server.object_bytes(&self.target.resource, &record, shape).await?;
                response::encoded(code, bytes, encoding)
            }
            Answer::Value(value) => {
                let scale = self.target.subresource.as_deref() == Some("scale");
                let answered = if scale { Answered::One } else { Answered::Plain };
                let (encoding, shape) = self.negotiate(answered)?;
                let bytes = self.server.scale_bytes(&value, shape);
                let encoding = if shape == Shape::Object { known(encoding, &value) } else { encoding };
                response::encoded(code, bytes, encoding)
            }
            Answer::Success => {
                let mut status = Status::failure(code.as_u16(), "", "");
                status.status = "Success".into();
                Ok(response::status(&self.head.headers, &status))
            }
            Answer::Text(stream) => Ok(response::typed(code, "text/plain", ApiBody::stream(stream))),
        }
    }
}

/// The encoding, but for objects that it cannot hold.
fn known(encoding: Encoding, object: &serde_json::Value) -> Encoding {
    let text = |key: &str| object.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
    match encoding {
        Encoding::Protobuf if !protobuf::knows(text("apiVersion"), text("kind")) => Encoding::Json,
        other => other,
    }
}

/// An answer with an ETag, left out when the client has it already.
fn tagged(head: &Parts, etag: &str, content_type: &'static str, bytes: Bytes) -> Response<ApiBody> {
    let known = head.headers.get(IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == etag.as_bytes());
    let (code, body) = if known {
        (StatusCode::NOT_MODIFIED, ApiBody::empty())
    } else {
        (StatusCode::OK, ApiBody::full(bytes))
    };
    let mut response = response::typed(code, content_type, body);
    if let Ok(value) = HeaderValue::from_str(etag) {
        response.headers_mut().insert(ETAG, value);
    }
    response
}

/// A list of discovery, in the form that the client reads.
fn listing(head: &Parts, value: &serde_json::Value) -> Response<ApiBody> {
    let encoding = known(accept::of_status(&head.headers), value);
    response::encoded(StatusCode::OK, value.to_string().into(), encoding).unwrap_or_else(|_| plain(value))
}

/// What relying parties ask again once an hour.
fn cached(content_type: &'static str, text: String) -> Response<ApiBody> {
    let mut response = response::typed(StatusCode::OK, content_type, ApiBody::full(text));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}

fn plain(value: &serde_json::Value) -> Response<ApiBody> {
    response::json(StatusCode::OK, value.to_string())
}

fn unknown_path() -> Status {
    Status::resource_not_found()
}
