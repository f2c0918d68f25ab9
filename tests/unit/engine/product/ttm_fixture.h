/* Products of small random tensors with a matrix: the oracle's, and those of a stream, read
 * back. */
#ifndef SLC_TEST_TTM_FIXTURE_H
#define SLC_TEST_TTM_FIXTURE_H

#include "cp_fixture.h"
#include "engine/product/ttm.h"

/* A tensor in a store whose keys keep the fibers of `mode` whole, a matrix, and their product. */
struct ttm_problem {
    struct fixture_tensor tensor;
    unsigned mode;
    char store[512];
    char folder[600]; /* folder of the result */
    struct slc_matrix matrix;
    uint64_t fibers;
    uint64_t *coords; /* expected coordinates, fibers x order, ascending; 0 in `mode` */
    double *want;     /* expected rows, fibers x R */
    double *magnitude;
};

/* Options of a run. */
struct ttm_shape {
    enum slc_ttm_form form;
    unsigned threads;
    bool least;                /* true: the smallest sufficient memory; false: plenty */
    struct slc_device *device; /* device that multiplies, or NULL */
    struct slc_hybrid_wish hybrid;
    unsigned streams;
};

/* A result read from its files. */
struct ttm_result {
    uint64_t fibers;
    uint64_t modes, cols;
    int64_t *coords; /* coordinates, fibers x modes */
    double *rows;    /* rows of sums, fibers x cols, of either type */
    uint64_t bytes;  /* size of both files */
    uint64_t hash;   /* hash of all bytes of both files */
};

/* Tiles of up to `tile_nnz` nonzeros (0: full), so that there are many borders. A matrix of small
 * integers also makes the tensor's values integers, so that all sums are exact. */
void ttm_problem_create(struct ttm_problem *problem,
                        unsigned order,
                        const uint64_t *dims,
                        unsigned mode,
                        uint64_t draws,
                        uint32_t tile_nnz,
                        uint32_t cols,
                        enum slc_value_type type,
                        bool integers);
void ttm_problem_destroy(struct ttm_problem *problem);

/* A store opened for a product: reader, plan, split and stream. */
struct ttm_run {
    struct slc_store store;
    struct slc_plan plan;
    struct slc_stream *stream;
    struct slc_ttm_options options;
};
enum slc_status ttm_run_open(struct ttm_run *run,
                             const struct ttm_problem *problem,
                             const struct ttm_shape *shape,
                             struct slc_error *err);
void ttm_run_close(struct ttm_run *run);

/* Multiplies, publishes and closes the pair. */
enum slc_status
ttm_run_multiply(struct ttm_run *run, struct slc_ttm_report *report, struct slc_error *err);

/* Reads both files and checks headers and sizes. Returns false if one is missing. */
bool ttm_result_read(const char *folder, struct ttm_result *result);
void ttm_result_destroy(struct ttm_result *result);

/* Number of coordinates that differ from the oracle's, and of elements whose error exceeds the
 * tolerance times the sum of magnitudes. */
uint64_t ttm_count_wrong(const struct ttm_problem *problem,
                         const struct ttm_result *result,
                         double tolerance);

/* Number of names in a folder; 0 if it is missing. */
unsigned ttm_folder_names(const char *folder);

#endif
