//! The OpenAPI document, generated from the table of routes.

use crate::routes::{Body, Components, Least, Method, ROUTES, Route, Shape};
use crate::v1;
use std::collections::{BTreeMap, BTreeSet};
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{
    ComponentsBuilder, KnownFormat, Object, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type,
};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, PathsBuilder, Ref, Required, Response,
    ResponseBuilder, ResponsesBuilder,
};
use utoipa::{PartialSchema, ToSchema};

fn json(shape: Ref) -> utoipa::openapi::Content {
    ContentBuilder::new().schema(Some(shape)).build()
}

/// Schema of a server-sent event, as OpenAPI describes items of sequences.
fn event(name: &str, shape: &Ref) -> Object {
    let named = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some([name]));
    let about = format!("JSON: {}", shape.ref_location);
    let data = ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(about))
        .content_media_type("application/json");
    ObjectBuilder::new()
        .property("event", named)
        .property("data", data)
        .required("event")
        .required("data")
        .build()
}

/// Content types of a body, with their schemas.
fn content(
    body: Body,
    components: &mut Components,
) -> Vec<(&'static str, utoipa::openapi::Content)> {
    match body {
        Body::None => Vec::new(),
        Body::Json(shape) => vec![("application/json", json(shape(components)))],
        Body::Text(kinds) => {
            let text = ObjectBuilder::new().schema_type(Type::String).build();
            let content = ContentBuilder::new().schema(Some(text)).build();
            kinds.iter().map(|kind| (*kind, content.clone())).collect()
        }
        Body::Events(shapes) => {
            let events = shapes
                .iter()
                .map(|(name, shape)| event(name, &shape(components)));
            let events = events.fold(OneOfBuilder::new(), OneOfBuilder::item).build();
            let content = ContentBuilder::new()
                .schema(Some(Schema::OneOf(events)))
                .build();
            vec![("text/event-stream", content)]
        }
        Body::Stream => {
            let bytes = ObjectBuilder::new()
                .schema_type(Type::String)
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)));
            let content = ContentBuilder::new().schema(Some(bytes.build())).build();
            vec![("application/octet-stream", content)]
        }
    }
}

fn http_method(method: Method) -> HttpMethod {
    match method {
        Method::Get => HttpMethod::Get,
        Method::Post => HttpMethod::Post,
        Method::Put => HttpMethod::Put,
        Method::Delete => HttpMethod::Delete,
    }
}

/// Names of the parameters of a path.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

const IF_MATCH: &str = "ETag that the object must have, or several separated by commas; otherwise nothing is \
    changed (412). `*` matches any. An ETag represents the configuration of an object; statistics do not change it.";
const KEY: &str = "1 to 128 visible characters without blanks, such as a random UUID. The same request repeated with \
    the same key gets the same answer and creates nothing; it waits while the first one is in progress. Another \
    request with that key is refused (422, key_reused). Keys are kept for 24 hours, at most the latest 1,024, until \
    the daemon ends; a refused request does not use up its key.";

/// The response header `ETag`.
fn tag() -> Header {
    let text = ObjectBuilder::new().schema_type(Type::String).build();
    HeaderBuilder::new()
        .schema(Some(text))
        .description(Some(
            "Represents the configuration of the object; for If-Match.",
        ))
        .build()
}

/// Name of the security scheme for the network.
const TOKEN: &str = "token";

fn token() -> SecurityScheme {
    SecurityScheme::Http(
        HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "Token as printed by `convect token create`. Browsers use a session instead; the Unix socket needs no token.",
            ))
            .build(),
    )
}

/// Status codes of failures of a route, each once. The server checks method and length before the
/// operation itself.
fn problems(route: &Route) -> BTreeSet<u16> {
    let conditional = route.operation.changes_tagged().is_some();
    let codes = v1::ProblemCode::ALL.into_iter();
    let possible = codes.filter(|code| match code {
        v1::ProblemCode::MethodNotAllowed => false,
        v1::ProblemCode::Changed => conditional,
        _ => true,
    });
    possible.map(v1::ProblemCode::status).collect()
}

/// Response for a failed request with this status code; its description lists the possible codes.
fn problem(status: u16) -> Response {
    let codes = v1::ProblemCode::ALL.into_iter();
    let codes = codes.filter(|code| code.status() == status);
    let names: Vec<String> = codes
        .filter_map(|code| Some(serde_json::to_value(code).ok()?.as_str()?.to_owned()))
        .collect();
    ResponseBuilder::new()
        .description(format!("Failed without effect: {}.", names.join(", ")))
        .content("application/json", json(Ref::from_schema_name("Problem")))
        .build()
}

fn operation(route: &Route, components: &mut Components) -> utoipa::openapi::path::Operation {
    let mut success = ResponseBuilder::new().description("Success.");
    for (kind, content) in content(route.answer, components) {
        success = success.content(kind, content);
    }
    if route.operation.tells_tag() {
        success = success.header("ETag", tag());
    }
    let mut responses = ResponsesBuilder::new().response(route.status.to_string(), success.build());
    for status in problems(route) {
        let named = Ref::from_response_name(format!("Problem{status}"));
        responses = responses.response(status.to_string(), named);
    }
    let mut built = OperationBuilder::new()
        .operation_id(Some(format!("{:?}", route.operation)))
        .summary(Some(route.about))
        .description(Some(match route.least {
            Least::Anyone => "Requires no role.".to_owned(),
            least => format!(
                "Requires the role {} or higher.",
                format!("{least:?}").to_lowercase()
            ),
        }))
        .responses(responses.build());
    if route.least != Least::Anyone {
        built = built.security(SecurityRequirement::new(TOKEN, [""; 0]));
    }
    for name in segments(route.path) {
        let shape = Shape::of_segment(name);
        built = built.parameter(parameter(name, ParameterIn::Path, None, shape));
    }
    for query in route.query {
        let (name, about) = (query.name, Some(query.about));
        built = built.parameter(parameter(name, ParameterIn::Query, about, query.shape));
    }
    if route.operation.changes_tagged().is_some() {
        built = built.parameter(parameter(
            "If-Match",
            ParameterIn::Header,
            Some(IF_MATCH),
            Shape::Text,
        ));
    }
    if route.operation.takes_key() {
        let key = parameter(
            "Idempotency-Key",
            ParameterIn::Header,
            Some(KEY),
            Shape::Text,
        );
        built = built.parameter(key);
    }
    for (kind, content) in content(route.request, components) {
        built = built.request_body(Some(
            RequestBodyBuilder::new()
                .content(kind, content)
                .required(Some(Required::True))
                .build(),
        ));
    }
    built.build()
}

fn parameter(
    name: &str,
    place: ParameterIn,
    about: Option<&str>,
    shape: Shape,
) -> utoipa::openapi::path::Parameter {
    let required = match place {
        ParameterIn::Path => Required::True,
        _ => Required::False,
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(required)
        .description(about)
        .schema(Some(parameter_schema(shape)))
        .build()
}

fn parameter_schema(shape: Shape) -> Object {
    let object = ObjectBuilder::new();
    match shape {
        Shape::Text => object.schema_type(Type::String),
        Shape::Flag => object.schema_type(Type::Boolean),
        Shape::Whole(least, most) => object
            .schema_type(Type::Integer)
            .minimum(Some(least))
            .maximum(most),
    }
    .build()
}

/// The OpenAPI document of the API.
pub fn document() -> OpenApi {
    let mut components = Components::new();
    components.insert(v1::Problem::name().into_owned(), v1::Problem::schema());
    components.insert(
        v1::ProblemCode::name().into_owned(),
        v1::ProblemCode::schema(),
    );
    let mut paths: BTreeMap<&str, PathItem> = BTreeMap::new();
    for route in ROUTES {
        let item = PathItem::new(http_method(route.method), operation(route, &mut components));
        match paths.get_mut(route.path) {
            Some(known) => known.merge_operations(item),
            None => {
                paths.insert(route.path, item);
            }
        }
    }
    let paths = paths
        .into_iter()
        .fold(PathsBuilder::new(), |all, (path, item)| {
            all.path(path, item)
        });
    let statuses: BTreeSet<u16> = ROUTES.iter().flat_map(problems).collect();
    let refusals = statuses
        .into_iter()
        .map(|status| (format!("Problem{status}"), problem(status)));
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Convect")
                .version("1")
                .description(Some(
                    "Pools, volumes and exports of a Convect daemon, over its Unix socket, or over \
                     HTTPS with a token (docs/access.md). \
                     Sizes are in bytes and times in seconds unless the name says otherwise.",
                ))
                .build(),
        )
        .paths(paths.build())
        .components(Some(
            refusals
                .fold(ComponentsBuilder::new(), |all, (name, response)| {
                    all.response(name, response)
                })
                .schemas_from_iter(components)
                .security_scheme(TOKEN, token())
                .build(),
        ))
        .build()
}

/// The document as it is committed: indented JSON with a trailing newline.
///
/// # Panics
/// When the document cannot be serialised, which a test would have shown.
pub fn document_json() -> String {
    let mut text = document().to_pretty_json().expect("plain data");
    text.push('\n');
    text
}
