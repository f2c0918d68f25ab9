/* Defines the final keys of a store, once all entries have been pushed. */
#include "convert/build/builder_internal.h"

#include "base/error/log.h"
#include "base/memory/memory.h"
#include "convert/build/build_fibers.h"

#include <inttypes.h>

/* Checks the smallest and largest pushed coordinates, which the workers record, against the index
 * base and the mode sizes. */
static enum slc_status check_ranges(const struct slc_builder *builder,
                                    unsigned base,
                                    const uint64_t *dims,
                                    struct slc_error *err)
{
    for (unsigned mode = 0; mode < builder->order; mode++) {
        for (unsigned worker = 0; worker < builder->options.workers; worker++) {
            const struct slc_builder_worker *w = &builder->workers[worker];

            if (w->frame == NULL) {
                continue; /* this worker pushed nothing */
            }
            if (w->smallest[mode] < base) {
                return slc_fail(err, SLC_ERR_INPUT,
                                "index %" PRIu64 " occurs in mode %u, but indices start at %u",
                                w->smallest[mode], mode + 1, base);
            }
            if (w->largest[mode] - base >= dims[mode]) {
                return slc_fail(err, SLC_ERR_INPUT,
                                "index %" PRIu64
                                " in mode %u is out of range: the mode has %" PRIu64
                                " indices, which start at %u",
                                w->largest[mode], mode + 1, dims[mode], base);
            }
        }
    }
    return SLC_OK;
}

/* Returns true if buckets were formed under another index base or fiber run; logs the reason. */
static bool must_regroup(const struct slc_builder *builder,
                         unsigned base,
                         const struct slc_builder_report *report)
{
    const struct slc_fiber_run *run = &report->fibers.run;
    const struct slc_fiber_run *assumed = &builder->splitters.run;

    if (builder->bucket_count == 1 || report->entries == 0) {
        return false;
    }
    if (base != builder->options.assumed_base) {
        slc_log(SLC_LOG_NOTE,
                "indices start at %u, not at %u as the sample suggested: sorting again", base,
                builder->options.assumed_base);
        return true;
    }
    if (run->mode != assumed->mode || run->bits != assumed->bits) {
        slc_log(SLC_LOG_NOTE,
                "the sample suggested fibers of the wrong mode to keep together: sorting again");
        return true;
    }
    return false;
}

/* Prepares recoders, which convert the keys of every key frame to final keys. */
static enum slc_status
make_recoders(const struct slc_builder *builder, struct slc_sort_plan *plan, struct slc_error *err)
{
    const struct slc_key_frames *frames = &builder->frames;
    enum slc_status status = SLC_OK;

    plan->recoders = slc_calloc(frames->count + (size_t)1, sizeof *plan->recoders);
    SLC_TRY(slc_check_memory(plan->recoders != NULL, err, "for %u key frames", frames->count));
    for (uint32_t i = 0; i < frames->count && status == SLC_OK; i++) {
        const struct slc_key_frame *frame = frames->list[i];

        if (frame->hopeless) {
            /* Final mode sizes fit a key, so this frame was formed under the wrong index base. */
            status =
                slc_fail(err, SLC_ERR_UNSUPPORTED,
                         "indices starting at %u need over %d bits in total: specify the index "
                         "base and the mode sizes, so that no wrong base is tried",
                         (unsigned)frame->index_base, SLC_MAX_KEY_BITS);
        } else {
            status = slc_recoder_init(&plan->recoders[i], &frame->layout, frame->index_base,
                                      &plan->layout, &plan->tables, plan->index_base, err);
        }
    }
    plan->frame_count = frames->count;
    plan->resumed = builder->resumed;
    return status;
}

enum slc_status slc_build_keys(struct slc_builder *builder,
                               const uint64_t *dims,
                               struct slc_sort_plan *plan,
                               struct slc_builder_report *report,
                               bool *regroup,
                               struct slc_error *err)
{
    const unsigned base = (unsigned)plan->index_base;
    enum slc_status status = slc_scatter_flush_all(&builder->scatter, err);

    for (unsigned worker = 0; worker < builder->options.workers; worker++) {
        report->entries += builder->workers[worker].entries;
    }
    SLC_THEN(status, check_ranges(builder, base, dims, err));
    if (plan->index_base != builder->options.assumed_base) {
        /* Free this memory: slc_build_fibers_choose may need as much to count again. */
        slc_buffer_destroy(&builder->scatter_memory);
    }
    SLC_THEN(status, slc_build_fibers_choose(builder, base, &report->fibers, err));
    if (status == SLC_OK) {
        status =
            slc_key_layout_init_run(&plan->layout, builder->order, dims, report->fibers.run, err);
    }
    SLC_THEN(status, slc_key_tables_init(&plan->tables, &plan->layout, err));
    SLC_THEN(status, make_recoders(builder, plan, err));
    plan->spill = builder->spill;
    *regroup = status == SLC_OK && must_regroup(builder, base, report);
    return status;
}

void slc_build_keys_destroy(const struct slc_builder *builder, struct slc_sort_plan *plan)
{
    for (uint32_t i = 0; plan->recoders != NULL && i < builder->frames.count; i++) {
        slc_recoder_destroy(&plan->recoders[i]);
    }
    slc_free(plan->recoders);
    plan->recoders = NULL;
    slc_key_tables_destroy(&plan->tables);
}
