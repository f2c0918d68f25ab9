/* Files and folders in memory, and changes that turn one tree into another. The table of
 * recorded_files.h works on them, and crash_states.h builds trees from them that a power cut may
 * leave.
 *
 * A file or folder is a node with a number. Changes name nodes, not paths, so that each can be
 * applied or omitted independently of the others; nodes without a name exist but cannot be reached.
 *
 * The program ends if memory runs out. Threads: one at a time per tree. */
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
    uint32_t parent; /* folders only: parent folder */
    uint64_t bytes;
    uint64_t room;
    uint8_t *data;    /* shared by copies of a tree until one of them changes the file */
    uint64_t changes; /* number of changes; serves as modification time */
    struct slc_tree_entry *entries;
    uint32_t entry_count;
};

struct slc_tree {
    struct slc_tree_node *nodes;
    uint32_t count;
};

/* An entry of a folder; a rename has two. */
struct slc_tree_place {
    uint32_t folder;
    char *name; /* NULL: none */
};

enum slc_change_kind {
    SLC_CHANGE_CREATE, /* gives a name to a file or folder */
    SLC_CHANGE_REMOVE,
    SLC_CHANGE_RENAME,
    SLC_CHANGE_EXCHANGE, /* exchanges two names */
    SLC_CHANGE_WRITE,
    SLC_CHANGE_RESIZE,
    SLC_CHANGE_SYNC,       /* changes nothing, but limits what a power cut can lose */
    SLC_CHANGE_SYNC_FOLDER /* the same for the names in a folder */
};

struct slc_change {
    enum slc_change_kind kind;
    char node_kind; /* for CREATE: 'f' or 'd' */
    uint32_t node;
    uint32_t other;              /* for EXCHANGE: the node that moves from `to` to `place` */
    struct slc_tree_place place; /* for CREATE and REMOVE; source of RENAME and EXCHANGE */
    struct slc_tree_place to;    /* destination of RENAME and EXCHANGE */
    uint64_t offset;             /* of WRITE */
    uint64_t bytes;              /* for WRITE and RESIZE */
    uint8_t *data;               /* of WRITE */
};

void slc_tree_create(struct slc_tree *tree);
void slc_tree_destroy(struct slc_tree *tree);
void slc_tree_copy(const struct slc_tree *from, struct slc_tree *to);

/* A copy of the change with its own copies of the data; release it with slc_change_release. */
struct slc_change slc_change_copy(const struct slc_change *change);
void slc_change_release(struct slc_change *change);

/* Applies the change. For CREATE, change->node is the next number, or the number of a node made by
 * slc_tree_add. An existing entry is replaced and a missing entry is ignored, because earlier
 * changes may have been omitted. */
void slc_tree_apply(struct slc_tree *tree, const struct slc_change *change);
/* Adds a node without a name, for a CREATE that is omitted. It gets the next number. */
uint32_t slc_tree_add(struct slc_tree *tree, char kind);
/* Applies only the bytes [from, to) of a WRITE, as offsets into the write. */
void slc_tree_write_part(struct slc_tree *tree,
                         const struct slc_change *change,
                         uint64_t from,
                         uint64_t to);
/* Extends a shorter file with zeros. */
void slc_tree_grow(struct slc_tree *tree, uint32_t node, uint64_t bytes);

/* The node of a name in a folder, or SLC_TREE_NONE. */
uint32_t slc_tree_find(const struct slc_tree *tree, uint32_t folder, const char *name);

/* Follows a path from `start` (absolute paths and others from SLC_TREE_ROOT; "." and ".." are
 * supported) to its last name:
 * *folder is the parent folder, *name the name (allocated; the caller releases it with free), or ""
 * for the root. Returns 0, -ENOENT, or -ENOTDIR if a component is not a folder. */
int slc_tree_walk(
    const struct slc_tree *tree, uint32_t start, const char *path, uint32_t *folder, char **name);
/* The node at a path, or SLC_TREE_NONE with *error set. */
uint32_t slc_tree_look(const struct slc_tree *tree, const char *path, int *error);

/* A hash of everything reachable: names, kinds and bytes. Files whose names end with `unread`
 * (NULL: none) count only by their name. */
uint64_t slc_tree_hash(const struct slc_tree *tree, const char *unread);
/* Prints the tree, one line per node with the prefix "# ". */
void slc_tree_print(const struct slc_tree *tree);

/* Reallocates memory and ends the program on failure; release with free(). */
void *slc_tree_memory(void *memory, uint64_t bytes);
char *slc_tree_text(const char *text);

#endif
