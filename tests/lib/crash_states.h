/* The states of a drive that a power cut or a kill can leave in the middle of recorded changes
 * (recorded_files.h).
 *
 * After a kill all changes made so far are present. A power cut can lose any combination of the
 * changes that were not synced: of a write, nothing, everything or some of its 512-byte sectors or
 * 4096-byte pages are present, with or without the new file size; a truncation or extension is
 * present or not; a name is created, moved or removed or not, but never without an earlier change
 * of the same name on which it depends. The sync of a file covers its bytes, that of a folder only
 * its names: a name can be on the drive before its file, and vice versa. A file system that keeps
 * the changes of a folder in order (a journal) can leave only a subset of these states, which can
 * be requested alone.
 *
 * All states of a moment are visited if they are few. Otherwise the extremes (nothing, everything,
 * one change alone missing, present, or torn) and a random sample are visited. */
#ifndef SLC_CRASH_STATES_H
#define SLC_CRASH_STATES_H

#include "recorded_files.h"

struct slc_crash_bounds {
    uint64_t seed;
    uint64_t all;      /* visits all states of a moment if there are at most this many; */
    uint64_t extremes; /* otherwise visits this many extremes */
    uint64_t samples;  /* and this many random states */
    bool in_order;     /* the changes of a folder are ordered: none is present without all
                        * earlier ones */
};

enum slc_crash_fate_kind {
    SLC_FATE_MISSING,
    SLC_FATE_THERE,
    SLC_FATE_LENGTH, /* only the new length of the file; new bytes are zeros */
    SLC_FATE_FIRST,  /* only the sectors before a cut; the file is extended only to their end */
    SLC_FATE_LAST,   /* only the sectors after a cut */
    SLC_FATE_SOME    /* any combination of sectors */
};

struct slc_crash_fate {
    enum slc_crash_fate_kind kind;
    uint32_t unit; /* bytes per sector */
    uint64_t cut;  /* sectors; for SOME: the seed that selects them */
};

struct slc_crash_state {
    const struct slc_tree *tree;
    uint64_t moment;                    /* number of changes made */
    bool killed;                        /* true after a kill: all changes are present */
    const struct slc_crash_fate *fates; /* fate of each change before the moment */
};

/* Returns false to stop. */
typedef bool slc_crash_visitor(void *context, const struct slc_crash_state *state);

/* Visits states after `moment` changes of the record; sets *all to whether these were all states.
 * Returns false if the visitor stopped. */
bool slc_crash_states(const struct slc_recorded *disk,
                      uint64_t moment,
                      const struct slc_crash_bounds *bounds,
                      slc_crash_visitor *visit,
                      void *context,
                      bool *all);

/* Prints the changes before the moment and their fates, one line each with the prefix "# ". */
void slc_crash_print(const struct slc_recorded *disk, const struct slc_crash_state *state);

#endif
