/* Maps indices of a store with relabelled modes to the indices of the input. */
#ifndef SLC_CONVERT_INPUT_NUMBERS_H
#define SLC_CONVERT_INPUT_NUMBERS_H

#include "storage/manifest/labels.h"
#include "storage/manifest/store.h"

/* One map per mode, from indices of the store to indices of the input; empty if they are equal. */
struct slc_input_numbers {
    struct slc_labels modes[SLC_MAX_ORDER];
};

/* Returns the bytes that slc_input_numbers_read maps. */
uint64_t slc_input_numbers_bytes(const struct slc_manifest *manifest);

/* Reads the maps. Ownership: release with slc_input_numbers_destroy (also after an error), which
 * accepts an all-zero struct. Errors: those of slc_store_labels. */
enum slc_status slc_input_numbers_read(const struct slc_store *store,
                                       struct slc_input_numbers *numbers,
                                       struct slc_error *err) SLC_NODISCARD;
void slc_input_numbers_destroy(struct slc_input_numbers *numbers);

static inline uint64_t
slc_input_number(const struct slc_input_numbers *numbers, unsigned mode, uint64_t index)
{
    const uint32_t *label = numbers->modes[mode].label;

    return label != NULL ? label[index] : index;
}

#endif
