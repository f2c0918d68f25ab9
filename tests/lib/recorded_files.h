/*
 * A table of file operations that keeps its files in memory and records what changes them, in one
 * order over all threads: which files were made, written, renamed and removed, and what was synced
 * when. From the record crash_states.h makes what a power cut may leave.
 *
 *     struct slc_recorded *disk = slc_recorded_create();
 *     write what is to be there before, through slc_recorded_files(disk)
 *     slc_recorded_start(disk);
 *     the operation, through the same table
 *
 * Direct I/O is not offered; maps are copies. Memory that ends, ends the program.
 * Threads: the table may be used from any number; the rest while it is idle.
 */
#ifndef SLC_RECORDED_FILES_H
#define SLC_RECORDED_FILES_H

#include "memory_tree.h"
#include "storage/file/files.h"

struct slc_recorded;

struct slc_recorded *slc_recorded_create(void);
/* One with a copy of these files. */
struct slc_recorded *slc_recorded_create_with(const struct slc_tree *tree);
/* Takes NULL. */
void slc_recorded_destroy(struct slc_recorded *disk);

const struct slc_files *slc_recorded_files(const struct slc_recorded *disk);
/* What is there now. Borrowed. */
const struct slc_tree *slc_recorded_tree(const struct slc_recorded *disk);

/* What is there now is on the drive for good; what follows is recorded. */
void slc_recorded_start(struct slc_recorded *disk);
/* Goes on with the record of another one, whose first `count` changes have been made. */
struct slc_recorded *slc_recorded_continue(const struct slc_recorded *disk, uint64_t count);
/* The files at the start, and the changes since. Borrowed. */
const struct slc_tree *slc_recorded_base(const struct slc_recorded *disk);
const struct slc_change *slc_recorded_changes(const struct slc_recorded *disk, uint64_t *count);

/*
 * A planted fault: the k-th sync from the start on, from 1, of files and folders alike, does
 * nothing and says that it did; UINT64_MAX: all of them; 0: none.
 */
void slc_recorded_ignore_sync(struct slc_recorded *disk, uint64_t k);
/* Syncs since the start, those ignored counted. */
uint64_t slc_recorded_syncs(const struct slc_recorded *disk);

/* Descriptors and maps that are open: 0 when nothing leaks. */
uint64_t slc_recorded_open_count(const struct slc_recorded *disk);

#endif
