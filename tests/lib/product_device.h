/* A device that multiplies tiles (product_open and the functions after it in base/device.h) on the
 * CPU in the simplest way: nonzero by nonzero, with naive_decode.h. Its other operations are NULL
 * except info, close, stats and destroy. It counts violations of the contract by the host. Sums are
 * in memory of their exact size, which is released at the lane's next call. */
#ifndef SLC_PRODUCT_DEVICE_H
#define SLC_PRODUCT_DEVICE_H

#include "base/device.h"

#include <stdint.h>

/* Calls since the device was created. */
struct product_device_counts {
    unsigned tiles, more; /* successful calls of product.tile and product.more */
    unsigned at_once;     /* lanes that are in use now */
    unsigned at_most;     /* largest number of lanes that were in use at the same time */
    unsigned wrongs;      /* violations of the contract; each is printed */
    unsigned opened, closed;
};

/* `memory_bytes`: limit of product_open; `late_us`: largest random delay of a tile. Ends the
 * program if memory runs out. Ownership: its destroy, by the table. */
struct slc_device *product_device_create(uint64_t memory_bytes, unsigned late_us);

/* May be called only while no lane is in use. */
const struct product_device_counts *product_device_counts(const struct slc_device *device);

/* The k-th of the following calls of product_open, product_tile and product_more together fails
 * with SLC_ERR_SYSTEM and "refused"; 0: none. May be called only while no lane is in use. */
void product_device_refuse(struct slc_device *device, unsigned k);

/* Reports this tile as damaged; UINT64_MAX: none. May be called only while no lane is in use. */
void product_device_damage(struct slc_device *device, uint64_t tile);

#endif
