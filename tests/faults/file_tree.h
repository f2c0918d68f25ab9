/* Snapshot of a folder: path and hash of every file and folder, so that a test can detect whether a
 * command changed nothing, or produced the files of another run. Folders are at most three levels
 * deep. I/O errors end the program: they are faults of the test itself. */
#ifndef SLC_FILE_TREE_H
#define SLC_FILE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FILE_TREE_FILES = 64, FILE_TREE_PATH_BYTES = 160 };

struct file_tree_file {
    char path[FILE_TREE_PATH_BYTES]; /* relative to the folder; a folder ends with a slash */
    uint64_t hash;                   /* 0 for a folder */
};

struct file_tree {
    size_t count;
    struct file_tree_file files[FILE_TREE_FILES];
};

/* Reads the contents of `folder`; files whose names end with one of `unread` (NULL-terminated)
 * count as empty. */
void file_tree_read(struct file_tree *tree, const char *folder, const char *const *unread);

/* The file, or NULL. */
const struct file_tree_file *file_tree_find(const struct file_tree *tree, const char *path);

/* Whether the file is in both trees with the same contents. */
bool file_tree_agrees(const struct file_tree *tree,
                      const struct file_tree *other,
                      const char *path);

/* The first path of `other` that `tree` does not have or has with other contents; or NULL. */
const char *file_tree_missing(const struct file_tree *tree, const struct file_tree *other);

/* The first path that is in only one of the trees, or differs; NULL if they are equal. */
const char *file_tree_difference(const struct file_tree *tree, const struct file_tree *other);

/* Creates the folder `to` with copies of all files in `from` (NULL: an empty folder). */
void file_tree_copy(const char *from, const char *to);

/* Removes a folder with its contents; does nothing if it does not exist. */
void file_tree_remove(const char *folder);

#endif
