/* Shared by the two halves of the emulated runtime: memory and kernels (runtime.cpp), streams and
 * events (streams.cpp). */
#ifndef SLC_EMULATION_STREAMS_H
#define SLC_EMULATION_STREAMS_H

#include "cuda_runtime.h"

#include <functional>

/* One lock for all calls, hidden from ThreadSanitizer: its ordering would hide the order that the
 * runtime lacks. */
struct slc_emulation_guard {
    slc_emulation_guard();
    ~slc_emulation_guard();
};

/* Returns the next random number below `below`; sets a new seed. Under the guard. */
unsigned slc_emulation_draw(unsigned below);
void slc_emulation_sow(unsigned seed);

/* Enqueues work after all work of the stream. Ends the program if there is no such stream. */
void slc_stream_put(cudaStream_t stream, std::function<void()> run);
/* Runs one piece of work of any stream that can proceed. Returns false if none can. */
bool slc_stream_run_any(void);
/* Runs all work of the streams of a device; later actions are ordered after it. The error message
 * names `call` if that would take forever. */
void slc_streams_drain(int device, const char *call);
/* Number of existing streams and events. */
size_t slc_streams_left(void);
size_t slc_events_left(void);

/* Stores an error for cudaGetLastError, unless it is success; returns it. */
cudaError_t slc_emulation_remember(cudaError_t error);
/* Whether this call must fail; stores `error` then. Under the guard. */
bool slc_emulation_refused(cudaError_t error);
/* Current device of this host thread. */
int slc_emulation_device(void);

/* Lets enqueued work, and nothing else, access device memory (AddressSanitizer). */
void slc_device_memory_open(bool open);

#endif
