/*
 * MTTKRP on a device, mode by mode: sluice's from encoded blocks, resident as far as the device's
 * memory reaches and streamed beyond, and those of other programs from lists of coordinates
 * (tools/bench/rivals/gpu/lists.h).
 */
#ifndef SLC_TOOLS_BENCH_DEVICE_MTTKRP_H
#define SLC_TOOLS_BENCH_DEVICE_MTTKRP_H

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

/* Appends a row per mode, kernel and variant to `rows`. Errors: those of planning, streaming and
 * the device; SLC_ERR_USAGE for a kernel or a variant that does not exist. */
enum slc_status device_mttkrp_measure(const struct device_mttkrp *measured,
                                      json_t *rows,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * sluice's MTTKRP on several devices together (AMPED): how it scales with their number, and how
 * evenly they are busy. The devices may be one that is named several times.
 */
/*
 * Appends a row per mode to `rows` for `count` logical devices, all of them the device `ordinal`:
 * shares of partitions if the store has layouts sorted by every mode, and equal shares of nonzeros.
 * The median is that of the device that computes longest. If there is no memory for them, one row
 * has a note instead. Errors: those of planning, streaming and devices.
 */
enum slc_status device_group_measure(const struct device_mttkrp *measured,
                                     unsigned ordinal,
                                     unsigned count,
                                     json_t *rows,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
