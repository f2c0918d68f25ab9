/*
 * A supply of tiles (base/tile_supply.h) from a stream: one pass over a layout through the ring, by
 * any I/O method, largest blocks first where the operation lets tiles come in any order.
 */
#ifndef SLC_ENGINE_STREAM_SUPPLY_H
#define SLC_ENGINE_STREAM_SUPPLY_H

#include "base/tile_supply.h"
#include "engine/stream/stream.h"

#include <stdint.h>

/* How to read, and what was read. */
struct slc_stream_supply {
    const struct slc_files *files; /* NULL: the operating system */
    enum slc_io_kind io;
    enum slc_schedule schedule; /* where tiles have no turns; AUTO: as blocks differ in size */
    uint64_t read_limit;        /* bytes a second; 0: none */
    /* Polled between tiles; a non-zero value ends a run with SLC_ERR_INTERRUPTED. May be NULL. */
    const volatile int *stop;

    /* Of the last run, also where it failed. */
    struct slc_stream_stats stats;
    enum slc_schedule used_schedule; /* never AUTO */
    unsigned slot_count;
    uint64_t slot_bytes;
    double turn_seconds; /* of workers that waited for the tiles before theirs; summed */
};

/* The table of `supply`, which has to live as long. */
struct slc_tile_supply slc_stream_supply_table(struct slc_stream_supply *supply);

#endif
