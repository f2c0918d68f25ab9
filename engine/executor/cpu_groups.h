/*
 * A decomposition on several devices (AMPED): each has a copy of the factors in its own memory and
 * its own threads, computes the MTTKRP from the blocks it owns, solves for the rows of the factor
 * it owns, and sends them round a ring (engine/executor/exchange.h), so that all copies are equal
 * again.
 *
 * One stream serves all devices: its ring of slots, its reader and its cache are what the machine's
 * memory and drive allow, however many devices there are. Its workers belong to devices, and take
 * tiles of their device's blocks alone. A device is a backend (base/backend.h): what differs
 * between devices of the CPU and others is behind that table, but for the dense algebra of rows.
 */
#ifndef SLC_ENGINE_DEVICES_H
#define SLC_ENGINE_DEVICES_H

#include "base/backend.h"
#include "cpu/dense/dense.h"
#include "engine/executor/group_division.h"
#include "engine/plan/plan.h"
#include "engine/stream/stream.h"

#include <stdint.h>

/* What one device has done since it was created. Seconds of threads are means over its threads. */
struct slc_devices_stats {
    uint64_t nnz;           /* that it multiplied */
    uint64_t bytes;         /* of the blocks these lay in, encoded */
    double compute_seconds; /* of MTTKRPs, decoding included */
    double wait_seconds;    /* in passes: for blocks, opening them, and for other devices */
    double reduce_seconds;  /* adding up what the devices have of its rows (SLC_SPLIT_NNZ) */
    double solve_seconds;   /* for its rows */
    uint64_t copied_bytes;  /* factors that were copied to it at the start */
    double copy_seconds;
    uint64_t sent_bytes;          /* to the next device */
    double exchange_seconds;      /* in the ring, but for */
    double exchange_wait_seconds; /* waiting for a neighbour */
};

/* What devices are made of; everything is borrowed. */
struct slc_devices_setup {
    const struct slc_layouts *layouts;   /* of the stream */
    const struct slc_plan *plan;         /* made for `devices` of 1 or more */
    struct slc_backend *const *backends; /* plan->devices of them */
    struct slc_dense *dense;             /* for plan->threads; NULL where nothing is solved */
    struct slc_matrix *factors;          /* one per mode: the first device's, which works on it */
    const struct slc_buffer *output;     /* the first device's, for the longest mode */
    uint32_t rank;
};

struct slc_devices;

/*
 * Divides the layouts of the modes that are computed and takes the other devices' memory.
 * Owns: slc_devices_destroy, which takes NULL. Errors: SLC_ERR_USAGE for a plan without devices;
 * SLC_ERR_MEMORY.
 */
enum slc_status slc_devices_create(const struct slc_devices_setup *setup,
                                   struct slc_devices **devices,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_devices_destroy(struct slc_devices *devices);
/* What the above takes beside factors and outputs, for plans; UINT64_MAX on overflow. */
uint64_t slc_devices_memory_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan);

/* Copies all factors of the first device to the others. Errors: those of rows_write. */
enum slc_status slc_devices_load(struct slc_devices *devices, struct slc_error *err) SLC_NODISCARD;

/*
 * The MTTKRP of `mode` over the stream, each device its share into its own output. Order: with
 * SLC_SPLIT_PARTITIONS a row has, at its owner, the bits of an MTTKRP by one device, whatever the
 * number of devices and threads. Errors: those of the stream and of any backend, which end the pass
 * for all; outputs are then undefined, factors as they were.
 */
enum slc_status slc_devices_mttkrp(struct slc_devices *devices,
                                   struct slc_stream *stream,
                                   unsigned mode,
                                   const volatile int *stop,
                                   void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                   void *progress_context,
                                   struct slc_error *err) SLC_NODISCARD;

/*
 * After it: slc_dense_update of every copy of factor `mode`, rows by their owners, and the
 * exchange. Order: with SLC_SPLIT_PARTITIONS the same bits for any number of devices and threads,
 * and those of slc_dense_update but for sums->inner, which is added up by partitions, singular V,
 * and ranks beyond 64. Errors: SLC_ERR_SYSTEM for want of threads, those of copying rows; the
 * factor is then undefined.
 */
enum slc_status slc_devices_update(struct slc_devices *devices,
                                   const struct slc_solver *solver,
                                   unsigned mode,
                                   const struct slc_update_sums *sums,
                                   struct slc_error *err) SLC_NODISCARD;

/* After slc_devices_mttkrp: every device's output has all rows. Errors as above, of the output. */
enum slc_status
slc_devices_gather(struct slc_devices *devices, unsigned mode, struct slc_error *err) SLC_NODISCARD;

/* slc_dense_scale of every copy of a factor. */
enum slc_status slc_devices_scale(struct slc_devices *devices,
                                  unsigned mode,
                                  const double *scale,
                                  struct slc_error *err) SLC_NODISCARD;

/* One device's copy of a factor. Borrowed; for tests. */
const struct slc_matrix *
slc_devices_factor(const struct slc_devices *devices, unsigned device, unsigned mode);

void slc_devices_stats(const struct slc_devices *devices,
                       unsigned device,
                       struct slc_devices_stats *stats);

#endif
