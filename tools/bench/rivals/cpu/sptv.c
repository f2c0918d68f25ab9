/* Builds blocks of fibers and computes SpTV from them. Two sweeps over the source build the blocks:
 * the first sweep counts steps and classes, the second sweep fills them in. Each sweep sorts the
 * fibers of a block by length with a counting sort. Cost: about one random access per nonzero and
 * sweep. */
#include "tools/bench/rivals/cpu/sptv.h"

#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "cpu/kernel/kernels.h"
#include "tools/bench/rivals/cpu/sptv_block.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Number of nonzeros of a block: small, so that the sums of a block stay in the cache and
     * threads finish together, but large compared with the cost to start a block. */
    BLOCK_NNZ = 8192,
    /* Largest number of fibers in a block, because positions have 16 bits. */
    BLOCK_FIBERS = 65536,
    /* Elements of a shortened vector that a thread copies at a time: about 50 us of work. */
    SHORTEN_GRAIN = 32768,
    WORD_BITS = 64
};

/* Largest length of a vector, because a gather reads signed indices of 32 bits. */
#define LENGTH_MAX (UINT64_C(1) << 31)

struct slc_sptv_block {
    uint64_t first_fiber, first_step, first_class;
    uint64_t nnz;
    uint32_t fibers;
    uint32_t class_count, last_lanes, alone_count; /* as in slc_sptv_span */
};

/* The used indices: those that occur in the source. The number of used indices below a used index
 * is its index in the short vector. */
struct used {
    struct slc_buffer bits;  /* words of 64 bits, one bit per index */
    struct slc_buffer ranks; /* 32 bits per word: number of used indices before the word */
};

struct making {
    struct slc_sptv *sptv;
    const struct slc_sptv_source *source;
    struct used used;
    uint16_t *order; /* fibers of the current block, sorted by length; BLOCK_FIBERS elements */
};

static uint64_t length_of(const struct slc_sptv_source *source, uint64_t fiber)
{
    return source->begin[fiber + 1] - source->begin[fiber];
}

/* Marks and counts the indices that occur. */
static enum slc_status find_used(struct making *making, struct slc_error *err)
{
    const struct slc_sptv_source *source = making->source;
    const uint64_t words = source->length / WORD_BITS + 1;
    struct used *used = &making->used;
    uint32_t count = 0;

    SLC_TRY(slc_buffer_create(&used->bits, words * sizeof(uint64_t), SLC_PAGES_SMALL, err));
    SLC_TRY(slc_buffer_create(&used->ranks, words * sizeof(uint32_t), SLC_PAGES_SMALL, err));
    uint64_t *bits = used->bits.data;
    uint32_t *ranks = used->ranks.data;
    for (uint64_t i = 0; i < making->sptv->nnz; i++) {
        bits[source->index[i] / WORD_BITS] |= UINT64_C(1) << source->index[i] % WORD_BITS;
    }
    for (uint64_t w = 0; w < words; w++) {
        ranks[w] = count;
        count += (uint32_t)__builtin_popcountll(bits[w]);
    }
    making->sptv->used = count;
    return SLC_OK;
}

static uint32_t short_index(const struct used *used, uint32_t index)
{
    const uint64_t word = ((const uint64_t *)used->bits.data)[index / WORD_BITS];
    const uint64_t below = word & ((UINT64_C(1) << index % WORD_BITS) - 1);

    return ((const uint32_t *)used->ranks.data)[index / WORD_BITS] +
           (uint32_t)__builtin_popcountll(below);
}

/* Returns true if shortening saves time: the whole vector exceeds half of the cache, and at most
 * half of its indices are used. */
static bool shortening_pays(const struct slc_sptv *sptv)
{
    return sptv->length * sizeof(double) > slc_cpu_cache_bytes() / 2 &&
           sptv->used <= sptv->length / 2;
}

static enum slc_status make_short_vector(struct making *making, struct slc_error *err)
{
    struct slc_sptv *sptv = making->sptv;
    const uint64_t *bits = making->used.bits.data;
    enum slc_status status = slc_buffer_create(&sptv->used_map, (sptv->used + 1) * sizeof(uint32_t),
                                               SLC_PAGES_HUGE, err);
    uint32_t *map = sptv->used_map.data;
    uint64_t at = 0;

    SLC_THEN(status, slc_buffer_create(&sptv->vector, (sptv->used + 1) * sizeof(double),
                                       SLC_PAGES_HUGE, err));
    for (uint64_t i = 0; status == SLC_OK && i < sptv->length; i++) {
        if ((bits[i / WORD_BITS] >> i % WORD_BITS & 1) != 0) {
            map[at++] = (uint32_t)i;
        }
    }
    sptv->shortened = status == SLC_OK;
    return status;
}

/* Cuts the fibers into blocks of consecutive fibers. Returns the number of blocks. If `blocks` is
 * NULL, only counts them. */
static uint64_t cut_blocks(const struct slc_sptv_source *source, struct slc_sptv_block *blocks)
{
    uint64_t count = 0;

    for (uint64_t first = 0, end; first < source->fibers; first = end) {
        const uint64_t most = slc_min_u64(source->fibers, first + BLOCK_FIBERS);

        for (end = first + 1;
             end < most && source->begin[end + 1] - source->begin[first] <= BLOCK_NNZ; end++) {
        }
        if (blocks != NULL) {
            blocks[count] =
                (struct slc_sptv_block){.first_fiber = first,
                                        .nnz = source->begin[end] - source->begin[first],
                                        .fibers = (uint32_t)(end - first)};
        }
        count++;
    }
    return count;
}

/* Sorts the fibers of a block by length, long fibers last. Returns the number of short fibers. */
static uint32_t sort_fibers(const struct making *making, const struct slc_sptv_block *block)
{
    uint32_t next[SLC_SPTV_SHORT_NNZ + 2] = {0};
    uint32_t at = 0;

    for (uint32_t f = 0; f < block->fibers; f++) {
        const uint64_t length = length_of(making->source, block->first_fiber + f);

        next[slc_min_u64(length, SLC_SPTV_SHORT_NNZ + 1)]++;
    }
    for (unsigned length = 0; length < SLC_SPTV_SHORT_NNZ + 2; length++) {
        const uint32_t count = next[length];

        next[length] = at;
        at += count;
    }
    at = next[SLC_SPTV_SHORT_NNZ + 1];
    for (uint32_t f = 0; f < block->fibers; f++) {
        const uint64_t length = length_of(making->source, block->first_fiber + f);

        making->order[next[slc_min_u64(length, SLC_SPTV_SHORT_NNZ + 1)]++] = (uint16_t)f;
    }
    return at;
}

/* Returns the number of nonzeros of the i-th sorted fiber. */
static uint64_t
sorted_length(const struct making *making, const struct slc_sptv_block *block, uint32_t i)
{
    return length_of(making->source, block->first_fiber + making->order[i]);
}

/* Returns the number of steps of a fiber that is processed alone. */
static uint64_t alone_steps(uint64_t length)
{
    return slc_div_up_u64(length, SLC_SPTV_LANES);
}

/* Counts the classes and steps of a block. Writes the classes unless `classes` is NULL. */
static void count_block(const struct making *making,
                        struct slc_sptv_block *block,
                        struct slc_sptv_class *classes)
{
    const uint32_t short_count = sort_fibers(making, block);
    const uint32_t full = short_count / SLC_SPTV_LANES * SLC_SPTV_LANES;
    uint64_t steps = making->sptv->steps;
    uint32_t count = 0;
    struct slc_sptv_class open = {.groups = 0};

    block->first_step = steps;
    block->last_lanes = short_count - full;
    block->alone_count = block->fibers - short_count;
    for (uint32_t i = 0; i < full; i += SLC_SPTV_LANES) {
        const uint32_t length = (uint32_t)sorted_length(making, block, i + SLC_SPTV_LANES - 1);

        count += open.groups == 0 || length != open.length;
        open = (struct slc_sptv_class){length, length == open.length ? open.groups + 1 : 1};
        if (classes != NULL) {
            classes[count - 1] = open;
        }
        steps += length;
    }
    block->class_count = count;
    for (uint32_t i = full; i < block->fibers; i = i < short_count ? short_count : i + 1) {
        const uint64_t length = i < short_count ? sorted_length(making, block, short_count - 1)
                                                : alone_steps(sorted_length(making, block, i));

        if (classes != NULL) {
            classes[count] = (struct slc_sptv_class){(uint32_t)length, 1};
        }
        count++;
        steps += length;
    }
    making->sptv->steps = steps;
}

/* Copies nonzero `from` of the source to position `to` of the stored fibers. */
static void copy_nonzero(const struct making *making, uint64_t to, uint64_t from)
{
    struct slc_sptv *sptv = making->sptv;
    const double value = making->source->values[from];
    const uint32_t given = making->source->index[from];
    const uint32_t index = sptv->shortened ? short_index(&making->used, given) : given;

    if (sptv->value_type == SLC_F32) {
        ((float *)sptv->values.data)[to] = (float)value;
    } else {
        ((double *)sptv->values.data)[to] = value;
    }
    if (sptv->index_bytes == 2) {
        ((uint16_t *)sptv->index.data)[to] = (uint16_t)index;
    } else {
        ((uint32_t *)sptv->index.data)[to] = index;
    }
}

/* Fills a sorted and counted block. Padding is 0, because allocation zeroes the memory. */
static void fill_block(const struct making *making, const struct slc_sptv_block *block)
{
    const uint64_t *begin = making->source->begin + block->first_fiber;
    const uint32_t short_count = block->fibers - block->alone_count;
    uint64_t at = block->first_step * SLC_SPTV_LANES;

    memcpy((uint16_t *)making->sptv->place.data + block->first_fiber, making->order,
           block->fibers * sizeof *making->order);
    for (uint32_t i = 0; i < short_count; i += SLC_SPTV_LANES) {
        const uint32_t lanes = (uint32_t)slc_min_u64(short_count - i, SLC_SPTV_LANES);

        for (uint32_t k = 0; k < lanes; k++) {
            const uint64_t from = begin[making->order[i + k]];
            const uint64_t length = sorted_length(making, block, i + k);

            for (uint64_t j = 0; j < length; j++) {
                copy_nonzero(making, at + j * SLC_SPTV_LANES + k, from + j);
            }
        }
        at += sorted_length(making, block, i + lanes - 1) * SLC_SPTV_LANES;
    }
    for (uint32_t i = short_count; i < block->fibers; i++) {
        const uint64_t from = begin[making->order[i]];
        const uint64_t length = sorted_length(making, block, i);

        for (uint64_t j = 0; j < length; j++) {
            copy_nonzero(making, at + j, from + j);
        }
        at += alone_steps(length) * SLC_SPTV_LANES;
    }
}

struct heavy {
    /* size of a block that is moved forward; 0 for other blocks, which stay in file order */
    uint64_t weight;
    uint32_t block;
};

static int compare_heavy(const void *a, const void *b)
{
    const struct heavy *x = a;
    const struct heavy *y = b;

    if (x->weight != y->weight) {
        return x->weight < y->weight ? 1 : -1;
    }
    return x->block < y->block ? -1 : 1;
}

/* Returns the smallest size of a block that is moved forward. Reordering blocks of equal size gains
 * nothing, but loses the sequential order of memory, which costs 4 to 15 % of the time with two
 * threads if all data fits in the cache. */
static uint64_t least_moved(const struct slc_sptv *sptv, enum slc_sptv_schedule schedule)
{
    const uint64_t mean =
        (sptv->nnz + sptv->fibers) / (sptv->block_count + (sptv->block_count == 0));

    if (schedule == SLC_SPTV_AUTO) {
        return 2 * mean;
    }
    return schedule == SLC_SPTV_LARGEST ? 0 : UINT64_MAX;
}

static enum slc_status
make_schedule(struct slc_sptv *sptv, enum slc_sptv_schedule schedule, struct slc_error *err)
{
    const uint64_t least = least_moved(sptv, schedule);
    struct heavy *heavy = slc_calloc(sptv->block_count + 1, sizeof *heavy);

    sptv->schedule = slc_calloc(sptv->block_count + 1, sizeof *sptv->schedule);
    if (heavy == NULL || sptv->schedule == NULL) {
        slc_free(heavy);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a list of %" PRIu64 " blocks",
                        sptv->block_count);
    }
    for (uint32_t b = 0; b < sptv->block_count; b++) {
        /* The size counts fibers in addition to nonzeros, because each fiber writes a sum. */
        const uint64_t weight = sptv->blocks[b].nnz + sptv->blocks[b].fibers;

        heavy[b] = (struct heavy){weight >= least ? weight : 0, b};
    }
    qsort(heavy, sptv->block_count, sizeof *heavy, compare_heavy);
    for (uint32_t b = 0; b < sptv->block_count; b++) {
        sptv->schedule[b] = heavy[b].block;
    }
    slc_free(heavy);
    return SLC_OK;
}

static bool all_f32(const struct slc_sptv_source *source)
{
    for (uint64_t i = 0; i < source->begin[source->fibers]; i++) {
        if ((double)(float)source->values[i] != source->values[i]) {
            return false;
        }
    }
    return true;
}

/* Counts blocks, steps, classes and used indices, then allocates the memory for them. */
static enum slc_status take_memory(struct making *making, struct slc_error *err)
{
    struct slc_sptv *sptv = making->sptv;
    uint64_t classes = 0;

    sptv->block_count = cut_blocks(making->source, NULL);
    sptv->blocks = slc_calloc(sptv->block_count + 1, sizeof *sptv->blocks);
    making->order = slc_calloc(BLOCK_FIBERS, sizeof *making->order);
    if (sptv->block_count > UINT32_MAX || sptv->blocks == NULL || making->order == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for %" PRIu64 " blocks of fibers",
                        sptv->block_count);
    }
    (void)cut_blocks(making->source, sptv->blocks);
    for (uint64_t b = 0; b < sptv->block_count; b++) {
        struct slc_sptv_block *block = &sptv->blocks[b];

        count_block(making, block, NULL);
        block->first_class = classes;
        classes += block->class_count + (uint64_t)block->alone_count + (block->last_lanes > 0);
    }
    /* One additional step, so that no buffer has size 0. */
    uint64_t elements = (sptv->steps + 1) * SLC_SPTV_LANES;
    SLC_TRY(slc_buffer_create(&sptv->index, elements * sptv->index_bytes, SLC_PAGES_HUGE, err));
    SLC_TRY(slc_buffer_create(&sptv->values, elements * slc_value_bytes(sptv->value_type),
                              SLC_PAGES_HUGE, err));
    SLC_TRY(slc_buffer_create(&sptv->place, (sptv->fibers + 1) * sizeof(uint16_t), SLC_PAGES_HUGE,
                              err));
    return slc_buffer_create(&sptv->classes, (classes + 1) * sizeof(struct slc_sptv_class),
                             SLC_PAGES_SMALL, err);
}

static enum slc_status
make(struct making *making, const struct slc_sptv_options *options, struct slc_error *err)
{
    struct slc_sptv *sptv = making->sptv;

    SLC_TRY(find_used(making, err));
    if (options->unused != SLC_SPTV_UNUSED_DROP && slc_sptv_few_pays(making->source)) {
        sptv->block_count = 1;
        sptv->index_bytes = sizeof(uint32_t);
        sptv->value_type = SLC_F64;
        return slc_sptv_few_create(&sptv->few, making->source, err);
    }
    if (options->unused != SLC_SPTV_UNUSED_KEEP &&
        (options->unused == SLC_SPTV_UNUSED_DROP || shortening_pays(sptv))) {
        SLC_TRY(make_short_vector(making, err));
    }
    sptv->index_bytes = (sptv->shortened ? sptv->used : sptv->length) <= UINT16_MAX + 1U ? 2 : 4;
    sptv->value_type = all_f32(making->source) ? SLC_F32 : SLC_F64;
    SLC_TRY(take_memory(making, err));
    sptv->steps = 0;
    for (uint64_t b = 0; b < sptv->block_count; b++) {
        struct slc_sptv_block *block = &sptv->blocks[b];

        count_block(making, block,
                    (struct slc_sptv_class *)sptv->classes.data + block->first_class);
        fill_block(making, block);
    }
    return make_schedule(sptv, options->schedule, err);
}

enum slc_status slc_sptv_create(struct slc_sptv *sptv,
                                const struct slc_sptv_source *source,
                                const struct slc_sptv_options *options,
                                struct slc_error *err)
{
    struct making making = {.sptv = sptv, .source = source};

    *sptv = (struct slc_sptv){
        .fibers = source->fibers, .nnz = source->begin[source->fibers], .length = source->length};
    if (source->length > LENGTH_MAX) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "a vector of %" PRIu64 " numbers: the limit is 2^31 numbers",
                        source->length);
    }
    enum slc_status status = make(&making, options, err);
    slc_free(making.order);
    slc_buffer_destroy(&making.used.bits);
    slc_buffer_destroy(&making.used.ranks);
    if (status != SLC_OK) {
        slc_sptv_destroy(sptv);
    }
    return status;
}

void slc_sptv_destroy(struct slc_sptv *sptv)
{
    slc_sptv_few_destroy(&sptv->few);
    slc_buffer_destroy(&sptv->index);
    slc_buffer_destroy(&sptv->values);
    slc_buffer_destroy(&sptv->place);
    slc_buffer_destroy(&sptv->classes);
    slc_buffer_destroy(&sptv->used_map);
    slc_buffer_destroy(&sptv->vector);
    slc_free(sptv->blocks);
    slc_free(sptv->schedule);
    memset(sptv, 0, sizeof *sptv);
}

/* State of the current product. */
struct product {
    const struct slc_sptv *sptv;
    const double *vector;
    double *sums;
    atomic_uint_fast64_t next; /* position in the schedule of the next block to process */
};

static void multiply_block(const struct product *product, const struct slc_sptv_block *block)
{
    const struct slc_sptv *sptv = product->sptv;
    const uint64_t first = block->first_step * SLC_SPTV_LANES;
    const struct slc_sptv_class *classes = sptv->classes.data;
    const unsigned char *index = sptv->index.data;
    const unsigned char *values = sptv->values.data;
    const uint16_t *place = sptv->place.data;
    const struct slc_sptv_span span = {.class_count = block->class_count,
                                       .last_lanes = block->last_lanes,
                                       .alone_count = block->alone_count,
                                       .classes = classes + block->first_class,
                                       .index = index + first * sptv->index_bytes,
                                       .values = values + first * slc_value_bytes(sptv->value_type),
                                       .place = place + block->first_fiber,
                                       .vector = product->vector,
                                       .sums = product->sums + block->first_fiber};

    slc_sptv_block(sptv->value_type, sptv->index_bytes, &span);
}

static void multiply_blocks(void *context, unsigned worker, unsigned workers)
{
    struct product *product = context;
    const struct slc_sptv *sptv = product->sptv;
    uint64_t at;

    (void)worker;
    (void)workers;
    while ((at = atomic_fetch_add_explicit(&product->next, 1, memory_order_relaxed)) <
           sptv->block_count) {
        multiply_block(product, &sptv->blocks[sptv->schedule[at]]);
    }
}

/* Copies elements begin .. end - 1 of the short vector from the vector. */
static void shorten(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct product *product = context;
    const uint32_t *map = product->sptv->used_map.data;
    double *shortened = product->sptv->vector.data;

    (void)worker;
    for (uint64_t i = begin; i < end; i++) {
        shortened[i] = product->vector[map[i]];
    }
}

static enum slc_status multiply_lanes(struct slc_sptv *sptv,
                                      const double *vector,
                                      double *sums,
                                      unsigned workers,
                                      struct slc_error *err)
{
    struct product product = {.sptv = sptv, .vector = vector, .sums = sums};
    enum slc_status status = SLC_OK;

    workers = (unsigned)slc_min_u64(workers, sptv->block_count);
    if (sptv->shortened) {
        if (workers > 1 && sptv->used > SHORTEN_GRAIN) {
            status = slc_team_for(workers, sptv->used, SHORTEN_GRAIN, shorten, &product, err);
        } else {
            shorten(&product, 0, sptv->used, 0);
        }
        product.vector = sptv->vector.data;
    }
    SLC_TRY(status);
    if (workers > 1) {
        SLC_TRY(slc_team_run(workers, multiply_blocks, &product, err));
    } else {
        for (uint64_t b = 0; b < sptv->block_count; b++) {
            multiply_block(&product, &sptv->blocks[b]);
        }
    }
    return SLC_OK;
}

enum slc_status slc_sptv_multiply(struct slc_sptv *sptv,
                                  const double *vector,
                                  double *sums,
                                  unsigned workers,
                                  struct slc_error *err)
{
    if (sptv->few.memory.data == NULL) {
        return multiply_lanes(sptv, vector, sums, workers, err);
    }
    slc_sptv_few_multiply(&sptv->few, vector, sums);
    return SLC_OK;
}

uint64_t slc_sptv_moved_bytes(const struct slc_sptv *sptv)
{
    const uint64_t elements = sptv->steps * SLC_SPTV_LANES;
    const uint64_t vector = sptv->used * sizeof(double);

    if (sptv->few.memory.data != NULL) {
        return sptv->nnz * (sizeof(uint32_t) + sizeof(double)) + sptv->few.more * sizeof(uint32_t) +
               sptv->fibers * sizeof(double) + vector;
    }
    return elements * (sptv->index_bytes + slc_value_bytes(sptv->value_type)) +
           sptv->fibers * (sizeof(uint16_t) + sizeof(double)) + vector +
           (sptv->shortened ? vector + sptv->used * (sizeof(double) + sizeof(uint32_t)) : 0);
}
