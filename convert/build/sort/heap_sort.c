#include "convert/build/sort/heap_sort.h"

#include <assert.h>
#include <string.h>

/* Inserts `moving` into the heap of `count` items whose root is free. Moves the free position from
 * the root to a leaf, along the larger children, and then up to where `moving` belongs. Because
 * `moving` came from a leaf, few moves up are needed. This needs half as many comparisons as a
 * search for the position on the way down. */
static void sift(char *items,
                 size_t root,
                 size_t count,
                 size_t item_bytes,
                 const char *moving,
                 slc_less_fn *less,
                 const void *context)
{
    size_t hole = root;
    size_t child;

    for (child = 2 * hole + 2; child < count; child = 2 * hole + 2) {
        child -= less(context, items + child * item_bytes, items + (child - 1) * item_bytes);
        memcpy(items + hole * item_bytes, items + child * item_bytes, item_bytes);
        hole = child;
    }
    if (child == count) { /* a last child without a sibling */
        memcpy(items + hole * item_bytes, items + (child - 1) * item_bytes, item_bytes);
        hole = child - 1;
    }
    while (hole > root && less(context, items + (hole - 1) / 2 * item_bytes, moving)) {
        memcpy(items + hole * item_bytes, items + (hole - 1) / 2 * item_bytes, item_bytes);
        hole = (hole - 1) / 2;
    }
    memcpy(items + hole * item_bytes, moving, item_bytes);
}

void slc_heap_sort(
    void *items, size_t count, size_t item_bytes, slc_less_fn *less, const void *context)
{
    char moving[SLC_HEAP_ITEM_BYTES_MAX];
    char *bytes = items;

    assert(item_bytes <= sizeof moving);
    for (size_t i = count / 2; i-- > 0;) {
        memcpy(moving, bytes + i * item_bytes, item_bytes);
        sift(bytes, i, count, item_bytes, moving, less, context);
    }
    for (size_t i = count; i-- > 1;) {
        memcpy(moving, bytes + i * item_bytes, item_bytes);
        memcpy(bytes + i * item_bytes, bytes, item_bytes);
        sift(bytes, 0, i, item_bytes, moving, less, context);
    }
}
