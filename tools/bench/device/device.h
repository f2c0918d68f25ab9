/* The measurements of `bench device`: MTTKRP, products from fibers, and rows of the record. */
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
 * MTTKRP on a device, mode by mode: sluice's from encoded blocks, which stay resident as far as the
 * device's memory allows and are streamed otherwise, and those of other programs from lists of
 * coordinates (tools/bench/rivals/gpu/lists.h).
 */
struct device_mttkrp {
    const char *path;
    uint32_t rank;
    enum slc_value_type precision;
    unsigned mode;       /* from 1; 0: all */
    const char *kernel;  /* "sluice", a name of tools/bench/rivals/gpu/lists.h, or "all" */
    const char *variant; /* of sluice's kernel: a name of gpu/device/variants.h, or "all" */
    struct slc_gpu_lists_options lists;
    struct option_counts devices; /* that share the work of AMPED's kernel; none: one device */
    struct session_options session;
    unsigned warm_up, repeats;
};

/* Appends to `rows` a row without figures for a kernel in `mode`, counted from 0. */
json_t *device_mttkrp_add_row(const struct device_mttkrp *request,
                              const struct slc_manifest *manifest,
                              unsigned mode,
                              const char *kernel,
                              json_t *rows);

/* Sets the times of a row: device times with their rate, and times of whole calls. */
void device_mttkrp_set_times(json_t *row,
                             uint64_t nnz,
                             const struct bench_samples *device,
                             const struct bench_samples *whole);

/* Sets the form that a baseline read in `mode`, and its cost: `seconds` to build it. Rows with the
 * same "form" share it. */
void device_mttkrp_set_form(json_t *row,
                            const char *kernel,
                            unsigned mode,
                            double seconds,
                            const struct slc_gpu_lists_run *run);

/*
 * Turns a lack of memory for a kernel, or a tensor that it cannot compute, into the row's "note".
 * Returns SLC_OK then, otherwise `status`.
 */
enum slc_status
device_mttkrp_note_refusal(json_t *row, enum slc_status status, struct slc_error *err);

/* Bytes of a layout's blocks, without padding, per nonzero. */
double device_block_bytes_per_nnz(const struct slc_reader *reader);

/* The norm of the difference from `wanted`, relative to the norm of `wanted` if that is not 0. */
double device_mttkrp_difference(const struct slc_matrix *wanted, const struct slc_matrix *got);

/* Appends a row per mode, kernel and variant to `rows`. Errors: those of planning, streaming and
 * the device; SLC_ERR_USAGE for an unknown kernel or variant. */
enum slc_status device_mttkrp_measure(const struct device_mttkrp *measured,
                                      json_t *rows,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * sluice's MTTKRP on several devices together (AMPED): its scaling with their number, and the
 * balance of their work. The same device may be listed several times.
 * Appends a row per mode to `rows` for `count` logical devices, all on device `ordinal`: shares of
 * partitions if the store has layouts sorted by every mode, and equal shares of nonzeros. The
 * median is that of the slowest device. If memory does not suffice, one row has a note instead.
 * Errors: those of planning, streaming and devices.
 */
enum slc_status device_group_measure(const struct device_mttkrp *measured,
                                     unsigned ordinal,
                                     unsigned count,
                                     json_t *rows,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * AMPED's MTTKRP (tools/bench/rivals/gpu/baselines.h) on several devices together: its division of
 * the nonzeros (sections 3.2 and 4.9 of the paper), kernels over lists on each device, and its
 * exchange of the output's rows (4.8), by the ring of engine/executor/gpu_group.h. The same device
 * may be listed several times.
 * Appends a row per mode to `rows`, for the devices of request->devices. `list` is complete, and
 * `wanted` has the output of each mode. A row that cannot be measured has a note instead.
 *
 *   device_ms       of each device, alone on the machine, as section 5.6 measures them
 *   median_ms       the longest of these
 *   exchange_ms     of the ring
 *   whole_ms        of all devices at the same time, and the ring
 *   build_ms        dividing, sorting and copying the list
 *   differs         difference of the factor on every device after the exchange from `wanted`
 * The summary (device_summary.h) derives spread and scaling (sections 5.6, 5.7).
 * Errors: those of planning and of the devices, SLC_ERR_MEMORY, SLC_ERR_SYSTEM.
 */
enum slc_status device_amped_measure(const struct device_mttkrp *request,
                                     const struct slc_manifest *manifest,
                                     const struct slc_coo *list,
                                     const struct bench_factors *factors,
                                     const struct slc_matrix *wanted,
                                     json_t *rows,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * Loads a store as a list of coordinates in host memory, decoded by the CPU: the input of kernels
 * that do not read blocks, and the reference for those on a device. `options` are the session's,
 * without the device. Needs: *coo all-zero. Owns: slc_coo_destroy, also after an error.
 * Errors: those of streaming a store, and of slc_coo_create.
 */
enum slc_status device_list_load(const char *path,
                                 const struct session_options *options,
                                 enum slc_value_type type,
                                 struct slc_coo *coo,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Tensor times vector and tensor times matrix on a device, from fibers in its memory, mode by mode
 * (tools/bench/rivals/gpu/lists.h): sluice's kernels with each of their switches, forms of TTM, and
 * cuSPARSE.
 */
struct device_fibers {
    const char *path;
    unsigned ordinal;
    unsigned mode;                     /* from 1; 0: all */
    bool vector, matrix;               /* products to measure */
    const char *only;                  /* a name of tools/bench/rivals/gpu/lists.h; NULL: all */
    const struct option_counts *ranks; /* columns of the matrix */
    enum slc_value_type precision;     /* of the matrix; products with a vector are f64 */
    struct session_options session;
    unsigned repeats;
};

/*
 * Appends a row per mode and product to `rows`, with the difference of its result from the CPU's.
 * If a product is not available (no cuSPARSE, too many empty fibers), the row has the reason.
 * Errors: those of reading, and of the device.
 */
enum slc_status device_fibers_measure(const struct device_fibers *measured,
                                      json_t *rows,
                                      struct slc_error *err) SLC_NODISCARD;

#endif
