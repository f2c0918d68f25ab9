/* Finds the top rows of the components of a model in each mode, with the names of indices. Factors
 * in files are read in small parts, and only the top rows are kept. */
#ifndef SLC_REPORT_TOP_H
#define SLC_REPORT_TOP_H

#include "base/error/error.h"
#include "base/memory/memory.h"
#include "report/factors/factor_rows.h"
#include "storage/model/model.h"
#include "storage/model/run_folder.h"
#include "storage/model/run_names.h"

#include <stdbool.h>
#include <stdint.h>

enum { SLC_TOP_ROWS_MAX = 1000000 };

struct slc_top_options {
    const struct slc_files *files;      /* NULL means the operating system */
    const char *folder;                 /* folder of a run or of factors; NULL means `model` */
    const struct slc_model_view *model; /* model in memory; borrowed */
    /* numbers of components, from 0; component_count 0 means all components */
    const uint32_t *components;
    uint32_t component_count;
    /* used if all components are selected: true sorts components by descending weight, false by
     * number */
    bool by_weight;
    const unsigned *modes; /* numbers of modes, from 0; mode_count 0 means all modes */
    unsigned mode_count;
    uint64_t rows;         /* number of top rows per component and mode, 1 to SLC_TOP_ROWS_MAX */
    bool by_signed;        /* true selects the largest values, false the largest magnitudes */
    const char *store;     /* store with names of indices; for NULL, see slc_run_names_open */
    uint64_t memory_bytes; /* budget */
};

/* Selected components and modes, and their top rows. */
struct slc_top {
    struct slc_run_folder run; /* for a model in memory, only shape and weights are set */
    uint32_t component_count;
    uint32_t components[SLC_MAX_RANK]; /* component numbers from 0, in the order of output */
    unsigned mode_count;
    unsigned modes[SLC_MAX_ORDER];  /* mode numbers from 0 */
    uint64_t counts[SLC_MAX_ORDER]; /* number of top rows for each of `modes` */
    struct slc_top_row *found[SLC_MAX_ORDER];
    struct slc_run_names names;
    struct slc_buffer memory;
};

/* Finds the top rows. Ownership: release with slc_top_destroy, which accepts NULL. Cost: reads each
 * selected factor once. Errors: SLC_ERR_USAGE for components and modes that the model does not
 * have; SLC_ERR_BUDGET; those of slc_run_folder_read, slc_run_names_open and slc_top_rows_find. */
enum slc_status slc_top_find(const struct slc_top_options *options,
                             struct slc_top **ret_top,
                             struct slc_error *err) SLC_NODISCARD;
void slc_top_destroy(struct slc_top *top);

/* Returns the counts[m] top rows of components[c] in modes[m], in descending order. */
const struct slc_top_row *slc_top_component_rows(const struct slc_top *top, uint32_t c, unsigned m);

#endif
