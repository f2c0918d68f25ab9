/* Writes one block file: tiles are appended in layout order, and a block is closed when it reaches
 * the target size. The index and the closing page follow the blocks, and the header is written
 * last. */
#ifndef SLC_STORAGE_WRITER_H
#define SLC_STORAGE_WRITER_H

#include "base/error/error.h"
#include "base/key.h"
#include "base/matrix.h"
#include "storage/codec/codec.h"
#include "storage/codec/layout_info.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

/* Default target size of a block on disk: large enough to read NVMe drives at full rate. */
#define SLC_DEFAULT_BLOCK_BYTES (UINT64_C(4) << 20)
/* Smallest accepted target. A block holds at least one tile, so small targets result in one tile
 * per block. */
#define SLC_MIN_BLOCK_BYTES UINT64_C(4096)

/* At the end of a partition (in blco and fiber-n: of a block), the block file and its journal are
 * synced if at least this number of bytes is unsynced. After a power failure, about this number of
 * bytes must be rebuilt, which takes a few seconds. (If only the process ends, nothing that was
 * written is lost.) */
#define SLC_DEFAULT_SYNC_BYTES (UINT64_C(256) << 20)

struct slc_writer_options {
    const struct slc_files *files; /* NULL means the operating system */
    const char *path;              /* path of the file, which must not exist */
    enum slc_layout_kind layout;
    unsigned layout_mode; /* 0-based mode of sorted-n and fiber-n; 0 for blco */
    unsigned order;
    const uint64_t *dims;
    uint64_t relabelled_modes; /* bit n is set if the store has a permutation for mode n */
    struct slc_fiber_run run;  /* fiber run of the keys (base/key.h); all zero means ALTO order */
    /* Fiber run of the keys in the tiles' content sums (slc_encoder_sum_over); NULL means `run`. */
    const struct slc_fiber_run *content_run;
    enum slc_codec codec;
    uint64_t block_bytes; /* target size; 0 means SLC_DEFAULT_BLOCK_BYTES */
    uint64_t sync_bytes;  /* with a journal: bytes between syncs; 0: SLC_DEFAULT_SYNC_BYTES */
    bool keep_journal;    /* slc_writer_finish keeps the synced journal for slc_writer_finished */
};

/* Totals of a finished file; the manifest repeats them. */
struct slc_writer_summary {
    uint64_t nnz;
    uint64_t block_count;
    uint64_t tile_count;
    uint64_t file_bytes;
    uint64_t index_bytes; /* bytes of coordinates in all tiles */
    double sum_of_squares;
    uint64_t content_sum;
    uint64_t header_hash;
    uint64_t fiber_count;           /* number of fibers; 0 for layouts other than fiber-n */
    enum slc_value_type value_type; /* SLC_F32 if every value is exactly representable as a float */
    struct slc_value_stats values;  /* statistics of the values */
};

struct slc_writer;

/* Creates the file. Copies `options` and everything it points to except `files`.
 * Memory: block_bytes (or one tile, if larger), plus the index: 88 + 16 N bytes per block.
 * Ownership: release with slc_writer_finish or slc_writer_abandon.
 * Errors: SLC_ERR_IO (for example, the path exists), SLC_ERR_USAGE (block size or shape out of
 * range), SLC_ERR_MEMORY. */
enum slc_status slc_writer_open(const struct slc_writer_options *options,
                                struct slc_writer **writer,
                                struct slc_error *err) SLC_NODISCARD;

/* The part of an interrupted build that slc_writer_resume kept. */
struct slc_writer_kept {
    uint64_t partitions; /* number of complete partitions */
    uint64_t blocks;
    uint64_t nnz;
    uint64_t file_bytes; /* bytes up to the end of the last kept block */
    slc_u128 last_key;   /* last key of the last kept block, if any */
    uint64_t last_row;   /* sorted-n: last row of the last kept partition, if any */
};

/* Opens a file for writing like slc_writer_open, but with a journal (PATH.journal), and resumes an
 * interrupted build: keeps complete partitions (blco and fiber-n: blocks) whose checksums match,
 * and truncates the rest. Keeps at most `partitions` partitions (for blco and fiber-n, pass 1 to
 * keep all valid blocks). The caller then appends the remaining tiles; the finished file equals the
 * file of an uninterrupted build. Starts an empty file if there is no file, or no journal with the
 * same options and the same `tag`. The tag identifies everything else that determines the file (the
 * nonzeros, the boundaries of partitions). The caller ensures that a path has one writer at a time.
 * Cost: reading the kept blocks. Errors: SLC_ERR_IO, SLC_ERR_USAGE, SLC_ERR_MEMORY; after an
 * error the build can still be resumed. */
enum slc_status slc_writer_resume(const struct slc_writer_options *options,
                                  uint64_t tag,
                                  uint64_t partitions,
                                  struct slc_writer **writer,
                                  struct slc_writer_kept *kept,
                                  struct slc_error *err) SLC_NODISCARD;

/* Sets *finished to true if a writer of slc_writer_resume with keep_journal, these options and this
 * `tag` finished the file that is open in `reader`. The file was written to options->path but may
 * have been moved since. If *finished is true, *summary is the summary that slc_writer_finish
 * returned. Errors: SLC_ERR_IO, SLC_ERR_MEMORY. */
struct slc_reader;
enum slc_status slc_writer_finished(const struct slc_writer_options *options,
                                    uint64_t tag,
                                    const struct slc_reader *reader,
                                    struct slc_writer_summary *summary,
                                    bool *finished,
                                    struct slc_error *err) SLC_NODISCARD;

/* Appends a copy of an encoded tile. Tiles must come in ascending key order without overlap
 * (sorted-n: within each partition).
 * After an error the file cannot be completed: slc_writer_finish and slc_writer_abandon remove it,
 * and slc_writer_finish returns the same status. */
enum slc_status slc_writer_append(struct slc_writer *writer,
                                  const struct slc_tile_blob *tile,
                                  struct slc_error *err) SLC_NODISCARD;

/* Closes the open block of a sorted-n file and starts the next partition. The first partition needs
 * no call; a call before the first tile of a partition only sets `continued`. The rows of mode n
 * must be above the rows of all previous partitions. If `continued` is true, the new partition
 * instead continues the single row of the previous partition, which is too large for one partition,
 * and its keys are above the previous keys. These rules are asserted. Errors: those of
 * slc_writer_append; SLC_ERR_UNSUPPORTED for more than 2^32 - 1 partitions. */
enum slc_status slc_writer_next_partition(struct slc_writer *writer,
                                          bool continued,
                                          struct slc_error *err) SLC_NODISCARD;

/* Completes, syncs and closes the file. Always destroys the writer; after an error the file is
 * removed. The caller syncs the folder of the file. */
enum slc_status slc_writer_finish(struct slc_writer *writer,
                                  struct slc_writer_summary *summary,
                                  struct slc_error *err) SLC_NODISCARD;

/* Suspends a build: destroys a writer of slc_writer_resume, also after an error. Leaves its file
 * and journal on disk, synced. They hold all partitions after which slc_writer_next_partition was
 * called (blco and fiber-n: all closed blocks). Errors: SLC_ERR_IO if syncing failed. */
enum slc_status slc_writer_suspend(struct slc_writer *writer, struct slc_error *err) SLC_NODISCARD;

/* Abandons the build: closes and removes the file and its journal. Accepts NULL. */
void slc_writer_abandon(struct slc_writer *writer);

#endif
