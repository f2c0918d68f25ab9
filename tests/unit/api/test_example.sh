#!/bin/sh
# One example converts a tiny tensor, factorizes it and writes the factors; another sums over a
# mode, a third describes the model, a fourth reads a CSV with names; the others choose a rank,
# write a page, write for NumPy, use a row solver, and sum over windows. usage: test_example.sh FACTORIZE SUM_MODE
# EXPLAIN READ_TABLE CHOOSE_RANK TELL_RUN PUBLISH ROBUST WINDOW_SUMS (in a cross build meson names its emulator in
# MESON_EXE_WRAPPER)
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
printf '1 1 1 2\n2 2 2 3\n3 1 2 1\n' > "$folder/tiny.tns"
echo 1..12
out=$($MESON_EXE_WRAPPER "$1" "$folder/tiny.tns" 2 "$folder/factors" 2>&1) &&
    echo "$out" | grep -q '^fit 0\.\|^fit 1\.' &&
    [ -s "$folder/factors/mode-3.npy" ] && [ -s "$folder/factors/lambda.npy" ] &&
    echo "ok 1 - factorizes" || {
    echo "not ok 1 - factorizes"
    echo "$out" | sed 's/^/# /'
}
out=$($MESON_EXE_WRAPPER "$1" "$folder/missing.tns" 2 "$folder/factors" 2>&1) || code=$?
[ "$code" = 1 ] && echo "$out" | grep -q 'missing.tns' &&
    echo "ok 2 - says what is wrong" || {
    echo "not ok 2 - says what is wrong"
    echo "$out" | sed 's/^/# /'
}
out=$($MESON_EXE_WRAPPER "$2" "$folder/tiny.tns.slc" 3 "$folder/sums.slc" 2>&1) &&
    echo "$out" | grep -qx '3 sums of 3 nonzeros' && [ -s "$folder/sums.slc/tensor.json" ] &&
    echo "ok 3 - sums over a mode" || {
    echo "not ok 3 - sums over a mode"
    echo "$out" | sed 's/^/# /'
}
code=0
out=$($MESON_EXE_WRAPPER "$2" "$folder/tiny.tns.slc" 1 "$folder/sums.slc" 2>&1) || code=$?
[ "$code" = 1 ] && echo "$out" | grep -q 'sums.slc' &&
    echo "ok 4 - keeps a result that is there" || {
    echo "not ok 4 - keeps a result that is there"
    echo "$out" | sed 's/^/# /'
}
out=$($MESON_EXE_WRAPPER "$3" "$folder/factors" "$folder/tiny.tns" 2>&1) &&
    [ "$(echo "$out" | grep -c '^mode [123]: ')" = 7 ] &&
    echo "$out" | grep -q '^3 nonzeros: RMSE [0-9.e-]*, MAE [0-9.e-]*$' &&
    echo "ok 5 - tells the error of a model" || {
    echo "not ok 5 - tells the error of a model"
    echo "$out" | sed 's/^/# /'
}
code=0
echo '9 1 1 1' > "$folder/beyond.tns"
out=$($MESON_EXE_WRAPPER "$3" "$folder/factors" "$folder/beyond.tns" 2>&1) || code=$?
[ "$code" = 1 ] && echo "$out" | grep -q 'beyond.tns:1:1: index 9 of mode 1' &&
    echo "ok 6 - says where an entry is not the model's" || {
    echo "not ok 6 - says where an entry is not the model's"
    echo "$out" | sed 's/^/# /'
}
printf 'who,what\nann,tea\nbob,milk\nann,milk\n' > "$folder/drinks.csv"
out=$($MESON_EXE_WRAPPER "$4" "$folder/drinks.csv" who,what "$folder/drinks.slc" 2>&1) &&
    [ "$out" = 'who (2): ann, bob
what (2): tea, milk' ] &&
    echo "ok 7 - reads a table" || {
    echo "not ok 7 - reads a table"
    echo "$out" | sed 's/^/# /'
}
out=$($MESON_EXE_WRAPPER "$5" "$folder/tiny.tns.slc" "$folder/sweep" 1 2 2>&1) &&
    [ "$(echo "$out" | grep -c '^rank [12]: fit [01]')" = 2 ] && echo "$out" | grep -q '^best run in r[12]-seed[01]: ' &&
    [ -s "$folder/sweep/sweep.json" ] &&
    echo "ok 8 - chooses a rank" || {
    echo "not ok 8 - chooses a rank"
    echo "$out" | sed 's/^/# /'
}
out=$($MESON_EXE_WRAPPER "$6" "$folder/tiny.tns.slc" 2 "$folder/told" "$folder/page.html" 2>&1) &&
    echo "$out" | grep -q '^fit [01]\.[0-9]*, report in ' && [ -s "$folder/told/run.json" ] &&
    grep -q 'sluice cpd .*tiny.tns.slc --rank 2 ' "$folder/page.html" &&
    echo "ok 9 - writes the page of a run" || {
    echo "not ok 9 - writes the page of a run"
    echo "$out" | sed 's/^/# /'
}
out=$($MESON_EXE_WRAPPER "$7" "$folder/tiny.tns" "$folder/published.slc" "$folder/published.npz" 2>/dev/null) &&
    [ "$out" = "3 nonzeros in $folder/published.npz" ] && [ "$(head -c 2 "$folder/published.npz")" = PK ] &&
    echo "ok 10 - writes for NumPy" || {
    echo "not ok 10 - writes for NumPy"
    echo "$out" | sed 's/^/# /'
}
out=$($MESON_EXE_WRAPPER "$8" "$folder/tiny.tns.slc" 2 0.5 "$folder/robust" 2>&1) &&
    [ -s "$folder/robust/mode-3.npy" ] && [ -s "$folder/robust/lambda.npy" ] &&
    echo "ok 11 - decomposes robustly" || {
    echo "not ok 11 - decomposes robustly"
    echo "$out" | sed 's/^/# /'
}
out=$($MESON_EXE_WRAPPER "$9" "$folder/tiny.tns.slc" 3 1 2>&1) &&
    [ "$out" = "1 to 1: 2 at 1 1
2 to 2: 3 at 2 2" ] &&
    echo "ok 12 - sums over windows" || {
    echo "not ok 12 - sums over windows"
    echo "$out" | sed 's/^/# /'
}
