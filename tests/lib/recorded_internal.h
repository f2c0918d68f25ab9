/* Shared by the implementation files of recorded_files.h; private to them. */
#ifndef SLC_RECORDED_INTERNAL_H
#define SLC_RECORDED_INTERNAL_H

#include "recorded_files.h"

#include <pthread.h>
#include <stdbool.h>

struct slc_recorded_descriptor {
    bool open;
    bool locks;
    uint32_t node;
    uint64_t position;
};

struct slc_recorded {
    struct slc_files table;
    pthread_mutex_t lock;
    struct slc_tree tree;
    struct slc_recorded_descriptor *descriptors;
    uint32_t descriptor_count;
    uint64_t maps;

    bool recording;
    struct slc_tree base;
    struct slc_change *changes;
    uint64_t change_count;
    uint64_t syncs;
    uint64_t ignored; /* number of the sync that does nothing */
};

/* The table of operations; `self` is not set. */
extern const struct slc_files slc_recorded_operations;

/* Applies and records a change. The lock must be held, or the disk idle. */
void slc_recorded_change(struct slc_recorded *disk, const struct slc_change *change);

#endif
