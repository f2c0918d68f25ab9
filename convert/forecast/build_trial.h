/* Encoding a tile such as the store would have, made of a sample of its entries. */
#ifndef SLC_CONVERT_BUILD_TRIAL_H
#define SLC_CONVERT_BUILD_TRIAL_H

#include "convert/forecast/build_job.h"

struct slc_build_trial {
    uint32_t nnz;                  /* of the sample; 0: it has no nonzeros, and nothing is known */
    double index_bits, value_bits; /* of a nonzero of the store */
    double key_bits;
    double closer;      /* nonzeros lie in the store than in the sample */
    double tiles;       /* of the store, those that are cut short by how far they reach included */
    double nanoseconds; /* that encoding a nonzero takes */
};

/* Errors: SLC_ERR_MEMORY; SLC_ERR_UNSUPPORTED where keys would be too long. */
enum slc_status slc_build_trial(const struct slc_build_job *job,
                                const struct slc_build_sample *found,
                                struct slc_build_trial *trial,
                                struct slc_error *err) SLC_NODISCARD;

#endif
