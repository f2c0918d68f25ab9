/*
 * Total time covered by time spans that overlap and arrive in almost any order. Used for the work
 * of several streams of a device: overlapping spans count once, so the total never exceeds the
 * elapsed time.
 *
 * Up to SLC_SPANS_PENDING disjoint spans are kept sorted. If there is no space for a further span,
 * the earliest span is added to the total, and parts of later spans before the end of that span are
 * ignored. The result is exact unless more than SLC_SPANS_PENDING spans arrive out of order, and it
 * is never too large.
 */
#ifndef SLC_BASE_SPANS_H
#define SLC_BASE_SPANS_H

#include <stdint.h>

enum {
    /* Maximum number of spans out of order; gpu/device/state.h asserts that it suffices. */
    SLC_SPANS_PENDING = 256
};

/* All zero: no spans. */
struct slc_spans {
    double folded_seconds;
    double folded_until; /* end of the spans that were added to the total */
    uint32_t count;
    struct {
        double begin, end;
    } pending[SLC_SPANS_PENDING]; /* disjoint, ascending */
};

/* Adds [begin, end) in seconds, not negative, from any common origin. An empty span adds nothing.
 * Cost: moves later pending spans, usually none. */
void slc_spans_add(struct slc_spans *spans, double begin, double end);
/* Returns the total covered time in seconds. */
double slc_spans_seconds(const struct slc_spans *spans);
/* Adds all pending spans to the total; later spans have a new origin. */
void slc_spans_restart(struct slc_spans *spans);

#endif
