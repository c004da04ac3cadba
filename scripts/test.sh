#!/usr/bin/env bash
# Every check of this repository: lint, format, types, import rules, tests.
#
#   bash scripts/test.sh                     all of it
#   bash scripts/test.sh tests/test_x.py     the linters, and these pytest arguments
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/setup_env.sh || exit 1

export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
export HF_HUB_OFFLINE=${HF_HUB_OFFLINE:-1} HF_DATASETS_OFFLINE=${HF_DATASETS_OFFLINE:-1}
export HF_HUB_DISABLE_TELEMETRY=1 TOKENIZERS_PARALLELISM=false
export WANDB_MODE=${WANDB_MODE:-offline}
# without a GPU DeepSpeed must be told, or it warns and guesses
if [ ! -e /dev/nvidiactl ] && [ ! -e /dev/kfd ]; then
  export DS_ACCELERATOR=${DS_ACCELERATOR:-cpu}
fi

failed=()
check() {
  echo "== $*"
  "$@" || failed+=("$*")
}
check ruff check .
check ruff format --check .
check pyright
check lint-imports
check python -m pytest "$@"

if [ "${#failed[@]}" -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
