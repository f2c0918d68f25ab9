/* Multiplies tiles on the CPU and checks the contract. */
#include "product_device.h"

#include "naive_decode.h"

#include "base/matrix.h"
#include "base/random.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A lane, with all fibers of its last tile. */
struct lane {
    atomic_flag used;
    struct slc_naive_run run;
    uint64_t tiles;
    uint32_t count, delivered, room; /* fibers, fibers delivered, capacity of the arrays */
    uint32_t *offset[SLC_MAX_ORDER];
    double *sums;
    uint64_t last[SLC_MAX_ORDER]; /* coordinates of the last nonzero */
    void *out;                    /* output of the last call */
};

struct product_device {
    struct slc_device device;
    struct product_device_counts counts; /* counts over all lanes; updated by atomic builtins */
    uint64_t memory_bytes;
    unsigned late_us;
    atomic_uint calls;
    unsigned refuse_at;
    uint64_t damaged;

    bool open;
    struct slc_device_product product; /* its matrices are owned by the device */
    struct slc_encoded_layout layout;
    struct slc_matrix matrix[SLC_MAX_ORDER];
    struct slc_used_word *words[SLC_MAX_ORDER]; /* maps of used indices; NULL: all are used */
    uint32_t cols;
    struct lane *lanes;
    atomic_ullong blocks, nnz, block_bytes, bytes_to_host;
};

static struct product_device *device_of(const struct slc_device *device)
{
    return (struct product_device *)(uintptr_t)device;
}

static void *take(void *memory, uint64_t bytes)
{
    void *taken = realloc(memory, bytes > 0 ? bytes : 1);

    if (taken == NULL) {
        printf("Bail out! no memory for a device\n");
        exit(1);
    }
    return taken;
}

static void require(struct product_device *own, bool holds, const char *what)
{
    if (!holds) {
        printf("# the device: %s\n", what);
        __atomic_fetch_add(&own->counts.wrongs, 1, __ATOMIC_RELAXED);
    }
}

static enum slc_status call(struct product_device *own, const char *name, struct slc_error *err)
{
    return atomic_fetch_add(&own->calls, 1) + 1 == own->refuse_at
               ? slc_fail(err, SLC_ERR_SYSTEM, "%s was refused", name)
               : SLC_OK;
}

static uint32_t cols_of(const struct slc_device_product *product)
{
    for (unsigned n = 0; n < product->order; n++) {
        if (product->matrix[n] != NULL) {
            return product->matrix[n]->cols;
        }
    }
    return 0;
}

static uint64_t fiber_bytes(const struct slc_device_product *product)
{
    return product->order * sizeof(uint32_t) + (uint64_t)cols_of(product) * sizeof(double);
}

static void info(const struct slc_device *device, struct slc_device_info *info)
{
    memset(info, 0, sizeof *info);
    (void)snprintf(info->name, sizeof info->name, "a fake");
    info->total_bytes = device_of(device)->memory_bytes * 2;
    info->free_bytes = device_of(device)->memory_bytes;
}

static uint64_t host_bytes(const struct slc_device *device,
                           const struct slc_device_product *product)
{
    (void)device;
    return product->lanes * (product->tile_bytes + product->room * fiber_bytes(product));
}

static uint64_t memory_bytes(const struct slc_device *device,
                             const struct slc_device_product *product)
{
    uint64_t bytes = host_bytes(device, product) + product->lanes * product->expanded_bytes;

    for (unsigned n = 0; n < product->order; n++) {
        bytes += product->matrix[n] != NULL
                     ? slc_used_elements(&product->used[n], product->dims[n]) * cols_of(product) * 8
                     : 0;
    }
    return bytes;
}

/* Whether base/device.h allows this product. */
static bool is_sound(const struct slc_device_product *product)
{
    const enum slc_value_type type = product->precision;
    bool sound = product->layout != NULL && product->layout->order == product->order &&
                 product->lanes >= 1 && product->lanes <= SLC_DEVICE_LANES && product->room >= 1 &&
                 product->room <= SLC_TILE_NNZ && cols_of(product) > 0;

    for (unsigned n = 0; n < product->order; n++) {
        const struct slc_matrix *matrix = product->matrix[n];

        sound = sound && (matrix == NULL ||
                          (matrix->type == type &&
                           matrix->rows == slc_used_elements(&product->used[n], product->dims[n]) &&
                           matrix->cols == cols_of(product) && matrix->buffer.data != NULL));
    }
    return sound;
}

static enum slc_status copy_matrix(struct product_device *own, unsigned n, struct slc_error *err)
{
    const struct slc_matrix *from = own->product.matrix[n];
    const enum slc_status status =
        slc_matrix_create(&own->matrix[n], SLC_F64, from->rows, from->cols, err);

    for (uint64_t row = 0; status == SLC_OK && row < from->rows; row++) {
        for (uint32_t r = 0; r < from->cols; r++) {
            slc_matrix_set(&own->matrix[n], row, r, slc_matrix_get(from, row, r));
        }
    }
    own->product.matrix[n] = &own->matrix[n];
    if (own->product.used[n].end > 0 && status == SLC_OK) {
        const uint64_t bytes = slc_used_words(&own->product.used[n]) * sizeof(struct slc_used_word);

        own->product.used[n].words = memcpy(take(NULL, bytes), own->product.used[n].words, bytes);
        own->words[n] = own->product.used[n].words;
    }
    return status;
}

static enum slc_status product_open(struct slc_device *device,
                                    const struct slc_device_product *product,
                                    struct slc_error *err)
{
    struct product_device *self = device_of(device);
    const uint64_t need = memory_bytes(device, product);
    enum slc_status status = call(self, "product_open", err);

    if (status != SLC_OK) {
        return status;
    }
    require(self, !self->open, "opened twice");
    if (!is_sound(product)) {
        require(self, false, "a product that is not sound");
        return slc_fail(err, SLC_ERR_USAGE, "the product is not sound");
    }
    if (need > self->memory_bytes) {
        return slc_fail(err, SLC_ERR_BUDGET,
                        "a fake device needs %llu MiB of device memory or more",
                        (unsigned long long)(need >> 20) + 1);
    }
    self->product = *product;
    self->layout = *product->layout;
    self->product.layout = &self->layout;
    self->cols = cols_of(product);
    for (unsigned n = 0; n < product->order; n++) {
        if (product->matrix[n] != NULL && status == SLC_OK) {
            status = copy_matrix(self, n, err);
        }
    }
    if (status != SLC_OK) {
        for (unsigned n = 0; n < product->order; n++) {
            slc_matrix_destroy(&self->matrix[n]);
            free(self->words[n]);
            self->words[n] = NULL;
        }
        return status;
    }
    /* Statistics exclude everything before this call. */
    atomic_store(&self->blocks, 0);
    atomic_store(&self->nnz, 0);
    atomic_store(&self->block_bytes, 0);
    atomic_store(&self->bytes_to_host, 0);
    self->lanes = take(NULL, product->lanes * sizeof *self->lanes);
    memset(self->lanes, 0, product->lanes * sizeof *self->lanes);
    for (unsigned l = 0; l < product->lanes; l++) {
        atomic_flag_clear(&self->lanes[l].used);
    }
    self->open = true;
    self->counts.opened++;
    return SLC_OK;
}

static void close_device(struct slc_device *device)
{
    struct product_device *self = device_of(device);

    if (!self->open) {
        return;
    }
    require(self, __atomic_load_n(&self->counts.at_once, __ATOMIC_RELAXED) == 0,
            "closed while a lane is used");
    for (unsigned n = 0; n < self->product.order; n++) {
        slc_matrix_destroy(&self->matrix[n]);
        free(self->words[n]);
        self->words[n] = NULL;
    }
    for (unsigned l = 0; l < self->product.lanes; l++) {
        for (unsigned n = 0; n < self->product.order; n++) {
            free(self->lanes[l].offset[n]);
        }
        free(self->lanes[l].sums);
        free(self->lanes[l].out);
    }
    free(self->lanes);
    self->open = false;
    self->counts.closed++;
}

/* Appends a fiber whose sums are zero. */
static void begin_fiber(const struct product_device *own,
                        struct lane *lane,
                        const struct slc_encoded_tile *tile,
                        uint32_t i)
{
    const struct slc_device_product *product = &own->product;
    const uint32_t fiber = lane->count++;

    if (lane->count > lane->room) {
        lane->room = 2 * lane->room + 64;
        lane->sums = take(lane->sums, (uint64_t)lane->room * own->cols * sizeof(double));
        for (unsigned n = 0; n < product->order; n++) {
            lane->offset[n] = take(lane->offset[n], lane->room * sizeof(uint32_t));
        }
    }
    for (unsigned n = 0; n < product->order; n++) {
        lane->offset[n][fiber] = (uint32_t)(lane->run.coords[n][i] - tile->corner[n]);
    }
    memset(lane->sums + (uint64_t)fiber * own->cols, 0, own->cols * sizeof(double));
}

static void
add_run(const struct product_device *own, struct lane *lane, const struct slc_encoded_tile *tile)
{
    const struct slc_device_product *product = &own->product;

    for (uint32_t i = 0; i < lane->run.nnz; i++) {
        bool begins = lane->count == 0;

        for (unsigned n = 0; n < product->order; n++) {
            begins =
                begins || (product->matrix[n] == NULL && lane->run.coords[n][i] != lane->last[n]);
        }
        if (begins) {
            begin_fiber(own, lane, tile, i);
        }
        for (uint32_t r = 0; r < own->cols; r++) {
            double term = lane->run.values[i];

            if (product->precision != SLC_F64) {
                term = (float)term;
            }
            for (unsigned n = 0; n < product->order; n++) {
                if (product->matrix[n] != NULL) {
                    const uint64_t index = lane->run.coords[n][i];

                    term *= slc_matrix_get(&own->matrix[n],
                                           product->used[n].end > 0
                                               ? slc_used_position(&product->used[n], index)
                                               : index,
                                           r);
                }
            }
            lane->sums[(uint64_t)(lane->count - 1) * own->cols + r] += term;
        }
        for (unsigned n = 0; n < product->order; n++) {
            lane->last[n] = lane->run.coords[n][i];
        }
    }
}

/* Delivers the next fibers, in memory of their exact size. */
static void
deliver(const struct product_device *own, struct lane *lane, struct slc_device_fibers *fibers)
{
    const struct slc_device_product *product = &own->product;
    const uint32_t left = lane->count - lane->delivered;
    const uint32_t count = left < product->room ? left : product->room;
    const uint64_t numbers = (uint64_t)count * own->cols;
    const double *sums = lane->sums + (uint64_t)lane->delivered * own->cols;
    unsigned stay = 0;
    uint32_t *at;

    for (unsigned n = 0; n < product->order; n++) {
        stay += product->matrix[n] == NULL;
    }
    free(lane->out);
    lane->out = take(NULL, numbers * sizeof *sums + (uint64_t)stay * count * 4);
    *fibers = (struct slc_device_fibers){.count = count, .more = count < left, .sums = lane->out};
    memcpy(lane->out, sums, numbers * sizeof *sums);
    at = (uint32_t *)(void *)((char *)lane->out + numbers * sizeof *sums);
    for (unsigned n = 0; n < product->order; n++) {
        if (product->matrix[n] == NULL) {
            memcpy(at, lane->offset[n] + lane->delivered, count * sizeof *at);
            fibers->offset[n] = at;
            at += count;
        }
    }
    lane->delivered += count;
}

static struct lane *enter(struct product_device *own, unsigned number)
{
    struct lane *lane;
    unsigned at_once, most;

    if (!own->open || number >= own->product.lanes) {
        require(own, false, "a lane that is not there");
        return NULL;
    }
    lane = &own->lanes[number];
    require(own, !atomic_flag_test_and_set(&lane->used), "a lane is used by two threads");
    at_once = __atomic_fetch_add(&own->counts.at_once, 1, __ATOMIC_RELAXED) + 1;
    most = __atomic_load_n(&own->counts.at_most, __ATOMIC_RELAXED);
    while (most < at_once &&
           !__atomic_compare_exchange_n(&own->counts.at_most, &most, at_once, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return lane;
}

static void leave(struct product_device *own, struct lane *lane)
{
    __atomic_fetch_sub(&own->counts.at_once, 1, __ATOMIC_RELAXED);
    atomic_flag_clear(&lane->used);
}

static enum slc_status multiply(struct product_device *own,
                                struct lane *lane,
                                const struct slc_encoded_block *block,
                                struct slc_error *err)
{
    const struct slc_encoded_tile *tile = block->tiles;
    bool sound = tile->ordinal != own->damaged;

    lane->count = lane->delivered = 0;
    for (uint32_t r = 0; sound && r < slc_naive_runs(tile); r++) {
        sound = slc_naive_decode(&own->layout, block, tile, block->expanded, r, &lane->run);
        if (sound) {
            add_run(own, lane, tile);
        }
    }
    if (!sound) {
        enum slc_status status = slc_fail(err, SLC_ERR_DAMAGED, "tile %llu contradicts itself",
                                          (unsigned long long)tile->ordinal);

        slc_error_locate_block(err, NULL, block->block, block->offset);
        return status;
    }
    return SLC_OK;
}

static void wait_a_little(const struct product_device *own, struct lane *lane)
{
    const uint64_t late_ns = slc_random_below((uint64_t)(lane - own->lanes), 1, lane->tiles++,
                                              (uint64_t)own->late_us * 1000 + 1);

    (void)nanosleep(&(struct timespec){.tv_nsec = (long)late_ns}, NULL);
}

static enum slc_status product_tile(struct slc_device *device,
                                    unsigned number,
                                    const struct slc_encoded_block *block,
                                    struct slc_device_fibers *fibers,
                                    struct slc_error *err)
{
    struct product_device *self = device_of(device);
    enum slc_status status = call(self, "product_tile", err);
    struct lane *lane = enter(self, number);

    *fibers = (struct slc_device_fibers){.count = 0};
    if (lane == NULL) {
        return slc_fail(err, SLC_ERR_USAGE, "there is no lane %u", number);
    }
    require(self, block->tile_count == 1 && block->tiles[0].nnz == block->nnz, "not one tile");
    require(self, block->expanded_bytes == 0 || block->expanded != NULL, "an unexpanded tile");
    require(self,
            block->bytes <= self->product.tile_bytes &&
                block->expanded_bytes <= self->product.expanded_bytes,
            "a tile that is larger than was said");
    if (status == SLC_OK) {
        wait_a_little(self, lane);
        status = multiply(self, lane, block, err);
    }
    if (status == SLC_OK) {
        deliver(self, lane, fibers);
        __atomic_fetch_add(&self->counts.tiles, 1, __ATOMIC_RELAXED);
        atomic_fetch_add(&self->blocks, 1);
        atomic_fetch_add(&self->nnz, block->nnz);
        atomic_fetch_add(&self->block_bytes, block->bytes);
        atomic_fetch_add(&self->bytes_to_host, fibers->count * fiber_bytes(&self->product));
    }
    leave(self, lane);
    return status;
}

static enum slc_status product_more(struct slc_device *device,
                                    unsigned number,
                                    struct slc_device_fibers *fibers,
                                    struct slc_error *err)
{
    struct product_device *self = device_of(device);
    const enum slc_status status = call(self, "product_more", err);
    struct lane *lane = enter(self, number);

    *fibers = (struct slc_device_fibers){.count = 0};
    if (lane == NULL) {
        return slc_fail(err, SLC_ERR_USAGE, "there is no lane %u", number);
    }
    require(self, lane->delivered < lane->count, "more was asked for than there is");
    if (status == SLC_OK) {
        deliver(self, lane, fibers);
        __atomic_fetch_add(&self->counts.more, 1, __ATOMIC_RELAXED);
        atomic_fetch_add(&self->bytes_to_host, fibers->count * fiber_bytes(&self->product));
    }
    leave(self, lane);
    return status;
}

static void stats(const struct slc_device *device, struct slc_device_stats *stats)
{
    const struct product_device *self = device_of(device);

    memset(stats, 0, sizeof *stats);
    stats->launches = stats->blocks = atomic_load(&self->blocks);
    stats->nnz = atomic_load(&self->nnz);
    stats->block_bytes = atomic_load(&self->block_bytes);
    stats->bytes_to_host = atomic_load(&self->bytes_to_host);
}

static void destroy(struct slc_device *device)
{
    if (device != NULL) {
        close_device(device);
        free(device);
    }
}

struct slc_device *product_device_create(uint64_t memory, unsigned late_us)
{
    static const struct slc_device_ops ops = {.name = "fake",
                                              .info = info,
                                              .memory = {.close = close_device},
                                              .product = {.memory_bytes = memory_bytes,
                                                          .host_bytes = host_bytes,
                                                          .open = product_open,
                                                          .tile = product_tile,
                                                          .more = product_more},
                                              .stats = stats,
                                              .destroy = destroy};
    struct product_device *self = take(NULL, sizeof *self);

    memset(self, 0, sizeof *self);
    self->device.ops = &ops;
    self->memory_bytes = memory;
    self->late_us = late_us;
    self->damaged = UINT64_MAX;
    return &self->device;
}

const struct product_device_counts *product_device_counts(const struct slc_device *device)
{
    return &device_of(device)->counts;
}

void product_device_refuse(struct slc_device *device, unsigned k)
{
    atomic_store(&device_of(device)->calls, 0);
    device_of(device)->refuse_at = k;
}

void product_device_damage(struct slc_device *device, uint64_t tile)
{
    device_of(device)->damaged = tile;
}
