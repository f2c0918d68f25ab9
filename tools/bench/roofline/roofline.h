/*
 * The kernels that `bench roofline` compares with the roofs (roofs.h). To add a kernel, add an
 * entry to the table in roofline_kernels.c and a function that measures it in every mode of an open
 * store.
 *
 * A kernel counts its own operations and bytes, as it computes:
 *   operations  those of computing nonzero by nonzero, even if the kernel needs fewer, so that
 *               kernels of one operation, and tensors, are comparable
 *   bytes       those of loads and stores between registers and the first-level cache: values,
 *               indices, rows of matrices, and rows of the output twice (read and written)
 * A kernel that reuses rows in registers therefore has a higher intensity, and no kernel can move
 * more bytes per second than the bandwidth of a level. Work outside of the kernel's loops, such as
 * decoding a stream, counts only in the time.
 */
#ifndef SLC_TOOLS_BENCH_ROOFLINE_H
#define SLC_TOOLS_BENCH_ROOFLINE_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "storage/manifest/store.h"
#include "tools/bench/measure/timing.h"
#include "tools/progress/format.h"
#include "tools/session/session.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* A measurement. */
struct roofline_job {
    /* its store is open; a kernel plans, and starts and stops the stream */
    struct slc_session *session;
    uint32_t rank;
    unsigned threads;
    enum slc_value_type precision;
    const char *instruction_set;
    uint64_t memory_bytes;
    unsigned warm_up, repeats;
    /* list of the kernels that are left out because they exceed the budget */
    json_t *left_out;
    const char *tensor, *case_name, *kernel; /* names for `left_out` */
    uint64_t device_memory; /* GPU memory that may be used; 0: most of the free memory */
    const char *temp_dir;   /* parent folder for stores sorted for a mode; NULL: $TMPDIR or /tmp */
};

/* One kernel in one mode. */
struct roofline_point {
    /* false: the kernel does not compute this mode of this store, or lacked memory */
    bool measured;
    struct bench_times times;
    double flop, bytes;  /* operations and bytes of one execution */
    uint64_t rows_bytes; /* bytes of all matrix rows that the kernel uses */
    const char *strategy;
    char form[FORMAT_MODES_BYTES]; /* modes that vary within a run of nonzeros, or "plain" */
    double nnz_per_run;            /* 1 without runs */
};

struct roofline_kernel {
    const char *name;
    /* Fills points[0 .. order-1], which are all-zero. Errors: those of planning and computing. */
    enum slc_status (*measure)(const struct roofline_job *job,
                               struct roofline_point *points,
                               struct slc_error *err);
};

/* Sets the name of a tensor: the last part of its path without .slc, or the whole path if another
 * operand has the same last part. */
void roofline_name_tensor(const struct operands *operands,
                          unsigned which,
                          char *name,
                          size_t bytes);

/* Appends a row to `rows`, with the members that identify the measurement. */
json_t *roofline_add_row(json_t *rows, const struct roofline_job *job, unsigned mode);

/*
 * Handles a kernel that lacked memory in `count` modes from mode `first`: these modes are left out,
 * reported and listed, and SLC_OK is returned, so that the other modes can be measured. Returns any
 * other `status` unchanged.
 */
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

/* The kernels of a GPU: MTTKRP from blocks, and products from fibers in device memory
 * (roofline_device.c). */
enum slc_status roofline_device_mttkrp(const struct roofline_job *job,
                                       struct roofline_point *points,
                                       struct slc_error *err) SLC_NODISCARD;
enum slc_status roofline_device_product(const struct roofline_job *job,
                                        struct roofline_point *points,
                                        struct slc_error *err) SLC_NODISCARD;

/*
 * The record of `bench roofline` as an SVG picture: logarithmic axes, a named line per roof, a
 * marker per kernel, mode, rank and tensor, and a legend. The file is self-contained and follows
 * the viewer's choice of light or dark colours.
 */
/* Checks that `path` can be written. Called before anything is measured. Errors: SLC_ERR_IO. */
enum slc_status roofline_svg_try(const char *path, struct slc_error *err) SLC_NODISCARD;

/* Draws the record and renames the file into place. Errors: SLC_ERR_MEMORY, SLC_ERR_IO, .. */
enum slc_status
roofline_svg_write(const json_t *record, const char *path, struct slc_error *err) SLC_NODISCARD;

#endif
