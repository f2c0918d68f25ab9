/* Measurements of `bench device`: MTTKRP, TTV and TTM from fibers, and their rows of the record. */
#ifndef SLC_TOOLS_BENCH_DEVICE_H
#define SLC_TOOLS_BENCH_DEVICE_H

#include "base/matrix.h"
#include "tools/bench/measure/factors.h"
#include "tools/bench/measure/timing.h"
#include "tools/bench/rivals/cpu/coo.h"
#include "tools/bench/rivals/gpu/lists.h"
#include "tools/session/session.h"

#include <jansson.h>

/* What to measure of MTTKRPs on a device. Sluice computes from encoded blocks, which stay in device
 * memory if they fit and are streamed otherwise. Baselines compute from lists of coordinates
 * (tools/bench/rivals/gpu/lists.h). */
struct device_mttkrp {
    const char *path;
    uint32_t rank;
    enum slc_value_type precision;
    unsigned mode;      /* starts at 1; 0 means all modes */
    const char *kernel; /* "sluice", a name as in tools/bench/rivals/gpu/lists.h, or "all" */
    struct slc_gpu_lists_options lists;
    /* numbers of the GPUs that share the work of AMPED's kernel; empty for one GPU */
    struct option_counts devices;
    struct session_options session;
    unsigned warm_up, repeats;
};

/* Appends a row for a kernel in `mode` (starting at 0) to `rows`. The row has no figures yet. */
json_t *device_mttkrp_add_row(const struct device_mttkrp *request,
                              const struct slc_manifest *manifest,
                              unsigned mode,
                              const char *kernel,
                              json_t *rows);

/* Sets the times of a row: the device times, the rate derived from them, and the times of whole
 * calls. */
void device_mttkrp_set_times(json_t *row,
                             uint64_t nnz,
                             const struct bench_samples *device,
                             const struct bench_samples *whole);

/* Sets the name and the size of the form in which a baseline stores nonzeros for `mode`, and the
 * time to build it, `seconds`. Rows with an equal member "form" use the same stored nonzeros. */
void device_mttkrp_set_form(json_t *row,
                            const char *kernel,
                            unsigned mode,
                            double seconds,
                            const struct slc_gpu_lists_run *run);

/* If `status` means that a kernel lacks memory or does not support the tensor, sets "note" of the
 * row to the reason and returns SLC_OK. Otherwise returns `status`. */
enum slc_status
device_mttkrp_note_refusal(json_t *row, enum slc_status status, struct slc_error *err);

/* Returns the bytes per nonzero of the blocks of a layout, without padding. */
double device_block_bytes_per_nnz(const struct slc_reader *reader);

/* Returns the norm of the difference between `got` and `wanted`, divided by the norm of `wanted`
 * unless this norm is 0. */
double device_mttkrp_difference(const struct slc_matrix *wanted, const struct slc_matrix *got);

/* Measures the MTTKRPs and appends a row per mode and kernel to `rows`. Errors: those of
 * planning, streaming and the device; SLC_ERR_USAGE for an unknown kernel. */
enum slc_status device_mttkrp_measure(const struct device_mttkrp *measured,
                                      json_t *rows,
                                      struct slc_error *err) SLC_NODISCARD;

/* Measures sluice's MTTKRP on several devices together, as the paper of AMPED does: how its speed
 * scales with the number of devices, and how well their work is balanced. Appends rows to `rows`
 * for `count` logical devices, all on GPU `ordinal`: a row per mode with the nonzeros divided
 * equally and, if the store has layouts sorted by every mode, another row with the partitions of
 * these layouts divided. The time of a run is the time of its slowest device. If memory does not
 * suffice, appends one row with a note. Errors: those of planning, streaming and devices. */
enum slc_status device_group_measure(const struct device_mttkrp *measured,
                                     unsigned ordinal,
                                     unsigned count,
                                     json_t *rows,
                                     struct slc_error *err) SLC_NODISCARD;

/* Measures AMPED's MTTKRP (tools/bench/rivals/gpu/baselines.h) on all devices of request->devices
 * together; the list may name a device several times. The nonzeros are divided as in sections 3.2
 * and 4.9 of the paper. Each device has a list of its nonzeros. Then the devices exchange rows of
 * the output as in section 4.8, by the ring of engine/executor/gpu_group.h. `list` must have all
 * nonzeros, and `wanted` the output of each mode. Appends a row per mode to `rows`; a row that
 * cannot be measured has a note instead of figures.
 *
 *   device_ms       time of each device while the others are idle, as in section 5.6
 *   median_ms       the longest of these times
 *   exchange_ms     time of the ring
 *   whole_ms        time of all devices at the same time, plus the time of the ring
 *   build_ms        time to divide, sort and copy the list
 *   differs         after the exchange, largest difference of the factor on a device from `wanted`
 * The summary (device_summary.h) derives spread and scaling (sections 5.6, 5.7).
 * Errors: those of planning and of the devices, SLC_ERR_MEMORY, SLC_ERR_SYSTEM. */
enum slc_status device_amped_measure(const struct device_mttkrp *request,
                                     const struct slc_manifest *manifest,
                                     const struct slc_coo *list,
                                     const struct bench_factors *factors,
                                     const struct slc_matrix *wanted,
                                     json_t *rows,
                                     struct slc_error *err) SLC_NODISCARD;

/* Loads a store as a list of coordinates in host memory; the CPU decodes it. The list is the input
 * of kernels that do not read blocks, and the reference for results of a device. `options` are the
 * options of the session; its device options are ignored. Needs: *coo is all-zero. The caller must
 * call slc_coo_destroy, also after an error. Errors: those of streaming a store, and of
 * slc_coo_create. */
enum slc_status device_list_load(const char *path,
                                 const struct session_options *options,
                                 enum slc_value_type type,
                                 struct slc_coo *coo,
                                 struct slc_error *err) SLC_NODISCARD;

/* What to measure of TTV and TTM on a device, from fibers in device memory
 * (tools/bench/rivals/gpu/lists.h): sluice's TTV kernel with each of its switches, both kernels of
 * TTM, and cuSPARSE. */
struct device_fibers {
    const char *path;
    unsigned ordinal;
    unsigned mode;       /* starts at 1; 0 means all modes */
    bool vector, matrix; /* measure TTV, measure TTM */
    const char *only;    /* a name as in tools/bench/rivals/gpu/lists.h; NULL means all */
    const struct option_counts *ranks; /* columns of the matrix */
    enum slc_value_type precision;     /* type of the matrix; TTV is always in f64 */
    struct session_options session;
    unsigned repeats;
};

/* Measures the products and appends a row per mode and product to `rows`, with the difference of
 * the result from the result of the CPU. If a product is not available (no cuSPARSE, too many empty
 * fibers), the row has the reason instead of figures. Errors: those of reading, and of the
 * device. */
enum slc_status device_fibers_measure(const struct device_fibers *measured,
                                      json_t *rows,
                                      struct slc_error *err) SLC_NODISCARD;

#endif
