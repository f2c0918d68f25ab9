/*
 * What the two halves of the emulated runtime share: memory and kernels (runtime.cpp), streams and
 * events (streams.cpp).
 */
#ifndef SLC_EMULATION_STREAMS_H
#define SLC_EMULATION_STREAMS_H

#include "cuda_runtime.h"

#include <functional>

/*
 * One lock for all calls, which ThreadSanitizer does not see: what it orders would hide what the
 * runtime does not.
 */
struct slc_emulation_guard {
    slc_emulation_guard();
    ~slc_emulation_guard();
};

/* The next number below `below` of the order that the seed draws; a new seed. Under the guard. */
unsigned slc_emulation_draw(unsigned below);
void slc_emulation_sow(unsigned seed);

/* Puts work behind all that the stream has. Ends the program where there is no such stream. */
void slc_stream_put(cudaStream_t stream, std::function<void()> run);
/* Runs one piece of work of any stream that may go on. False where none may. */
bool slc_stream_run_any(void);
/*
 * Runs all that the streams of a device have; what follows comes after it. `call` is named where
 * that would take for ever.
 */
void slc_streams_drain(int device, const char *call);
/* Streams and events that exist. */
size_t slc_streams_left(void);
size_t slc_events_left(void);

/* Kept for cudaGetLastError, but for success; returns it. */
cudaError_t slc_emulation_remember(cudaError_t error);
/* Whether this call is the one to be refused; remembers `error` then. Under the guard. */
bool slc_emulation_refused(cudaError_t error);
/* Of this thread of the host. */
int slc_emulation_device(void);

/* Lets work, and it alone, touch memory of devices (AddressSanitizer). */
void slc_device_memory_open(bool open);

#endif
