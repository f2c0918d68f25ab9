/*
 * What is measured on a device: MTTKRP, and products from fibers; and the rows of the record.
 */
#ifndef SLC_TOOLS_BENCH_DEVICE_H
#define SLC_TOOLS_BENCH_DEVICE_H

#include "base/matrix.h"
#include "tools/bench/measure/factors.h"
#include "tools/bench/measure/timing.h"
#include "tools/bench/rivals/cpu/coo.h"
#include "tools/bench/rivals/gpu/lists.h"
#include "tools/session/session.h"

#include <jansson.h>

/*
 * MTTKRP on a device, mode by mode: sluice's from encoded blocks, resident as far as the device's
 * memory reaches and streamed beyond, and those of other programs from lists of coordinates
 * (tools/bench/rivals/gpu/lists.h).
 */
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

/*
 * AMPED's MTTKRP (tools/bench/rivals/gpu/baselines.h) on several devices together: its division of
 * the nonzeros (sections 3.2 and 4.9 of the paper), kernels over lists on each device, and its
 * exchange of the output's rows (4.8), by the ring of engine/executor/gpu_group.h. The devices
 * may be one that is named several times.
 * Appends a row per mode to `rows`, for the devices of of->devices; `list` is complete, `wanted`
 * has the output of each mode. Where a row cannot be had it has a note instead.
 *
 *   device_ms       of each device, alone on the machine, as section 5.6 measures them
 *   median_ms       the longest of these
 *   exchange_ms     of the ring
 *   whole_ms        of all devices at the same time, and the ring
 *   build_ms        dividing, sorting and copying the list
 *   differs         the factor that every device has after the exchange, from `wanted`
 * Spread and scaling (sections 5.6, 5.7) follow from these in the summary (device_summary.h).
 * Errors: those of planning and of the devices, SLC_ERR_MEMORY, SLC_ERR_SYSTEM.
 */
enum slc_status device_amped_measure(const struct device_mttkrp *of,
                                     const struct slc_manifest *manifest,
                                     const struct slc_coo *list,
                                     const struct bench_factors *factors,
                                     const struct slc_matrix *wanted,
                                     json_t *rows,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * Loads a store as a list of coordinates in the host's memory, decoded by the CPU: what kernels
 * that know no blocks are given, and what those on a device are compared with. `options` are the
 * session's, but for the device. Needs: *coo all-zero. Owns: slc_coo_destroy, also after an error.
 * Errors: those of streaming a store, and of slc_coo_create.
 */
enum slc_status device_list_load(const char *path,
                                 const struct session_options *options,
                                 enum slc_value_type type,
                                 struct slc_coo *coo,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Tensor times vector and tensor times matrix on a device, from fibers in its memory, mode by mode
 * (tools/bench/rivals/gpu/lists.h): ours, with each of its switches, forms of TTM, and
 * cuSPARSE.
 */
struct device_fibers {
    const char *path;
    unsigned ordinal;
    unsigned mode;                     /* from 1; 0: each */
    bool vector, matrix;               /* which of the two products */
    const char *only;                  /* one of tools/bench/rivals/gpu/lists.h alone; NULL: each */
    const struct option_counts *ranks; /* columns of the matrix */
    enum slc_value_type precision;     /* of the matrix; products with a vector are f64 */
    struct session_options session;
    unsigned repeats;
};

/*
 * Appends a row per mode and product to `rows`, with how far its result is from the CPU's; where a
 * product cannot be had (no cuSPARSE, too many empty fibers) the row says why. Errors: those of
 * reading, and of the device.
 */
enum slc_status device_fibers_measure(const struct device_fibers *measured,
                                      json_t *rows,
                                      struct slc_error *err) SLC_NODISCARD;

#endif
