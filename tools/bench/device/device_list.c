/* See device_list.h. */
#include "tools/bench/device/device_list.h"

#include "tools/bench/measure/resident.h"

#include <string.h>

enum slc_status device_list_load(const char *path,
                                 const struct session_options *options,
                                 enum slc_value_type type,
                                 struct slc_coo *coo,
                                 struct slc_error *err)
{
    struct session_options on_cpu = *options;
    struct slc_session session = {.stream = NULL};
    enum slc_status status;

    on_cpu.device = "cpu";
    on_cpu.device_memory = 0;
    on_cpu.streams = 0;
    status = session_open(&session, path, on_cpu.memory, err);
    if (status == SLC_OK) {
        status = session_plan(&session, &on_cpu, SLC_OP_MTTKRP, 0, 1, err);
    }
    if (status == SLC_OK) {
        status = slc_session_start(&session, err);
    }
    if (status == SLC_OK) {
        status = bench_list_pass(&session, type, coo, err);
    }
    session_close(&session);
    return status;
}

/* Takes nonzeros in the order of the mode's permutation, into buffers that take the list's place.
 */
static enum slc_status reorder(struct slc_coo *coo, unsigned mode, struct slc_error *err)
{
    const uint64_t nnz = coo->shape.nnz, order = coo->shape.order;
    const uint32_t *from_coords = coo->coords.data, *places = coo->orders[mode].data;
    const size_t value_bytes = slc_value_bytes(coo->type);
    const unsigned char *from_values = coo->values.data;
    struct slc_buffer coords = SLC_BUFFER_INIT, values = SLC_BUFFER_INIT;
    enum slc_status status = slc_buffer_create(&coords, coo->coords.bytes, SLC_PAGES_HUGE, err);

    if (status == SLC_OK) {
        status = slc_buffer_create(&values, coo->values.bytes, SLC_PAGES_HUGE, err);
    }
    if (status != SLC_OK) {
        slc_buffer_destroy(&coords);
        return status;
    }
    for (uint64_t i = 0; i < nnz; i++) {
        memcpy((uint32_t *)coords.data + i * order, from_coords + places[i] * order,
               order * sizeof(uint32_t));
        memcpy((unsigned char *)values.data + i * value_bytes,
               from_values + places[i] * value_bytes, value_bytes);
    }
    slc_buffer_destroy(&coo->coords);
    slc_buffer_destroy(&coo->values);
    slc_buffer_destroy(&coo->orders[mode]);
    coo->coords = coords;
    coo->values = values;
    return SLC_OK;
}

/* By one coordinate after the other, the least significant one first: each sort is stable. */
enum slc_status
device_list_sort(struct slc_coo *coo, unsigned mode, unsigned workers, struct slc_error *err)
{
    const unsigned order = coo->shape.order;

    for (unsigned k = 0; k < order; k++) {
        /* The mode itself, then the others from the last to the first. */
        const unsigned m = k == 0 ? mode : order - k - (order - k <= mode ? 1 : 0);

        SLC_TRY(slc_coo_permute(coo, m, workers, err));
        SLC_TRY(reorder(coo, m, err));
    }
    return SLC_OK;
}
