"""The old name of `rewards.extraction`."""

from rewards.extraction import final_answer, first_turn, last_boxed, last_tag

__all__ = ["final_answer", "first_turn", "last_boxed", "last_tag"]
