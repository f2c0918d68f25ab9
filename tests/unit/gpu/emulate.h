/* The emulated device (tests/gpu/emulation), for tests that are C. */
#ifndef SLC_TEST_EMULATE_H
#define SLC_TEST_EMULATE_H

#ifdef __cplusplus
extern "C" {
#endif

/* One device with 256 MiB; whatever is not bound comes in an order of this seed. */
void emulate(unsigned seed);
/* Ends the program where memory, streams or events are left. */
void emulate_end(void);

/* The k-th following call of the runtime that may fail does; 0: none. How many there were since. */
void emulate_refuse(unsigned long long k);
unsigned long long emulate_refusable(void);

#ifdef __cplusplus
}
#endif

#endif
