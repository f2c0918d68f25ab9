/*
 * Chunks: what a kernel call reads, in one stream of memory.
 *
 * A piece in its order is cut into chunks at ends of runs, the runs of a chunk are ordered by
 * length, and everything a kernel needs is written behind the chunk's header. Pieces are written by
 * all workers at once; each takes the memory of its piece when its size is known.
 */
#include "base/checked.h"
#include "base/team.h"
#include "cpu/owned_build.h"

#include <assert.h>

enum {
    LENGTH_CLASSES = 64, /* of runs: 1, 2 .. 63, and longer ones, for which order gains nothing */
    CHUNK_ALIGNMENT = 64
};

/* What workers share while a mode is written. */
struct write_job {
    struct slc_owned *owned;
    struct slc_owned_mode *copy;
    unsigned mode;
    atomic_uint_fast64_t taken; /* bytes of copy->chunks */
};

/* Records of a chunk, run by run, and where they go. */
struct chunk_writer {
    const struct slc_owned *owned;
    const struct slc_owned_order *order;
    const struct slc_owned_run *runs;
    uint32_t run_count;
    uint32_t nnz;
    uint32_t *next; /* of the index arrays */
};

static uint64_t chunk_bytes(unsigned order, enum slc_value_type type, uint64_t nnz, uint64_t runs)
{
    const uint64_t indices = runs == 0 ? nnz * order : nnz + runs + 1 + (order - 1) * runs;
    const uint64_t bytes =
        sizeof(struct slc_owned_chunk) + nnz * slc_value_bytes(type) + indices * sizeof(uint32_t);

    return (bytes + CHUNK_ALIGNMENT - 1) / CHUNK_ALIGNMENT * CHUNK_ALIGNMENT;
}

uint64_t slc_owned_chunks_bytes_max(unsigned order, enum slc_value_type type, uint64_t nnz)
{
    /*
     * A run a nonzero is the worst that a piece may hold; the sample promised fewer. Two chunks in
     * a row hold more nonzeros than one can.
     */
    const uint64_t each = slc_value_bytes(type) + (order + UINT64_C(1)) * sizeof(uint32_t);
    const uint64_t pieces = nnz / SLC_OWNED_PIECE_NNZ + 2 * SLC_OWNED_BUCKETS;
    const uint64_t chunks = slc_min_u64(nnz / SLC_OWNED_CHUNK_NNZ * 2 + 2 * pieces, nnz);
    const uint64_t overhead = sizeof(struct slc_owned_chunk) + CHUNK_ALIGNMENT + sizeof(uint32_t);
    uint64_t bytes;

    if (!slc_mul_u64(nnz, each, &bytes) || !slc_add_u64(bytes, chunks * overhead, &bytes)) {
        return UINT64_MAX;
    }
    return bytes;
}

/* Cuts the chunk that begins at `first` into runs; returns its nonzeros. */
static uint32_t cut_chunk(const struct slc_owned_order *order,
                          uint32_t first,
                          struct slc_owned_run *runs,
                          uint32_t *run_count)
{
    const uint32_t left = order->nnz - first;
    const uint32_t most = left < SLC_OWNED_CHUNK_NNZ ? left : SLC_OWNED_CHUNK_NNZ;
    uint32_t count = 0;
    uint32_t taken = 0;

    if (!order->runs) {
        *run_count = 1;
        runs[0] = (struct slc_owned_run){first, most};
        return most;
    }
    while (taken < most) {
        uint32_t end = taken + 1;

        while (end < most && slc_owned_same_run(order, first + end, first + taken)) {
            end++;
        }
        /* One that reaches over the end begins the next chunk, unless it began this one. */
        if (end == most && count > 0 && most < left &&
            slc_owned_same_run(order, first + end, first + taken)) {
            break;
        }
        runs[count++] = (struct slc_owned_run){first + taken, end - taken};
        taken = end;
    }
    *run_count = count;
    return taken;
}

/* Orders runs by length, stably. */
static void
sort_runs(const struct slc_owned_run *runs, uint32_t count, struct slc_owned_run *sorted)
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
           (uint64_t)writer->order->keys[i].at * writer->owned->record_bytes;
}

static void write_values(const struct chunk_writer *writer, unsigned char *to)
{
    const uint32_t bytes = slc_value_bytes(writer->owned->type);
    const uint64_t value_at = writer->owned->shape.order * sizeof(uint32_t);

    for (uint32_t r = 0; r < writer->run_count; r++) {
        const struct slc_owned_run *run = &writer->runs[r];

        for (uint32_t i = 0; i < run->nnz; i++) {
            memcpy(to, record_at(writer, run->first + i) + value_at, bytes);
            to += bytes;
        }
    }
}

/* Offsets of one mode from `base`, of every nonzero or of the first one of each run. */
static void
write_offsets(struct chunk_writer *writer, unsigned mode, uint64_t base, bool every_nonzero)
{
    uint32_t *to = writer->next;

    for (uint32_t r = 0; r < writer->run_count; r++) {
        const struct slc_owned_run *run = &writer->runs[r];
        const uint32_t count = every_nonzero ? run->nnz : 1;

        for (uint32_t i = 0; i < count; i++) {
            *to++ = slc_owned_coordinate(record_at(writer, run->first + i), mode) - (uint32_t)base;
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

/* Writes one chunk; `output` is the mode of the copy, whose rows count from `row_begin`. */
static void write_chunk(struct chunk_writer *writer,
                        unsigned output,
                        unsigned run_mode,
                        uint64_t row_begin,
                        struct slc_owned_chunk *chunk)
{
    const unsigned order = writer->owned->shape.order;
    const bool runs = writer->order->runs;
    unsigned char *values = (unsigned char *)(chunk + 1);

    chunk->nnz = writer->nnz;
    chunk->runs = runs ? writer->run_count : 0;
    chunk->bytes = chunk_bytes(order, writer->owned->type, chunk->nnz, chunk->runs);
    write_values(writer, values);
    writer->next =
        (uint32_t *)(void *)(values + (uint64_t)writer->nnz * slc_value_bytes(writer->owned->type));
    if (runs) {
        write_offsets(writer, run_mode, run_mode == output ? row_begin : 0, true);
        write_begins(writer);
    }
    for (unsigned m = 0; m < order; m++) {
        if (!runs || m != run_mode) {
            write_offsets(writer, m, m == output ? row_begin : 0, !runs);
        }
    }
    assert((uint64_t)((unsigned char *)writer->next - (unsigned char *)chunk) <= chunk->bytes);
}

/* Bytes of a piece's chunks, and how many. */
static uint64_t measure_piece(const struct slc_owned *owned,
                              const struct slc_owned_order *order,
                              struct slc_owned_run *runs,
                              uint32_t *chunks)
{
    uint64_t bytes = 0;

    *chunks = 0;
    for (uint32_t first = 0; first < order->nnz; (*chunks)++) {
        uint32_t run_count;
        const uint32_t nnz = cut_chunk(order, first, runs, &run_count);

        bytes += chunk_bytes(owned->shape.order, owned->type, nnz, order->runs ? run_count : 0);
        first += nnz;
    }
    return bytes;
}

static void write_piece(struct write_job *job, struct slc_owned_piece *piece, unsigned worker)
{
    const struct slc_owned *owned = job->owned;
    const struct slc_owned_scratch scratch = slc_owned_scratch_of(owned, worker);
    struct slc_owned_order order;
    unsigned char *at;
    uint64_t bytes;

    slc_owned_sort(owned, job->mode, job->copy->run_mode, piece, &scratch, &order);
    bytes = measure_piece(owned, &order, scratch.runs[0], &piece->chunk_count);
    at = (unsigned char *)job->copy->chunks.data + atomic_fetch_add(&job->taken, bytes);
    assert(at + bytes <= (unsigned char *)job->copy->chunks.data + job->copy->chunks.bytes);
    piece->chunks = at;
    for (uint32_t first = 0; first < order.nnz;) {
        struct chunk_writer writer = {.owned = owned, .order = &order, .runs = scratch.runs[1]};
        struct slc_owned_chunk *chunk = (struct slc_owned_chunk *)(void *)at;

        writer.nnz = cut_chunk(&order, first, scratch.runs[0], &writer.run_count);
        sort_runs(scratch.runs[0], writer.run_count, scratch.runs[1]);
        write_chunk(&writer, job->mode, job->copy->run_mode, piece->row_begin, chunk);
        first += writer.nnz;
        at += chunk->bytes;
    }
}

static void write_pieces(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    struct write_job *job = context;

    for (uint64_t p = begin; p < end; p++) {
        write_piece(job, &job->copy->pieces[p], worker);
    }
}

enum slc_status
slc_owned_write_chunks(struct slc_owned *owned, unsigned mode, struct slc_error *err)
{
    struct write_job job = {.owned = owned, .copy = &owned->modes[mode], .mode = mode};

    return slc_team_for(owned->workers, job.copy->piece_count, 1, write_pieces, &job, err);
}
