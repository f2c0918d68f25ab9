/*
 * A device with memory of its own (base/device.h) for the engine's tests, on the processor and by
 * the shortest way: a thread of its own copies blocks late, one after the other, decodes them with
 * storage/ and multiplies. It notes what it is asked for, and whether the host keeps to the rules:
 * blocks lie in registered memory and stay as they were until their copies are reported.
 */
#ifndef SLC_TEST_FAKE_DEVICE_H
#define SLC_TEST_FAKE_DEVICE_H

#include "base/device.h"
#include "engine/plan/layouts.h"

#include <stdatomic.h>
#include <stdint.h>

enum { FAKE_BLOCKS = 256 };

struct fake_options {
    const struct slc_layouts *layouts; /* what it decodes by; borrowed */
    uint64_t memory_bytes;             /* that may be used */
    unsigned late_us;                  /* a copy begins so much later at most */
    unsigned add_us;                   /* output_add_host takes this much longer */
    uint64_t seed;
};

/* What a device was asked for since it was created. */
struct fake_counts {
    unsigned copied[FAKE_BLOCKS];   /* times that a block was */
    unsigned resident[FAKE_BLOCKS]; /* times that it was computed without a copy */
    unsigned begun, ended;          /* jobs */
    unsigned opened, closed;
    unsigned flushes;
    unsigned factors_read, factors_written, outputs_read, outputs_added;
    unsigned waits;     /* blocks that had to wait for a slot, if the problem has adds_host */
    int registered;     /* regions of memory now */
    atomic_uint wrongs; /* rules that were broken */
};

/* Ends the program when memory does. Owns: its destroy, by the table. */
struct slc_device *fake_create(const struct fake_options *options);

/* Sets add_us. */
void fake_delay_add(struct slc_device *device, unsigned add_us);

/* Not while a job goes on. */
const struct fake_counts *fake_counts(const struct slc_device *device);

/*
 * The k-th call from now on that may fail does so, with SLC_ERR_SYSTEM and "refused"; 0: none.
 * Returns how many there have been since this was called last.
 */
uint64_t fake_refuse(struct slc_device *device, uint64_t k);

/* The next job finds this block damaged. */
void fake_damage(struct slc_device *device, uint64_t block);

#endif
