/* Shared by the implementation files of the fake device; private to fake_*.c. */
#ifndef SLC_TEST_FAKE_IMPL_H
#define SLC_TEST_FAKE_IMPL_H

#include "fake_device.h"

#include <pthread.h>

enum { REGIONS = SLC_MAX_ORDER + 4, NO_BLOCK = -1 };

/* A block to be copied by the thread, or already copied. */
struct work {
    struct work *next;
    const void *host; /* bytes in host memory; NULL if the block is on the device */
    uint64_t hash;    /* hash of the host's bytes when the block was enqueued */
    uint64_t ticket;
    uint64_t block, bytes, padded_bytes, nnz;
    void *data;
    bool stays;
};

struct fake {
    struct slc_device device;
    struct fake_options options;
    struct fake_counts counts;
    struct slc_device_stats stats;
    struct slc_device_problem problem;
    struct slc_matrix factors[SLC_MAX_ORDER];
    struct slc_matrix output; /* f64; rows of the job's mode */
    double squares;           /* sum of squares of the job's values */
    struct slc_device_job job;
    bool open, working;
    bool broken;     /* a call of the job failed */
    bool keeps;      /* the job has resident blocks */
    bool lost;       /* some resident blocks did not arrive, so the device must be reopened */
    bool has_output; /* the last job succeeded, and `output` is its output */
    uint64_t refuse_at, calls;
    int64_t damaged; /* number of the block to report as damaged */

    struct {
        char *memory;
        uint64_t bytes;
    } region[REGIONS];
    struct work *kept[FAKE_BLOCKS];
    uint32_t kept_count;
    uint64_t kept_bytes, kept_tiles;

    pthread_t thread;
    pthread_mutex_t mutex; /* protects all members below */
    pthread_cond_t changed;
    struct work *first, **end;
    unsigned queued; /* queued pieces, including the current one */
    uint64_t asked, done;
    uint64_t nnz_done; /* nonzeros of the job computed so far */
    int64_t found_damaged;
    bool leave;
};

/* Zeroed memory; ends the program if memory runs out. */
void *fake_take(size_t bytes);

/* Counts a violation of the contract and prints it; called by either thread. */
void fake_require(struct fake *fake, bool holds, const char *what);

/* Main function of the thread; `context` is the device. */
void *fake_run(void *context);

/* Enqueues work once less than `most` is queued; waits until all work is done. */
void fake_enqueue(struct fake *fake, struct work *work, unsigned most);
void fake_drain(struct fake *fake);
/* Number of queued pieces of work. */
unsigned fake_queued(struct fake *fake);

struct fake *fake_of(const struct slc_device *device);
/* Whether this call must fail. */
enum slc_status
fake_call(struct fake *fake, bool needs_open, const char *name, struct slc_error *err);
/* Returns scratch for dense algebra on the rows of any mode. */
struct slc_dense *fake_dense(const struct fake *fake);

/* Operations of devices in a group: fake_group.c. */
enum slc_status fake_factor_copy(struct slc_device *device,
                                 unsigned mode,
                                 const struct slc_device *from,
                                 const struct slc_row_span *rows,
                                 uint64_t count,
                                 struct slc_error *err);
enum slc_status fake_output_add(struct slc_device *device,
                                const struct slc_device *from,
                                const struct slc_row_span *rows,
                                uint64_t count,
                                struct slc_error *err);
enum slc_status fake_output_rows(struct slc_device *device,
                                 const struct slc_row_span *rows,
                                 uint64_t count,
                                 struct slc_matrix *to,
                                 struct slc_error *err);
enum slc_status fake_update_units(struct slc_device *device,
                                  unsigned mode,
                                  const struct slc_solver *solver,
                                  const struct slc_device_units *units,
                                  double *columns,
                                  struct slc_error *err);

#endif
