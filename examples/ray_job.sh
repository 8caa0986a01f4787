#!/usr/bin/env bash
# What `ray job submit --working-dir . -- bash examples/ray_job.sh /shared/sums` runs in a cluster. Submit it again to go on.
# /shared/sums is a folder that all machines see, by its whole path: a job runs in a copy of the working directory.
# Keys are in the environment of the head, not in the job.
set -euo pipefail
case "${1-}" in
  /*) SHARDS=$1 ;;
  *) echo "name a folder that all machines see, by its whole path: bash examples/ray_job.sh /shared/sums" >&2; exit 2 ;;
esac
: "${LIMIT:=40}" "${PATHS:=4}"
demur sample builtin:addition --limit "$LIMIT" --paths "$PATHS" --engine ray --block 8 -o "$SHARDS"
demur score "$SHARDS" --score self-consistency --engine ray
demur import "$SHARDS" -o "$SHARDS.db"
demur calibrate "$SHARDS.db" --score perplexity --alpha 0.2 -o "$SHARDS.json"
