/* The builder's state, shared by builder.c (pushing) and build_finish.c (writing). */
#ifndef SLC_CONVERT_BUILDER_INTERNAL_H
#define SLC_CONVERT_BUILDER_INTERNAL_H

#include "convert/build_folder.h"
#include "convert/builder.h"
#include "convert/fibers.h"
#include "convert/key_frame.h"
#include "convert/scatter.h"
#include "convert/splitters.h"

/* Counters of one worker, apart so that workers do not share cache lines. */
struct slc_builder_worker {
    uint64_t entries;
    const struct slc_key_frame *frame; /* NULL: nothing was pushed */
    uint64_t smallest[SLC_MAX_ORDER];  /* of what was pushed */
    uint64_t largest[SLC_MAX_ORDER];
    struct slc_fiber_counts fibers; /* SLC_FIBERS_AUTO */
    char padding[64];
};

struct slc_builder {
    struct slc_builder_options options; /* strings are not kept: see below */
    unsigned order;
    char *temp_folder; /* as asked for; NULL: none */
    char *spill_path;
    struct slc_build_folder folder;
    struct slc_builder_worker *workers;

    /* While input is pushed. */
    struct slc_splitters splitters;
    struct slc_key_frames frames;
    uint32_t bucket_count;
    struct slc_chain *chains;
    struct slc_spill *spill;
    struct slc_scatter scatter;
    struct slc_buffer scatter_memory;
    struct slc_buffer fiber_memory; /* of all workers' counts; none unless SLC_FIBERS_AUTO */
};

/* Everything of finish but the ends: sorts, writes blco.blk and the manifest into the part folder.
 */
enum slc_status slc_build_store(struct slc_builder *builder,
                                unsigned index_base,
                                const uint64_t *dims,
                                struct slc_store_origin *origin,
                                struct slc_builder_report *report,
                                struct slc_error *err) SLC_NODISCARD;

#endif
