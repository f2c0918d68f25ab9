#!/bin/sh
# The shared library exports exactly the symbols that the map lists and include/sluice/ declares,
# each with its version. usage: test_symbols.sh LIBRARY MAP HEADER..
library=$1
map=$2
shift 2
shown=$(nm -D --defined-only "$library" | awk '$2 ~ /[A-Z]/ && $2 != "A" {print $3}' | sort -u)
listed=$(awk '/^LIBSLUICE_/ {version = $1} /^    sluice_[a-z_0-9]+;/ {sub(/;/, "", $1); print $1 "@@" version}' "$map" | sort -u)
declared=$(cat "$@" | grep -v '^ \*' | grep -o 'sluice_[a-z_0-9]*(' | tr -d '(' | sort -u)

# tell NUMBER WHAT ONE OTHER: compares two lists, which must be equal and not empty
tell() {
    if [ -n "$3" ] && [ "$3" = "$4" ]; then
        echo "ok $1 - $2"
    else
        echo "not ok $1 - $2"
        printf '%s\n' "$3" > "$folder/one"
        printf '%s\n' "$4" > "$folder/other"
        diff "$folder/one" "$folder/other" | sed 's/^/# /'
    fi
}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
echo 1..2
tell 1 'the library shows what the map lists' "$shown" "$listed"
tell 2 'the map lists what is declared' "$(echo "$listed" | sed 's/@.*//')" "$declared"
