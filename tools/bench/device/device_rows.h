/*
 * What `bench device` is asked to measure of MTTKRP, and the rows of its record.
 */
#ifndef SLC_TOOLS_BENCH_DEVICE_ROWS_H
#define SLC_TOOLS_BENCH_DEVICE_ROWS_H

#include "base/matrix.h"
#include "tools/bench/measure/timing.h"
#include "tools/bench/rivals/gpu/lists.h"
#include "tools/session/session.h"

#include <jansson.h>

struct device_mttkrp {
    const char *path;
    uint32_t rank;
    enum slc_value_type precision;
    unsigned mode;       /* from 1; 0: each */
    const char *kernel;  /* "sluice", one of tools/bench/rivals/gpu/lists.h, or "all" */
    const char *variant; /* of sluice's kernel: one of gpu/device/variants.h, or "all" */
    struct slc_gpu_lists_options lists;
    struct option_counts devices; /* that AMPED's kernel divides the work between; none: one */
    struct session_options session;
    unsigned warm_up, repeats;
};

/* Appends a row for a kernel in a mode, from 0, to `rows`: what was measured, without figures. */
json_t *device_mttkrp_add_row(const struct device_mttkrp *of,
                              const struct slc_manifest *manifest,
                              unsigned mode,
                              const char *kernel,
                              json_t *rows);

/* Sets the times of a row: those of the device, with their rate, and those of whole calls. */
void device_mttkrp_set_times(json_t *row,
                             uint64_t nnz,
                             const struct bench_samples *device,
                             const struct bench_samples *whole);

/* Sets the form that a baseline read in `mode`, and its cost: `seconds` to make it. Rows with the
 * same "form" share it. */
void device_mttkrp_set_form(json_t *row,
                            const char *kernel,
                            unsigned mode,
                            double seconds,
                            const struct slc_gpu_lists_run *run);

/*
 * A kernel that there is no memory for, or that cannot compute the tensor, is no failure: the
 * reason becomes the row's "note". Returns SLC_OK then, else `status`.
 */
enum slc_status
device_mttkrp_note_refusal(json_t *row, enum slc_status status, struct slc_error *err);

/* Bytes of a layout's blocks, without padding, for each nonzero. */
double device_block_bytes_per_nnz(const struct slc_reader *reader);

/* The norm of the difference from `wanted`, over the norm of that unless it is 0. */
double device_mttkrp_difference(const struct slc_matrix *wanted, const struct slc_matrix *got);

#endif
