"""The outcomes of one decoding step, rule by rule, with everything that leads to each of them.

Given the state z, the proposals v_l ~ p_T(. | z) are independent, and the same positions and
tokens are committed for a whole box of proposals:

    P(step) = c * pi * prod_l sum_{v in allowed_l} p_T(v | z)_l

    a committed l         allowed_l = {its token}
    random                any other l: every token; c = 1 / (number of ways to choose)
    left_to_right         any other l: every token, since the positions follow from z alone;
    confidence_first          c = 1
    low_confidence        an eligible l: tokens less probable (T = 1) than each committed one
    threshold             an eligible l: tokens not above the threshold, if all committed ones
                          are; otherwise as low_confidence with the least number of positions
    plackett_luce         any other l: every token; pi = softmax of the peaks' log-probs over tau,
                          one position after the other

Ties go to the left, as in the samplers.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from estimators import Decoding


@dataclass(frozen=True, kw_only=True)
class Situation:
    """logp: of every symbol at every position at T = 1. count: positions to commit."""

    logp: list[list[float]]
    eligible: tuple[int, ...]
    count: int
    decoding: Decoding

    @property
    def symbols(self) -> range:
        return range(len(self.logp[0]))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """places: committed positions, in the order of `order_map`; tokens: theirs.

    rest: the proposals that an eligible position may have had without being committed; all of
    them where it has no entry. constant: log c.
    """

    places: tuple[int, ...]
    tokens: tuple[int, ...]
    rest: dict[int, list[bool]] = field(default_factory=dict)
    constant: float = 0.0


Rule = Callable[[Situation], Iterator[Outcome]]


def _random(z: Situation) -> Iterator[Outcome]:
    constant = -math.log(math.comb(len(z.eligible), z.count))
    for places in itertools.combinations(z.eligible, z.count):
        for tokens in itertools.product(z.symbols, repeat=z.count):
            yield Outcome(places=places, tokens=tokens, constant=constant)


def _left_to_right(z: Situation) -> Iterator[Outcome]:
    for tokens in itertools.product(z.symbols, repeat=z.count):
        yield Outcome(places=z.eligible[: z.count], tokens=tokens)


def _confidence_first(z: Situation) -> Iterator[Outcome]:
    places = tuple(sorted(z.eligible, key=lambda i: (-max(z.logp[i]), i))[: z.count])
    for tokens in itertools.product(z.symbols, repeat=z.count):
        yield Outcome(places=places, tokens=tokens)


def _plackett_luce(z: Situation) -> Iterator[Outcome]:
    for places in itertools.permutations(z.eligible, z.count):
        for tokens in itertools.product(z.symbols, repeat=z.count):
            yield Outcome(places=places, tokens=tokens)


def _low_confidence(z: Situation) -> Iterator[Outcome]:
    return _kept(z, z.count, ceiling=math.inf)


def _threshold(z: Situation) -> Iterator[Outcome]:
    bar, least = z.decoding.log_threshold, min(z.decoding.at_least, len(z.eligible))
    for count in range(least, len(z.eligible) + 1):
        for places in itertools.combinations(z.eligible, count):
            for tokens in itertools.product(z.symbols, repeat=count):
                if min(z.logp[i][v] for i, v in zip(places, tokens, strict=True)) > bar:
                    others = [i for i in z.eligible if i not in places]
                    rest = {i: [logp <= bar for logp in z.logp[i]] for i in others}
                    yield _by_confidence(z, places, tokens, rest)
    yield from _kept(z, least, ceiling=bar)


def _kept(z: Situation, count: int, ceiling: float) -> Iterator[Outcome]:
    """The `count` most probable proposals, where the least of them is not above the ceiling."""
    for places in itertools.combinations(z.eligible, count):
        for tokens in itertools.product(z.symbols, repeat=count):
            pairs = list(zip(places, tokens, strict=True))
            least = min((z.logp[i][v], -i) for i, v in pairs)
            if least[0] > ceiling:
                continue
            others = [i for i in z.eligible if i not in places]
            rest = {i: [(logp, -i) < least for logp in z.logp[i]] for i in others}
            yield _by_confidence(z, places, tokens, rest)


def _by_confidence(
    z: Situation, places: tuple[int, ...], tokens: tuple[int, ...], rest: dict[int, list[bool]]
) -> Outcome:
    """The order inside the step is that of the proposals' probabilities."""
    pairs = sorted(zip(places, tokens, strict=True), key=lambda p: (-z.logp[p[0]][p[1]], p[0]))
    return Outcome(places=tuple(i for i, _ in pairs), tokens=tuple(v for _, v in pairs), rest=rest)


RULES: dict[str, Rule] = {
    "random": _random,
    "left_to_right": _left_to_right,
    "confidence_first": _confidence_first,
    "low_confidence": _low_confidence,
    "threshold": _threshold,
    "plackett_luce": _plackett_luce,
}
