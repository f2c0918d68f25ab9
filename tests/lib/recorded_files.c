/* A disk in memory that records its changes. One lock guards everything, so that the order of the
 * record is the order of the operations. */
#include "recorded_internal.h"

#include <assert.h>
#include <stdlib.h>

void slc_recorded_change(struct slc_recorded *disk, const struct slc_change *change)
{
    slc_tree_apply(&disk->tree, change);
    if (!disk->recording) {
        return;
    }
    if ((disk->change_count & (disk->change_count - 1)) == 0) {
        const uint64_t room = disk->change_count == 0 ? 1 : 2 * disk->change_count;

        disk->changes = slc_tree_memory(disk->changes, room * sizeof *disk->changes);
    }
    disk->changes[disk->change_count++] = slc_change_copy(change);
}

/* Creates a disk without files. */
static struct slc_recorded *create(void)
{
    struct slc_recorded *disk = slc_tree_memory(NULL, sizeof *disk);

    *disk = (struct slc_recorded){.table = slc_recorded_operations};
    disk->table.self = disk;
    pthread_mutex_init(&disk->lock, NULL);
    return disk;
}

struct slc_recorded *slc_recorded_create(void)
{
    struct slc_recorded *disk = create();

    slc_tree_create(&disk->tree);
    return disk;
}

struct slc_recorded *slc_recorded_create_with(const struct slc_tree *tree)
{
    struct slc_recorded *disk = create();

    slc_tree_copy(tree, &disk->tree);
    return disk;
}

static void forget(struct slc_recorded *disk)
{
    for (uint64_t i = 0; i < disk->change_count; i++) {
        slc_change_release(&disk->changes[i]);
    }
    free(disk->changes);
    disk->changes = NULL;
    disk->change_count = 0;
    if (disk->recording) {
        slc_tree_destroy(&disk->base);
    }
    disk->recording = false;
    disk->syncs = 0;
}

void slc_recorded_destroy(struct slc_recorded *disk)
{
    if (disk != NULL) {
        forget(disk);
        slc_tree_destroy(&disk->tree);
        free(disk->descriptors);
        pthread_mutex_destroy(&disk->lock);
        free(disk);
    }
}

const struct slc_files *slc_recorded_files(const struct slc_recorded *disk)
{
    return &disk->table;
}

const struct slc_tree *slc_recorded_tree(const struct slc_recorded *disk)
{
    return &disk->tree;
}

void slc_recorded_start(struct slc_recorded *disk)
{
    forget(disk);
    slc_tree_copy(&disk->tree, &disk->base);
    disk->recording = true;
}

struct slc_recorded *slc_recorded_continue(const struct slc_recorded *disk, uint64_t count)
{
    struct slc_recorded *next = slc_recorded_create_with(&disk->base);

    assert(disk->recording && count <= disk->change_count);
    slc_recorded_start(next);
    for (uint64_t i = 0; i < count; i++) {
        slc_recorded_change(next, &disk->changes[i]);
    }
    return next;
}

const struct slc_tree *slc_recorded_base(const struct slc_recorded *disk)
{
    return &disk->base;
}

const struct slc_change *slc_recorded_changes(const struct slc_recorded *disk, uint64_t *count)
{
    *count = disk->change_count;
    return disk->changes;
}

void slc_recorded_ignore_sync(struct slc_recorded *disk, uint64_t k)
{
    disk->ignored = k;
}

uint64_t slc_recorded_syncs(const struct slc_recorded *disk)
{
    return disk->syncs;
}

uint64_t slc_recorded_open_count(const struct slc_recorded *disk)
{
    uint64_t count = disk->maps;

    for (uint32_t i = 0; i < disk->descriptor_count; i++) {
        count += disk->descriptors[i].open;
    }
    return count;
}
