/* A mode of a tensor in memory, for tensor times vector with many vectors: the nonempty fibers of
 * the mode, as cpu/fiber/sptv.h stores them, and the coordinates of the fibers.
 *
 * The nonzeros are read once and sorted by fiber. Fibers are in the order of the keys of their
 * coordinates, so that neighbouring fibers use similar parts of the vector. */
#ifndef SLC_ENGINE_FIBER_OPERATOR_H
#define SLC_ENGINE_FIBER_OPERATOR_H

#include "base/error/error.h"
#include "base/error/stop.h"
#include "base/key.h"
#include "base/memory/memory.h"
#include "cpu/fiber/sptv.h"
#include "storage/manifest/store.h"

#include <stdint.h>

struct slc_fiber_operator_options {
    const struct slc_store *store;
    unsigned mode; /* 0-based */
    unsigned threads;
    uint64_t memory_bytes; /* memory budget of the process */
    /* A stop request ends the call with SLC_ERR_INTERRUPTED; may be NULL. */
    const struct slc_stop *stop;
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

/* Read-only, except during slc_sptv_multiply. */
struct slc_fiber_operator {
    unsigned order, mode;
    uint64_t dims[SLC_MAX_ORDER]; /* sizes of all modes */
    struct slc_sptv sptv;
    struct slc_key_layout keys; /* key layout of the other modes; not used if there is none */
    struct slc_buffer memory;   /* memory of the keys of the fibers */
    uint64_t *key_lo, *key_hi; /* one key per fiber; key_hi is NULL if keys have 64 bits or fewer */
};

/* Reads the nonzeros of a store. Vectors and coordinates have the indices of the input, even if the
 * store is relabelled. Ownership: release with slc_fiber_operator_destroy, which accepts an
 * all-zero struct. Errors: SLC_ERR_USAGE for a mode that does not exist; SLC_ERR_UNSUPPORTED for a
 * mode with more than 2^31 indices; SLC_ERR_BUDGET with the smallest sufficient budget;
 * SLC_ERR_INTERRUPTED; errors of reading. Cost: one pass over the store, and a radix sort. Memory:
 * during the call up to 56 bytes per nonzero, or 80 if keys have more than 64 bits; afterwards
 * about a third of this. */
enum slc_status slc_fiber_operator_create(struct slc_fiber_operator *made,
                                          const struct slc_fiber_operator_options *options,
                                          struct slc_error *err) SLC_NODISCARD;
void slc_fiber_operator_destroy(struct slc_fiber_operator *made);

/* Stores the index in `mode`, which is not the operator's mode, of every fiber. */
void slc_fiber_operator_indices(const struct slc_fiber_operator *made,
                                unsigned mode,
                                uint64_t *indices);

/* Returns the bytes of memory that the operator uses. */
uint64_t slc_fiber_operator_bytes(const struct slc_fiber_operator *made);

#endif
