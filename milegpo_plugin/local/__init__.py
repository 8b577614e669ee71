"""The embedded backend: policy server, constrained sampler and torch learner in one process."""
