//! What happens on the service's own hosts: listeners, TLS, who may call, dependencies.

use std::net::IpAddr;

use super::{
    super::{
        Document,
        model::{AccessLog, CertificateFiles, Protocol, TlsMode},
        rules,
    },
    Check,
    routes::Side,
};

impl Check<'_> {
    pub(super) fn inbound(&mut self, document: &Document) {
        let inbound = &document.spec.inbound;
        self.routes(document, Side::Inbound);
        self.rate_limits("spec.inbound.rateLimits", &inbound.rate_limits);
        self.log_fields("spec.inbound.accessLog", &inbound.access_log);
        let list = "spec.inbound.ports";
        self.unique(
            inbound
                .ports
                .iter()
                .enumerate()
                .map(|(index, port)| (format!("{list}[{index}].name"), &*port.name)),
        );
        let mut taken = std::collections::BTreeSet::new();
        for (index, port) in inbound.ports.iter().enumerate() {
            let field = format!("{list}[{index}]");
            self.word(&format!("{field}.name"), &port.name);
            for (name, number) in [("port", port.port), ("appPort", port.app_port)] {
                self.ensure(
                    number > 0,
                    rules::BAD_ADDRESS,
                    &format!("{field}.{name}"),
                    "0 is no port",
                    "write it",
                );
            }
            for (name, address) in [("address", &port.address), ("appAddress", &port.app_address)] {
                let valid = address.as_ref().is_none_or(|address| address.parse::<IpAddr>().is_ok());
                let at = format!("{field}.{name}");
                self.ensure(valid, rules::BAD_ADDRESS, &at, "it is no IP address", "write one");
            }
            let message = "two ports listen at the same place";
            let free = taken.insert((port.address.clone(), port.port));
            self.ensure(free, rules::DUPLICATE, &format!("{field}.port"), message, "give each its own port");
            let any = port.address.as_deref().is_none_or(|address| matches!(address, "0.0.0.0" | "::"));
            let same = port.port == port.app_port && (any || port.address == port.app_address);
            let message = "Envoy and the application would listen at the same port";
            self.ensure(!same, rules::BAD_ADDRESS, &format!("{field}.appPort"), message, "write another one");
        }
        self.inbound_tls(document);
        self.allowed(document);
    }

    fn inbound_tls(&mut self, document: &Document) {
        let inbound = &document.spec.inbound;
        let tls = &inbound.tls;
        let field = "spec.inbound.tls";
        let wanted = tls.mode.is_some_and(|mode| mode != TlsMode::Off);
        self.ensure(
            !wanted || tls.certificate.is_some(),
            rules::TLS_INCOMPLETE,
            &format!("{field}.certificate"),
            "TLS needs a certificate",
            "name its files",
        );
        self.ensure(
            !wanted || !inbound.ports.is_empty() || document.metadata.name.is_empty(),
            rules::TLS_INCOMPLETE,
            field,
            "without a port there is no listener for TLS",
            "ask the platform for spec.inbound.ports",
        );
        self.files(&format!("{field}.certificate"), tls.certificate.as_ref());
        self.file(&format!("{field}.clientCaFile"), tls.client_ca_file.as_deref());
    }

    pub(super) fn callers_tls(&mut self, document: &Document) {
        let tls = &document.spec.callers.tls;
        let field = "spec.callers.tls";
        if tls.mode.is_some_and(|mode| mode != TlsMode::Off) {
            for (name, given) in
                [("caFile", tls.ca_file.is_some()), ("identities", !tls.identities.is_empty())]
            {
                let message = format!("TLS needs {name}, to know the service by");
                self.ensure(given, rules::TLS_INCOMPLETE, &format!("{field}.{name}"), &message, "add it");
            }
        }
        self.files(&format!("{field}.certificate"), tls.certificate.as_ref());
        self.file(&format!("{field}.caFile"), tls.ca_file.as_deref());
        if let Some(name) = &tls.server_name {
            let valid =
                !name.is_empty() && name.len() <= 255 && name.bytes().all(|byte| byte.is_ascii_graphic());
            self.ensure(
                valid,
                rules::BAD_NAME,
                &format!("{field}.serverName"),
                "it is no host name",
                "correct it",
            );
        }
        for (index, identity) in tls.identities.iter().enumerate() {
            let valid = is_identity(identity) && !identity.contains('*');
            let at = format!("{field}.identities[{index}]");
            let next = "write a URI, such as spiffe://mesh/web, or a DNS name";
            self.ensure(valid, rules::BAD_LABEL, &at, "it is no name in a certificate", next);
        }
    }

    fn allowed(&mut self, document: &Document) {
        let inbound = &document.spec.inbound;
        let Some(allowed) = &inbound.allowed_callers else { return };
        let field = "spec.inbound.allowedCallers";
        let list = format!("{field}.rules");
        if allowed.rules.is_empty() {
            self.find(rules::NOBODY_MAY_CALL, &list, "without a rule nobody may call", "add a rule");
        }
        self.unique(
            allowed
                .rules
                .iter()
                .enumerate()
                .map(|(index, rule)| (format!("{list}[{index}].name"), &*rule.name)),
        );
        for (index, rule) in allowed.rules.iter().enumerate() {
            let field = format!("{list}[{index}]");
            self.word(&format!("{field}.name"), &rule.name);
            for (number, identity) in rule.identities.iter().enumerate() {
                let valid = is_identity(identity.strip_suffix('*').unwrap_or(identity))
                    && !identity.trim_end_matches('*').contains('*');
                let at = format!("{field}.identities[{number}]");
                let next = "write a URI or DNS name; a * may stand at its end";
                self.ensure(valid, rules::BAD_LABEL, &at, "it is no name in a certificate", next);
            }
            for (number, range) in rule.addresses.iter().enumerate() {
                let at = format!("{field}.addresses[{number}]");
                let next = "write a range, such as 10.0.0.0/8";
                self.ensure(is_range(range), rules::BAD_ADDRESS, &at, "it is no range of addresses", next);
            }
            for (number, path) in rule.paths.iter().enumerate() {
                self.path(&format!("{field}.paths[{number}]"), path);
            }
            let shown = inbound.tls.mode.is_some_and(|mode| mode != TlsMode::Off)
                && inbound.tls.client_ca_file.is_some();
            let message = "callers are told apart by certificate, and none has to be shown";
            let at = format!("{field}.identities");
            let next = "set spec.inbound.tls.mode and clientCaFile";
            self.ensure(rule.identities.is_empty() || shown, rules::IDENTITY_WITHOUT_TLS, &at, message, next);
        }
    }

    pub(super) fn outbound(&mut self, document: &Document) {
        let list = "spec.outbound.dependencies";
        let dependencies = &document.spec.outbound.dependencies;
        self.unique(
            dependencies
                .iter()
                .enumerate()
                .map(|(index, of)| (format!("{list}[{index}].service"), &*of.service)),
        );
        let mut taken = std::collections::BTreeSet::new();
        for (index, dependency) in dependencies.iter().enumerate() {
            let field = format!("{list}[{index}]");
            let service = &dependency.service;
            self.service(&format!("{field}.service"), service, None);
            let timeouts = &dependency.overrides.timeouts;
            let of = super::super::model::Timeouts {
                request: timeouts.request,
                backend_request: timeouts.backend_request,
                idle: None,
            };
            self.timeouts(&format!("{field}.overrides.timeouts"), &of);
            let attempts = dependency.overrides.retry.as_ref().map(|retry| retry.attempts);
            let at = format!("{field}.overrides.retry.attempts");
            self.within(attempts, 0, 100, rules::BAD_RETRY, &at);
            self.within(dependency.listen, 1024, u16::MAX, rules::BAD_ADDRESS, &format!("{field}.listen"));
            let free = dependency.listen.is_none_or(|port| taken.insert(port));
            let message = "two dependencies have the same local port";
            self.ensure(free, rules::DUPLICATE, &format!("{field}.listen"), message, "give each its own");
            let known = self.world.services.as_ref().and_then(|services| services.get(service));
            let tcp = known.is_some_and(|facts| facts.tcp);
            let message = format!("{service} is called by bytes, and needs a local port");
            let at = format!("{field}.listen");
            self.ensure(!tcp || dependency.listen.is_some(), rules::NEEDS_LISTEN, &at, &message, "add it");
        }
        let own = document.spec.callers.protocol.is_some_and(|protocol| !Protocol::is_http(protocol));
        let grpc_like = document.spec.inbound.routes.is_empty();
        if own && !grpc_like {
            let message = "bytes have no requests to match";
            self.find(rules::NO_ROUTES, "spec.inbound.routes", message, "leave them out");
        }
    }

    pub(super) fn log_fields(&mut self, field: &str, log: &AccessLog) {
        self.file(&format!("{field}.path"), log.path.as_deref());
        for (name, value) in &log.fields {
            let at = super::super::places::child(&format!("{field}.fields"), name);
            let valid = super::paths::printable(value) && value.matches('%').count().is_multiple_of(2);
            let next = "write operators as %OPERATOR%, and a percent sign as %%";
            self.ensure(valid, rules::BAD_HEADER, &at, "it is no format of Envoy's", next);
        }
    }

    fn files(&mut self, field: &str, files: Option<&CertificateFiles>) {
        let Some(files) = files else { return };
        self.file(&format!("{field}.certificateFile"), Some(&files.certificate_file));
        self.file(&format!("{field}.privateKeyFile"), Some(&files.private_key_file));
    }

    fn file(&mut self, field: &str, path: Option<&str>) {
        let valid = path.is_none_or(|path| {
            path.len() > 1 && path.starts_with('/') && !path.ends_with('/') && super::paths::printable(path)
        });
        self.ensure(valid, rules::BAD_FILE, field, "it is no absolute path of a file", "write one");
    }
}

fn is_identity(text: &str) -> bool {
    !text.is_empty() && text.len() <= 1024 && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// An address, with the length of a prefix or without.
fn is_range(text: &str) -> bool {
    let (address, length) =
        text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let most = if address.is_ipv4() { 32 } else { 128 };
    length.is_none_or(|length| length.parse::<u8>().is_ok_and(|length| length <= most))
}
