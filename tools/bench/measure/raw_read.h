/* Measures the rate of a drive without any processing: reads a file once by plain direct reads,
 * several blocks at a time. Optionally, each thread also loads the data that it has read.
 *
 * The rate with loads is the ceiling of every program that uses the data it streams; such a program
 * cannot be as fast as reads without loads. On a virtual machine, the host copies the data of a
 * read to the memory of the guest. Loads bring this memory into the cache of a processor, which
 * slows the next copy: 2.8 GB/s without loads, 2.1 GB/s with loads, measured within a minute
 * (reads of 4 MiB on a virtual drive). */
#ifndef SLC_TOOLS_BENCH_RAW_READ_H
#define SLC_TOOLS_BENCH_RAW_READ_H

#include "base/error/error.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_raw;

/* Opens `path` for sweeps that keep `depth` reads of `block_bytes` (a multiple of SLC_PAGE_BYTES)
 * in flight. Reads bypass the page cache if the file system allows it. The caller must call
 * bench_raw_close.
 * Errors: SLC_ERR_IO, SLC_ERR_MEMORY. */
enum slc_status bench_raw_open(const char *path,
                               uint64_t block_bytes,
                               unsigned depth,
                               struct bench_raw **raw,
                               struct slc_error *err) SLC_NODISCARD;

/* Reads the whole file once. If `load_lines`, also loads every cache line of the data. Errors:
 * SLC_ERR_IO, SLC_ERR_SYSTEM. */
enum slc_status
bench_raw_sweep(struct bench_raw *raw, bool load_lines, struct slc_error *err) SLC_NODISCARD;

uint64_t bench_raw_file_bytes(const struct bench_raw *raw);
bool bench_raw_direct(const struct bench_raw *raw);

/* Closes the file and releases `raw`, which may be NULL. */
void bench_raw_close(struct bench_raw *raw);

#endif
