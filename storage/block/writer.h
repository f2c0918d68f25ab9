/*
 * Writes one block file: tiles are appended in layout order, blocks are cut when they reach the
 * target size, the index and the closing page follow, the header comes last.
 */
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

/* Default target of a block's bytes on disk: large enough to stream at full rate from NVMe. */
#define SLC_DEFAULT_BLOCK_BYTES (UINT64_C(4) << 20)
/* Smallest accepted target. A block always holds at least one tile, so small targets mean one. */
#define SLC_MIN_BLOCK_BYTES UINT64_C(4096)

/*
 * A journal and the blocks it names are synced after so many bytes of blocks: what a power failure
 * can cost is the building of so much, a few seconds, and a sync does not wait for more. (When the
 * program alone ends, nothing that was written is lost.)
 */
#define SLC_DEFAULT_SYNC_BYTES (UINT64_C(256) << 20)

struct slc_writer_options {
    const struct slc_files *files; /* NULL: the operating system */
    const char *path;              /* must not exist */
    enum slc_layout_kind layout;
    unsigned layout_mode; /* 0-based mode of sorted-n and fiber-n; 0 for blco */
    unsigned order;
    const uint64_t *dims;
    uint64_t relabelled_modes; /* bit n: the store has a permutation of mode n */
    struct slc_fiber_run run;  /* of the keys (base/key.h); all zero: plain ALTO order */
    /* Of the keys that tiles' content sums are over (slc_encoder_sum_over); NULL: `run`. */
    const struct slc_fiber_run *content_run;
    enum slc_codec codec;
    uint64_t block_bytes; /* target; 0: SLC_DEFAULT_BLOCK_BYTES */
    uint64_t sync_bytes;  /* with a journal, bytes of blocks between syncs; 0: the default below */
    bool keep_journal;    /* slc_writer_finish leaves it, synced, for slc_writer_finished */
};

/* Totals of a finished file: what the manifest repeats. */
struct slc_writer_summary {
    uint64_t nnz;
    uint64_t block_count;
    uint64_t tile_count;
    uint64_t file_bytes;
    uint64_t index_bytes; /* bytes of coordinates in all tiles, for bits per nonzero */
    double sum_of_squares;
    uint64_t content_sum;
    uint64_t header_hash;
    uint64_t fiber_count;           /* of fiber-n */
    enum slc_value_type value_type; /* SLC_F32 when every value is exactly a float */
};

struct slc_writer;

/*
 * Creates the file. `options` and what it points to are copied, but for `files`.
 * Memory: block_bytes (or one tile, if that is larger), plus the index: 88 + 16 N bytes a block.
 * Owns: slc_writer_finish or slc_writer_abandon.
 * Errors: SLC_ERR_IO (the path exists), SLC_ERR_USAGE (a block size or shape out of range), ..
 */
enum slc_status slc_writer_open(const struct slc_writer_options *options,
                                struct slc_writer **writer,
                                struct slc_error *err) SLC_NODISCARD;

/* What slc_writer_resume found of an interrupted build. */
struct slc_writer_kept {
    uint64_t partitions; /* complete ones */
    uint64_t blocks;
    uint64_t nnz;
    uint64_t file_bytes; /* up to the end of these blocks */
    slc_u128 last_key;   /* of the last one, where there is any */
    uint64_t last_row;   /* of sorted-n: of the last partition, where there is any */
};

/*
 * Opens a file for writing as slc_writer_open does, but with a journal (PATH.journal), and goes on
 * with what an interrupted writer left there: complete partitions (of blco and fiber-n: blocks)
 * that still have their checksums are kept, at most `partitions` of them (blco and fiber-n: 1), and
 * the rest is cut off. What is appended next belongs behind them, so that the file becomes the one
 * that an uninterrupted build writes. It begins anew where there is no file, or no journal of the
 * same options and `tag`, which stands for all else that the file depends on (the source's
 * nonzeros, how partitions are cut). The caller sees to it that a path has one writer at a time.
 * Cost: reading what is kept. Errors: SLC_ERR_IO, .. ; what is there can still be resumed after
 * one.
 */
enum slc_status slc_writer_resume(const struct slc_writer_options *options,
                                  uint64_t tag,
                                  uint64_t partitions,
                                  struct slc_writer **writer,
                                  struct slc_writer_kept *kept,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Whether the file that `reader` has open, wherever it has been moved since, is one that a writer
 * of slc_writer_resume with keep_journal, these options and `tag` had finished at options->path;
 * then *summary is that of slc_writer_finish. Errors: SLC_ERR_IO, SLC_ERR_MEMORY.
 */
struct slc_reader;
enum slc_status slc_writer_finished(const struct slc_writer_options *options,
                                    uint64_t tag,
                                    const struct slc_reader *reader,
                                    struct slc_writer_summary *summary,
                                    bool *finished,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Appends an encoded tile (copied). Tiles come in ascending key order without overlap; those of
 * sorted-n within each partition.
 * After an error the file cannot be completed: finish repeats the status, abandon cleans up.
 */
enum slc_status slc_writer_append(struct slc_writer *writer,
                                  const struct slc_tile_blob *tile,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Begins the next partition of a sorted-n file: the open block is closed, and what is appended next
 * belongs to the new partition. The first one needs no call; a call before the first tile of a
 * partition only sets its mark. Rows of mode n have to be above those of all partitions before;
 * `continued`: the partition before and this one hold one and the same row and nothing else, which
 * was too large for one partition, and the keys go on ascending. (Asserted.)
 * Errors: as slc_writer_append; SLC_ERR_UNSUPPORTED for more than 2^32 - 1 partitions.
 */
enum slc_status slc_writer_next_partition(struct slc_writer *writer,
                                          bool continued,
                                          struct slc_error *err) SLC_NODISCARD;

/*
 * Completes, syncs and closes the file. The writer is destroyed whatever happens, and after an
 * error the file is gone. The folder of the file is the caller's to sync.
 */
enum slc_status slc_writer_finish(struct slc_writer *writer,
                                  struct slc_writer_summary *summary,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Stops, to be resumed: destroys a writer of slc_writer_resume, also after an error, and leaves its
 * file and journal with all partitions that were followed by slc_writer_next_partition, synced.
 * Errors: SLC_ERR_IO where syncing failed.
 */
enum slc_status slc_writer_suspend(struct slc_writer *writer, struct slc_error *err) SLC_NODISCARD;

/* Gives up: closes and removes the file, and its journal. Takes NULL. */
void slc_writer_abandon(struct slc_writer *writer);

#endif
