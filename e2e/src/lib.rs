//! Scenarios of the specification, run on clusters. The tests are in `tests/scenarios`.
