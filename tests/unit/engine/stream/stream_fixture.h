/* Shared by the tests of streams: two block files of one random tensor, plans made by hand, and a
 * consumer that checks its input. */
#ifndef SLC_STREAM_FIXTURE_H
#define SLC_STREAM_FIXTURE_H

#include "base/error/error.h"
#include "engine/stream/stream.h"
#include "faulty_files.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { ORDER = 3, MAX_TILES = 64, MAX_WORKERS = 8 };

/* The block file of all tests, and its properties. */
struct fixture {
    char path[256];
    struct slc_reader *reader;
    const struct slc_layout_info *info;
    uint64_t stored_bytes; /* padded size of all blocks */
    uint64_t nnz;
    uint64_t fingerprint; /* sum over nonzeros of a mix of coordinates and value */
};

extern struct fixture small_blocks; /* the file whose blocks have one tile each */
extern struct fixture large_blocks; /* the file whose blocks have several tiles each */

/* Makes both files at the first call. */
void make_fixtures(void);
void close_fixtures(void);

/* How to stream. */
struct shape {
    enum slc_io_kind io;
    enum slc_schedule schedule;
    unsigned threads;
    unsigned slots;
    uint64_t cached; /* number of blocks that are cached */
    enum slc_value_type precision;
    bool every_worker; /* every worker processes every tile */
};

enum { KINDS = 3, SCHEDULES = 2 };
extern const enum slc_io_kind kinds[KINDS];
extern const enum slc_schedule schedules[SCHEDULES];

struct slc_plan make_plan(const struct fixture *fixture, const struct shape *shape);

/* Opens a stream; returns NULL if io_uring is unavailable. */
struct slc_stream *open_stream(const struct fixture *fixture,
                               const struct shape *shape,
                               const struct slc_files *files);

/* Observations and behaviour of a consumer. */
struct consumer {
    enum slc_value_type precision;
    struct slc_pass_part part; /* part that run_pass streams */
    unsigned takers;           /* threads that each process every tile; 0: each tile is processed
                                * once */
    bool ordered;              /* wait for all tiles before this one, as ordered commits do */
    uint64_t fail_at;          /* ordinal of the tile that fails; SLC_NOWHERE: none */
    uint64_t stop_at;          /* tiles begun before the one that sets `stop`; SLC_NOWHERE: none */
    atomic_uint_fast64_t begun;
    volatile int stop;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t committed; /* number of committed tiles, if `ordered` */
    bool aborted;
    atomic_uint aborts;
    atomic_uint seen[MAX_TILES];
    bool ascending;             /* the tiles of a worker must be in file order */
    uint64_t next[MAX_WORKERS]; /* with `ascending`: ordinal after the worker's latest tile */
    uint64_t nnz[MAX_WORKERS];
    uint64_t fingerprint[MAX_WORKERS];
    uint64_t stored_bytes; /* padded size of all blocks; UINT64_MAX: unknown */
    unsigned progress_calls;
    uint64_t progress_blocks;
};

void consumer_init(struct consumer *consumer, const struct shape *shape);

enum slc_status
run_pass(struct slc_stream *stream, struct consumer *consumer, struct slc_error *err);

/* Makes a pass that must succeed. */
void check_pass(struct slc_stream *stream,
                const struct fixture *fixture,
                const struct shape *shape,
                bool ordered);
/* Makes the same pass in `count` parts, which end at ends[0], ends[1], .. */
void check_parts(struct slc_stream *stream,
                 const struct fixture *fixture,
                 const struct shape *shape,
                 bool ordered,
                 const uint64_t *ends,
                 unsigned count);

#endif
