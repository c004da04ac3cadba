#!/usr/bin/env bash
# Make (or reuse) the virtual environment .venv and put it first on PATH.
#
#   bash scripts/setup_env.sh        make it
#   source scripts/setup_env.sh      make it and use it in this bash shell or script
#
# (From another shell: run it, then `source .venv/bin/activate`.)
# PYTHON=... picks the interpreter, UNMASK_VENV=... another folder. A second run costs nothing: the
# environment carries a stamp of constraints.txt, pyproject.toml and where the repository lies.

if [ -z "${BASH_VERSION:-}" ]; then
  echo "setup: source this from bash; elsewhere run it, then: source .venv/bin/activate" >&2
  return 1
fi

_unmask_pick_python() {
  local candidate found=""
  for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      if "$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        echo "$candidate"
        return 0
      fi
      found="$found $candidate (has no venv module: install python3-venv)"
    elif "$candidate" --version >/dev/null 2>&1; then
      found="$found $candidate ($("$candidate" --version 2>&1))"
    fi
  done
  echo "setup: unmask-rl needs Python 3.11 or newer with venv; found:${found:- none}." >&2
  echo "setup: install one, or name it: PYTHON=/path/to/python3.11 bash scripts/setup_env.sh" >&2
  return 1
}

_unmask_stamp() {
  { cat "$1/constraints.txt" "$1/pyproject.toml"; echo "$1"; } | cksum
}

_unmask_install() {
  local root=$1 venv=$2 python log
  # an environment that was copied or moved has scripts that point elsewhere: make it anew
  if ! grep -qsF "$venv/bin/python" "$venv/bin/pip"; then
    python=$(_unmask_pick_python) || return 1
    echo "setup: $("$python" --version) -> $venv (once; a few minutes)" >&2
    "$python" -m venv --clear "$venv" || return 1
  fi
  log="$venv/setup.log"
  # torch alone first: pip then prefers a local CPU wheel, and the constraint keeps it
  if ! { "$venv/bin/python" -m pip install -c "$root/constraints.txt" torch &&
    "$venv/bin/python" -m pip install -c "$root/constraints.txt" -e "$root[dev]"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "setup: pip failed; the whole log is $log" >&2
    return 1
  fi
  _unmask_stamp "$root" >"$venv/.unmask-stamp"
}

_unmask_setup() {
  local root venv
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || return 1
  venv=${UNMASK_VENV:-$root/.venv}
  if [ "$(cat "$venv/.unmask-stamp" 2>/dev/null)" != "$(_unmask_stamp "$root")" ]; then
    _unmask_install "$root" "$venv" || return 1
  fi
  export VIRTUAL_ENV=$venv PATH="$venv/bin:$PATH"
}

_unmask_setup
