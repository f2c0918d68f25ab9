/* Keeps the buckets that are still to be written, in key order. */
#include "convert/build/builder_internal.h"

#include "base/memory/memory.h"

enum slc_status slc_build_queue_push(struct slc_build_queue *queue,
                                     struct slc_bucket *buckets,
                                     uint32_t count,
                                     struct slc_error *err)
{
    struct slc_build_level *level = slc_malloc(sizeof *level);

    if (level == NULL) {
        slc_free(buckets);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a list of buckets");
    }
    for (uint32_t i = 0; i < count; i++) {
        buckets[i].area_bytes = slc_bucket_area_bytes(queue->plan, &buckets[i]);
    }
    *level = (struct slc_build_level){queue->top, buckets, count, 0};
    queue->top = level;
    return SLC_OK;
}

static void pop_level(struct slc_build_queue *queue)
{
    struct slc_build_level *level = queue->top;

    queue->top = level->below;
    slc_free(level->buckets);
    slc_free(level);
}

struct slc_bucket *slc_build_queue_front(struct slc_build_queue *queue)
{
    while (queue->top != NULL && queue->top->next == queue->top->count) {
        pop_level(queue);
    }
    return queue->top == NULL ? NULL : &queue->top->buckets[queue->top->next];
}

bool slc_build_queue_next(struct slc_build_queue *queue,
                          uint64_t area_bytes,
                          struct slc_bucket *bucket)
{
    const struct slc_bucket *front = slc_build_queue_front(queue);

    if (front == NULL || front->area_bytes > area_bytes) {
        return false;
    }
    *bucket = *front;
    queue->top->next++;
    queue->taken += bucket->chain.entries;
    return true;
}

void slc_build_queue_clear(struct slc_build_queue *queue)
{
    while (queue->top != NULL) {
        pop_level(queue);
    }
}

/* Computes the key of a splitter. Returns false if the splitter exceeds the mode sizes. */
static bool splitter_key(const struct slc_builder *builder,
                         const struct slc_key_layout *layout,
                         uint32_t splitter,
                         slc_u128 *key)
{
    const struct slc_splitters *splitters = &builder->splitters;
    const uint64_t *coords = splitters->coords + (size_t)splitter * splitters->order;

    for (unsigned mode = 0; mode < splitters->order; mode++) {
        if (slc_bits_for_length(coords[mode] + 1) > layout->mode_bits[mode]) {
            return false;
        }
    }
    *key = slc_key_encode(layout, coords);
    return true;
}

/* Sets the key bounds of the buckets: taken from the splitters or, if `regroup`, all keys. */
static void set_ranges(const struct slc_builder *builder,
                       const struct slc_key_layout *layout,
                       struct slc_bucket *buckets,
                       bool regroup)
{
    uint32_t count = builder->bucket_count;
    unsigned bits = layout->bits;
    slc_u128 most = bits == 0 ? 0 : ~(slc_u128)0 >> (128 - bits);
    slc_u128 first = 0;
    slc_u128 next = 0;

    for (uint32_t i = 0; i < count; i++) {
        bool bounded = !regroup && i + 1 < count && splitter_key(builder, layout, i, &next);

        buckets[i].first = first;
        buckets[i].last = bounded ? next - 1 : most;
        first = bounded ? next : first;
    }
}

enum slc_status slc_build_queue_fill(struct slc_build_queue *queue,
                                     struct slc_builder *builder,
                                     bool regroup,
                                     uint64_t *filled,
                                     struct slc_error *err)
{
    uint32_t count = builder->bucket_count;
    struct slc_bucket *buckets = slc_calloc(count, sizeof *buckets);

    SLC_TRY(slc_check_memory(buckets != NULL, err, "for %u buckets", count));
    for (uint32_t i = 0; i < count; i++) {
        buckets[i].chain = builder->chains[i];
        buckets[i].completes = regroup ? 0 : i + 1;
        *filled += buckets[i].chain.entries > 0;
    }
    set_ranges(builder, &queue->plan->layout, buckets, regroup);
    slc_free(builder->chains);
    builder->chains = NULL;
    slc_splitters_destroy(&builder->splitters);
    return slc_build_queue_push(queue, buckets, count, err);
}
