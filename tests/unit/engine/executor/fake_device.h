/* A device with its own memory (base/device.h) for the engine's tests, implemented on the CPU in
 * the simplest way: its thread copies blocks late, one after the other, decodes them with storage/
 * and multiplies. It counts calls and violations of the contract by the host: blocks must be in
 * registered memory and must not change until their copies are reported. */
#ifndef SLC_TEST_FAKE_DEVICE_H
#define SLC_TEST_FAKE_DEVICE_H

#include "base/device.h"
#include "engine/plan/layouts.h"

#include <stdatomic.h>
#include <stdint.h>

enum { FAKE_BLOCKS = 256 };

struct fake_options {
    const struct slc_layouts *layouts; /* used for decoding; borrowed */
    uint64_t memory_bytes;             /* size of the device memory */
    unsigned late_us;                  /* largest delay of a copy */
    unsigned add_us;                   /* delay of output_add_host */
    uint64_t seed;
};

/* Calls since the device was created. */
struct fake_counts {
    unsigned copied[FAKE_BLOCKS];   /* number of copies of each block */
    unsigned resident[FAKE_BLOCKS]; /* number of times each block was computed without a copy */
    unsigned begun, ended;          /* number of jobs */
    unsigned opened, closed;
    unsigned flushes;
    unsigned factors_read, factors_written, outputs_read, outputs_added;
    unsigned waits;     /* blocks that waited for a slot; counted if the problem has adds_host */
    int registered;     /* regions currently registered */
    atomic_uint wrongs; /* violations of the contract */
};

/* Ends the program if memory runs out. Ownership: its destroy, by the table. */
struct slc_device *fake_create(const struct fake_options *options);

/* Sets add_us. */
void fake_delay_add(struct slc_device *device, unsigned add_us);

/* Returns the counts. Needs: no job runs. */
const struct fake_counts *fake_counts(const struct slc_device *device);

/* The k-th of the following fallible calls fails with SLC_ERR_SYSTEM and "refused"; 0: none.
 * Returns the number of fallible calls since the last call of this function. */
uint64_t fake_refuse(struct slc_device *device, uint64_t k);

/* The next job reports this block as damaged. */
void fake_damage(struct slc_device *device, uint64_t block);

#endif
