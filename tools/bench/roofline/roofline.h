/*
 * The kernels that `bench roofline` sets under the roofs (roofs.h). A new one is one entry of the
 * table in roofline_kernels.c and a function that measures it in every mode of an open store.
 *
 * A kernel tells its operations and its bytes itself, by the form in which it computes:
 *   operations  those of the operation from single nonzeros, whatever the kernel saves, so that
 *               kernels of one operation, and tensors, compare by them
 *   bytes       what its loads and stores move between registers and the first-level cache: values,
 *               indices, rows of matrices, rows of the output twice (read and written)
 * So a kernel that uses rows again in registers has a higher intensity, and no kernel moves more
 * than a level's bandwidth. Work outside of its loops (decoding a stream) counts in time alone.
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

/* What to measure. */
struct roofline_job {
    struct slc_session *session; /* the store is open; a kernel plans, starts and stops the rest */
    uint32_t rank;
    unsigned threads;
    enum slc_value_type precision;
    const char *instruction_set;
    uint64_t memory_bytes;
    unsigned warm_up, repeats;
    json_t *left_out;                        /* list of what there is no room for */
    const char *tensor, *case_name, *kernel; /* for that list */
    uint64_t device_memory; /* of a GPU's that may be used; 0: most of what is free */
    const char *temp_dir;   /* of stores that are sorted for a mode; NULL: $TMPDIR or /tmp */
};

/* One kernel in one mode. */
struct roofline_point {
    bool measured; /* false: the kernel does not compute this mode of this store, or had no room */
    struct bench_times times;
    double flop, bytes;  /* of one run */
    uint64_t rows_bytes; /* of all rows that it touches */
    const char *strategy;
    char form[FORMAT_MODES_BYTES]; /* modes that vary within its runs, or "plain" */
    double nnz_per_run;            /* 1 where nothing runs */
};

struct roofline_kernel {
    const char *name;
    /* Fills points[0 .. order-1], all-zero before. Errors: those of planning and computing. */
    enum slc_status (*measure)(const struct roofline_job *job,
                               struct roofline_point *points,
                               struct slc_error *err);
};

/* The last part of a path without .slc; the whole path if another operand has the same. */
void roofline_name_tensor(const struct operands *operands,
                          unsigned which,
                          char *name,
                          size_t bytes);

/* A row at the end of `rows`, with what it is of. */
json_t *roofline_add_row(json_t *rows, const struct roofline_job *job, unsigned mode);

/*
 * After a kernel that failed for want of memory in `count` modes from `first` on: they are left
 * out, which is reported and listed, and the rest can be measured. Other faults stay. Returns what
 * is left of `status`.
 */
enum slc_status roofline_leave_out(const struct roofline_job *job,
                                   unsigned first,
                                   unsigned count,
                                   enum slc_status status,
                                   struct slc_error *err) SLC_NODISCARD;

enum { ROOFLINE_KERNELS_MAX = 16 };
extern const struct roofline_kernel roofline_kernels[];
extern const unsigned roofline_kernel_count;
/* Those of a GPU. */
extern const struct roofline_kernel roofline_device_kernels[];
extern const unsigned roofline_device_kernel_count;

/* On a GPU: MTTKRP from blocks, and products from fibers in its memory (roofline_device.c). */
enum slc_status roofline_device_mttkrp(const struct roofline_job *job,
                                       struct roofline_point *points,
                                       struct slc_error *err) SLC_NODISCARD;
enum slc_status roofline_device_product(const struct roofline_job *job,
                                        struct roofline_point *points,
                                        struct slc_error *err) SLC_NODISCARD;

/*
 * The record of `bench roofline` as a picture: both axes logarithmic, a line per roof with its
 * name, a marker per kernel, mode, rank and tensor, and a legend. The file stands for itself, names
 * nothing outside of it, and follows the viewer's choice of light or dark.
 */
/* Whether `path` can be written, so that a benchmark does not end in vain. Errors: SLC_ERR_IO. */
enum slc_status roofline_svg_try(const char *path, struct slc_error *err) SLC_NODISCARD;

/* Draws the record and puts the file in its place. Errors: SLC_ERR_MEMORY, SLC_ERR_IO, .. */
enum slc_status
roofline_svg_write(const json_t *record, const char *path, struct slc_error *err) SLC_NODISCARD;

#endif
