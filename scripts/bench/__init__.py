"""How good is the gradient of an estimator, and what does it cost? See `scripts/compare_estimators.py`.

    tables.py       denoisers whose logits are entries of a table: their gradients are cheap
    tiny.py         a network small enough to enumerate, and its table
    decoders.py     every step that a sampler may take, and the exact policy gradient
    measure.py      bias, noise and direction of estimators on the tiny network
    chain.py        the noise at realistic length, on a Markov chain with exact conditionals
    checkpoint.py   a real checkpoint: spread and gap to the recorded log-probs
    settings.py     what is compared by default
    report.py       table, JSON and picture
"""
