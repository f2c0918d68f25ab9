#!/bin/sh
# The shared library shows what include/sluice/ declares, and nothing else.
# usage: test_symbols.sh LIBRARY HEADER..
library=$1
shift
shown=$(nm -D --defined-only "$library" | awk '$2 ~ /[A-Z]/ {sub(/@.*/, "", $3); print $3}' | sort -u)
declared=$(cat "$@" | grep -o 'sluice_[a-z_]*(' | tr -d '(' | sort -u)
echo 1..2
other=$(echo "$shown" | grep -v '^sluice_')
[ -z "$other" ] && echo "ok 1 - nothing else is visible" || {
    echo "not ok 1 - nothing else is visible"
    echo "$other" | sed 's/^/# /'
}
missing=$(for name in $declared; do echo "$shown" | grep -qx "$name" || echo "$name"; done)
[ -z "$missing" ] && echo "ok 2 - everything declared is there" || {
    echo "not ok 2 - everything declared is there"
    echo "$missing" | sed 's/^/# /'
}
