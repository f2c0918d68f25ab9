/* Builds blocks of fibers and computes SpTV from them. Two sweeps over the source build the blocks:
 * the first sweep counts steps and classes, the second sweep fills them in. Each sweep sorts the
 * fibers of a block by length with a counting sort. Cost: about one random access per nonzero and
 * sweep. */
#include "cpu/fiber/sptv.h"

#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "base/used.h"
#include "cpu/fiber/sptv_block.h"
#include "cpu/kernel/kernels.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum {
    /* Number of nonzeros of a block: small, so that the sums of a block stay in the cache and
     * threads finish together, but large compared with the cost to start a block. */
    BLOCK_NNZ = 8192,
    /* Largest number of fibers in a block, because positions have 16 bits. */
    BLOCK_FIBERS = 65536,
    /* Elements of a shortened vector that a thread copies at a time: about 50 us of work. */
    SHORTEN_GRAIN = 32768,
    CLASSES_PER_OCTAVE = 4, /* size classes between a size and twice this size */
    SIZE_CLASSES = 1 + CLASSES_PER_OCTAVE * 62
};

struct slc_sptv_block {
    uint64_t first_fiber, first_step, first_class;
    uint64_t nnz;
    uint32_t fibers;
    uint32_t class_count, last_lanes, alone_count; /* as in slc_sptv_span */
};

struct making {
    struct slc_sptv *sptv;
    const struct slc_sptv_source *source;
    struct slc_used used;
    struct slc_buffer words; /* memory of used.words */
    uint16_t *order; /* fibers of the current block, sorted by length; BLOCK_FIBERS elements */
};

static uint64_t length_of(const struct slc_sptv_source *source, uint64_t fiber)
{
    return source->begin[fiber + 1] - source->begin[fiber];
}

/* Marks and counts the indices that occur. */
static enum slc_status find_used(struct making *making, struct slc_error *err)
{
    struct slc_used *used = &making->used;

    used->end = making->source->length;
    SLC_TRY(slc_buffer_create(&making->words, (slc_used_words(used) + 1) * sizeof *used->words,
                              SLC_PAGES_SMALL, err));
    used->words = making->words.data;
    for (uint64_t i = 0; i < making->sptv->nnz; i++) {
        slc_used_mark(used, making->source->index[i]);
    }
    slc_used_count(used);
    making->sptv->used = used->count;
    return SLC_OK;
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
    enum slc_status status = slc_buffer_create(&sptv->used_map, (sptv->used + 1) * sizeof(uint32_t),
                                               SLC_PAGES_HUGE, err);
    uint32_t *map = sptv->used_map.data;
    uint64_t at = 0;

    SLC_THEN(status, slc_buffer_create(&sptv->vector, (sptv->used + 1) * sizeof(double),
                                       SLC_PAGES_HUGE, err));
    for (uint64_t i = 0; status == SLC_OK && i < sptv->length; i++) {
        if (slc_used_has(&making->used, i)) {
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
    const uint32_t index =
        sptv->shortened ? (uint32_t)slc_used_position(&making->used, given) : given;

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

/* Returns the size class of a block: 0 for blocks that stay in file order, and larger for larger
 * blocks. Sizes in a class differ by less than a quarter. */
static unsigned size_class(const struct slc_sptv_block *block, uint64_t least)
{
    /* The size counts fibers in addition to nonzeros, because each fiber writes a sum. */
    const uint64_t size = block->nnz + block->fibers;
    const unsigned log2 = size < 4 ? 2 : 63U - (unsigned)__builtin_clzll(size);

    return size < least ? 0
                        : 1 + CLASSES_PER_OCTAVE * (log2 - 2) + (unsigned)(size >> (log2 - 2)) % 4;
}

/* Orders the blocks by descending size class, and in file order within a class, by counting instead
 * of sorting ([SPTV] section 5.3 sorts them). Cost: linear in the number of blocks. */
static enum slc_status
make_schedule(struct slc_sptv *sptv, enum slc_sptv_schedule schedule, struct slc_error *err)
{
    const uint64_t least = least_moved(sptv, schedule);
    uint32_t end[SIZE_CLASSES] = {0}; /* per class: the position after its last block so far */
    uint32_t at = 0;

    sptv->schedule = slc_calloc(sptv->block_count + 1, sizeof *sptv->schedule);
    SLC_TRY(slc_check_memory(sptv->schedule != NULL, err, "for a list of %" PRIu64 " blocks",
                             sptv->block_count));
    for (uint32_t b = 0; b < sptv->block_count; b++) {
        end[size_class(&sptv->blocks[b], least)]++;
    }
    for (unsigned c = SIZE_CLASSES; c-- > 0;) {
        const uint32_t count = end[c];

        end[c] = at;
        at += count;
    }
    for (uint32_t b = 0; b < sptv->block_count; b++) {
        sptv->schedule[end[size_class(&sptv->blocks[b], least)]++] = b;
    }
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
    if (source->length > SLC_SPTV_LENGTH_MAX) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "a vector of %" PRIu64 " numbers: the limit is 2^31 numbers",
                        source->length);
    }
    enum slc_status status = make(&making, options, err);
    slc_free(making.order);
    slc_buffer_destroy(&making.words);
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
    atomic_bool not_finite;    /* a sum is not finite */
};

/* Returns true if all numbers are finite. Compares exponents, which the compiler vectorizes. */
static bool all_finite(const double *numbers, uint64_t count)
{
    const uint64_t exponent = UINT64_C(0x7ff) << 52;
    uint64_t found = 0;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t bits;

        memcpy(&bits, &numbers[i], sizeof bits);
        found |= (bits & exponent) == exponent;
    }
    return found == 0;
}

static void multiply_block(struct product *product, const struct slc_sptv_block *block)
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
    if (!all_finite(span.sums, block->fibers)) {
        atomic_store_explicit(&product->not_finite, true, memory_order_relaxed);
    }
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
                                      bool *is_finite,
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
    *is_finite = !atomic_load(&product.not_finite);
    return SLC_OK;
}

enum slc_status slc_sptv_multiply(struct slc_sptv *sptv,
                                  const double *vector,
                                  double *sums,
                                  unsigned workers,
                                  bool *is_finite,
                                  struct slc_error *err)
{
    if (sptv->few.memory.data == NULL) {
        return multiply_lanes(sptv, vector, sums, workers, is_finite, err);
    }
    slc_sptv_few_multiply(&sptv->few, vector, sums);
    *is_finite = all_finite(sums, sptv->fibers);
    return SLC_OK;
}

uint64_t slc_sptv_memory_bytes(const struct slc_sptv *sptv)
{
    const struct slc_buffer *const buffers[] = {&sptv->few.memory, &sptv->index,   &sptv->values,
                                                &sptv->place,      &sptv->classes, &sptv->used_map,
                                                &sptv->vector};
    uint64_t bytes = sptv->block_count * (sizeof *sptv->blocks + sizeof *sptv->schedule);

    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        bytes += buffers[i]->bytes;
    }
    return bytes;
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
