#include "convert/export/input_numbers.h"

uint64_t slc_input_numbers_bytes(const struct slc_manifest *manifest)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < manifest->permutation_count; i++) {
        bytes += slc_labels_memory_bytes(manifest->dims[manifest->permutations[i].mode]);
    }
    return bytes;
}

enum slc_status slc_input_numbers_read(const struct slc_store *store,
                                       struct slc_input_numbers *numbers,
                                       struct slc_error *err)
{
    const struct slc_manifest *manifest = &store->manifest;

    for (unsigned i = 0; i < manifest->permutation_count; i++) {
        const struct slc_store_permutation *listed = &manifest->permutations[i];
        struct slc_labels *labels = &numbers->modes[listed->mode];

        SLC_TRY(slc_store_labels(store, listed, labels, err));
        slc_labels_invert(labels);
    }
    return SLC_OK;
}

void slc_input_numbers_destroy(struct slc_input_numbers *numbers)
{
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_labels_destroy(&numbers->modes[n]);
    }
}
