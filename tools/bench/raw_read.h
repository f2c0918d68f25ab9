/*
 * What a drive gives when nothing is made of it: a file swept once by plain direct reads, several
 * blocks at a time. The ceiling of everything that streams.
 */
#ifndef SLC_TOOLS_BENCH_RAW_READ_H
#define SLC_TOOLS_BENCH_RAW_READ_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_raw;

/*
 * Opens `path` for sweeps with `depth` reads of `block_bytes` (a multiple of SLC_PAGE_BYTES) in
 * flight, past the page cache where the file system can. Owns: bench_raw_close.
 * Errors: SLC_ERR_IO, SLC_ERR_MEMORY.
 */
enum slc_status bench_raw_open(const char *path,
                               uint64_t block_bytes,
                               unsigned depth,
                               struct bench_raw **raw,
                               struct slc_error *err) SLC_NODISCARD;

/* Reads the whole file once; a bench_fn. Errors: SLC_ERR_IO, SLC_ERR_SYSTEM. */
enum slc_status bench_raw_sweep(void *raw, struct slc_error *err) SLC_NODISCARD;

uint64_t bench_raw_file_bytes(const struct bench_raw *raw);
bool bench_raw_direct(const struct bench_raw *raw);

/* Takes NULL. */
void bench_raw_close(struct bench_raw *raw);

#endif
