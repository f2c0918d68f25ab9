/* Layouts whose build was interrupted at any moment, with arbitrary changes to the leftovers:
 * building them again yields the right layout or an error; the store stays complete either way. */
#include "fuzz_disk.h"
#include "fuzz_mutate.h"
#include "fuzz_store.h"
#include "make_store.h"

#include "convert/layout/relayout.h"
#include "storage/verify/verify.h"

#include <stdio.h>
#include <stdlib.h>

#define STORE "/x.slc"

enum { ORDER = 3, MODE = 1 };

/* Selected by the first byte of the input; journals differ only in partitions. */
static const struct {
    enum slc_layout_kind kind;
    const char *blocks;
} layouts[] = {{SLC_LAYOUT_SORTED, STORE "/sorted-2.blk.part"},
               {SLC_LAYOUT_FIBER, STORE "/fiber-2.blk.part"}};

static enum slc_status add(const struct slc_files *files, enum slc_layout_kind kind)
{
    const struct slc_relayout_options options = {
        .files = files, .store = STORE, .memory_bytes = UINT64_C(1) << 32, .workers = 1};
    struct slc_relayout relayout = {.lock = -1};
    struct slc_sorted_report report;
    enum slc_status status = slc_relayout_open(&options, &relayout, NULL);

    if (status == SLC_OK && slc_manifest_find(&relayout.store.manifest, kind, MODE) == NULL) {
        status = slc_relayout_add(&relayout, kind, MODE, &report, NULL);
    }
    slc_relayout_close(&relayout);
    return status;
}

static void seal_sorted(const struct slc_files *disk, uint8_t *data, uint64_t bytes)
{
    fuzz_seal_journal(disk, layouts[0].blocks, ORDER, data, bytes);
}

static void seal_fiber(const struct slc_files *disk, uint8_t *data, uint64_t bytes)
{
    fuzz_seal_journal(disk, layouts[1].blocks, ORDER, data, bytes);
}

static struct slc_recorded *build_once(enum slc_layout_kind kind)
{
    static const uint64_t dims[ORDER] = {30, 40, UINT64_C(1) << 30};
    struct slc_recorded *disk = slc_recorded_create();
    struct slc_made_tensor tensor;

    slc_made_tensor_create(&tensor, ORDER, dims, 1500, SLC_MADE_COUNTS, 1);
    fuzz_must(slc_made_store_write(&tensor, slc_recorded_files(disk), STORE, SLC_CODEC_PACKED,
                                   SLC_MIN_BLOCK_BYTES, NULL) == SLC_OK,
              "the store cannot be made");
    slc_made_tensor_destroy(&tensor);
    slc_recorded_start(disk);
    fuzz_must(add(slc_recorded_files(disk), kind) == SLC_OK, "the layout cannot be built");
    return disk;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct slc_recorded *done[2];
    static const struct fuzz_file files[2][2] = {
        {{STORE "/sorted-2.blk.part", NULL}, {STORE "/sorted-2.blk.part.journal", seal_sorted}},
        {{STORE "/fiber-2.blk.part", NULL}, {STORE "/fiber-2.blk.part.journal", seal_fiber}}};
    const unsigned which = bytes > 0 ? data[0] % 2 : 0;
    struct slc_verify_options options = {.decode = true, .threads = 1};
    struct slc_verify_report report;
    struct slc_recorded *disk;
    enum slc_status status;

    if (done[which] == NULL) {
        fuzz_disk_quiet();
        done[which] = build_once(layouts[which].kind);
    }
    disk = fuzz_disk_at(done[which], files[which], 2, data + (bytes > 0), bytes - (bytes > 0));
    status = add(slc_recorded_files(disk), layouts[which].kind);
    fuzz_must(slc_recorded_open_count(disk) == 0, "a file is left open");
    options.files = slc_recorded_files(disk);
    fuzz_must(slc_verify_store(STORE, &options, &report, NULL) == SLC_OK,
              "the store is not whole behind it");
    fuzz_must(report.layouts == (status == SLC_OK ? 2 : 1), "a layout is listed or it is not");
    slc_recorded_destroy(disk);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
    static const struct fuzz_changes form = {3, FUZZ_CHANGE_BYTES, 1};

    return fuzz_mutate_changes(data, bytes, room, seed, &form);
}
