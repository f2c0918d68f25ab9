/* File trees in memory. Folders are short, so names are searched linearly. Copies of a tree share
 * the bytes and hashes of files, which rarely change. */
#include "memory_tree.h"

#include "base/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *slc_tree_memory(void *memory, uint64_t bytes)
{
    void *taken = realloc(memory, bytes > 0 ? (size_t)bytes : 1);

    if (taken == NULL) {
        (void)fprintf(stderr, "no memory for a file system of a test\n");
        exit(99);
    }
    return taken;
}

/* Header in front of the bytes of a file. */
struct shared {
    uint64_t users;
    uint64_t hash; /* hash of the bytes; 0: not known */
};

static struct shared *shared_of(uint8_t *data)
{
    return (struct shared *)(void *)(data - sizeof(struct shared));
}

static void let_go(struct slc_tree_node *node)
{
    if (node->data != NULL && --shared_of(node->data)->users == 0) {
        free(shared_of(node->data));
    }
    node->data = NULL;
}

/* Gives the node a private copy of its bytes, with capacity `room`, before a change. */
static void make_own(struct slc_tree_node *node, uint64_t room)
{
    if (node->data != NULL && shared_of(node->data)->users == 1 && room <= node->room) {
        shared_of(node->data)->hash = 0;
    } else {
        uint8_t *data = slc_tree_memory(NULL, sizeof(struct shared) + room);

        data += sizeof(struct shared);
        *shared_of(data) = (struct shared){.users = 1};
        if (node->bytes > 0) {
            memcpy(data, node->data, node->bytes);
        }
        let_go(node);
        node->data = data;
        node->room = room;
    }
}

char *slc_tree_text(const char *text)
{
    const size_t bytes = strlen(text) + 1;

    return memcpy(slc_tree_memory(NULL, bytes), text, bytes);
}

uint32_t slc_tree_add(struct slc_tree *tree, char kind)
{
    /* Doubles the capacity at powers of two, so that appending takes amortized constant time. */
    if ((tree->count & (tree->count - 1)) == 0) {
        const uint64_t room = tree->count == 0 ? 1 : 2 * (uint64_t)tree->count;

        tree->nodes = slc_tree_memory(tree->nodes, room * sizeof *tree->nodes);
    }
    tree->nodes[tree->count] = (struct slc_tree_node){.kind = kind};
    return tree->count++;
}

void slc_tree_create(struct slc_tree *tree)
{
    *tree = (struct slc_tree){.nodes = NULL};
    (void)slc_tree_add(tree, 'd');
}

void slc_tree_destroy(struct slc_tree *tree)
{
    for (uint32_t n = 0; n < tree->count; n++) {
        for (uint32_t e = 0; e < tree->nodes[n].entry_count; e++) {
            free(tree->nodes[n].entries[e].name);
        }
        free(tree->nodes[n].entries);
        let_go(&tree->nodes[n]);
    }
    free(tree->nodes);
    *tree = (struct slc_tree){.nodes = NULL};
}

void slc_tree_copy(const struct slc_tree *from, struct slc_tree *to)
{
    *to = (struct slc_tree){.nodes = NULL};
    for (uint32_t n = 0; n < from->count; n++) {
        const struct slc_tree_node *node = &from->nodes[n];
        const uint32_t added = slc_tree_add(to, node->kind);
        struct slc_tree_node *copy = &to->nodes[added];

        *copy = *node;
        if (node->data != NULL) {
            shared_of(node->data)->users++;
        }
        copy->entries = slc_tree_memory(NULL, node->entry_count * sizeof *copy->entries);
        for (uint32_t e = 0; e < node->entry_count; e++) {
            copy->entries[e] = (struct slc_tree_entry){slc_tree_text(node->entries[e].name),
                                                       node->entries[e].node};
        }
    }
}

struct slc_change slc_change_copy(const struct slc_change *change)
{
    struct slc_change copy = *change;

    copy.place.name = change->place.name == NULL ? NULL : slc_tree_text(change->place.name);
    copy.to.name = change->to.name == NULL ? NULL : slc_tree_text(change->to.name);
    if (change->kind == SLC_CHANGE_WRITE) {
        copy.data = memcpy(slc_tree_memory(NULL, change->bytes), change->data, change->bytes);
    }
    return copy;
}

void slc_change_release(struct slc_change *change)
{
    free(change->place.name);
    free(change->to.name);
    free(change->data);
    *change = (struct slc_change){.kind = change->kind};
}

uint32_t slc_tree_find(const struct slc_tree *tree, uint32_t folder, const char *name)
{
    const struct slc_tree_node *node = &tree->nodes[folder];

    for (uint32_t e = 0; e < node->entry_count; e++) {
        if (strcmp(node->entries[e].name, name) == 0) {
            return node->entries[e].node;
        }
    }
    return SLC_TREE_NONE;
}

static void take_out(struct slc_tree *tree, const struct slc_tree_place *place)
{
    struct slc_tree_node *folder = &tree->nodes[place->folder];

    for (uint32_t e = 0; e < folder->entry_count; e++) {
        if (strcmp(folder->entries[e].name, place->name) == 0) {
            free(folder->entries[e].name);
            folder->entries[e] = folder->entries[--folder->entry_count];
            return;
        }
    }
}

static void put_in(struct slc_tree *tree, const struct slc_tree_place *place, uint32_t node)
{
    struct slc_tree_node *folder = &tree->nodes[place->folder];

    take_out(tree, place);
    folder->entries = slc_tree_memory(folder->entries, (folder->entry_count + UINT64_C(1)) *
                                                           sizeof *folder->entries);
    folder->entries[folder->entry_count++] =
        (struct slc_tree_entry){slc_tree_text(place->name), node};
    tree->nodes[node].parent = place->folder;
}

static void resize(struct slc_tree *tree, uint32_t at, uint64_t bytes)
{
    struct slc_tree_node *node = &tree->nodes[at];

    make_own(node, bytes > node->room && bytes < 2 * node->bytes ? 2 * node->bytes
                   : bytes > node->bytes                         ? bytes
                                                                 : node->bytes);
    if (bytes > node->bytes) {
        memset(node->data + node->bytes, 0, bytes - node->bytes);
    }
    node->bytes = bytes;
    node->changes++;
}

void slc_tree_grow(struct slc_tree *tree, uint32_t node, uint64_t bytes)
{
    if (bytes > tree->nodes[node].bytes) {
        resize(tree, node, bytes);
    }
}

void slc_tree_write_part(struct slc_tree *tree,
                         const struct slc_change *change,
                         uint64_t from,
                         uint64_t to)
{
    if (to > from) {
        struct slc_tree_node *node = &tree->nodes[change->node];

        slc_tree_grow(tree, change->node, change->offset + to);
        make_own(node, node->bytes);
        memcpy(node->data + change->offset + from, change->data + from, to - from);
        node->changes++;
    }
}

void slc_tree_apply(struct slc_tree *tree, const struct slc_change *change)
{
    switch (change->kind) {
    case SLC_CHANGE_CREATE:
        if (change->node == tree->count) {
            (void)slc_tree_add(tree, change->node_kind);
        }
        put_in(tree, &change->place, change->node);
        break;
    case SLC_CHANGE_REMOVE:
        take_out(tree, &change->place);
        break;
    case SLC_CHANGE_RENAME:
        take_out(tree, &change->place);
        put_in(tree, &change->to, change->node);
        break;
    case SLC_CHANGE_EXCHANGE:
        put_in(tree, &change->place, change->other);
        put_in(tree, &change->to, change->node);
        break;
    case SLC_CHANGE_WRITE:
        slc_tree_write_part(tree, change, 0, change->bytes);
        break;
    case SLC_CHANGE_RESIZE:
        resize(tree, change->node, change->bytes);
        break;
    case SLC_CHANGE_SYNC:
    case SLC_CHANGE_SYNC_FOLDER:
        break;
    }
}

/* The folder named by a component of the path; SLC_TREE_NONE with *error if it is not a folder. */
static uint32_t
step(const struct slc_tree *tree, uint32_t folder, const char *name, size_t length, int *error)
{
    char *text;
    uint32_t next;

    if (length == 0 || (length == 1 && name[0] == '.')) {
        return folder;
    }
    if (length == 2 && strncmp(name, "..", 2) == 0) {
        return tree->nodes[folder].parent;
    }
    text = slc_tree_memory(NULL, length + 1);
    memcpy(text, name, length);
    text[length] = '\0';
    next = slc_tree_find(tree, folder, text);
    free(text);
    if (next == SLC_TREE_NONE || tree->nodes[next].kind != 'd') {
        *error = next == SLC_TREE_NONE ? -ENOENT : -ENOTDIR;
        return SLC_TREE_NONE;
    }
    return next;
}

int slc_tree_walk(
    const struct slc_tree *tree, uint32_t start, const char *path, uint32_t *folder, char **name)
{
    uint32_t at = path[0] == '/' ? SLC_TREE_ROOT : start;
    int error = 0;

    for (;;) {
        size_t length;
        const char *rest;

        path += strspn(path, "/");
        length = strcspn(path, "/");
        rest = path + length + strspn(path + length, "/");
        if (*rest == '\0' && strncmp(path, ".", length) != 0 && strncmp(path, "..", length) != 0) {
            *folder = at;
            *name = slc_tree_memory(NULL, length + 1);
            memcpy(*name, path, length);
            (*name)[length] = '\0';
            return 0;
        }
        at = step(tree, at, path, length, &error);
        if (at == SLC_TREE_NONE) {
            return error;
        }
        if (*rest == '\0') { /* a folder reached by "." or ".." has no name */
            *folder = at;
            *name = slc_tree_text("");
            return 0;
        }
        path = rest;
    }
}

uint32_t slc_tree_look(const struct slc_tree *tree, const char *path, int *error)
{
    uint32_t folder, node;
    char *name;

    *error = slc_tree_walk(tree, SLC_TREE_ROOT, path, &folder, &name);
    if (*error != 0) {
        return SLC_TREE_NONE;
    }
    node = name[0] == '\0' ? folder : slc_tree_find(tree, folder, name);
    free(name);
    *error = node == SLC_TREE_NONE ? -ENOENT : 0;
    return node;
}

static uint64_t hash_bytes(const struct slc_tree_node *node)
{
    if (node->bytes == 0) {
        return 0;
    }
    if (shared_of(node->data)->hash == 0) {
        shared_of(node->data)->hash = slc_hash64(node->data, node->bytes);
    }
    return shared_of(node->data)->hash;
}

/* Returns false if `end` is NULL. */
static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name), tail = end != NULL ? strlen(end) : length + 1;

    return tail <= length && strcmp(name + length - tail, end) == 0;
}

/* Sums hashes, so that the order of entries does not matter. */
static uint64_t hash_node(const struct slc_tree *tree,
                          uint32_t at,
                          uint64_t path_hash,
                          bool unread,
                          const char *unread_name)
{
    const struct slc_tree_node *node = &tree->nodes[at];
    const uint64_t parts[] = {path_hash, (uint64_t)node->kind, unread ? 0 : node->bytes,
                              unread ? 0 : hash_bytes(node)};
    uint64_t sum = slc_hash64(parts, sizeof parts);

    for (uint32_t e = 0; e < node->entry_count; e++) {
        const char *name = node->entries[e].name;
        const uint64_t below[] = {path_hash, slc_hash64(name, strlen(name))};

        sum += hash_node(tree, node->entries[e].node, slc_hash64(below, sizeof below),
                         ends_with(name, unread_name), unread_name);
    }
    return sum;
}

uint64_t slc_tree_hash(const struct slc_tree *tree, const char *unread)
{
    return hash_node(tree, SLC_TREE_ROOT, 0, false, unread);
}

static void print_node(const struct slc_tree *tree, uint32_t at, unsigned depth)
{
    const struct slc_tree_node *node = &tree->nodes[at];

    for (uint32_t e = 0; e < node->entry_count; e++) {
        const struct slc_tree_node *below = &tree->nodes[node->entries[e].node];

        printf("#   %*s%s%s %" PRIu64 "\n", (int)(2 * depth), "", node->entries[e].name,
               below->kind == 'd' ? "/" : "", below->bytes);
        print_node(tree, node->entries[e].node, depth + 1);
    }
}

void slc_tree_print(const struct slc_tree *tree)
{
    print_node(tree, SLC_TREE_ROOT, 0);
}
