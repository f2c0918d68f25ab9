/*
 * Rate of a drive without any processing: a file read once by plain direct reads, several blocks at
 * a time; optionally each thread also loads the data that it read.
 *
 * The second rate is the ceiling of everything that streams. A host that copies the data of its
 * guest's reads writes memory faster if no processor of the guest has it in its caches: 2.8 GB/s
 * against 2.1 in the same minute (4 MiB reads on a virtual drive). A program that uses the data
 * cannot attain the former.
 */
#ifndef SLC_TOOLS_BENCH_RAW_READ_H
#define SLC_TOOLS_BENCH_RAW_READ_H

#include "base/error/error.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_raw;

/*
 * Opens `path` for sweeps with `depth` reads of `block_bytes` (a multiple of SLC_PAGE_BYTES) in
 * flight, past the page cache if the file system allows. Owns: bench_raw_close.
 * Errors: SLC_ERR_IO, SLC_ERR_MEMORY.
 */
enum slc_status bench_raw_open(const char *path,
                               uint64_t block_bytes,
                               unsigned depth,
                               struct bench_raw **raw,
                               struct slc_error *err) SLC_NODISCARD;

/* Reads the whole file once, and with `load_lines` loads every cache line of it. Errors:
   SLC_ERR_IO, SLC_ERR_SYSTEM. */
enum slc_status
bench_raw_sweep(struct bench_raw *raw, bool load_lines, struct slc_error *err) SLC_NODISCARD;

uint64_t bench_raw_file_bytes(const struct bench_raw *raw);
bool bench_raw_direct(const struct bench_raw *raw);

/* Accepts NULL. */
void bench_raw_close(struct bench_raw *raw);

#endif
