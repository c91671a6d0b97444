//! Where the webhooks are, as API servers find them.

use std::net::Ipv6Addr;
use std::time::Duration;

use serde_json::{Value, json};

/// Who makes the certificates and where they are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// We do, in the Secret.
    Secret,
    /// We do, in files of this machine.
    Files,
    /// Someone else does, in the Secret. We only read.
    External,
}

/// Where the webhooks are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Namespace of the Secret and of the Service.
    pub namespace: String,
    /// The Service.
    pub service: String,
    /// A host to reach instead of the Service.
    pub host: Option<String>,
    /// The port on that host.
    pub port: u16,
    /// How long before its end a certificate is renewed.
    pub renew_before: Duration,
}

impl Environment {
    /// The name that the certificate must cover.
    pub fn name(&self) -> String {
        match self.bare_host() {
            Some(host) => host.to_owned(),
            None => format!("{}.{}.svc", self.service, self.namespace),
        }
    }

    /// The host, without the brackets that an IPv6 address has in a URL.
    fn bare_host(&self) -> Option<&str> {
        let host = self.host.as_deref().filter(|host| !host.is_empty())?;
        Some(host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host))
    }

    /// The `clientConfig` for a path. `port` is that of the Service.
    pub fn client_config(&self, path: &str, port: u64, bundle: &str) -> Value {
        match self.bare_host() {
            Some(host) => {
                let brackets = host.parse::<Ipv6Addr>().is_ok();
                let host = if brackets { format!("[{host}]") } else { host.to_owned() };
                json!({ "url": format!("https://{host}:{}{path}", self.port), "caBundle": bundle })
            }
            None => json!({
                "service": { "namespace": self.namespace, "name": self.service, "path": path, "port": port },
                "caBundle": bundle,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: Option<&str>) -> Environment {
        Environment {
            namespace: "kruise-system".to_owned(),
            service: "kruise-webhook-service".to_owned(),
            host: host.map(str::to_owned),
            port: 9876,
            renew_before: Duration::ZERO,
        }
    }

    #[test]
    fn a_service_is_named_by_its_dns_name_and_a_host_by_itself() {
        assert_eq!(at(None).name(), "kruise-webhook-service.kruise-system.svc");
        assert_eq!(at(Some("")).name(), "kruise-webhook-service.kruise-system.svc");
        assert_eq!(at(Some("192.0.2.1")).name(), "192.0.2.1");
        assert_eq!(at(Some("[2001:db8::1]")).name(), "2001:db8::1");
    }

    #[test]
    fn servers_reach_a_host_by_url() {
        let url = |host| at(Some(host)).client_config("/convert", 443, "Qg==")["url"].clone();
        assert_eq!(url("example.org"), "https://example.org:9876/convert");
        assert_eq!(url("2001:db8::1"), "https://[2001:db8::1]:9876/convert");
        assert_eq!(url("[2001:db8::1]"), "https://[2001:db8::1]:9876/convert");
        let service = at(None).client_config("/convert", 443, "Qg==");
        assert_eq!(service["service"]["path"], "/convert");
        assert_eq!(service["caBundle"], "Qg==");
    }
}
