/* What is told of models and finished runs. */
#ifndef SLUICE_RESULTS_H
#define SLUICE_RESULTS_H

#include "sluice/cpd.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_top_options {
    uint64_t struct_bytes;
    const uint32_t *components; /* component_count of them, from 0; 0, the default: all of them, */
    uint32_t component_count;
    uint32_t by_number;    /* the heaviest first, or, non-zero, by their numbers */
    const uint32_t *modes; /* mode_count of them, from 0; 0, the default: all of them */
    uint32_t mode_count;
    uint32_t by_signed; /* non-zero: the largest values; else the largest absolute ones */
    uint64_t rows;      /* of each mode, 1 to a million; default 10 */
    /* Whose names of indices are told; NULL: the store that a run was made of, if it is there. */
    const char *store;
    uint64_t memory_bytes; /* 0: 80 % of memory */
};

SLC_API void sluice_top_options_init(struct sluice_top_options *options, uint64_t bytes);

/* One of the strongest rows. Texts are lent for the call. */
struct sluice_top_row {
    uint32_t component, mode; /* from 0 */
    uint64_t place;           /* from 0, the strongest first */
    uint64_t index;           /* from 0 */
    double value;             /* of the factor */
    double weight;            /* of the component; 1 where the run has no weights */
    /* Of the index and the mode, as UTF-8 without control characters; "": there is none. */
    const char *name, *title;
};

/*
 * The strongest rows of the components of a run, or of any folder with mode-1.npy, ..: component by
 * component, mode by mode, the strongest first, each to `row`, which ends it by returning another
 * number than 0, which is no error.
 * Cost: one trip through each factor; memory goes with the rows told, not with the factors.
 * Errors: SLC_ERR_USAGE for components and modes that it has not; SLC_ERR_INPUT where it is no such
 * folder, or the store has other modes; SLC_ERR_FORMAT where
 * that is none; SLC_ERR_BUDGET, SLC_ERR_IO, SLC_ERR_MEMORY.
 */
SLC_API enum slc_status sluice_top(const char *folder,
                                   const struct sluice_top_options *options,
                                   int (*row)(void *context, const struct sluice_top_row *row),
                                   void *context,
                                   struct slc_error *err);

/* The same of a model in memory, which has names where options->store says whose. */
SLC_API enum slc_status sluice_cpd_top(const struct sluice_cpd *model,
                                       const struct sluice_top_options *options,
                                       int (*row)(void *context, const struct sluice_top_row *row),
                                       void *context,
                                       struct slc_error *err);

#ifdef __cplusplus
}
#endif
#endif
