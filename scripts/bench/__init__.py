"""How good is the gradient of an estimator, and what does it cost?

    tables.py       denoisers whose logits are entries of a table: their gradients are cheap
    tiny.py         a network small enough to enumerate, and its table
    rules.py        the outcomes of a decoding step
    decoders.py     everything that a sampler can do, and the exact policy gradient
    problem.py      the two together
    direction.py    the cosine of a noisy mean
    measure.py      bias, noise, direction and cost of estimators on the tiny network
    chain.py        the noise at realistic length, on a Markov chain with exact predictions
    checkpoint.py   a real checkpoint: spread, and gap to the recorded log-probs
    settings.py     what is compared by default
    reference.py    cosines that an independent enumeration found
    arguments.py, report.py, picture.py   the command line's words, tables and JSON, the picture

`scripts/compare_estimators.py` is the command. In Python:

    from scripts.bench.measure import bench
    rows = bench({"mine": MyEstimator()}, {"random": RandomOrder(steps=4)}, seed=0)
"""
