/*
 * A device that multiplies tiles (base/device.h: product_open and what follows), on the processor
 * and by the shortest way: nonzero by nonzero, with naive_decode.h. It does nothing else: its other
 * operations are NULL but for info, close, stats and destroy. It notes whether the host keeps to
 * the rules; sums are in memory of their exact size, which goes at the lane's next call.
 */
#ifndef SLC_PRODUCT_DEVICE_H
#define SLC_PRODUCT_DEVICE_H

#include "base/device.h"

#include <stdint.h>

/* What was asked of a device since it was created. */
struct product_device_counts {
    unsigned tiles, more; /* calls that succeeded */
    unsigned at_once;     /* lanes in use */
    unsigned at_most;     /* lanes that ever were at the same time */
    unsigned wrongs;      /* rules that were broken; each is printed */
    unsigned opened, closed;
};

/*
 * `memory_bytes`: what product_open may take; `late_us`: a tile takes so much longer at most.
 * Ends the program when memory does. Owns: its destroy, by the table.
 */
struct slc_device *product_device_create(uint64_t memory_bytes, unsigned late_us);

/* Not while lanes are used. */
const struct product_device_counts *product_device_counts(const struct slc_device *device);

/* The k-th call from now on of product_open, product_tile and product_more together fails, with
 * SLC_ERR_SYSTEM and "refused"; 0: none. Not while lanes are used. */
void product_device_refuse(struct slc_device *device, unsigned k);

/* This tile, by its ordinal, is found damaged; UINT64_MAX: none. Likewise. */
void product_device_damage(struct slc_device *device, uint64_t tile);

#endif
