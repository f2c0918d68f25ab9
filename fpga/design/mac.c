/* A stage of MAC lanes, pass by pass. */
#include "fpga/design/mac.h"

#include "base/memory/memory.h"

#include <stdbool.h>
#include <string.h>

enum slc_status slc_fpga_mac_create(struct slc_fpga_mac *mac,
                                    const struct slc_fpga_parameters *parameters,
                                    struct slc_error *err)
{
    *mac = (struct slc_fpga_mac){.sum = slc_calloc(parameters->cols, sizeof(float))};
    return slc_check_memory(mac->sum != NULL, err, "for the sums of %u columns", parameters->cols);
}

void slc_fpga_mac_destroy(struct slc_fpga_mac *mac)
{
    slc_free(mac->sum);
    memset(mac, 0, sizeof *mac);
}

static float float_of(uint32_t word)
{
    float number;

    memcpy(&number, &word, sizeof number);
    return number;
}

/* Multiplies and adds the columns of one pass. `multiplicand` is NULL for an empty fiber. */
static void add_products(struct slc_fpga_mac *mac,
                         const struct slc_fpga_parameters *parameters,
                         const uint32_t *multiplicand,
                         uint64_t now)
{
    const uint32_t begin = mac->pass * parameters->lanes;
    const uint32_t end = (uint32_t)slc_min_u64(begin + parameters->lanes, parameters->cols);
    const bool vector = mac->multiplicands->width > 1;

    for (uint32_t c = begin; c < end; c++) {
        float product = 0.0F;

        if (multiplicand != NULL) {
            const uint32_t *beat = slc_fpga_fifo_peek(mac->rows, c / parameters->beat_words, now);

            product =
                float_of(multiplicand[vector ? c : 0]) * float_of(beat[c % parameters->beat_words]);
        }
        mac->sum[c] = (mac->next == mac->first ? 0.0F : mac->sum[c]) + product;
    }
}

/* Returns true if the next row, or an empty fiber, can begin in cycle `now`. */
static bool can_begin(const struct slc_fpga_mac *mac, uint32_t end, uint32_t beats, uint64_t now)
{
    const bool operands = slc_fpga_fifo_peek(mac->multiplicands, 0, now) != NULL &&
                          slc_fpga_fifo_peek(mac->rows, beats - 1, now) != NULL;
    const bool first = mac->next == mac->first;
    const bool last = mac->next + 1 >= end;

    return (end == mac->first || (operands && (first || mac->ready <= now))) &&
           (!last || slc_fpga_fifo_space(mac->sums) > 0);
}

void slc_fpga_mac_step(struct slc_fpga_mac *mac,
                       const struct slc_fpga_parameters *parameters,
                       uint64_t now)
{
    const uint32_t beats = slc_fpga_row_beats(parameters);
    const uint32_t *end = slc_fpga_fifo_peek(mac->ends, 0, now);

    if (end == NULL || (mac->pass == 0 && !can_begin(mac, *end, beats, now))) {
        return;
    }
    const bool empty = *end == mac->first;
    if (mac->pass == 0) {
        mac->ready = now + parameters->add_latency;
    }
    add_products(mac, parameters, empty ? NULL : slc_fpga_fifo_peek(mac->multiplicands, 0, now),
                 now);
    mac->pass++;
    if (mac->pass < slc_fpga_row_passes(parameters)) {
        return;
    }
    mac->pass = 0;
    if (!empty) {
        slc_fpga_fifo_pop(mac->multiplicands, 1);
        slc_fpga_fifo_pop(mac->rows, beats);
        mac->next++;
    }
    if (mac->next == *end) {
        slc_fpga_fifo_push(mac->sums, mac->sum, parameters->cols,
                           now + parameters->multiply_latency + parameters->add_latency);
        slc_fpga_fifo_pop(mac->ends, 1);
        mac->first = mac->next;
    }
}
