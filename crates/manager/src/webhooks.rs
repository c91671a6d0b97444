//! The webhooks of the manager: the rules of `kruise_core`, at the paths of the open features.
//!
//! A handler reads the caches, calls a pure function and counts. Three things go beyond that, because a rule cannot do them:
//! looking up what no cache has yet, counting what a protected namespace or definition holds, and noting refusals in the log
//! for audits.

mod budgets;
mod contents;
mod counters;
mod lookup;
mod spreads;

use std::sync::Arc;

use kruise_api::convert;
use kruise_core::{
    admission::{
        Answer, Operation, Request,
        handler::Handler,
        kinds::Context,
        protection::{self, Contents},
    },
    features,
};
use kruise_webhook::service::Webhooks;

use crate::shared::Shared;
use budgets::Held;
use counters::{Counters, Refusals};
use lookup::Found;

/// All webhooks that these gates leave open, and conversion.
pub fn all(shared: &Shared) -> Webhooks {
    let refusals = Refusals::new(&shared.registry);
    let held = Held::new(&shared.registry);
    let mut builder = Webhooks::builder()
        .only_verified(shared.settings.options.webhook_client_ca.is_some())
        .metrics(Arc::new(Counters(shared.metrics.clone())))
        .conversion(|object, version| convert::convert(object, version).map_err(|error| error.to_string()));
    for path in features::paths(&shared.settings.gates) {
        let (shared, refusals, held) = (shared.clone(), refusals.clone(), held.clone());
        builder = builder.admission(path.path, move |request| {
            answer(shared.clone(), refusals.clone(), held.clone(), path.handler, request)
        });
    }
    builder.build()
}

async fn answer(
    shared: Shared,
    refusals: Refusals,
    held: Held,
    handler: Handler,
    request: Request,
) -> Answer {
    // A budget that refuses comes before all who count pods that go.
    if handler == Handler::ValidatePod
        && let Some(answer) = budgets::answer(&shared, &held, &request).await
    {
        log(&request, &answer);
        return answer;
    }
    let answer = match lookup::prepare(&shared, handler, &request).await {
        Err(reason) => Answer::internal(reason),
        Ok(found) => {
            let contents = if handler.needs_contents(&request, &context(&shared, &found)) {
                contents::count(&shared, &request).await
            } else {
                Contents::default()
            };
            let answer = handler.answer(&request, &context(&shared, &found), &contents);
            if let Some(taken) = found.taken().filter(|_| !answer.is_allowed()) {
                spreads::give_back(&shared, taken).await;
            }
            answer
        }
    };
    // Whoever counts pods that go must not count one that somebody else keeps.
    let answer = match handler == Handler::ValidatePod && answer.is_allowed() {
        true => spreads::leave(&shared, &request).await.unwrap_or(answer),
        false => answer,
    };
    log(&request, &answer);
    if let Answer::Denied { code, .. } = &answer {
        let Request { kind, namespace, user, .. } = &request;
        let name = request.object_name();
        // Every refusal of a deletion is one of protection.
        let is_deletion = request.operation == Operation::Delete && request.subresource.is_empty();
        if *code == 403 && is_deletion && !request.dry_run {
            refusals.count(&request);
            let event = protection::DELETION_EVENT;
            let record = protection::record(event, &kind.kind, namespace, name, &user.username);
            shared.protection_log.write(&record);
        }
    }
    answer
}

fn log(request: &Request, answer: &Answer) {
    if let Answer::Denied { code, message } | Answer::Held { code, message, .. } = answer {
        let Request { kind, namespace, user, .. } = request;
        let name = request.object_name();
        tracing::info!(
            kind = kind.kind, namespace, name, operation = request.operation.as_str(), username = user.username, code,
            %message, "refused"
        );
    }
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
