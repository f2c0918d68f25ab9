/*
 * What a drive gives when nothing is made of it: a file swept once by plain direct reads, several
 * blocks at a time; and the same where what arrived is looked at, once, by the thread that read it.
 *
 * The second is the ceiling of everything that streams. Where a host copies what its guest reads,
 * memory that no processor of the guest has in its caches is written faster: 2.8 GB/s against 2.1
 * in the same minute (4 MiB reads on a virtual drive), and no use of the data can have the former.
 */
#ifndef SLC_TOOLS_BENCH_RAW_READ_H
#define SLC_TOOLS_BENCH_RAW_READ_H

#include "base/error/error.h"

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

/* Reads the whole file once, and with `look` every cache line of it. Errors: SLC_ERR_IO,
   SLC_ERR_SYSTEM. */
enum slc_status
bench_raw_sweep(struct bench_raw *raw, bool look, struct slc_error *err) SLC_NODISCARD;

uint64_t bench_raw_file_bytes(const struct bench_raw *raw);
bool bench_raw_direct(const struct bench_raw *raw);

/* Takes NULL. */
void bench_raw_close(struct bench_raw *raw);

#endif
