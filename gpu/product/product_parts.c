/* Divides a product's memory into parts. The same function computes the sizes of the parts and
 * places the parts. */
#include "gpu/product/product_parts.h"

/* Returns true if the mode has no matrix, or a matrix of the right shape and type. */
static bool is_sound_matrix(const struct slc_device_product *product, unsigned mode, uint32_t cols)
{
    const struct slc_matrix *matrix = product->matrix[mode];

    return matrix == NULL ||
           (matrix->type == product->precision &&
            matrix->rows == slc_used_elements(&product->used[mode], product->dims[mode]) &&
            product->used[mode].end <= product->dims[mode] && matrix->cols == cols &&
            matrix->pitch >= cols);
}

/* Fills in the members that follow from `product`. Returns false if `product` is invalid. */
static bool fill_in(const struct slc_device_product *product, struct slc_gpu_product_memory *made)
{
    const uint32_t together = 16 / slc_value_bytes(product->precision);
    bool sound = product->order >= 1 && product->order <= SLC_MAX_ORDER && product->lanes >= 1 &&
                 product->lanes <= SLC_DEVICE_LANES && product->tile_bytes >= 1 &&
                 product->room >= 1 && product->room <= SLC_TILE_NNZ;

    made->product = *product;
    for (unsigned n = 0; sound && n < product->order; n++) {
        made->sums_over[n] = product->matrix[n] != NULL;
        made->kept += !made->sums_over[n];
        made->cols = made->sums_over[n] ? product->matrix[n]->cols : made->cols;
        sound = product->dims[n] >= 1 && product->dims[n] <= SLC_MAX_MODE_LENGTH;
    }
    for (unsigned n = 0; sound && n < product->order; n++) {
        sound = is_sound_matrix(product, n, made->cols);
    }
    /* Rows begin at multiples of 16 bytes, except if there is one column: a vector is
     * contiguous. */
    made->pitch = made->cols == 1 ? 1 : (made->cols + together - 1) / together * together;
    return sound && made->cols >= 1 && made->cols <= SLC_MAX_RANK;
}

static void device_parts(struct slc_gpu_product_memory *made, struct slc_gpu_piece *piece)
{
    const struct slc_device_product *product = &made->product;
    const uint64_t element = slc_value_bytes(product->precision);

    for (unsigned n = 0; n < product->order; n++) {
        const struct slc_used *used = &product->used[n];
        const bool maps = made->sums_over[n] && used->end > 0;
        uint64_t bytes = 0;

        if (made->sums_over[n] && !slc_mul_u64(slc_used_elements(used, product->dims[n]),
                                               made->pitch * element, &bytes)) {
            piece->overflow = true;
        }
        made->matrix[n] = slc_gpu_part(piece, bytes, 1);
        made->used[n] =
            maps ? slc_gpu_part(piece, slc_used_words(used), sizeof *made->used[n]) : NULL;
    }
    made->layout = slc_gpu_part(piece, 1, sizeof(struct slc_encoded_layout));
    for (unsigned l = 0; l < product->lanes; l++) {
        struct slc_gpu_lane_memory *lane = &made->lane_memory[l];

        lane->input = slc_gpu_part(piece, slc_product_input_bytes(product), 1);
        lane->list.offsets =
            slc_gpu_part(piece, (uint64_t)product->order * SLC_TILE_NNZ, sizeof(uint32_t));
        lane->list.values = slc_gpu_part(piece, SLC_TILE_NNZ * element, 1);
        lane->list.heads = slc_gpu_part(piece, SLC_PRODUCT_WORDS, sizeof(uint32_t));
        lane->list.counts = slc_gpu_part(piece, SLC_PRODUCT_GROUPS, sizeof(uint32_t));
        lane->carry_fiber = slc_gpu_part(piece, SLC_PRODUCT_GROUPS, sizeof(uint32_t));
        lane->carries =
            slc_gpu_part(piece, (uint64_t)SLC_PRODUCT_GROUPS * made->cols, sizeof(double));
        lane->result = slc_gpu_part(piece, slc_product_result_bytes(made, product->room), 1);
    }
}

static void host_parts(struct slc_gpu_product_memory *made, struct slc_gpu_piece *piece)
{
    for (unsigned l = 0; l < made->product.lanes; l++) {
        struct slc_gpu_lane_memory *lane = &made->lane_memory[l];

        lane->host_input = slc_gpu_part(piece, slc_product_input_bytes(&made->product), 1);
        lane->host_result =
            slc_gpu_part(piece, slc_product_result_bytes(made, made->product.room), 1);
    }
}

bool slc_gpu_product_lay_out(struct slc_gpu_product_memory *made, slc_gpu_gap gap)
{
    struct slc_gpu_piece device = {
        .begin = (uintptr_t)made->device, .gap_bytes = SLC_GPU_GAP_BYTES, .gap = gap};
    struct slc_gpu_piece registered = {.begin = (uintptr_t)made->registered.data};

    /* This check avoids overflow when the two numbers are added. */
    if (made->product.tile_bytes > UINT64_MAX / 4 ||
        made->product.expanded_bytes > UINT64_MAX / 4) {
        return false;
    }
    device_parts(made, &device);
    host_parts(made, &registered);
    made->device_bytes = device.used;
    made->registered_bytes = registered.used;
    return !device.overflow && !registered.overflow;
}

bool slc_gpu_product_measure(const struct slc_device_product *product,
                             struct slc_gpu_product_memory *memory)
{
    return fill_in(product, memory) && slc_gpu_product_lay_out(memory, NULL);
}

uint64_t slc_gpu_product_memory_bytes(const struct slc_device *device,
                                      const struct slc_device_product *product)
{
    struct slc_gpu_product_memory memory = {.cols = 0};

    (void)device;
    return slc_gpu_product_measure(product, &memory) ? memory.device_bytes : UINT64_MAX;
}

uint64_t slc_gpu_product_host_bytes(const struct slc_device *device,
                                    const struct slc_device_product *product)
{
    struct slc_gpu_product_memory memory = {.cols = 0};

    (void)device;
    return slc_gpu_product_measure(product, &memory)
               ? slc_buffer_footprint(memory.registered_bytes, SLC_PAGES_SMALL) +
                     SLC_PRODUCT_RECORD_BYTES
               : UINT64_MAX;
}
