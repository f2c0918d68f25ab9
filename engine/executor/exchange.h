/* Exchanges the rows of a matrix between devices. Every device has a copy of the matrix, and each
 * row is written by one device. The rows that a device has written are its piece. The pieces travel
 * around a ring of devices until all copies are equal.
 *
 * With D devices there are D - 1 steps: in step s device d sends piece d - s to device d + 1 while
 * it receives piece d - s - 1 from device d - 1 (all modulo D). Pieces move in chunks through two
 * buffers per link, so that a chunk is sent on while the next one arrives; no device waits for the
 * end of a step.
 *
 * Cost: each device receives the rows of all other devices once. It sends every row once, except
 * the rows of one piece. Source: [Wijeratne2025] section 4.8. */
#ifndef SLC_ENGINE_EXCHANGE_H
#define SLC_ENGINE_EXCHANGE_H

#include "base/backend.h"
#include "base/error/error.h"

#include <stdint.h>

/* The rows that one device has written, as ranges in any order. Borrowed. */
struct slc_device_rows {
    const struct slc_row_span *ranges;
    uint64_t count;
};

struct slc_exchange_job {
    struct slc_backend *const *backends; /* one per device */
    /* Each device's copy of the matrix, in the memory of this device (rows_read of base/backend.h).
     * All copies have the same shape. */
    struct slc_matrix *const *copies;
    const struct slc_device_rows
        *pieces; /* one per device; rows outside all pieces are unchanged */
};

/* Statistics of one device in an exchange. */
struct slc_exchange_stats {
    uint64_t bytes_sent;
    double copy_seconds; /* time to copy rows into and out of buffers */
    double wait_seconds; /* time spent waiting for a neighbour */
};

struct slc_exchange;

/* Creates the buffers for a ring of `devices` devices (1 or more) and rows of at most `row_bytes`
 * bytes. Ownership: release with slc_exchange_destroy, which accepts NULL. Errors: SLC_ERR_MEMORY.
 */
enum slc_status slc_exchange_create(unsigned devices,
                                    uint64_t row_bytes,
                                    struct slc_exchange **exchange,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_exchange_destroy(struct slc_exchange *exchange);
/* Returns the bytes that slc_exchange_create allocates. */
uint64_t slc_exchange_memory_bytes(unsigned devices, uint64_t row_bytes);

/* Exchanges all pieces, with one thread per device. Sets stats[devices]. Order: rows are only
 * copied, so the result always has the same bits. Errors: the first error of rows_read or
 * rows_write, which ends the exchange for all devices, and errors of starting threads. After an
 * error each copy still has the rows that its device wrote; its other rows are undefined. */
enum slc_status slc_exchange_run(struct slc_exchange *exchange,
                                 const struct slc_exchange_job *job,
                                 struct slc_exchange_stats *stats,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
