/* Records of runs, and pages that tell of them. */
#ifndef SLUICE_REPORT_H
#define SLUICE_REPORT_H

#include "sluice/cpd.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The record of the run that a model comes from: the JSON that sluice_cpd_save writes as run.json,
 * with the plan, the fit of every iteration, times, counters and what is needed to make the run
 * again. NULL: it was made of numbers, or loaded from a folder without one. Lent until the model is
 * destroyed.
 */
SLC_API const char *sluice_cpd_record(const struct sluice_cpd *model);

struct sluice_report_options {
    uint64_t struct_bytes;
    uint64_t components; /* to tell of at most, the heaviest first, 1 to 4096; default 64 */
    uint64_t rows;       /* of each mode of a component, 1 to 1000; default 10 */
    /* Whose names of indices are told; NULL: the store that a run was made of, if it is there. */
    const char *store;
    const char *record;    /* of sluice_cpd_page: as of sluice_cpd_record; NULL: the model's own */
    uint64_t memory_bytes; /* 0: 80 % of memory */
    uint32_t overwrite;    /* non-zero: a file at `output` is replaced */
    uint32_t reserved;
};

SLC_API void sluice_report_options_init(struct sluice_report_options *options, uint64_t bytes);

/*
 * Writes a page that tells what a run was and what has come of it, to be opened in a browser: one
 * HTML file without a script, which refers to nothing outside it. `folder` is that of
 * sluice_cpd_save or the command, or has a checkpoint alone, or any factors mode-1.npy, ..; of the
 * folder of a sweep the page compares its runs, and tells which rank they suggest. The page is
 * written beside its place, synced and renamed.
 * Cost: two trips through each factor; memory goes with what is told, not with the factors.
 * Errors: SLC_ERR_USAGE for numbers out of range, and for an output within a store; SLC_ERR_INPUT
 * where the folder has none of these; SLC_ERR_FORMAT where what it has is damaged; SLC_ERR_IO, also
 * where the output is there and not to be replaced; SLC_ERR_NOSPACE, SLC_ERR_BUDGET,
 * SLC_ERR_MEMORY. What was at `output` is there then.
 */
SLC_API enum slc_status sluice_report(const char *folder,
                                      const char *output,
                                      const struct sluice_report_options *options,
                                      struct slc_error *err);

/* The same of a model in memory, with all that its record tells, where it has one. */
SLC_API enum slc_status sluice_cpd_page(const struct sluice_cpd *model,
                                        const char *output,
                                        const struct sluice_report_options *options,
                                        struct slc_error *err);

#ifdef __cplusplus
}
#endif
#endif
