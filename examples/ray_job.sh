#!/usr/bin/env bash
# What `ray job submit --working-dir . -- bash examples/ray_job.sh` runs in a cluster. Submit it again to go on.
# SHARDS is a folder that all machines see; keys are in the environment of the head, not in the job.
set -euo pipefail
: "${SHARDS:=shards}" "${LIMIT:=40}" "${PATHS:=4}"
demur sample builtin:addition --limit "$LIMIT" --paths "$PATHS" --engine ray --block 8 -o "$SHARDS"
demur score "$SHARDS" --score self-consistency --engine ray
demur import "$SHARDS" -o "$SHARDS.db"
demur calibrate "$SHARDS.db" --score perplexity --alpha 0.2 -o "$SHARDS.json"
