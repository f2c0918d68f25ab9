/* What the machine says about itself: caches and processors, for the levels of `bench stream`. */
#ifndef SLC_TOOLS_BENCH_MACHINE_H
#define SLC_TOOLS_BENCH_MACHINE_H

#include <jansson.h>
#include <stdint.h>

enum { BENCH_CACHE_LEVELS = 3 };

/*
 * Bytes of data (or unified) cache of `level` 1 .. BENCH_CACHE_LEVELS that one processor sees; 0
 * where the machine has none or does not say.
 */
uint64_t bench_cache_bytes(unsigned level);

/* "processors", "cache_bytes" (one per level), "memory_bytes". */
json_t *bench_machine_to_json(void);

#endif
