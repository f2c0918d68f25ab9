/*
 * What may be on the drive when the power fails, or the program is killed, amid a record of changes
 * (recorded_files.h).
 *
 * After a kill everything is there that was done. A power cut may take any of the changes that no
 * sync came after, in any combination: of a write nothing, all, or some of its sectors of 512 or
 * pages of 4096 bytes are there, and the file's length with or without it; cuttings and growings of
 * a file are there or not; names made, moved and removed are there or not, but not one that builds
 * on another of the same name without that. A file's sync covers its bytes, a folder's its names
 * alone: a name may be there before what it stands for, and the other way round. What a file system
 * does that keeps folders in order (a journal) is a part of that, which may be asked for alone.
 *
 * All states of a moment are visited where they are few; else the extremes (nothing, everything,
 * one change alone missing, there, or torn) and a sample.
 */
#ifndef SLC_CRASH_STATES_H
#define SLC_CRASH_STATES_H

#include "recorded_files.h"

struct slc_crash_bounds {
    uint64_t seed;
    uint64_t all;      /* visits all states of a moment if they are no more than these .. */
    uint64_t extremes; /* .. else as many extremes .. */
    uint64_t samples;  /* .. and random ones */
    bool in_order;     /* names of a folder change in order: none is there without all before */
};

enum slc_crash_fate_kind {
    SLC_FATE_MISSING,
    SLC_FATE_THERE,
    SLC_FATE_LENGTH, /* zeros where the write would have made the file longer */
    SLC_FATE_FIRST,  /* sectors up to a cut; no more length than these */
    SLC_FATE_LAST,   /* sectors from a cut on */
    SLC_FATE_SOME    /* any sectors */
};

struct slc_crash_fate {
    enum slc_crash_fate_kind kind;
    uint32_t unit; /* bytes of a sector */
    uint64_t cut;  /* sectors; of SOME: the seed that chooses */
};

struct slc_crash_state {
    const struct slc_tree *tree;
    uint64_t moment;                    /* so many changes were made */
    bool killed;                        /* all of them are there */
    const struct slc_crash_fate *fates; /* of every change before the moment */
};

/* Returns false to see no more. */
typedef bool slc_crash_visitor(void *context, const struct slc_crash_state *state);

/*
 * Visits states of the moment after `moment` changes of the record; *all says whether these were
 * all. False where the visitor has stopped it.
 */
bool slc_crash_states(const struct slc_recorded *disk,
                      uint64_t moment,
                      const struct slc_crash_bounds *bounds,
                      slc_crash_visitor *visit,
                      void *context,
                      bool *all);

/* Prints the record up to the moment and what became of each change, a line each behind "# ". */
void slc_crash_print(const struct slc_recorded *disk, const struct slc_crash_state *state);

#endif
