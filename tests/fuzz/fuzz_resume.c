/* Conversions that were interrupted at any moment, with arbitrary changes to the leftovers: a rerun
 * resumes, restarts or fails with an error; unmodified leftovers lead to the expected store. */
#include "fuzz_disk.h"
#include "fuzz_mutate.h"
#include "fuzz_store.h"

#include "base/memory/limits.h"
#include "base/random.h"
#include "convert/build/resume/build_folder.h"
#include "convert/ingest/convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT  "/in.tns"
#define OUTPUT "/out.slc"
#define PART   OUTPUT ".part/"

enum { ORDER = 3, ROWS = 900, ROW_BYTES = 64 };

static enum slc_status convert(const struct slc_files *files)
{
    struct slc_convert_report report;
    struct slc_error err = SLC_ERROR_INIT;
    const struct slc_convert_options options = {.files = files,
                                                .input = INPUT,
                                                .output = OUTPUT,
                                                .dialect = SLC_DIALECT_TNS,
                                                .index_base = 1,
                                                .codec = SLC_CODEC_PACKED,
                                                .block_bytes = SLC_MIN_BLOCK_BYTES,
                                                .memory_bytes = UINT64_C(1) << 34,
                                                .threads = 1,
                                                .commit_seconds = 1e-9};

    return slc_convert(&options, &report, &err);
}

static void seal_journal(const struct slc_files *disk, uint8_t *data, uint64_t bytes)
{
    fuzz_seal_journal(disk, PART SLC_BLCO_NAME, ORDER, data, bytes);
}

static const struct fuzz_file files[] = {{PART SLC_PUSHED_STATE_NAME, fuzz_seal_state},
                                         {PART SLC_SORTED_STATE_NAME, fuzz_seal_state},
                                         {PART SLC_SPILL_NAME, fuzz_seal_chunks},
                                         {PART SLC_BLCO_NAME, NULL},
                                         {PART SLC_BLCO_NAME ".journal", seal_journal},
                                         {PART SLC_COMPLETE_STATE_NAME, fuzz_seal_state},
                                         {OUTPUT "/" SLC_COMPLETE_STATE_NAME, fuzz_seal_state}};

/* Converts a text that is large enough for several blocks. */
static struct slc_recorded *convert_once(void)
{
    struct slc_recorded *disk = slc_recorded_create();
    char *text = malloc(ROWS * ROW_BYTES);
    char *at = text;

    fuzz_must(text != NULL, "no memory");
    for (uint64_t row = 0; row < ROWS; row++) {
        at += snprintf(at, ROW_BYTES, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                       slc_random_below(1, 0, row, 5) + 1,
                       slc_random_below(1, 1, row, UINT64_C(1) << 38) + 1,
                       slc_random_below(1, 2, row, UINT64_C(1) << 20) + 1, row % 9 + 1);
    }
    fuzz_disk_store(slc_recorded_files(disk), INPUT, text, (uint64_t)(at - text));
    free(text);
    slc_recorded_start(disk);
    fuzz_must(convert(slc_recorded_files(disk)) == SLC_OK, "the conversion fails");
    return disk;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct slc_recorded *done;
    struct slc_recorded *disk;
    enum slc_status status;

    if (done == NULL) {
        fuzz_disk_quiet();
        done = convert_once();
    }
    disk = fuzz_disk_at(done, files, sizeof files / sizeof files[0], data, bytes);
    status = convert(slc_recorded_files(disk));
    fuzz_must(slc_recorded_open_count(disk) == 0, "a file is left open");
    fuzz_disk_check(slc_recorded_files(disk), OUTPUT, status, bytes >= 2 + FUZZ_CHANGE_BYTES);
    slc_recorded_destroy(disk);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
    static const struct fuzz_changes form = {2, FUZZ_CHANGE_BYTES, 1};

    return fuzz_mutate_changes(data, bytes, room, seed, &form);
}
