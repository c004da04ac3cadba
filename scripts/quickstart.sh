#!/usr/bin/env bash
# From nothing to a masked diffusion model that RL has visibly improved: a few minutes on a CPU.
#
#   bash scripts/quickstart.sh            writes runs/quickstart/{report.png,summary.json}
#
# Run it again and it starts anew; the environment is made once. A GPU is used if there is one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/setup_env.sh
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} TOKENIZERS_PARALLELISM=false
export HF_HUB_OFFLINE=1 HF_HUB_DISABLE_TELEMETRY=1  # nothing is downloaded
# without a GPU DeepSpeed must be told, or it warns and guesses
if [ ! -e /dev/nvidiactl ] && [ ! -e /dev/kfd ]; then
  export DS_ACCELERATOR=${DS_ACCELERATOR:-cpu}
fi
exec python scripts/quickstart.py "$@"
