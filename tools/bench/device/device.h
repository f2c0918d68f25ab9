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
 * MTTKRP on a device, mode by mode. Sluice computes from encoded blocks, which stay resident as far
 * as device memory allows and are otherwise streamed. Kernels of other programs compute from lists
 * of coordinates (tools/bench/rivals/gpu/lists.h).
 */
struct device_mttkrp {
    const char *path;
    uint32_t rank;
    enum slc_value_type precision;
    unsigned mode;       /* from 1; 0: all */
    const char *kernel;  /* "sluice", a name of tools/bench/rivals/gpu/lists.h, or "all" */
    const char *variant; /* variant of sluice's kernel: a name of gpu/device/variants.h, or "all" */
    struct slc_gpu_lists_options lists;
    /* devices that share the work of AMPED's kernel; none: one device */
    struct option_counts devices;
    struct session_options session;
    unsigned warm_up, repeats;
};

/* Appends to `rows` a row without figures for a kernel in `mode`, counted from 0. */
json_t *device_mttkrp_add_row(const struct device_mttkrp *request,
                              const struct slc_manifest *manifest,
                              unsigned mode,
                              const char *kernel,
                              json_t *rows);

/* Sets the times of a row: device times and the rate derived from them, and times of whole
 * calls. */
void device_mttkrp_set_times(json_t *row,
                             uint64_t nnz,
                             const struct bench_samples *device,
                             const struct bench_samples *whole);

/* Sets the form that a baseline read in `mode`, and the cost of building it, `seconds`. Rows with
 * the same "form" share one form. */
void device_mttkrp_set_form(json_t *row,
                            const char *kernel,
                            unsigned mode,
                            double seconds,
                            const struct slc_gpu_lists_run *run);

/*
 * If a kernel lacks memory, or cannot compute the tensor, sets the row's "note" to the reason and
 * returns SLC_OK. Otherwise returns `status`.
 */
enum slc_status
device_mttkrp_note_refusal(json_t *row, enum slc_status status, struct slc_error *err);

/* Returns the size in bytes of a layout's blocks per nonzero, without padding. */
double device_block_bytes_per_nnz(const struct slc_reader *reader);

/* Returns the norm of the difference between `got` and `wanted`, divided by the norm of `wanted`
 * unless that is 0. */
double device_mttkrp_difference(const struct slc_matrix *wanted, const struct slc_matrix *got);

/* Measures the MTTKRPs and appends a row per mode, kernel and variant to `rows`. Errors: those of
 * planning, streaming and the device; SLC_ERR_USAGE for an unknown kernel or variant. */
enum slc_status device_mttkrp_measure(const struct device_mttkrp *measured,
                                      json_t *rows,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * Measures sluice's MTTKRP on several devices together, after AMPED: how it scales with the number
 * of devices, and how well their work is balanced. Appends rows for `count` logical devices, all on
 * device `ordinal`: a row per mode with equal shares of nonzeros and, if the store has layouts
 * sorted by every mode, a row per mode with shares of partitions. The median is the median time of
 * the slowest device. If memory does not suffice, a single row with a note is appended instead.
 * Errors: those of planning, streaming and devices.
 */
enum slc_status device_group_measure(const struct device_mttkrp *measured,
                                     unsigned ordinal,
                                     unsigned count,
                                     json_t *rows,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * Measures AMPED's MTTKRP (tools/bench/rivals/gpu/baselines.h) on several devices together. The
 * nonzeros are divided as in sections 3.2 and 4.9 of the paper, kernels compute from lists on each
 * device, and the rows of the output are exchanged as in section 4.8, by the ring of
 * engine/executor/gpu_group.h. The same device may be listed several times.
 * Appends a row per mode to `rows`, for the devices of request->devices. `list` must be complete,
 * and `wanted` must have the output of each mode. A row that cannot be measured has a note instead
 * of figures.
 *
 *   device_ms       time of each device while the others are idle, as section 5.6 measures it
 *   median_ms       the longest of these times
 *   exchange_ms     time of the ring
 *   whole_ms        time of all devices working at the same time, plus the ring
 *   build_ms        time to divide, sort and copy the list
 *   differs         largest difference from `wanted` of the factor on any device after the exchange
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
 * Loads a store as a list of coordinates in host memory, decoded by the CPU. The list is the input
 * of kernels that do not read blocks, and the reference for results of a device. `options` are the
 * options of the session, without its device. Needs: *coo is all-zero. Owns: release with
 * slc_coo_destroy, also after an error.
 * Errors: those of streaming a store, and of slc_coo_create.
 */
enum slc_status device_list_load(const char *path,
                                 const struct session_options *options,
                                 enum slc_value_type type,
                                 struct slc_coo *coo,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Tensor times vector and tensor times matrix on a device, from fibers in device memory, mode by
 * mode (tools/bench/rivals/gpu/lists.h): sluice's kernels with each of their switches, the forms of
 * TTM, and cuSPARSE.
 */
struct device_fibers {
    const char *path;
    unsigned ordinal;
    unsigned mode;                     /* from 1; 0: all */
    bool vector, matrix;               /* products to measure */
    const char *only;                  /* a name of tools/bench/rivals/gpu/lists.h; NULL: all */
    const struct option_counts *ranks; /* columns of the matrix */
    enum slc_value_type precision;     /* type of the matrix; products with a vector are f64 */
    struct session_options session;
    unsigned repeats;
};

/*
 * Measures the products and appends a row per mode and product to `rows`, with the difference
 * between its result and that of the CPU. If a product is not available (no cuSPARSE, too many
 * empty fibers), the row has the reason instead. Errors: those of reading, and of the device.
 */
enum slc_status device_fibers_measure(const struct device_fibers *measured,
                                      json_t *rows,
                                      struct slc_error *err) SLC_NODISCARD;

#endif
