/* Sorts in place with heap sort: O(n log n) in the worst case, not stable. */
#ifndef SLC_CONVERT_HEAP_SORT_H
#define SLC_CONVERT_HEAP_SORT_H

#include <stdbool.h>
#include <stddef.h>

enum { SLC_HEAP_ITEM_BYTES_MAX = 128 };

typedef bool slc_less_fn(const void *context, const void *a, const void *b);

/* Sorts `count` items of `item_bytes` (at most SLC_HEAP_ITEM_BYTES_MAX) bytes in ascending
 * order. */
void slc_heap_sort(
    void *items, size_t count, size_t item_bytes, slc_less_fn *less, const void *context);

#endif
