r"""The part of a completion that a reader is shown: one turn, without special tokens.

Decoding may keep special tokens, and each family of models has its own. The turn ends at the first
token that ends one (or begins another); masks, padding and the like are dropped, and so are
characters that nobody sees and HTML that only draws. A position that
was never filled may stand inside a word or a number. There it becomes U+FFFD, since "4[MASK]2" says
neither 42 nor "4 2".
"""

import re

# of LLaDA, Dream, SDAR, LLaDA2, Llama, Qwen, Phi, Gemma, Mistral and BERT
ENDS = (
    r"<\|(?:eot_id|endoftext|im_end|end_of_text|end|role_end|eom_id)\|>|</s>|<eos>"
    r"|<end_of_turn>|\[(?:SEP|EOS)\]"
)
STARTS = r"<\|(?:im_start|start_header_id)\|>|<start_of_turn>|<role>"
DROPPED = r"<\|[A-Za-z0-9_]{1,40}\|>|\[(?:MASK|PAD|CLS|UNK|BOS)\]|<(?:mask|pad|unk|bos|s)>"
END = re.compile(f"{ENDS}|{STARTS}")
LEADING = re.compile(rf"(?:\s*+(?:<\|startoftext\|>|<\|begin_of_text\|>|<s>|<bos>|{STARTS}))++")
SPECIAL = re.compile(rf"(?:{DROPPED})++")
UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a\u202c\u2060-\u2064\u2066-\u2069\ufeff]")
HTML = re.compile(r"<(b|strong|em)>([^<>]{0,400})</\1>|<br\s?/?>", re.IGNORECASE)
MARKUP = frozenset(" \t\r\n<>{}$")
UNFILLED = "\N{REPLACEMENT CHARACTER}"


def first_turn(text: str) -> str:
    """The text up to the first end-of-turn token, without special tokens; what follows was never
    shown to anyone."""
    return turn(text)[0]


def turn(text: str) -> tuple[str, bool]:
    """(the first turn, whether a token ends it: else it may be cut off)."""
    start = LEADING.match(text)
    parts = END.split(text[start.end() if start else 0 :], maxsplit=1)
    shown = HTML.sub(r"\2", parts[0] if parts[0].isascii() else UNSEEN.sub("", parts[0]))
    return SPECIAL.sub(lambda run: _gap(shown, run), shown), len(parts) > 1


def _gap(text: str, run: re.Match[str]) -> str:
    """Nothing at the edge of a word or of markup, else a character that no answer has."""
    before, after = text[max(run.start() - 1, 0) : run.start()], text[run.end() : run.end() + 1]
    inside = before and after and before not in MARKUP and after not in MARKUP
    return UNFILLED if inside else ""
