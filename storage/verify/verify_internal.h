/* State and functions of the verifier: store, block file, tile. Private to storage/verify/. */
#ifndef SLC_STORAGE_VERIFY_INTERNAL_H
#define SLC_STORAGE_VERIFY_INTERNAL_H

#include "storage/block/reader.h"
#include "storage/manifest/store.h"
#include "storage/verify/verify.h"

#include <pthread.h>
#include <stdatomic.h>

/* Memory allowances: per process, for pages of libraries that are first touched after planning; per
 * worker, for its stack and malloc arena. */
#define UNTOUCHED_BYTES (UINT64_C(2) << 20)
#define THREAD_BYTES    (UINT64_C(128) << 10)
/* Resident memory is rounded up to a multiple of this unit. The budget that an error message states
 * then also suffices for the next run, in which a few more pages may be resident. */
#define PROCESS_UNIT (UINT64_C(4) << 20)

struct slc_verifier {
    const struct slc_verify_options *options;
    const struct slc_files *files; /* table of `held`, or the caller's table if it is NULL */
    struct slc_held_folder *held;  /* the store's folder; NULL if it cannot be opened */
    const char *path;
    char *manifest_path;
    uint64_t memory_bytes;
    uint64_t max_findings;

    /* Set once the manifest was read; all files are then compared with the manifest. */
    bool has_manifest;
    struct slc_manifest manifest;
    /* Set from the first opened layout; all other layouts must have the same keys. */
    bool has_keys;
    struct slc_key_layout keys;

    pthread_mutex_t lock; /* guards the following members */
    struct slc_verify_report report;
    struct slc_error first;   /* the first finding: in the lowest block of the first faulty file */
    uint64_t first_step;      /* `step` at that finding */
    uint64_t step;            /* counts files, to recognize findings of the same file */
    enum slc_status fatal;    /* the check itself failed, for example out of memory */
    struct slc_error failure; /* error record of `fatal` */
    atomic_bool stop;         /* set after the maximum number of findings, or after a failure */
};

/* Records a fault. Threads: any. */
void slc_verify_report(struct slc_verifier *verifier, const struct slc_error *fault);

/* True if the check should end. */
bool slc_verify_ended(struct slc_verifier *verifier);

/* Checks one block file; `layout` is its manifest entry, or NULL. */
void slc_verify_file(struct slc_verifier *verifier,
                     const char *name,
                     const struct slc_store_layout *layout);

/* Checks that tile `index` of an open block has the number of nonzeros that the rules for tiles
 * require (docs/FORMAT.md, section 5), as far as this is possible without decoding.
 * Errors: SLC_ERR_DAMAGED with file, block and offset. */
enum slc_status slc_verify_tile_cut(const struct slc_block_view *block,
                                    uint32_t index,
                                    struct slc_error *err) SLC_NODISCARD;

/* Decodes tile `index` with `decoder` (of f64) and compares it with the directory and the header:
 * count, keys, coordinate ranges, sum of squares, content sum, value type. On success *fibers is
 * the number of fiber runs in the tile, and its values are merged into *values.
 * Errors: SLC_ERR_DAMAGED with file, block and offset. */
enum slc_status slc_verify_tile(struct slc_decoder *decoder,
                                const struct slc_block_view *block,
                                uint32_t index,
                                uint64_t *fibers,
                                struct slc_value_stats *values,
                                struct slc_error *err) SLC_NODISCARD;

/* Returns the number of fibers that end in tile `index` of a fiber-n layout; the tile has `pieces`
 * fiber runs. */
uint64_t
slc_verify_fibers_ended(const struct slc_block_view *block, uint32_t index, uint64_t pieces);

#endif
