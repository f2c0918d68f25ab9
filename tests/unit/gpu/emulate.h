/* The emulated device (tests/gpu/emulation), for tests that are C. */
#ifndef SLC_TEST_EMULATE_H
#define SLC_TEST_EMULATE_H

#ifdef __cplusplus
extern "C" {
#endif

/* One device with 256 MiB; unconstrained work runs in the order of this seed. */
void emulate(unsigned seed);
/* Ends the program if memory, streams or events leak. */
void emulate_end(void);

/* Makes the k-th following fallible call of the runtime fail; 0: none. Returns the number of
 * fallible calls since. */
void emulate_refuse(unsigned long long k);
unsigned long long emulate_refusable(void);

#ifdef __cplusplus
}
#endif

#endif
