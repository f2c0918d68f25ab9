/* Small random tensors for the solver's tests: as coordinate lists for the oracle and as stores for
 * the engine, and the setup of a decomposition over a store. */
#ifndef SLC_TEST_CP_FIXTURE_H
#define SLC_TEST_CP_FIXTURE_H

#include "cpu/cpu.h"
#include "cpu/reference/reference.h"
#include "engine/solve/cp.h"
#include "storage/codec/codec.h"
#include "storage/manifest/store.h"

#include <stdint.h>

struct fixture_tensor {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    struct slc_fiber_run run; /* fiber run of the keys */
    /* number of nonzeros, which have distinct coordinates and ascending keys */
    uint64_t nnz;
    uint64_t *coords[SLC_MAX_ORDER];
    double *values;
    uint32_t tile_nnz[3]; /* sizes of the store's tiles, in rotation; 0: full tiles */
    /* factor by which the sums of squares in the store exceed the true ones; 0: they are true */
    double lie;
};

/* Draws `draws` coordinates, drops duplicates, and assigns values in (0, 1] (f64). */
void fixture_random(struct fixture_tensor *tensor,
                    unsigned order,
                    const uint64_t *dims,
                    uint64_t draws,
                    uint64_t seed);
/* Does the same as fixture_random, with keys that have a fiber run. */
void fixture_random_run(struct fixture_tensor *tensor,
                        unsigned order,
                        const uint64_t *dims,
                        struct slc_fiber_run run,
                        uint64_t draws,
                        uint64_t seed);
void fixture_destroy(struct fixture_tensor *tensor);
struct slc_coo_view fixture_view(const struct fixture_tensor *tensor);

/* Writes the store FOLDER/NAME.slc and returns its path in `path` (512 bytes). */
void fixture_store(const struct fixture_tensor *tensor,
                   const char *folder,
                   const char *name,
                   enum slc_codec codec,
                   uint64_t block_bytes,
                   char *path);

/* The state of a run, opened and closed together. */
struct fixture_run {
    struct slc_store store;
    struct slc_plan plan;
    struct slc_stream *stream;
    struct slc_backend *backend;
};

/* Request for f64 with all blocks cached and no limits; a test changes what it tests. */
struct slc_plan_request fixture_request(uint32_t rank);
struct slc_cp_options fixture_options(uint32_t rank, unsigned iterations);
/* Sets the regularization of all modes. */
void fixture_regularize(struct slc_cp_options *options, double regularization);

enum slc_status fixture_open(struct fixture_run *run,
                             const char *path,
                             const struct slc_plan_request *request,
                             struct slc_error *err);

/* Sets the budget of the request to `extra` bytes above the smallest sufficient budget, and plans.
 * The smallest budget is that for the resident size of the process at the first call. */
enum slc_status fixture_plan_beyond(struct slc_reader *reader,
                                    struct slc_plan_request *request,
                                    int64_t extra,
                                    struct slc_plan *plan,
                                    struct slc_error *err);

/* Does the same as fixture_open, with the plan of fixture_plan_beyond. */
enum slc_status fixture_open_beyond(struct fixture_run *run,
                                    const char *path,
                                    struct slc_plan_request *request,
                                    uint64_t extra,
                                    struct slc_error *err);
void fixture_close(struct fixture_run *run);

#endif
