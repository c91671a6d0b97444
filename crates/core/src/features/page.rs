//! The page about features for people, in Markdown.

use kruise_api::gates::{Gate, Gates};

use super::{ALL, Feature, When, rbac};

/// The page `docs/features.md`.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Features\n\n\
         What each feature consists of, and what it needs. A feature that is switched off runs no controller, watches\n\
         nothing and needs no permission; the webhooks of its kinds stay and answer that its gate is closed.\n\n\
         | feature | gate | on by default | controllers (workers) | webhooks | permissions |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for feature in ALL {
        page.push_str(&row(feature));
    }
    page
}

fn row(feature: &Feature) -> String {
    let on = if feature.when.holds(&Gates::default()) { "yes" } else { "no" };
    let controllers = feature.controllers.iter().map(|controller| {
        let name =
            if feature.built { format!("`{}`", controller.name) } else { format!("*{}*", controller.name) };
        match controller.workers_flag {
            Some(flag) => format!("{name} ({}, `--{flag}`)", controller.workers),
            None => format!("{name} ({})", controller.workers),
        }
    });
    let webhooks = feature.webhooks.iter().map(|webhook| match webhook.when {
        When::Always => format!("`{}`", webhook.name),
        when if when == feature.when => format!("`{}`", webhook.name),
        when => format!("`{}` with {}", webhook.name, condition(when)),
    });
    let permissions = feature.permissions.iter().filter(|_| feature.built).map(|permission| {
        let line = rbac::line(permission);
        match permission.when {
            When::Always => line,
            when => format!("{line} with {}", condition(when)),
        }
    });
    format!(
        "| {} | {} | {on} | {} | {} | {} |\n",
        feature.name,
        condition(feature.when),
        lines(controllers),
        lines(webhooks),
        lines(permissions),
    )
}

fn lines(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join("<br>")
}

fn condition(when: When) -> String {
    let names = |gates: &[Gate], word: &str| {
        gates.iter().map(|gate| format!("`{gate}`")).collect::<Vec<_>>().join(word)
    };
    match when {
        When::Always => String::new(),
        When::All(gates) => names(gates, " and "),
        When::Any(gates) => names(gates, " or "),
        When::Not(gate) => format!("`{gate}` off"),
    }
}
