//! What every controller stands on: caches, queue, freshness, effects, lease, metrics.
