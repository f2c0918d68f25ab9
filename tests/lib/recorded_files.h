/* A table of file operations that keeps its files in memory and records all changes in one order
 * over all threads: files created, written, renamed and removed, and all syncs. From the record,
 * crash_states.h builds the states that a power cut can leave.
 *
 *     struct slc_recorded *disk = slc_recorded_create();
 *     write what is to be there before, through slc_recorded_files(disk)
 *     slc_recorded_start(disk);
 *     the operation, through the same table
 *
 * Direct I/O is not offered; maps are copies. The program ends if memory runs out. Threads: any
 * number may use the table; the other functions only while it is idle. */
#ifndef SLC_RECORDED_FILES_H
#define SLC_RECORDED_FILES_H

#include "memory_tree.h"
#include "storage/file/files.h"

struct slc_recorded;

struct slc_recorded *slc_recorded_create(void);
/* Creates a disk with a copy of these files. */
struct slc_recorded *slc_recorded_create_with(const struct slc_tree *tree);
/* `disk` may be NULL. */
void slc_recorded_destroy(struct slc_recorded *disk);

const struct slc_files *slc_recorded_files(const struct slc_recorded *disk);
/* The current files. Borrowed. */
const struct slc_tree *slc_recorded_tree(const struct slc_recorded *disk);

/* Makes the current files durable and starts the record. */
void slc_recorded_start(struct slc_recorded *disk);
/* Continues the record of another disk after its first `count` changes. */
struct slc_recorded *slc_recorded_continue(const struct slc_recorded *disk, uint64_t count);
/* The files at the start, and the changes since. Borrowed. */
const struct slc_tree *slc_recorded_base(const struct slc_recorded *disk);
const struct slc_change *slc_recorded_changes(const struct slc_recorded *disk, uint64_t *count);

/* Plants a fault: the k-th sync since the start, from 1, of files and folders alike, does nothing
 * and reports success; UINT64_MAX: all of them; 0: none. */
void slc_recorded_ignore_sync(struct slc_recorded *disk, uint64_t k);
/* Syncs since the start, including ignored ones. */
uint64_t slc_recorded_syncs(const struct slc_recorded *disk);

/* Open descriptors and maps: 0 if nothing leaks. */
uint64_t slc_recorded_open_count(const struct slc_recorded *disk);

#endif
