/*
 * Rate of a drive without any processing: a file is read once by plain direct reads, several blocks
 * at a time. Optionally each thread also loads the data that it has read.
 *
 * The rate with loads is the ceiling of everything that streams. On a virtual machine, the host
 * copies the data of a read to the guest's memory, and does so faster if that memory is in no
 * processor's cache: 2.8 GB/s without loads against 2.1 GB/s with loads, in the same minute (4 MiB
 * reads on a virtual drive). A program that uses the data cannot attain the rate without loads.
 */
#ifndef SLC_TOOLS_BENCH_RAW_READ_H
#define SLC_TOOLS_BENCH_RAW_READ_H

#include "base/error/error.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_raw;

/*
 * Opens `path` for sweeps that keep `depth` reads of `block_bytes` (a multiple of SLC_PAGE_BYTES)
 * in flight. Reads bypass the page cache if the file system allows it. Owns: release with
 * bench_raw_close.
 * Errors: SLC_ERR_IO, SLC_ERR_MEMORY.
 */
enum slc_status bench_raw_open(const char *path,
                               uint64_t block_bytes,
                               unsigned depth,
                               struct bench_raw **raw,
                               struct slc_error *err) SLC_NODISCARD;

/* Reads the whole file once. With `load_lines`, also loads every cache line of the data. Errors:
 * SLC_ERR_IO, SLC_ERR_SYSTEM. */
enum slc_status
bench_raw_sweep(struct bench_raw *raw, bool load_lines, struct slc_error *err) SLC_NODISCARD;

uint64_t bench_raw_file_bytes(const struct bench_raw *raw);
bool bench_raw_direct(const struct bench_raw *raw);

/* Accepts NULL. */
void bench_raw_close(struct bench_raw *raw);

#endif
