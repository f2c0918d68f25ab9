/*
 * The union of time spans that overlap and come in almost any order: how long at least one of them
 * lasted. Work of several streams of a device is added up by it, so that a sum of times is never
 * more than the time that passed.
 *
 * Up to SLC_SPANS_PENDING disjoint spans are kept sorted; the earliest is folded into the sum when
 * another needs its place, and what would come before it later is cut. So the result is exact while
 * no more spans than that arrive out of order, and never too large.
 */
#ifndef SLC_BASE_SPANS_H
#define SLC_BASE_SPANS_H

#include <stdint.h>

enum {
    /* Spans that may arrive out of order, at most; gpu/device/state.h asserts that these are
       enough. */
    SLC_SPANS_PENDING = 256
};

/* All-zero: no spans, of times from 0 on. */
struct slc_spans {
    double folded_seconds;
    double folded_until; /* no pending span begins before */
    uint32_t count;
    struct {
        double begin, end;
    } pending[SLC_SPANS_PENDING]; /* disjoint, ascending */
};

/*
 * Adds [begin, end), seconds from any one origin, not below 0; an empty one adds nothing.
 * Cost: later pending spans are moved; usually there are none.
 */
void slc_spans_add(struct slc_spans *spans, double begin, double end);
/* The length of the union of all that were added. */
double slc_spans_seconds(const struct slc_spans *spans);
/* Folds all of them; the next ones count from a new origin. */
void slc_spans_restart(struct slc_spans *spans);

#endif
