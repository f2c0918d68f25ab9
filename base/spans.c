/* Stores the union of time spans as a sorted list of disjoint spans. When the list is full, its
 * first span is added to a total and removed. */
#include "base/spans.h"

#include <math.h>
#include <string.h>

static void fold_first(struct slc_spans *spans)
{
    spans->folded_seconds += spans->pending[0].end - spans->pending[0].begin;
    spans->folded_until = spans->pending[0].end;
    spans->count--;
    memmove(&spans->pending[0], &spans->pending[1], spans->count * sizeof spans->pending[0]);
}

void slc_spans_add(struct slc_spans *spans, double begin, double end)
{
    uint32_t first, next;

    begin = fmax(begin, spans->folded_until);
    if (!(end > begin)) {
        return;
    }
    /* Pending spans [first, next) touch the new span. The search starts at the end, because a new
     * span is usually the latest. */
    for (next = spans->count; next > 0 && spans->pending[next - 1].begin > end; next--) {
    }
    for (first = next; first > 0 && spans->pending[first - 1].end >= begin; first--) {
    }
    if (first == next && spans->count == SLC_SPANS_PENDING) {
        fold_first(spans);
        first -= first > 0;
        next = first;
        begin = fmax(begin, spans->folded_until);
        if (!(end > begin)) {
            return;
        }
    }
    if (first < next) {
        begin = fmin(begin, spans->pending[first].begin);
        end = fmax(end, spans->pending[next - 1].end);
    }
    memmove(&spans->pending[first + 1], &spans->pending[next],
            (spans->count - next) * sizeof spans->pending[0]);
    spans->count = spans->count - (next - first) + 1;
    spans->pending[first].begin = begin;
    spans->pending[first].end = end;
}

double slc_spans_seconds(const struct slc_spans *spans)
{
    double seconds = spans->folded_seconds;

    for (uint32_t i = 0; i < spans->count; i++) {
        seconds += spans->pending[i].end - spans->pending[i].begin;
    }
    return seconds;
}

void slc_spans_restart(struct slc_spans *spans)
{
    spans->folded_seconds = slc_spans_seconds(spans);
    spans->folded_until = 0;
    spans->count = 0;
}
