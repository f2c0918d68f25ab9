/* Compares the components of two runs: factor match score and matched components. Runs may have
 * different ranks. The factors are read from their files, one mode at a time. */
#ifndef SLC_SWEEP_RUN_MATCH_H
#define SLC_SWEEP_RUN_MATCH_H

#include "base/error/error.h"
#include "base/memory/limits.h"
#include "storage/manifest/names.h"

#include <stdint.h>

struct slc_run_side {
    const char *folder;            /* folder with the factors mode-1.npy, .. */
    const struct slc_files *files; /* operations for reading the files of the folder */
    unsigned order;
    const uint64_t *dims;
    uint32_t rank;
    const double *lambda;
    /* Names of the indices of each mode, or NULL. If both sides have names of a mode, rows with
     * equal names correspond; rows without a counterpart are ignored. Otherwise, rows with equal
     * indices correspond, and the mode sizes must be equal. */
    struct slc_names *const *names;
};

struct slc_run_match {
    /* Mean similarity of the matched components, of which there are as many as the smaller rank
     * (cpu/dense/congruence.h). */
    double score;
    uint32_t count; /* number of matched components: the smaller rank */
    struct {
        uint32_t one, two;        /* components, from 0 */
        double similarity;        /* product over modes of |cosine|, without the weights */
    } pair[SLC_MAX_RANK];         /* by ascending `one` */
    uint64_t rows[SLC_MAX_ORDER]; /* rows of each mode that correspond */
};

/* Returns the bytes that slc_run_match_find uses in addition to the process. */
uint64_t slc_run_match_bytes(const struct slc_run_side *one, const struct slc_run_side *two);

/* Matches the components of two runs. `stop` may be NULL. Errors: SLC_ERR_INPUT if the modes
 * differ, or if no names agree; those of reading; SLC_ERR_MEMORY; SLC_ERR_INTERRUPTED. */
enum slc_status slc_run_match_find(const struct slc_run_side *one,
                                   const struct slc_run_side *two,
                                   const volatile int *stop,
                                   struct slc_run_match *match,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
