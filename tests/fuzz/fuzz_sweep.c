/* Any bytes as the record of a sweep: what is taken over can be judged and written again. */
#include "fuzz_store.h"

#include "tools/sweep_record.h"
#include "tools/sweep_report.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct sweep_record record = SWEEP_RECORD_INIT;
    struct sweep_suggestion suggestion;
    bool found = false;

    if (sweep_record_parse((const char *)data, bytes, &record, NULL) != SLC_OK) {
        return 0;
    }
    sweep_suggest(&record, &suggestion);
    if (sweep_record_write(fuzz_path("sweep.json"), &record, "x.slc", NULL, NULL) == SLC_OK) {
        struct sweep_record again = SWEEP_RECORD_INIT;

        if (sweep_record_read(fuzz_path("sweep.json"), &again, &found, NULL) != SLC_OK || !found ||
            again.run_count != record.run_count || again.rank_count != record.rank_count) {
            abort();
        }
        sweep_record_destroy(&again);
    }
    sweep_record_destroy(&record);
    return 0;
}
