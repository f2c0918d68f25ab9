/* Snapshots of folders. They are walked by nftw, whose visitors have no context argument: one
 * walk at a time. */
#include "file_tree.h"

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WALK_DESCRIPTORS = 8, FILE_BYTES_MAX = 8 << 20, PATH_BYTES = 512 };

static struct {
    struct file_tree *tree;
    const char *from; /* the folder being walked */
    const char *to;
    const char *const *unread;
} walk;

static _Noreturn void fail(const char *what, const char *path)
{
    printf("Bail out! %s %s: %s\n", what, path, strerror(errno));
    exit(EXIT_FAILURE);
}

/* The contents of a file, valid until the next call. */
static char *load(const char *path, size_t *bytes)
{
    static char data[FILE_BYTES_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 0;

    *bytes = 0;
    if (fd < 0) {
        fail("cannot open", path);
    }
    do {
        got = read(fd, data + *bytes, sizeof data - *bytes);
        *bytes += got > 0 ? (size_t)got : 0;
    } while (got > 0 && *bytes < sizeof data);
    if (got < 0 || *bytes == sizeof data) {
        fail("cannot read all of", path);
    }
    (void)close(fd);
    return data;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const struct file_tree_file *)a)->path,
                  ((const struct file_tree_file *)b)->path);
}

static bool is_unread(const char *name)
{
    for (const char *const *unread = walk.unread; *unread != NULL; unread++) {
        const size_t length = strlen(*unread);

        if (strlen(name) >= length && strcmp(name + strlen(name) - length, *unread) == 0) {
            return true;
        }
    }
    return false;
}

/* Masks what differs between copies of a store: the identity of stripes, which is part of their
 * names, and the folder that owns them (docs/FORMAT.md, section 15). */
static void mask_stripes(char *path, char *data, size_t bytes)
{
    enum { PAGE = 4096, AT_IDENTITY = 24, IDENTITY_BYTES = 8, TAIL_BYTES = 32, DIGITS = 16 };
    char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;

    if (strlen(name) > DIGITS && strstr(name, ".stripe") != NULL && name[DIGITS] == '-') {
        memset(name, 'x', DIGITS);
    }
    if (bytes >= PAGE && memcmp(data, "\x89SLCST", 6) == 0) {
        memset(data + AT_IDENTITY, 0, IDENTITY_BYTES);
        memset(data + PAGE - TAIL_BYTES, 0, TAIL_BYTES);
    }
}

static int note_file(const char *path, const struct stat *stat, int kind, struct FTW *place)
{
    struct file_tree_file *file = &walk.tree->files[walk.tree->count];

    (void)stat;
    if (place->level == 0) {
        return 0;
    }
    if (walk.tree->count == FILE_TREE_FILES ||
        snprintf(file->path, sizeof file->path, "%s%s", path + strlen(walk.from) + 1,
                 kind == FTW_D ? "/" : "") >= (int)sizeof file->path) {
        errno = EOVERFLOW;
        fail("too much in", path);
    }
    file->hash = 0;
    if (kind == FTW_F && !is_unread(path + place->base)) {
        size_t bytes;
        char *data = load(path, &bytes);

        mask_stripes(file->path, data, bytes);
        file->hash = slc_hash64(data, bytes);
    }
    walk.tree->count++;
    return 0;
}

void file_tree_read(struct file_tree *tree, const char *folder, const char *const *unread)
{
    tree->count = 0;
    walk.tree = tree;
    walk.from = folder;
    walk.unread = unread;
    if (nftw(folder, note_file, WALK_DESCRIPTORS, FTW_PHYS) != 0) {
        fail("cannot walk", folder);
    }
    qsort(tree->files, tree->count, sizeof tree->files[0], compare_paths);
}

const struct file_tree_file *file_tree_find(const struct file_tree *tree, const char *path)
{
    for (size_t i = 0; i < tree->count; i++) {
        if (strcmp(tree->files[i].path, path) == 0) {
            return &tree->files[i];
        }
    }
    return NULL;
}

bool file_tree_agrees(const struct file_tree *tree, const struct file_tree *other, const char *path)
{
    const struct file_tree_file *a = file_tree_find(tree, path);
    const struct file_tree_file *b = file_tree_find(other, path);

    return a != NULL && b != NULL && a->hash == b->hash;
}

const char *file_tree_missing(const struct file_tree *tree, const struct file_tree *other)
{
    for (size_t i = 0; i < other->count; i++) {
        if (!file_tree_agrees(tree, other, other->files[i].path)) {
            return other->files[i].path;
        }
    }
    return NULL;
}

const char *file_tree_difference(const struct file_tree *tree, const struct file_tree *other)
{
    const char *path = file_tree_missing(tree, other);

    return path != NULL ? path : file_tree_missing(other, tree);
}

static int copy_file(const char *path, const struct stat *stat, int kind, struct FTW *place)
{
    char target[PATH_BYTES];

    (void)stat;
    (void)place;
    if (snprintf(target, sizeof target, "%s%s", walk.to, path + strlen(walk.from)) >=
        (int)sizeof target) {
        errno = ENAMETOOLONG;
        fail("cannot copy to", walk.to);
    }
    if (kind == FTW_D) {
        if (mkdir(target, 0700) != 0) {
            fail("cannot make", target);
        }
    } else {
        size_t bytes;
        const char *data = load(path, &bytes);
        int fd = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes || close(fd) != 0) {
            fail("cannot copy to", target);
        }
    }
    return 0;
}

void file_tree_copy(const char *from, const char *to)
{
    walk.from = from;
    walk.to = to;
    if (from == NULL ? mkdir(to, 0700) != 0
                     : nftw(from, copy_file, WALK_DESCRIPTORS, FTW_PHYS) != 0) {
        fail("cannot make", to);
    }
}

static int remove_entry(const char *path, const struct stat *stat, int kind, struct FTW *place)
{
    (void)stat;
    (void)kind;
    (void)place;
    return remove(path);
}

void file_tree_remove(const char *folder)
{
    if (nftw(folder, remove_entry, WALK_DESCRIPTORS, FTW_DEPTH | FTW_PHYS) != 0 &&
        errno != ENOENT) {
        fail("cannot remove", folder);
    }
}
