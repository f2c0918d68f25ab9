/* Arbitrary text as run.json: parsing terminates, and accepted values are within the limits. */
#include "fuzz_store.h"

#include "storage/model/run_folder.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_run_record record;

    memset(&record, 0xAA, sizeof record);
    if (slc_run_record_parse((const char *)data, bytes, &record, &err) != SLC_OK) {
        if (err.message[0] == '\0' || record.order != 0xAAAAAAAA) {
            abort();
        }
        return 0;
    }
    if (record.order == 0 || record.order > SLC_MAX_ORDER ||
        memchr(record.store, '\0', sizeof record.store) == NULL) {
        abort();
    }
    for (unsigned n = 0; n < record.order; n++) {
        if (record.dims[n] == 0 || record.dims[n] > SLC_MAX_MODE_LENGTH) {
            abort();
        }
    }
    return 0;
}
