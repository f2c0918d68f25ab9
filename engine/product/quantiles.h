/* Exact quantiles of the magnitudes of numbers that can be read several times, in memory that does
 * not depend on their number. Nonnegative doubles sort like their bit patterns, so each pass counts
 * the numbers by the next 16 bits (radix selection). Once the remaining candidates fit into a
 * buffer, one pass collects them and no further pass is needed. If all numbers fit into the buffer,
 * the first pass is the only one. */
#ifndef SLC_ENGINE_QUANTILES_H
#define SLC_ENGINE_QUANTILES_H

#include "base/error/error.h"
#include "base/memory/memory.h"

#include <stdbool.h>
#include <stdint.h>

enum { SLC_QUANTILES_MAX = 16 };

struct slc_quantiles {
    unsigned count;
    uint64_t rank[SLC_QUANTILES_MAX];   /* 0-based position among the candidates of the group */
    uint64_t prefix[SLC_QUANTILES_MAX]; /* leading bits of the result that are known */
    unsigned shift;                     /* number of low bits that are not yet known */
    unsigned workers;
    uint64_t capacity;        /* numbers that the buffer can hold */
    uint64_t candidates;      /* upper limit of the numbers that the next pass adds */
    bool collecting;          /* the pass collects candidates instead of counting them */
    uint64_t collected;       /* used with atomic operations */
    uint64_t *keys;           /* array of `capacity` numbers */
    uint64_t *counters;       /* 65536 per worker in the first pass, then per group of candidates */
    struct slc_buffer memory; /* keys and counters */
};

/* Returns the bytes that slc_quantiles_open maps. */
uint64_t slc_quantiles_memory_bytes(unsigned count, unsigned workers, uint64_t capacity);

/* Prepares for the quantiles fraction[0..count-1], each from 0 to 1, of `total` numbers. The
 * quantile q is the smallest number x such that at least q * total numbers are not above x; the
 * quantile 0 is the smallest number. Ownership: release with slc_quantiles_close, which accepts an
 * all-zero struct. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_quantiles_open(struct slc_quantiles *quantiles,
                                   unsigned count,
                                   const double *fraction,
                                   uint64_t total,
                                   unsigned workers,
                                   uint64_t capacity,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_quantiles_close(struct slc_quantiles *quantiles);

/* Counts the magnitude of a finite number. Workers may call it at the same time. Every pass must
 * count the same numbers. */
void slc_quantiles_add(struct slc_quantiles *quantiles, unsigned worker, double number);

/* Ends a pass. Returns true if the quantiles are known, and false if another pass is needed. */
bool slc_quantiles_end_pass(struct slc_quantiles *quantiles);

/* Returns a quantile that is known; 0 if there were no numbers. */
double slc_quantiles_get(const struct slc_quantiles *quantiles, unsigned i);

#endif
