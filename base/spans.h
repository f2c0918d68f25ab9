/* Computes the total time that time spans cover. Spans may overlap and arrive out of order, such as
 * the spans of work of several streams of a device. Overlapping spans count once, so that the total
 * never exceeds the elapsed time.
 *
 * Up to SLC_SPANS_PENDING disjoint spans are kept sorted. If there is no space for a further span,
 * the earliest span is added to the total, and from then on time before the end of that span is
 * ignored. The result is exact unless more than SLC_SPANS_PENDING spans arrive out of order, and it
 * is never too large. */
#ifndef SLC_BASE_SPANS_H
#define SLC_BASE_SPANS_H

#include <stdint.h>

enum {
    /* Maximum number of spans that may arrive out of order; gpu/device/state.h asserts that the
     * operations of a device do not exceed it. */
    SLC_SPANS_PENDING = 256
};

/* A struct that is all zero has no spans. */
struct slc_spans {
    double folded_seconds;
    double folded_until; /* end of the spans that were added to the total */
    uint32_t count;
    struct {
        double begin, end;
    } pending[SLC_SPANS_PENDING]; /* disjoint, ascending */
};

/* Adds the span from `begin` to `end`, in seconds (not negative) since any fixed time. An empty
 * span adds nothing. Cost: moves the pending spans that are later, usually none. */
void slc_spans_add(struct slc_spans *spans, double begin, double end);
/* Returns the total covered time in seconds. */
double slc_spans_seconds(const struct slc_spans *spans);
/* Adds all pending spans to the total. Later spans may count their seconds from another time. */
void slc_spans_restart(struct slc_spans *spans);

#endif
