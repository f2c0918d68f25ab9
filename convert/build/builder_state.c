/* Allocates the builder's memory for the push, and releases it before the sort or at the end. */
#include "convert/build/builder_internal.h"

#include "base/memory/memory.h"
#include "convert/build/build_memory.h"

#include <assert.h>

void slc_build_release_push_memory(struct slc_builder *builder)
{
    slc_key_frames_destroy(&builder->frames);
    slc_spill_destroy(builder->spill);
    slc_buffer_destroy(&builder->scatter_memory);
    slc_free(builder->chains);
    builder->spill = NULL;
    builder->chains = NULL;
}

enum slc_status slc_build_allocate_push_memory(struct slc_builder *builder,
                                               uint32_t buckets,
                                               const struct slc_spill_extent *kept,
                                               struct slc_error *err)
{
    struct slc_push_memory plan =
        slc_push_memory_plan(&builder->options, builder->order, buckets, builder->entries_expected);
    struct slc_spill_options spill_options = {.files = builder->options.files,
                                              .path = builder->spill_path,
                                              .max_bytes = builder->options.max_temp,
                                              .segment_bytes = plan.segment_bytes,
                                              .segment_count = plan.segment_count,
                                              .keep = builder->options.resumable};

    if (kept != NULL && kept->segments > 0) {
        const uint64_t bytes = (uint64_t)plan.segment_bytes * plan.segment_count;

        spill_options.extent = *kept;
        spill_options.segment_bytes = kept->segment_bytes;
        spill_options.segment_count = (uint32_t)(bytes / kept->segment_bytes);
    }

    assert(plan.shape.buckets == buckets);
    builder->bucket_count = buckets;
    slc_key_frames_init(&builder->frames, builder->order, &builder->splitters,
                        builder->options.assumed_base);
    builder->chains = slc_calloc(buckets, sizeof *builder->chains);
    SLC_TRY(slc_check_memory(builder->chains != NULL, err, "for %u buckets", buckets));
    SLC_TRY(slc_buffer_create(&builder->scatter_memory, slc_scatter_bytes(&plan.shape),
                              SLC_PAGES_MIXED, err));
    SLC_TRY(slc_spill_create(&spill_options, &builder->spill, err));
    slc_scatter_init(&builder->scatter, &plan.shape, builder->spill, builder->chains,
                     builder->scatter_memory.data);
    return SLC_OK;
}

void slc_build_destroy(struct slc_builder *builder)
{
    if (builder == NULL) {
        return;
    }
    slc_build_release_push_memory(builder);
    slc_buffer_destroy(&builder->fiber_memory);
    slc_splitters_destroy(&builder->splitters);
    slc_state_destroy(&builder->note);
    slc_build_folder_end(&builder->folder);
    slc_free(builder->temp_folder);
    slc_free(builder->spill_path);
    slc_free(builder->workers);
    slc_free(builder);
}
