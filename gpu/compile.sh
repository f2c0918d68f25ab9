#!/bin/sh
# compile.sh NVCC SOURCE OBJECT REPORT PTX DEPFILE ARGUMENT..: compiles a .cu file. REPORT receives
# the assembler's report on each kernel (registers, spills). PTX receives the assembly for the
# newest architecture. tests/unit/gpu/test_assembly.py reads both files.
set -e
nvcc=$1 source=$2 object=$3 report=$4 ptx=$5 depfile=$6
shift 6
kept=$(mktemp -d)
trap 'rm -rf "$kept"' EXIT
if ! "$nvcc" "$@" -Xptxas -v --keep --keep-dir "$kept" -MD -MF "$depfile" -MT "$object" -c -o "$object" "$source" \
    > "$report" 2>&1
then
    grep -v '^ptxas info' "$report" >&2
    exit 1
fi
# The last name in sorted order belongs to the newest architecture: NAME.compute_80.ptx,
# NAME.compute_90.ptx. With a single architecture the only name is NAME.ptx.
find "$kept" -name '*.ptx' | sort | tail -n 1 | xargs -I{} cp {} "$ptx"
