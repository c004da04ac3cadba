"""The LaTeX that `rewards.latex_expression` reads."""

import re

CLOSERS = {"(": ")", "[": "]", "{": "}", r"\lfloor": r"\rfloor", r"\lceil": r"\rceil"}
ROUNDINGS = {r"\lfloor": "floor", r"\lceil": "ceil"}
TIMES = frozenset({"*", r"\cdot", r"\times", r"\ast"})
OVER = frozenset({"/", r"\div"})
FUNCTIONS = frozenset(
    re.findall(
        r"\w+",
        "sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan arccot ln log lg exp",
    )
)
INVERSES = {"sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot"}
GREEK = frozenset(
    re.findall(
        r"\w+",
        "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa "
        "lambda mu nu xi rho sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta "
        "Lambda Xi Sigma Upsilon Phi Psi Omega ell hbar",
    )
)
CONSTANTS = {"e": "e", "i": "i", r"\pi": "pi", r"\infty": "inf", r"\imath": "i"}
UPRIGHT = frozenset({r"\mathrm", r"\text", r"\textrm", r"\rm", r"\mathit", r"\operatorname"})
DECORATED = frozenset(
    {r"\vec", r"\hat", r"\bar", r"\overline", r"\mathbf", r"\boldsymbol", r"\mathcal", r"\tilde"}
)
DIGITS = frozenset("0123456789.")
