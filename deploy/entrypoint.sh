#!/bin/sh
# Secrets come as files: what PGPASSWORD_FILE and *_API_KEY_FILE name is put where demur looks for it. An empty file is
# no secret. Then demur runs in this process's place, so that it gets the signals.
set -eu
for name in $(env | sed -n 's/^\(PGPASSWORD\|[A-Z0-9_]*_API_KEY\)_FILE=.*/\1/p'); do
    eval "file=\$${name}_FILE"
    value=$(cat "$file")
    if [ -n "$value" ]; then
        export "$name=$value"
    fi
done
exec demur "$@"
