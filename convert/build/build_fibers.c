#include "convert/build/build_fibers.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/build/build_memory.h"
#include "convert/build/sort/fiber_guess.h"
#include "convert/build/sort/key_tables.h"
#include "convert/build/sort/recode.h"

#include <string.h>

void slc_build_fibers_reset(struct slc_builder *builder)
{
    uint8_t *memory = builder->fiber_memory.data;
    uint64_t bytes = slc_fiber_counts_bytes(builder->order);

    if (builder->options.fibers != SLC_FIBERS_AUTO) {
        return;
    }
    for (unsigned worker = 0; worker < builder->options.workers; worker++) {
        slc_fiber_counts_init(&builder->workers[worker].fibers, builder->order,
                              memory + worker * bytes);
    }
}

enum slc_status slc_build_fibers_start(struct slc_builder *builder, struct slc_error *err)
{
    struct slc_builder_options *options = &builder->options;

    if (options->fibers == SLC_FIBERS_GIVEN &&
        (options->run.mode >= builder->order || options->run.bits == 0 ||
         options->run.bits > SLC_FIBER_BITS_MAX)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "fibers of mode %u with %u bits: the tensor has modes 1 to %u, and there "
                        "must be 1 to %d bits",
                        options->run.mode + 1, options->run.bits, builder->order,
                        SLC_FIBER_BITS_MAX);
    }
    if (builder->order == 1 && options->fibers == SLC_FIBERS_GIVEN) {
        /* with one mode, fibers do not change the order of nonzeros */
        options->fibers = SLC_FIBERS_NONE;
    }
    if (options->fibers != SLC_FIBERS_AUTO) {
        return SLC_OK;
    }
    SLC_TRY(slc_buffer_create(&builder->fiber_memory,
                              slc_build_fibers_bytes(options, builder->order), SLC_PAGES_SMALL,
                              err));
    slc_build_fibers_reset(builder);
    return SLC_OK;
}

enum slc_status slc_build_fibers_assume(struct slc_builder *builder,
                                        const uint64_t *rows,
                                        uint32_t count,
                                        uint32_t stretches,
                                        uint64_t entries_expected,
                                        struct slc_fiber_run *run,
                                        struct slc_error *err)
{
    *run = (struct slc_fiber_run){0, 0};
    if (builder->options.fibers != SLC_FIBERS_AUTO) {
        *run = builder->options.fibers == SLC_FIBERS_GIVEN ? builder->options.run : *run;
        return SLC_OK;
    }
    enum slc_status status = slc_fiber_guess(&builder->workers[0].fibers, rows, count, stretches,
                                             entries_expected, run, err);
    slc_build_fibers_reset(builder);
    return status;
}

static void recount_chunk(struct slc_fiber_counts *counts,
                          const struct slc_chunk *chunk,
                          const struct slc_recoder *recoder)
{
    uint64_t lo[SLC_KEY_BATCH];
    uint64_t hi[SLC_KEY_BATCH];
    uint64_t columns[SLC_MAX_ORDER][SLC_KEY_BATCH];
    const uint64_t *view[SLC_MAX_ORDER];

    for (unsigned n = 0; n < counts->order; n++) {
        view[n] = columns[n];
    }
    for (uint32_t begin = 0; begin < chunk->count; begin += SLC_KEY_BATCH) {
        uint32_t count = (uint32_t)slc_min_u64(SLC_KEY_BATCH, chunk->count - begin);

        slc_chunk_entries(chunk, begin, count, lo, hi, NULL);
        slc_recode_coords(recoder, lo, hi, count, columns);
        slc_fiber_counts_add(counts, view, 0, count, 0);
    }
}

/* Counts the entries of one bucket again. `recoders`: convert keys to coordinates, one per key
 * frame. */
static enum slc_status recount_bucket(struct slc_builder *builder,
                                      const struct slc_chain *chain,
                                      const struct slc_recoder *recoders,
                                      uint8_t *data,
                                      struct slc_error *err)
{
    struct slc_chunk_link link = chain->last;
    uint64_t left = chain->entries;

    while (link.bytes > 0) {
        struct slc_chunk chunk;

        SLC_TRY(slc_spill_fetch(builder->spill, link, false, data, &chunk, err));
        if (chunk.frame >= builder->frames.count) {
            return slc_fail(err, SLC_ERR_DAMAGED,
                            "a chunk of the spill file has an invalid key frame");
        }
        /* Links that another run wrote may form a cycle. This limit ends the loop in that case. */
        if (chunk.count > left) {
            return slc_fail(
                err, SLC_ERR_DAMAGED,
                "the chunks of a bucket in the spill file hold more entries than recorded");
        }
        left -= chunk.count;
        recount_chunk(&builder->workers[0].fibers, &chunk, &recoders[chunk.frame]);
        link = chunk.previous;
    }
    return SLC_OK;
}

static enum slc_status
recount(struct slc_builder *builder, unsigned index_base, struct slc_error *err)
{
    const struct slc_key_frames *frames = &builder->frames;
    struct slc_buffer data = {0};
    struct slc_recoder *recoders = slc_calloc(frames->count + (size_t)1, sizeof *recoders);
    enum slc_status status =
        recoders != NULL
            ? slc_buffer_create(&data, SLC_BUILD_FETCH_BYTES, SLC_PAGES_SMALL, err)
            : slc_fail(err, SLC_ERR_MEMORY, "no memory for %u key frames", frames->count);

    slc_build_fibers_reset(builder);
    for (uint32_t i = 0; i < frames->count && status == SLC_OK; i++) {
        const struct slc_key_frame *frame = frames->list[i];

        status = slc_recoder_init_coords(&recoders[i], &frame->layout, frame->index_base,
                                         index_base, err);
    }
    for (uint32_t b = 0; b < builder->bucket_count && status == SLC_OK; b++) {
        status = recount_bucket(builder, &builder->chains[b], recoders, data.data, err);
    }
    for (uint32_t i = 0; recoders != NULL && i < frames->count; i++) {
        slc_recoder_destroy(&recoders[i]);
    }
    slc_free(recoders);
    slc_buffer_destroy(&data);
    return status;
}

enum slc_status slc_build_fibers_choose(struct slc_builder *builder,
                                        unsigned index_base,
                                        struct slc_fiber_report *report,
                                        struct slc_error *err)
{
    struct slc_fiber_counts *all = &builder->workers[0].fibers;
    enum slc_status status = SLC_OK;

    *report = (struct slc_fiber_report){.chosen = builder->options.fibers == SLC_FIBERS_AUTO};
    if (!report->chosen) {
        if (builder->options.fibers == SLC_FIBERS_GIVEN) {
            report->run = builder->options.run;
        }
        return SLC_OK;
    }
    if (index_base != builder->options.assumed_base) {
        status = recount(builder, index_base, err);
    }
    for (unsigned worker = 1; worker < builder->options.workers && status == SLC_OK; worker++) {
        slc_fiber_counts_join(all, &builder->workers[worker].fibers);
    }
    struct slc_fiber_choice choice = slc_fiber_counts_choose(all);
    report->run = choice.run;
    report->mode = choice.mode;
    report->piece_nnz = choice.pieces > 0 ? (double)choice.nnz / (double)choice.pieces : 0;
    slc_buffer_destroy(&builder->fiber_memory);
    return status;
}
