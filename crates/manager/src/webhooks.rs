//! The webhooks of the manager: the rules of `kruise_core`, at the paths of the open features.
//!
//! A handler reads the caches, calls a pure function and counts. Three things go beyond that, because a rule cannot do them:
//! looking up what no cache has yet, counting what a protected namespace or definition holds, and noting refusals in the log
//! for audits.

mod contents;
mod counters;
mod lookup;

use std::sync::Arc;

use kruise_api::convert;
use kruise_core::{
    admission::{
        Answer, Request,
        handler::Handler,
        kinds::Context,
        protection::{self, Contents},
    },
    features,
};
use kruise_webhook::service::Webhooks;

use crate::shared::Shared;
use counters::{Counters, Refusals};
use lookup::Found;

/// All webhooks that these gates leave open, and conversion.
pub fn all(shared: &Shared) -> Webhooks {
    let refusals = Refusals::new(&shared.registry);
    let mut builder = Webhooks::builder()
        .metrics(Arc::new(Counters(shared.metrics.clone())))
        .conversion(|object, version| convert::convert(object, version).map_err(|error| error.to_string()));
    for path in features::paths(&shared.settings.gates) {
        let (shared, refusals) = (shared.clone(), refusals.clone());
        builder = builder.admission(path.path, move |request| {
            answer(shared.clone(), refusals.clone(), path.handler, request)
        });
    }
    builder.build()
}

async fn answer(shared: Shared, refusals: Refusals, handler: Handler, request: Request) -> Answer {
    let answer = match lookup::prepare(&shared, handler, &request).await {
        Err(reason) => Answer::internal(reason),
        Ok(found) => {
            let contents = if handler.needs_contents(&request, &context(&shared, &found)) {
                contents::count(&shared, &request).await
            } else {
                Contents::default()
            };
            handler.answer(&request, &context(&shared, &found), &contents)
        }
    };
    if let Answer::Denied { code, message } = &answer {
        let Request { kind, namespace, name, user, .. } = &request;
        tracing::info!(
            kind = kind.kind, namespace, name, operation = request.operation.as_str(), username = user.username, code,
            %message, "refused"
        );
        if *code == 403 && message.starts_with(protection::REFUSAL) && !request.dry_run {
            refusals.count(&request);
            let event = protection::DELETION_EVENT;
            let record = protection::record(event, &kind.kind, namespace, name, &user.username);
            shared.protection_log.write(&record);
        }
    }
    answer
}

fn context<'a>(shared: &'a Shared, found: &'a Found<'a>) -> Context<'a> {
    let settings = &shared.settings;
    Context {
        gates: &settings.gates,
        allow_privileged: settings.options.allow_privileged,
        now: settings.clock.now(),
        seed: settings.random.next_u64(),
        cluster: found,
    }
}
