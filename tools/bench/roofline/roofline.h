/* The kernels that `bench roofline` compares with the roofs (roofs.h). To add a kernel, add an
 * entry to the table in roofline_kernels.c and a function that measures it in every mode of an open
 * store.
 *
 * The measurement of a kernel counts operations and bytes as follows:
 *   operations  operations of a computation nonzero by nonzero, even if the kernel needs fewer,
 *               so that kernels and tensors are comparable
 *   bytes       bytes of loads and stores between registers and the first-level cache: values,
 *               indices, rows of matrices, and rows of the output twice (read and written)
 * A kernel that reuses rows in registers therefore has a higher intensity, and no kernel can move
 * more bytes per second than the bandwidth of a level. Work outside the loops of the kernel, such
 * as decoding, increases the measured time, but neither operations nor bytes. */
#ifndef SLC_TOOLS_BENCH_ROOFLINE_H
#define SLC_TOOLS_BENCH_ROOFLINE_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "convert/generate/generate.h"
#include "storage/manifest/store.h"
#include "tools/bench/measure/timing.h"
#include "tools/progress/format.h"
#include "tools/session/session.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* What to measure of a kernel. */
struct roofline_job {
    /* session with an open store; the kernel plans, and starts and stops the tile stream */
    struct slc_session *session;
    uint32_t rank;
    unsigned mode_begin, mode_end; /* modes to measure, starting at 0 */
    unsigned threads;
    enum slc_value_type precision;
    const char *instruction_set;
    uint64_t memory_bytes;
    unsigned warm_up, repeats;
    /* list of the kernels that are omitted because they exceed the budget */
    json_t *left_out;
    const char *tensor, *case_name, *kernel; /* names for rows of `left_out` */
    uint64_t device_memory; /* GPU memory that may be used; 0 means most of the free memory */
    const char *temp_dir;   /* parent folder of temporary stores; NULL means $TMPDIR or /tmp */
};

/* The measurement of one kernel in one mode. */
struct roofline_point {
    /* false if the kernel cannot compute this mode of this store, or exceeds the budget */
    bool measured;
    struct bench_times times;
    double flop, bytes;  /* operations and bytes of one product */
    uint64_t rows_bytes; /* bytes of all matrix rows that the kernel uses */
    const char *strategy;
    char form[FORMAT_MODES_BYTES]; /* modes that vary within a run, or "plain" without runs */
    double nnz_per_run;            /* 1 without runs */
};

struct roofline_kernel {
    const char *name;
    enum slc_distribution best; /* the tensors on which it is fastest: dense slices or fibers */
    /* Measures the kernel in the modes of the job and fills their elements of points[0 .. order-1],
     * which are all-zero. Errors: those of planning and computing. */
    enum slc_status (*measure)(const struct roofline_job *job,
                               struct roofline_point *points,
                               struct slc_error *err);
};

/* Sets the name of a tensor: the file name of its path without .slc, or the whole path if another
 * operand has the same file name. */
void roofline_name_tensor(const struct operands *operands,
                          unsigned which,
                          char *name,
                          size_t bytes);

/* Appends a row to `rows`, with the members that identify the measurement. */
json_t *roofline_add_row(json_t *rows, const struct roofline_job *job, unsigned mode);

/* Handles the `status` of a kernel for `count` modes from mode `first`. If it is SLC_ERR_BUDGET,
 * prints a note, adds the modes to the list job->left_out and returns SLC_OK, so that other modes
 * can be measured. Returns any other `status` unchanged. */
enum slc_status roofline_leave_out(const struct roofline_job *job,
                                   unsigned first,
                                   unsigned count,
                                   enum slc_status status,
                                   struct slc_error *err) SLC_NODISCARD;

enum { ROOFLINE_KERNELS_MAX = 16 };
extern const struct roofline_kernel roofline_kernels[];
extern const unsigned roofline_kernel_count;
/* The kernels of a GPU. */
extern const struct roofline_kernel roofline_device_kernels[];
extern const unsigned roofline_device_kernel_count;

/* Measure the kernels of a GPU (roofline_device.c): MTTKRP from blocks; TTV and TTM from fibers in
 * device memory. */
enum slc_status roofline_device_mttkrp(const struct roofline_job *job,
                                       struct roofline_point *points,
                                       struct slc_error *err) SLC_NODISCARD;
enum slc_status roofline_device_product(const struct roofline_job *job,
                                        struct roofline_point *points,
                                        struct slc_error *err) SLC_NODISCARD;

/* These functions draw the record of `bench roofline` as an SVG picture: logarithmic axes, a named
 * line per roof, a marker per kernel, mode, rank and tensor, and a legend. The file is
 * self-contained and has light and dark colours, between which the viewer chooses. */
/* Checks before any measurement that `path` can be written. Errors: SLC_ERR_IO. */
enum slc_status roofline_svg_try(const char *path, struct slc_error *err) SLC_NODISCARD;

/* Draws the record and writes it to `path`, replacing a file. Errors: SLC_ERR_MEMORY, SLC_ERR_IO,
 * SLC_ERR_NOSPACE. */
enum slc_status
roofline_svg_write(const json_t *record, const char *path, struct slc_error *err) SLC_NODISCARD;

#endif
