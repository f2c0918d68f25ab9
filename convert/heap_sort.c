/* See convert/heap_sort.h. */
#include "convert/heap_sort.h"

#include <assert.h>
#include <string.h>

/* Puts `moving` into the heap of `count` items whose root is free. */
static void sift(char *items,
                 size_t root,
                 size_t count,
                 size_t item_bytes,
                 const char *moving,
                 slc_less_fn *less,
                 const void *context)
{
    for (;;) {
        size_t child = 2 * root + 1;

        if (child >= count) {
            break;
        }
        if (child + 1 < count &&
            less(context, items + child * item_bytes, items + (child + 1) * item_bytes)) {
            child++;
        }
        if (!less(context, moving, items + child * item_bytes)) {
            break;
        }
        memcpy(items + root * item_bytes, items + child * item_bytes, item_bytes);
        root = child;
    }
    memcpy(items + root * item_bytes, moving, item_bytes);
}

void slc_heap_sort(
    void *items, size_t count, size_t item_bytes, slc_less_fn *less, const void *context)
{
    char moving[SLC_HEAP_ITEM_BYTES_MAX];
    char *bytes = items;
    size_t i;

    assert(item_bytes <= sizeof moving);
    for (i = count / 2; i-- > 0;) {
        memcpy(moving, bytes + i * item_bytes, item_bytes);
        sift(bytes, i, count, item_bytes, moving, less, context);
    }
    for (i = count; i-- > 1;) {
        memcpy(moving, bytes + i * item_bytes, item_bytes);
        memcpy(bytes + i * item_bytes, bytes, item_bytes);
        sift(bytes, 0, i, item_bytes, moving, less, context);
    }
}
