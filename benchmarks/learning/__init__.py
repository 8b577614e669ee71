"""Learning curves of every estimator with the embedded backend, on games nobody here wrote.

The training loop, the policy model, its constrained sampler, the credit and the learner are those of
``milegpo train``; only the games are played from their state graphs, many at once in one process,
instead of by agents over HTTP.
"""
