/* The verifier and its parts: the store, a block file, a tile. Internal to storage/verify/. */
#ifndef SLC_STORAGE_VERIFY_INTERNAL_H
#define SLC_STORAGE_VERIFY_INTERNAL_H

#include "storage/block/reader.h"
#include "storage/manifest/store.h"
#include "storage/verify/verify.h"

#include <pthread.h>
#include <stdatomic.h>

/* Libraries' pages first touched after planning; a worker's stack and malloc arena. */
#define UNTOUCHED_BYTES (UINT64_C(2) << 20)
#define THREAD_BYTES    (UINT64_C(128) << 10)
/* What is resident is rounded up to this, so that the budget named by one run is not refused by the
   next, in which a few more pages are resident. */
#define PROCESS_UNIT (UINT64_C(4) << 20)

struct slc_verifier {
    const struct slc_verify_options *options;
    const struct slc_files *files;
    const char *path;
    uint64_t memory_bytes;
    uint64_t max_findings;

    /* Set when the manifest was read; all files are compared with it then. */
    bool have_manifest;
    struct slc_manifest manifest;
    /* Of the first layout that was opened: all others have the same. */
    bool have_keys;
    struct slc_key_layout keys;

    pthread_mutex_t lock; /* of all below */
    struct slc_verify_report report;
    struct slc_error first;   /* the first finding: the lowest block of the first file at fault */
    uint64_t first_step;      /* `step` when it was found */
    uint64_t step;            /* counts files, so that findings of one file can be told */
    enum slc_status fatal;    /* the check itself failed, as without memory */
    struct slc_error failure; /* says why */
    atomic_bool stop;         /* enough findings, or a failure */
};

/* Takes note of a fault; any thread. */
void slc_verify_report(struct slc_verifier *verifier, const struct slc_error *fault);

/* Whether no more is to be checked. */
bool slc_verify_ended(struct slc_verifier *verifier);

/* Checks one block file; `layout` is its entry in the manifest, NULL without one. */
void slc_verify_file(struct slc_verifier *verifier,
                     const char *name,
                     const struct slc_store_layout *layout);

/*
 * Checks that tile `index` of an open block holds as many nonzeros as the rules for cutting tiles
 * give it, as far as can be seen without decoding (docs/FORMAT.md, section 5).
 * Errors: SLC_ERR_DAMAGED with file, block and offset.
 */
enum slc_status slc_verify_tile_cut(const struct slc_block_view *block,
                                    uint32_t index,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Decodes tile `index` with `decoder` (of f64) and compares everything that the directory and the
 * header claim of it: count, keys, coordinate ranges, sum of squares, content sum, value type.
 * *fibers: pieces of fibers of the keys' run in it, where all is well.
 * Errors: SLC_ERR_DAMAGED with file, block and offset.
 */
enum slc_status slc_verify_tile(struct slc_decoder *decoder,
                                const struct slc_block_view *block,
                                uint32_t index,
                                uint64_t *fibers,
                                struct slc_error *err) SLC_NODISCARD;

/* Of the `pieces` of fibers that tile `index` of fiber-n holds, those that do not go on in the next
 * one. */
uint64_t
slc_verify_fibers_ended(const struct slc_block_view *block, uint32_t index, uint64_t pieces);

#endif
