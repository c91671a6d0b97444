//! What the manager reads from its environment.

use std::path::PathBuf;

use jiff::tz::TimeZone;
use kruise_api::{environment as variable, names};

use super::zone;

/// The variables of the manager, with defaults in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Namespace of the Secret, the Service and the ConfigMap.
    pub namespace: String,
    /// Namespace of the copies of pull secrets.
    pub daemon_config_namespace: String,
    /// Where and how the webhooks are served.
    pub certificates: Certificates,
    /// The legacy list of kinds, if it is set.
    pub custom_resource_enable: Option<String>,
    /// The zone of schedules that name none.
    pub time_zone: TimeZone,
}

/// Where and how the webhooks are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// The HTTPS port.
    pub port: u16,
    /// The folder of the certificate files.
    pub folder: PathBuf,
    /// Webhooks are registered by the URL of this host instead of by Service.
    pub host: Option<String>,
    /// Certificates are kept only on disk.
    pub on_disk: bool,
    /// The Secret.
    pub secret: String,
    /// The Service.
    pub service: String,
    /// How long before its end a certificate is renewed, as it was written.
    pub renew_before: Option<String>,
}

impl Environment {
    /// The same in the time zone of the process: that of the variable `TZ` or of the machine.
    #[must_use]
    pub fn in_zone_of_process(self, lookup: impl Fn(&str) -> Option<String>) -> Self {
        let time_zone = zone::of_process(lookup("TZ").as_deref(), |path| std::fs::read(path).ok());
        Self { time_zone, ..self }
    }

    /// Reads the variables through a look-up, so that tests need no process of their own.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let or = |name: &str, default: &str| set(name).unwrap_or_else(|| default.to_owned());
        let port = match set(variable::WEBHOOK_PORT) {
            None => variable::DEFAULT_WEBHOOK_PORT,
            Some(text) => text.parse().map_err(|_| {
                format!("{} must be a port between 0 and 65535, not {text:?}", variable::WEBHOOK_PORT)
            })?,
        };
        let host = set(variable::WEBHOOK_HOST);
        let on_disk = match set(variable::WEBHOOK_CERT_WRITER).as_deref() {
            None => host.is_some(),
            Some(writer) => writer == variable::CERT_WRITER_FS,
        };
        Ok(Self {
            namespace: or(variable::POD_NAMESPACE, names::NAMESPACE),
            daemon_config_namespace: or(variable::DAEMON_CONFIG_NAMESPACE, names::DAEMON_CONFIG_NAMESPACE),
            certificates: Certificates {
                port,
                folder: or(variable::WEBHOOK_CERT_DIR, variable::DEFAULT_WEBHOOK_CERT_DIR).into(),
                host,
                on_disk,
                secret: or(variable::SECRET_NAME, names::WEBHOOK_SECRET),
                service: or(variable::SERVICE_NAME, names::WEBHOOK_SERVICE),
                renew_before: set(variable::CERTS_RENEW_BEFORE),
            },
            custom_resource_enable: set(variable::CUSTOM_RESOURCE_ENABLE),
            time_zone: TimeZone::UTC,
        })
    }
}
