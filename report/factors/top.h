/*
 * The strongest rows of the components of a model, mode by mode, with the names of the indices.
 * Factors in files are streamed, so that what is kept of them are the rows that are told.
 */
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
    const struct slc_files *files;      /* NULL: the operating system */
    const char *folder;                 /* of a run or of factors; NULL: */
    const struct slc_model_view *model; /* one in memory. Borrowed */
    const uint32_t *components;         /* `component_count` of them, from 0; 0: all of them .. */
    uint32_t component_count;
    bool by_weight;        /* .. the heaviest first, else by number */
    const unsigned *modes; /* `mode_count` of them, from 0; 0: all of them */
    unsigned mode_count;
    uint64_t rows;         /* of each mode, 1 to SLC_TOP_ROWS_MAX */
    bool by_signed;        /* the largest values, not the largest absolute ones */
    const char *store;     /* with the names of indices; NULL: as slc_run_names_open */
    uint64_t memory_bytes; /* budget */
};

/* What is told, and what has been found of it. */
struct slc_top {
    struct slc_run_folder run; /* of a model in memory: shape and weights */
    uint32_t component_count;
    uint32_t components[SLC_MAX_RANK]; /* from 0, in the order in which they are told */
    unsigned mode_count;
    unsigned modes[SLC_MAX_ORDER];  /* from 0 */
    uint64_t counts[SLC_MAX_ORDER]; /* rows told of each of `modes` */
    struct slc_top_row *found[SLC_MAX_ORDER];
    struct slc_run_names names;
    struct slc_buffer memory;
};

/*
 * Finds them. Owns: slc_top_destroy, which takes NULL. Cost: one trip through each factor that is
 * told of. Errors: SLC_ERR_USAGE for components and modes that the model has not; SLC_ERR_BUDGET;
 * those of slc_run_folder_read, slc_run_names_open and slc_top_rows_find.
 */
enum slc_status slc_top_find(const struct slc_top_options *options,
                             struct slc_top **ret_top,
                             struct slc_error *err) SLC_NODISCARD;
void slc_top_destroy(struct slc_top *top);

/* The rows, counts[m] of them, of components[c] in modes[m], the strongest first. */
const struct slc_top_row *slc_top_component_rows(const struct slc_top *top, uint32_t c, unsigned m);

#endif
