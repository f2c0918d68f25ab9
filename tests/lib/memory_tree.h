/*
 * Files and folders in memory, and the changes that make one tree of another: what the table of
 * recorded_files.h works on, and of which crash_states.h makes trees that a power cut may leave.
 *
 * A file or folder is a node with a number. Changes name nodes, not paths, so that each can be made
 * or left out whatever became of the others; nodes without a name are there, and out of reach.
 *
 * Running out of memory ends the program. Threads: one at a time in a tree.
 */
#ifndef SLC_MEMORY_TREE_H
#define SLC_MEMORY_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLC_TREE_ROOT = 0 };
#define SLC_TREE_NONE UINT32_MAX

struct slc_tree_entry {
    char *name;
    uint32_t node;
};

struct slc_tree_node {
    char kind;       /* 'f' or 'd' */
    uint32_t parent; /* of a folder */
    uint64_t bytes;
    uint64_t room;
    uint8_t *data;    /* shared by copies of a tree until one of them changes it */
    uint64_t changes; /* stands for the time of the last one */
    struct slc_tree_entry *entries;
    uint32_t entry_count;
};

struct slc_tree {
    struct slc_tree_node *nodes;
    uint32_t count;
};

/* One entry of a folder; two for a rename. */
struct slc_tree_place {
    uint32_t folder;
    char *name; /* NULL: none */
};

enum slc_change_kind {
    SLC_CHANGE_CREATE, /* a file or a folder gets its name */
    SLC_CHANGE_REMOVE,
    SLC_CHANGE_RENAME,
    SLC_CHANGE_EXCHANGE, /* two names, each with what the other stood for */
    SLC_CHANGE_WRITE,
    SLC_CHANGE_RESIZE,
    SLC_CHANGE_SYNC,       /* changes nothing but what a power cut can take */
    SLC_CHANGE_SYNC_FOLDER /* the same */
};

struct slc_change {
    enum slc_change_kind kind;
    char node_kind; /* of CREATE */
    uint32_t node;
    uint32_t other;              /* of EXCHANGE: the node that goes from `to` to `place` */
    struct slc_tree_place place; /* of CREATE, REMOVE; where a RENAME or an EXCHANGE begins */
    struct slc_tree_place to;    /* where it ends */
    uint64_t offset;             /* of WRITE */
    uint64_t bytes;              /* of WRITE and RESIZE */
    uint8_t *data;               /* of WRITE */
};

void slc_tree_create(struct slc_tree *tree);
void slc_tree_destroy(struct slc_tree *tree);
void slc_tree_copy(const struct slc_tree *from, struct slc_tree *to);

/* A change that owns copies of what it points to; slc_change_release. */
struct slc_change slc_change_copy(const struct slc_change *change);
void slc_change_release(struct slc_change *change);

/*
 * Makes the change. Of CREATE: change->node is the next number, or of a node that slc_tree_add
 * made. An entry that is in the way is replaced, one that should be there and is not does not
 * matter: what came before may have been left out.
 */
void slc_tree_apply(struct slc_tree *tree, const struct slc_change *change);
/* A node without a name: what a CREATE that is left out leaves. Its number is the next. */
uint32_t slc_tree_add(struct slc_tree *tree, char kind);
/* The bytes alone: those of a WRITE from `from` to before `to`, counted in the write. */
void slc_tree_write_part(struct slc_tree *tree,
                         const struct slc_change *change,
                         uint64_t from,
                         uint64_t to);
/* Zeros behind the end where the file is shorter. */
void slc_tree_grow(struct slc_tree *tree, uint32_t node, uint64_t bytes);

/* The node of a name in a folder, or SLC_TREE_NONE. */
uint32_t slc_tree_find(const struct slc_tree *tree, uint32_t folder, const char *name);

/*
 * Follows a path from the root (a relative one, too; "." and ".." are understood) to its last name:
 * *folder is where that lies, *name the name (slc_free'd by the caller with free), or "" for the
 * root. 0, -ENOENT or -ENOTDIR where a folder on the way is none.
 */
int slc_tree_walk(const struct slc_tree *tree, const char *path, uint32_t *folder, char **name);
/* The node at a path, or SLC_TREE_NONE with *error. */
uint32_t slc_tree_look(const struct slc_tree *tree, const char *path, int *error);

/* A hash of all that can be reached: names, kinds and bytes; of files whose names end
 * with `unread` (NULL: none) that they are there. */
uint64_t slc_tree_hash(const struct slc_tree *tree, const char *unread);
/* Prints what is there, a line each behind "# ". */
void slc_tree_print(const struct slc_tree *tree);

/* Memory that ends the program when there is none; free(). */
void *slc_tree_memory(void *memory, uint64_t bytes);
char *slc_tree_text(const char *text);

#endif
