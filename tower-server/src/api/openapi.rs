//! The description of the API for programs, made from the handlers themselves, and the list of routes. There is
//! one list: what is registered is described, and what is described is registered.

use std::sync::LazyLock;

use actix_web::{HttpResponse, get, web};
use tower_common::api::{
    IDEMPOTENCY_KEY, Problem,
    access::{CSRF, SESSION_COOKIE},
    problem::MEDIA_TYPE,
};
use utoipa::{
    Modify, OpenApi, PartialSchema, ToSchema,
    openapi::{
        self, ContentBuilder, PathItem, Ref, RefOr, Required, ResponseBuilder, Schema, SecurityRequirement,
        path::{Operation, Parameter, ParameterBuilder, ParameterIn},
        schema::{ObjectBuilder, SchemaType, Type},
        security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::routes;

/// The security scheme of tokens.
const BEARER: &str = "token";

/// The security scheme of client certificates.
const CERTIFICATE: &str = "certificate";

/// The security scheme of sessions.
const SESSION: &str = "session";

/// Under which all routes are that need a credential, unless they are open.
pub const PREFIX: &str = tower_common::api::PREFIX;

macro_rules! routes {
    ($($module:ident :: { $($handler:ident),+ $(,)? }),+ $(,)?) => {
        /// Adds all routes.
        pub fn register(config: &mut web::ServiceConfig) {
            $($(config.service(routes::$module::$handler);)+)+
            config.service(openapi_document);
        }

        #[derive(OpenApi)]
        #[openapi(
            info(title = "Tower", description = "Service documents, and what becomes of them.", license(name = "Apache-2.0", identifier = "Apache-2.0")),
            paths($($(routes::$module::$handler,)+)+ openapi_document),
            modifiers(&Manners),
        )]
        struct Description;
    };
}

routes! {
    probes::{healthz, readyz, metrics, front_page},
    services::{list_services, get_service, list_endpoints},
    versions::{upload_version, list_versions, get_version, diff_versions, approve_version, retire_version},
    activations::{
        start_activation, list_activations, get_activation, abort_activation, roll_back, deactivate, set_traffic,
    },
    plan::{plan_activation},
    config::{host_config},
    fleet::{get_fleet, get_latency, list_hosts, get_host, list_lacking},
    past::{host_active},
    schema::{service_schema},
    parts::{
        get_platform, put_platform, delete_platform, get_platform_of, put_platform_of, delete_platform_of,
        get_security, put_security, delete_security, get_security_of, put_security_of, delete_security_of,
    },
    activity::{stream_activity, list_activity, get_activity},
    log::{log_status},
    session::{sign_in, sign_out},
    tokens::{whoami, list_tokens, issue_token, revoke_token},
    sources::{list_sources, list_holds, list_quarantines, list_beacons, release_hold, adopt_source},
}

/// The description.
pub static DOCUMENT: LazyLock<openapi::OpenApi> = LazyLock::new(Description::openapi);

/// This description
#[utoipa::path(
    tag = "about",
    security(()),
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json", body = serde_json::Value)),
)]
#[get("/api/v1/openapi.json")]
pub(crate) async fn openapi_document() -> HttpResponse {
    HttpResponse::Ok().json(&*DOCUMENT)
}

/// The methods that a path takes, with what operates them.
pub fn operations(item: &PathItem) -> impl Iterator<Item = (&'static str, &Operation)> {
    let all = [
        ("GET", &item.get),
        ("PUT", &item.put),
        ("POST", &item.post),
        ("DELETE", &item.delete),
        ("PATCH", &item.patch),
        ("HEAD", &item.head),
        ("OPTIONS", &item.options),
        ("TRACE", &item.trace),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_ref()?)))
}

/// What holds for all routes: how one is known, how errors look, and that writes happen once.
struct Manners;

impl Modify for Manners {
    fn modify(&self, document: &mut openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let mut needed = Vec::new();
        Problem::schemas(&mut needed);
        components.schemas.extend(needed);
        components.schemas.insert(Problem::name().into_owned(), Problem::schema());
        let bearer =
            HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("tower_ID_SECRET").build();
        components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
        let description = Some("A client certificate with a name that has a role".to_owned());
        components.add_security_scheme(
            CERTIFICATE,
            SecurityScheme::MutualTls { description, deprecated: None, extensions: None },
        );
        let description =
            format!("From POST {PREFIX}/session; requests that change something need {CSRF}, too");
        let cookie = ApiKeyValue::with_description(SESSION_COOKIE, &description);
        components.add_security_scheme(SESSION, SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
        let none: [String; 0] = [];
        document.security = Some(vec![
            SecurityRequirement::new(BEARER, none.clone()),
            SecurityRequirement::new(CERTIFICATE, none.clone()),
            SecurityRequirement::new(SESSION, none),
        ]);
        for (path, item) in &mut document.paths.paths {
            for operation in
                [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten()
            {
                operation.parameters.iter_mut().flatten().for_each(not_null);
            }
            let writes = [&mut item.put, &mut item.post, &mut item.delete];
            for operation in writes.into_iter().flatten() {
                // Sessions are not in the log, which is what knows keys.
                if path != &format!("{PREFIX}/session") {
                    operation.parameters.get_or_insert_default().push(idempotency_key().into());
                }
                may_fail(operation);
            }
            item.get.iter_mut().for_each(may_fail);
        }
    }
}

/// A parameter that is not there is not there: none is null.
fn not_null(parameter: &mut RefOr<Parameter>) {
    let RefOr::T(parameter) = parameter else { return };
    let schema = match parameter.schema.take() {
        Some(RefOr::T(Schema::Object(mut object))) => {
            if let SchemaType::Array(types) = &mut object.schema_type {
                types.retain(|kind| *kind != Type::Null);
                if let [only] = types.as_slice() {
                    object.schema_type = SchemaType::Type(only.clone());
                }
            }
            Some(RefOr::T(Schema::Object(object)))
        }
        Some(RefOr::T(Schema::OneOf(mut choice))) => {
            let null = SchemaType::Type(Type::Null);
            let is_null =
                |item: &RefOr<Schema>| matches!(item, RefOr::T(Schema::Object(of)) if of.schema_type == null);
            choice.items.retain(|item| !is_null(item));
            match choice.items.len() {
                1 => choice.items.pop(),
                _ => Some(RefOr::T(Schema::OneOf(choice))),
            }
        }
        other => other,
    };
    parameter.schema = schema;
}

fn may_fail(operation: &mut Operation) {
    for (range, description) in [("4XX", "Refused"), ("5XX", "Failed, or not possible now")] {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(Problem::name()))).build();
        let response = ResponseBuilder::new().description(description).content(MEDIA_TYPE, content);
        operation.responses.responses.insert(range.to_owned(), response.build().into());
    }
}

fn idempotency_key() -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .min_length(Some(1))
        .max_length(Some(128))
        .pattern(Some("^[!-~]+$"));
    ParameterBuilder::new()
        .name(IDEMPOTENCY_KEY)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("Requests with the same key are one: the second is answered as the first was"))
        .schema(Some(schema))
        .build()
}
