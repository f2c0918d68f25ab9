/*
 * `sluice generate`: random sparse tensors of any size, in bounded memory. What is drawn is a
 * function of the options alone (counter-based numbers), whatever the threads.
 */
#ifndef SLC_CONVERT_GENERATE_H
#define SLC_CONVERT_GENERATE_H

#include "base/error/error.h"
#include "convert/generate/generate_options.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_generate_report {
    uint64_t entries;
    bool store;                      /* the output is a store, not text */
    uint64_t text_bytes;             /* text output */
    struct slc_builder_report build; /* store output */
};

/* What it would take, judged by the first entries. */
struct slc_generate_forecast {
    bool store;
    unsigned workers;
    uint64_t fixed_bytes;               /* process, factors of a model, columns of entries */
    uint64_t text_memory_bytes;         /* text output: buffers */
    uint64_t push_bytes, sort_bytes;    /* store output, beside the process */
    uint64_t spill_bytes, output_bytes; /* on disk */
    double draw_seconds;                /* of all workers at once; text: formatting included */
    double scatter_seconds, sort_seconds, encode_seconds; /* store output */
};
/* Writes nothing. Errors: those of slc_generate's beginning. */
enum slc_status slc_generate_forecast(const struct slc_generate_options *options,
                                      struct slc_generate_forecast *forecast,
                                      struct slc_error *err) SLC_NODISCARD;

/* Errors: SLC_ERR_USAGE (nnz above the product of lengths, ..), those of the builder or files. */
enum slc_status slc_generate(const struct slc_generate_options *options,
                             struct slc_generate_report *report,
                             struct slc_error *err) SLC_NODISCARD;

#endif
