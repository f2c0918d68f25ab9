/* Arbitrary bytes as the record of a sweep: an accepted record can be evaluated, written again
 * and printed on a page. */
#include "fuzz_store.h"

#include "report/page/sweep_page.h"
#include "sweep/sweep_compare.h"
#include "sweep/sweep_record.h"

#include <stdio.h>
#include <stdlib.h>

static void write_page(const struct slc_sweep_record *record)
{
    const struct slc_sweep_page page = {.folder = "x.sweep", .record = record};
    struct slc_output output;

    if (slc_output_open(&output, NULL, fuzz_path("page.html"), NULL) != SLC_OK) {
        abort();
    }
    if (slc_sweep_page_write(&page, &output, NULL) != SLC_OK) {
        abort();
    }
    slc_output_abandon(&output);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct slc_sweep_record record = SLC_SWEEP_RECORD_INIT;
    struct slc_sweep_suggestion suggestion;
    bool found = false;

    if (slc_sweep_record_parse((const char *)data, bytes, &record, NULL) != SLC_OK) {
        return 0;
    }
    slc_sweep_suggest(&record, &suggestion);
    if (slc_sweep_record_write(fuzz_path("sweep.json"), &record, "x.slc", NULL, NULL) == SLC_OK) {
        struct slc_sweep_record again = SLC_SWEEP_RECORD_INIT;

        if (slc_sweep_record_read(fuzz_path("sweep.json"), &again, &found, NULL) != SLC_OK ||
            !found || again.run_count != record.run_count ||
            again.rank_count != record.rank_count) {
            abort();
        }
        slc_sweep_record_destroy(&again);
    }
    write_page(&record);
    slc_sweep_record_destroy(&record);
    return 0;
}
