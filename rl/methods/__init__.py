"""Published methods as presets: `method: espo` in a recipe stands for the sections in these files.

What a recipe writes in the same sections wins, key by key. `python -m rl.train --explain RECIPE`
shows the result.
"""

from . import bounds, fixed_order, one_step, ours, recorded_steps
from .base import Method, expand, undecided

METHODS: dict[str, Method] = {
    "diffu_grpo": one_step.DIFFU_GRPO,
    "unigrpo": bounds.UNIGRPO,
    "wd1": one_step.WD1,
    "wd1pp": recorded_steps.WD1PP,
    "coupled_grpo": one_step.COUPLED_GRPO,
    "vrpo": bounds.VRPO,
    "spg": bounds.SPG,
    "gdpo": bounds.GDPO,
    "bgpo": bounds.BGPO,
    "espo": bounds.ESPO,
    "ebpo": bounds.EBPO,
    "d2_step_merge": recorded_steps.D2_STEP_MERGE,
    "d2_any_order": fixed_order.D2_ANY_ORDER,
    "trace_rl": recorded_steps.TRACE_RL,
    "cj_grpo": recorded_steps.CJ_GRPO,
    "mdpo": recorded_steps.MDPO,
    "agrpo": recorded_steps.AGRPO,
    "just_grpo": fixed_order.JUST_GRPO,
    "dmpo": bounds.DMPO,
    "stable_drl": bounds.STABLE_DRL,
    "egspo": recorded_steps.EGSPO,
    "d_tree_rpo": recorded_steps.D_TREE_RPO,
    "rldf": recorded_steps.RLDF,
    "mask_aware_pg": recorded_steps.MASK_AWARE_PG,
    "dipod": bounds.DIPOD,
    "gdsd": bounds.GDSD,
    "igpo": one_step.IGPO,
    "last_step_tree": ours.LAST_STEP_TREE,
}

__all__ = ["METHODS", "Method", "expand", "undecided"]
