#!/usr/bin/env python3
"""Each fault planted in the kernels of gpu/ (SLC_PLANT of gpu/cuda/cuda.h) is detected by the
existing tests: by their checks, or by the sanitizer of the build. Without a planted fault they
pass.

    test_planted.py SANITIZER PROGRAM"""

import os
import subprocess
import sys

SANITIZER, PROGRAM = sys.argv[1:]

# Some faults depend on the order of threads and rarely show: these need a sanitizer.
RACE = {"thread": "WARNING: ThreadSanitizer: data race"}
# Bytes that nothing wrote are read; builds without a sanitizer track them (emulation/written.h).
UNWRITTEN = {"none": "was never written", **RACE}
WRONG = {"none": "not ok ", **RACE}
# The runtime returns an error before any harm is done.
ERROR = {"none": "not ok ", "thread": "not ok "}
# Faults of kernels are reported too late; no thread reads another's writes.
LATE = {"none": "not ok "}
# Unwritten coordinates lead out of the factors before the sanitizer compares accesses.
ASTRAY = {"thread": "SEGV on unknown address"}
# Fault: the suite that detects it, its test, and the report by the sanitizer of the build.
FAULTS = {
    "amped_plain_add": ("baselines", "orders, ranks", RACE),
    "batch_before_begun": ("device", "cleared before", WRONG),
    "blco_code_tile_overwritten": ("baselines", "options", RACE),
    "blco_code_upper_not_there": ("baselines", "orders, ranks", WRONG),
    "blco_queue_not_awaited": ("baselines", "options", WRONG),
    "blco_stash_not_clear": ("baselines", "orders, ranks", ASTRAY),
    "blco_stash_plain_add": ("baselines", "orders, ranks", RACE),
    "blco_stash_tile_overwritten": ("baselines", "options", RACE),
    "blco_stash_unsynced": ("baselines", "orders, ranks", WRONG),
    "blco_tile_not_there": ("baselines", "orders, ranks", RACE),
    "blco_tile_overwritten": ("baselines", "options", RACE),
    "blco_upper_not_there": ("baselines", "orders, ranks", ASTRAY),
    "copy_not_awaited": ("device", "any number of streams", WRONG),
    "decode_parts_not_clear": ("decode_altered", "exceptions in places", RACE),
    "decode_parts_not_there": ("decode", "keys in clusters", WRONG),
    "end_before_batches": ("device_refused", "damaged bytes", LATE),
    "exact_plain_largest": ("exact_sum", "largest magnitudes", RACE),
    "expand_unsynced": ("expand", "periods", UNWRITTEN),
    "fiber_carries_not_there": ("fibers", "SpTV agrees", WRONG),
    "fiber_carries_overwritten": ("fibers", "TTM agrees", RACE),
    "fibers_counts_overwritten": ("fibers", "long list", UNWRITTEN),
    "fibers_counts_unsynced": ("fibers", "list in pieces", WRONG),
    "genten_plain_add": ("baselines", "options", RACE),
    "gram_stage_overwritten": ("dense", "Gram matrices", WRONG),
    "gram_stage_unsynced": ("dense", "Gram matrices", WRONG),
    "mttkrp_chunk_not_sorted": ("mttkrp", "every order", RACE),
    "mttkrp_chunk_overwritten": ("mttkrp", "little shared", UNWRITTEN),
    "mttkrp_counters_not_clear": ("mttkrp", "every order", RACE),
    "mttkrp_moved_unread": ("mttkrp", "every order", WRONG),
    "mttkrp_not_counted": ("mttkrp", "every order", RACE),
    "mttkrp_not_placed": ("mttkrp", "every order", RACE),
    "mttkrp_plain_count": ("mttkrp", "every order", RACE),
    "piece_overwritten": ("device", "go and come back", RACE),
    "plain_add_f64": ("mttkrp", "every order", RACE),
    "product_not_awaited": ("product", "codec and form", WRONG),
    "product_run_unsynced": ("product", "codec and form", RACE),
    "resident_not_awaited": ("device", "while they come", RACE),
    "residents_before_begun": ("device", "cleared before", WRONG),
    "spans_summed": ("device", "counted once", {"none": "not ok "}),
    "sptv_products_not_there": ("fibers", "SpTV agrees", WRONG),
    "slot_overwritten": ("device", "any number of streams", ERROR),
    "update_panel_unsynced": ("dense", "hundreds of rows", UNWRITTEN),
    "update_rows_unsolved": ("dense", "hundreds of rows", WRONG),
}


def expected(fault):
    """Report of this build; None if it cannot, or need not, detect the fault."""
    kinds = FAULTS[fault][2]
    if SANITIZER != "none" and "none" in kinds and not os.environ.get("SLC_TEST_FULL"):
        return None  # omitted: a build without a sanitizer detects the fault in a tenth of the time
    return next((text for kind, text in kinds.items() if kind in SANITIZER), None)


def output(fault):
    suite, test, _ = FAULTS[fault]
    # One report suffices, and not every wrong number needs to be printed.
    environment = {**os.environ, "SLC_EMULATION_FAULT": fault, "SLC_TEST_QUICK": "2",
                   "TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "") + " halt_on_error=1"}
    done = subprocess.run([PROGRAM, suite, test], capture_output=True, text=True, timeout=120, env=environment)
    return done.stdout + done.stderr


def main():
    faults = [fault for fault in FAULTS if expected(fault) is not None]
    unseen = [fault for fault in FAULTS if fault not in faults]
    if unseen:
        print(f"# left to other builds: {', '.join(unseen)}")
    print(f"1..{len(faults)}")
    failed = 0
    for number, fault in enumerate(faults, 1):
        said = output(fault)
        good = expected(fault) in said
        if not good:
            failed += 1
            for line in said.splitlines()[:40]:
                print(f"# {line}")
        print(f"{'ok' if good else 'not ok'} {number} - planted: {fault}", flush=True)
    sys.exit(1 if failed else 0)


main()
