# Shell functions of tools/demo and of the benchmark scripts.

# median NUMBER..: prints the median. If the count is even, this is the larger of the middle two
# numbers.
median() {
    printf '%s\n' "$@" | sort -g | awk '{ v[NR] = $1 } END { print v[int(NR / 2) + 1] }'
}

# make_cgroup BYTES: creates a cgroup (version 1 or 2) that limits memory and page cache to BYTES.
# Prints the folder of the cgroup, or nothing without permission to create it.
make_cgroup() {
    local try folder
    for try in /sys/fs/cgroup/memory:memory.limit_in_bytes /sys/fs/cgroup:memory.max; do
        folder=${try%%:*}/sluice-$$
        if mkdir "$folder" 2> /dev/null; then
            if echo "$1" 2> /dev/null > "$folder/${try##*:}"; then
                echo "$folder"
                return
            fi
            rmdir "$folder"
        fi
    done
}
