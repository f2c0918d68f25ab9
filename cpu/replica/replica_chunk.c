/* Writes chunks: the data of a kernel call in contiguous memory.
 *
 * A sorted piece is divided into chunks at ends of runs, the runs of a chunk are ordered by length,
 * and all data that a kernel needs is written after the chunk's header. All workers write pieces at
 * the same time; each worker allocates the memory of a piece once the size of the piece is known.
 * With several NUMA nodes, the pieces of each node have a separate region and therefore separate
 * pages, because an MTTKRP assigns items to nodes in the same way (replica_mttkrp.c). Each region
 * is as large as its pieces can become in the worst case; memory that the pieces do not use is
 * never touched. */
#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "base/topology/topology.h"
#include "cpu/replica/replica_build.h"

#include <assert.h>

enum {
    LENGTH_CLASSES =
        /* classes of run lengths: 1, 2, .., 63, and one class for longer runs, for which order by
         * length does not help */
    64,
    CHUNK_ALIGNMENT = 64
};

/* State that the workers share while a mode is written. */
struct write_job {
    struct slc_replica *replica;
    struct slc_replica_mode *copy;
    unsigned mode;
    uint64_t piece_end[SLC_MAX_NODES];  /* end of the pieces of each node */
    uint64_t region_end[SLC_MAX_NODES]; /* end of the region of each node in copy->chunks */
    /* end of the allocated part of the region of each node */
    atomic_uint_fast64_t used[SLC_MAX_NODES];
};

/* State of a worker that writes the records of a chunk, run by run. */
struct chunk_writer {
    const struct slc_replica *replica;
    const struct slc_replica_order *order;
    const struct slc_replica_run *runs;
    uint32_t run_count;
    uint32_t nnz;
    uint32_t *next; /* next element of the index arrays */
};

static uint64_t
chunk_bytes(const struct slc_replica *replica, uint32_t varying, uint64_t nnz, uint64_t runs)
{
    const uint64_t order = replica->shape.order;
    const uint64_t each = (uint64_t)__builtin_popcount(varying);
    const uint64_t indices =
        runs == 0 ? nnz * order : nnz * each + runs + 1 + (order - each) * runs;
    const uint64_t bytes = sizeof(struct slc_replica_chunk) + nnz * slc_value_bytes(replica->type) +
                           indices * sizeof(uint32_t);

    return (bytes + CHUNK_ALIGNMENT - 1) / CHUNK_ALIGNMENT * CHUNK_ALIGNMENT;
}

/* Returns an upper limit for the bytes of `pieces` pieces with `nnz` nonzeros, or UINT64_MAX on
 * overflow. */
static uint64_t
pieces_bytes_max(unsigned order, enum slc_value_type type, uint64_t nnz, uint64_t pieces)
{
    /* In the worst case a piece has one run per nonzero, even if the sample predicts fewer runs.
     * Two consecutive chunks together have more nonzeros than fit in one chunk. */
    const uint64_t each = slc_value_bytes(type) + (order + UINT64_C(1)) * sizeof(uint32_t);
    const uint64_t chunks = slc_min_u64(nnz / SLC_REPLICA_CHUNK_NNZ * 2 + 2 * pieces, nnz);
    const uint64_t overhead = sizeof(struct slc_replica_chunk) + CHUNK_ALIGNMENT + sizeof(uint32_t);
    uint64_t bytes;

    if (!slc_mul_u64(nnz, each, &bytes) || !slc_add_u64(bytes, chunks * overhead, &bytes)) {
        return UINT64_MAX;
    }
    return bytes;
}

/* Only the last piece of an item is not full. Fewer than 2 * SLC_REPLICA_BUCKETS items have
 * nonzeros: one item per range, of which there are at most SLC_REPLICA_BUCKETS, and one further
 * item for each part that is split off a heavy range and has the target number of nonzeros
 * (replica_split.c). */
_Static_assert(SLC_MAX_THREADS *SLC_REPLICA_RANGES_PER_WORKER <= SLC_REPLICA_BUCKETS,
               "there must not be more ranges than buckets");

uint64_t slc_replica_chunks_bytes_max(unsigned order, enum slc_value_type type, uint64_t nnz)
{
    return pieces_bytes_max(order, type, nnz,
                            nnz / SLC_REPLICA_PIECE_NNZ + 2 * SLC_REPLICA_BUCKETS);
}

/* Position within a piece up to which the piece has been divided into chunks. */
struct cut {
    uint32_t nnz;  /* number of nonzeros before the position */
    uint32_t runs; /* next run, part of which may already be in a chunk */
};

/* Splits off the next chunk and returns its number of nonzeros, which is 0 at the end. A run that
 * does not fit in the rest of the chunk becomes part of the next chunk, unless it is the first run
 * of this chunk. */
static uint32_t cut_chunk(const struct slc_replica_order *order,
                          struct cut *cut,
                          struct slc_replica_run *runs,
                          uint32_t *run_count)
{
    uint32_t used = 0;

    *run_count = 0;
    if (order->run_count == 0) {
        used = (uint32_t)slc_min_u64(order->nnz - cut->nnz, SLC_REPLICA_CHUNK_NNZ);
        runs[(*run_count)++] = (struct slc_replica_run){cut->nnz, used};
    }
    while (cut->runs < order->run_count) {
        const uint32_t first = cut->nnz + used;
        const uint32_t left = order->run_begin[cut->runs + 1] - first;

        if (left > SLC_REPLICA_CHUNK_NNZ - used) {
            if (used == 0) {
                used = SLC_REPLICA_CHUNK_NNZ;
                runs[(*run_count)++] = (struct slc_replica_run){first, used};
            }
            break;
        }
        runs[(*run_count)++] = (struct slc_replica_run){first, left};
        used += left;
        cut->runs++;
    }
    cut->nnz += used;
    return used;
}

/* Sorts runs stably by length. */
static void
sort_runs(const struct slc_replica_run *runs, uint32_t count, struct slc_replica_run *sorted)
{
    uint32_t start[LENGTH_CLASSES + 1] = {0};
    uint32_t sum = 0;

    for (uint32_t r = 0; r < count; r++) {
        start[slc_min_u64(runs[r].nnz, LENGTH_CLASSES)]++;
    }
    for (unsigned c = 0; c <= LENGTH_CLASSES; c++) {
        const uint32_t here = start[c];

        start[c] = sum;
        sum += here;
    }
    for (uint32_t r = 0; r < count; r++) {
        sorted[start[slc_min_u64(runs[r].nnz, LENGTH_CLASSES)]++] = runs[r];
    }
}

static const unsigned char *record_at(const struct chunk_writer *writer, uint32_t i)
{
    return writer->order->records +
           (uint64_t)(uint16_t)writer->order->keys[i] * writer->replica->record_bytes;
}

static void write_values(const struct chunk_writer *writer, unsigned char *to)
{
    const uint32_t bytes = slc_value_bytes(writer->replica->type);
    const uint64_t value_at = writer->replica->shape.order * sizeof(uint32_t);

    for (uint32_t r = 0; r < writer->run_count; r++) {
        const struct slc_replica_run *run = &writer->runs[r];

        for (uint32_t i = 0; i < run->nnz; i++) {
            memcpy(to, record_at(writer, run->first + i) + value_at, bytes);
            to += bytes;
        }
    }
}

/* Writes the offsets of one mode, relative to `base`, for every nonzero or for the first nonzero of
 * each run. */
static void
write_offsets(struct chunk_writer *writer, unsigned mode, uint64_t base, bool every_nonzero)
{
    uint32_t *to = writer->next;

    for (uint32_t r = 0; r < writer->run_count; r++) {
        const struct slc_replica_run *run = &writer->runs[r];
        const uint32_t count = every_nonzero ? run->nnz : 1;

        for (uint32_t i = 0; i < count; i++) {
            *to++ =
                slc_replica_coordinate(record_at(writer, run->first + i), mode) - (uint32_t)base;
        }
    }
    writer->next = to;
}

static void write_begins(struct chunk_writer *writer)
{
    uint32_t sum = 0;

    for (uint32_t r = 0; r < writer->run_count; r++) {
        *writer->next++ = sum;
        sum += writer->runs[r].nnz;
    }
    *writer->next++ = sum;
}

/* Returns the number of runs in a chunk's arrays, as stored in its header. */
static uint32_t chunk_runs(const struct slc_replica_order *order, uint32_t run_count)
{
    return order->run_count > 0 ? run_count : 0;
}

/* Writes one chunk; `output` is the mode of the copy, whose rows are relative to `row_begin`. */
static void write_chunk(struct chunk_writer *writer,
                        unsigned output,
                        uint32_t varying,
                        uint64_t row_begin,
                        struct slc_replica_chunk *chunk)
{
    const unsigned order = writer->replica->shape.order;
    unsigned char *values = (unsigned char *)(chunk + 1);

    chunk->nnz = writer->nnz;
    chunk->runs = chunk_runs(writer->order, writer->run_count);
    chunk->bytes = chunk_bytes(writer->replica, varying, chunk->nnz, chunk->runs);
    write_values(writer, values);
    writer->next = (uint32_t *)(void *)(values + (uint64_t)writer->nnz *
                                                     slc_value_bytes(writer->replica->type));
    for (unsigned m = 0; m < order && chunk->runs > 0; m++) {
        if (slc_replica_varies(varying, m)) {
            write_offsets(writer, m, m == output ? row_begin : 0, true);
        }
    }
    if (chunk->runs > 0) {
        write_begins(writer);
    }
    for (unsigned m = 0; m < order; m++) {
        if (chunk->runs == 0 || !slc_replica_varies(varying, m)) {
            write_offsets(writer, m, m == output ? row_begin : 0, chunk->runs == 0);
        }
    }
    assert((uint64_t)((unsigned char *)writer->next - (unsigned char *)chunk) <= chunk->bytes);
}

/* Computes the number and the total size of a piece's chunks. */
static uint64_t measure_piece(const struct slc_replica *replica,
                              const struct slc_replica_order *order,
                              uint32_t varying,
                              struct slc_replica_run *runs,
                              uint32_t *chunks)
{
    struct cut cut = {0, 0};
    uint64_t bytes = 0;
    uint32_t run_count;
    uint32_t nnz;

    for (*chunks = 0; (nnz = cut_chunk(order, &cut, runs, &run_count)) > 0; (*chunks)++) {
        bytes += chunk_bytes(replica, varying, nnz, chunk_runs(order, run_count));
    }
    return bytes;
}

/* Allocates memory for the chunks of a piece. */
static unsigned char *allocate_chunks(struct write_job *job, uint64_t piece, uint64_t bytes)
{
    unsigned node = 0;

    while (piece >= job->piece_end[node]) {
        node++;
    }
    uint64_t at = atomic_fetch_add(&job->used[node], bytes);
    assert(at + bytes <= job->region_end[node]);
    return (unsigned char *)job->copy->chunks.data + at;
}

static void write_piece(struct write_job *job, uint64_t number, unsigned worker)
{
    struct slc_replica_piece *piece = &job->copy->pieces[number];
    const struct slc_replica *replica = job->replica;
    const struct slc_replica_scratch scratch = slc_replica_scratch_of(replica, worker);
    struct chunk_writer writer = {.replica = replica, .runs = scratch.runs[1]};
    const uint32_t varying = job->copy->varying;
    struct slc_replica_order order;
    struct cut cut = {0, 0};

    slc_replica_sort(replica, job->mode, varying, piece, &scratch, &order);
    writer.order = &order;
    uint64_t bytes = measure_piece(replica, &order, varying, scratch.runs[0], &piece->chunk_count);
    unsigned char *at = allocate_chunks(job, number, bytes);
    piece->chunks = at;
    while ((writer.nnz = cut_chunk(&order, &cut, scratch.runs[0], &writer.run_count)) > 0) {
        struct slc_replica_chunk *chunk = (struct slc_replica_chunk *)(void *)at;

        sort_runs(scratch.runs[0], writer.run_count, scratch.runs[1]);
        write_chunk(&writer, job->mode, varying, piece->row_begin, chunk);
        at += chunk->bytes;
    }
}

static void write_pieces(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    struct write_job *job = context;

    for (uint64_t p = begin; p < end; p++) {
        write_piece(job, p, worker);
    }
}

/* Assigns pieces, and a region of the memory for chunks, to every node. */
static void divide_memory(struct write_job *job)
{
    const struct slc_replica *replica = job->replica;
    const uint64_t pieces = job->copy->piece_count;
    const unsigned nodes = slc_team_shares(replica->workers, pieces, 1, job->piece_end);
    uint64_t begin = 0;

    for (unsigned n = 0; n < nodes; n++) {
        const uint64_t end = job->piece_end[n];

        atomic_init(&job->used[n], begin);
        begin = job->copy->chunks.bytes;
        if (end < pieces) {
            begin = pieces_bytes_max(replica->shape.order, replica->type,
                                     job->copy->pieces[end].first_nnz, end);
            begin -= begin % CHUNK_ALIGNMENT;
        }
        job->region_end[n] = begin;
    }
}

enum slc_status slc_replica_write_chunks(struct slc_replica *replica,
                                         unsigned mode,
                                         struct slc_replica_mode *copy,
                                         struct slc_error *err)
{
    struct write_job job = {.replica = replica, .copy = copy, .mode = mode};

    divide_memory(&job);
    return slc_team_for(replica->workers, copy->piece_count, 1, write_pieces, &job, err);
}
