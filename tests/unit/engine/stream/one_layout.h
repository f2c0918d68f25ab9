/* Plans and streams of a single layout, for tests without others. */
#ifndef SLC_TEST_ONE_LAYOUT_H
#define SLC_TEST_ONE_LAYOUT_H

#include "engine/planning/planning.h"
#include "engine/stream/stream.h"

static inline enum slc_status plan_one(struct slc_reader *reader,
                                       const struct slc_plan_request *request,
                                       struct slc_plan *plan,
                                       struct slc_error *err)
{
    const struct slc_layouts layouts = slc_layouts_one(reader);

    return slc_plan_make(&layouts, request, plan, err);
}

static inline enum slc_status stream_one(const struct slc_files *files,
                                         struct slc_reader *reader,
                                         const struct slc_plan *plan,
                                         struct slc_stream **stream,
                                         struct slc_error *err)
{
    const struct slc_layouts layouts = slc_layouts_one(reader);

    return slc_stream_open(files, &layouts, plan, stream, err);
}

#endif
