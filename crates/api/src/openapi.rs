//! The OpenAPI document, made from the table of routes.

use crate::routes::{Body, Components, Least, Method, ROUTES, Route};
use crate::v1;
use std::collections::BTreeMap;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{
    ComponentsBuilder, KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type,
};
use utoipa::openapi::{
    ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, PathsBuilder, Ref, Required,
    ResponseBuilder, ResponsesBuilder,
};
use utoipa::{PartialSchema, ToSchema};

fn json(shape: Ref) -> utoipa::openapi::Content {
    ContentBuilder::new().schema(Some(shape)).build()
}

/// The types that a body may have, and what it is.
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
            let data = shapes.iter().map(|shape| shape(components));
            let data = data.fold(OneOfBuilder::new(), OneOfBuilder::item).build();
            let content = ContentBuilder::new()
                .schema(Some(Schema::OneOf(data)))
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

/// Names in braces of a path.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn operation(route: &Route, components: &mut Components) -> utoipa::openapi::path::Operation {
    let mut success = ResponseBuilder::new().description("Done.");
    for (kind, content) in content(route.answer, components) {
        success = success.content(kind, content);
    }
    let problem = ResponseBuilder::new()
        .description("Not done, and nothing is half-made.")
        .content("application/json", json(Ref::from_schema_name("Problem")));
    let mut built = OperationBuilder::new()
        .operation_id(Some(format!("{:?}", route.operation)))
        .summary(Some(route.about))
        .description(Some(match route.least {
            Least::Anyone => "For anyone.".to_owned(),
            least => format!(
                "For the role {} and those above.",
                format!("{least:?}").to_lowercase()
            ),
        }))
        .responses(
            ResponsesBuilder::new()
                .response(route.status.to_string(), success.build())
                .response("default", problem.build())
                .build(),
        );
    for name in segments(route.path) {
        built = built.parameter(parameter(name, ParameterIn::Path, None));
    }
    for query in route.query {
        built = built.parameter(parameter(query.name, ParameterIn::Query, Some(query.about)));
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
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).build()))
        .build()
}

/// The document of the whole interface.
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
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Convect")
                .version("1")
                .description(Some(
                    "Pools, volumes and exports of one Convect daemon, over its Unix socket, or by \
                     HTTPS with a token (docs/access.md). \
                     Sizes are bytes, times seconds unless the name says otherwise.",
                ))
                .build(),
        )
        .paths(paths.build())
        .components(Some(
            ComponentsBuilder::new()
                .schemas_from_iter(components)
                .build(),
        ))
        .build()
}

/// The document as it is committed: indented, with a final newline.
///
/// # Panics
/// When the document cannot be written as JSON, which a test would have shown.
pub fn document_json() -> String {
    let mut text = document().to_pretty_json().expect("plain data");
    text.push('\n');
    text
}
