/*
 * What lies in a folder: the path and a hash of every file, folders with it, so that a test can
 * tell whether a command left all as it was, or as another run made it. Folders are three levels
 * deep at most. Whatever cannot be read or written ends the program: it is the test's own fault.
 */
#ifndef SLC_FILE_TREE_H
#define SLC_FILE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FILE_TREE_FILES = 64, FILE_TREE_PATH_BYTES = 160 };

struct file_tree_file {
    char path[FILE_TREE_PATH_BYTES]; /* below the folder; a folder ends in a slash */
    uint64_t hash;                   /* 0 for a folder */
};

struct file_tree {
    size_t count;
    struct file_tree_file files[FILE_TREE_FILES];
};

/* Reads what is in `folder`; files whose names end in one of `unread`
 * (NULL behind them) count as empty. */
void file_tree_read(struct file_tree *tree, const char *folder, const char *const *unread);

/* The file, or NULL. */
const struct file_tree_file *file_tree_find(const struct file_tree *tree, const char *path);

/* Whether the file is in both trees, and the same. */
bool file_tree_agrees(const struct file_tree *tree,
                      const struct file_tree *other,
                      const char *path);

/* The first path of `other` that `tree` does not have, or has with other bytes; or NULL. */
const char *file_tree_missing(const struct file_tree *tree, const struct file_tree *other);

/* The first path that is in one of the trees alone, or differs; NULL where they are equal. */
const char *file_tree_difference(const struct file_tree *tree, const struct file_tree *other);

/* Makes the folder `to` with copies of all that is in `from` (NULL: an empty folder). */
void file_tree_copy(const char *from, const char *to);

/* Removes a folder and all in it; nothing happens where there is none. */
void file_tree_remove(const char *folder);

#endif
