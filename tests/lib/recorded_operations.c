/* The operations of the recorded disk: they behave like a file system and return errno values of
 * the kernel. */
#include "recorded_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Descriptors start far above those of the system, so that a call that bypasses the table fails. */
enum { FIRST_FD = 1 << 24, PAGE = 4096 };

/* Acquires the lock for an operation on a descriptor; returns NULL, without the lock, if it is
 * not open. */
static struct slc_recorded_descriptor *begin(struct slc_recorded *disk, int fd)
{
    const uint32_t at = (uint32_t)fd - FIRST_FD;

    pthread_mutex_lock(&disk->lock);
    if (fd >= FIRST_FD && at < disk->descriptor_count && disk->descriptors[at].open) {
        return &disk->descriptors[at];
    }
    pthread_mutex_unlock(&disk->lock);
    return NULL;
}

static int end(struct slc_recorded *disk, int result)
{
    pthread_mutex_unlock(&disk->lock);
    return result;
}

static int open_descriptor(struct slc_recorded *disk, uint32_t node)
{
    uint32_t at = 0;

    while (at < disk->descriptor_count && disk->descriptors[at].open) {
        at++;
    }
    if (at == disk->descriptor_count) {
        disk->descriptors = slc_tree_memory(disk->descriptors,
                                            (++disk->descriptor_count) * sizeof *disk->descriptors);
    }
    disk->descriptors[at] = (struct slc_recorded_descriptor){.open = true, .node = node};
    return (int)(FIRST_FD + at);
}

/* Opens the file at a place, or creates it there. */
static int open_at(struct slc_recorded *disk, uint32_t folder, char *name, int flags)
{
    uint32_t node = name[0] == '\0' ? folder : slc_tree_find(&disk->tree, folder, name);
    const bool writes = (flags & O_ACCMODE) != O_RDONLY;

    if ((flags & O_DIRECT) != 0) {
        return -EINVAL;
    }
    if (node == SLC_TREE_NONE && (flags & O_CREAT) == 0) {
        return -ENOENT;
    }
    if (node == SLC_TREE_NONE) {
        node = disk->tree.count;
        slc_recorded_change(disk, &(struct slc_change){.kind = SLC_CHANGE_CREATE,
                                                       .node_kind = 'f',
                                                       .node = node,
                                                       .place = {folder, name}});
        return open_descriptor(disk, node);
    }
    if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) {
        return -EEXIST;
    }
    if (disk->tree.nodes[node].kind == 'd' && writes) {
        return -EISDIR;
    }
    if (disk->tree.nodes[node].kind != 'd' && (flags & O_DIRECTORY) != 0) {
        return -ENOTDIR;
    }
    if ((flags & O_TRUNC) != 0 && disk->tree.nodes[node].bytes > 0) {
        slc_recorded_change(disk, &(struct slc_change){.kind = SLC_CHANGE_RESIZE, .node = node});
    }
    return open_descriptor(disk, node);
}

static int recorded_open(void *self, const char *path, int flags, mode_t mode)
{
    struct slc_recorded *disk = self;
    uint32_t folder;
    char *name;
    int result;

    (void)mode;
    pthread_mutex_lock(&disk->lock);
    result = slc_tree_walk(&disk->tree, SLC_TREE_ROOT, path, &folder, &name);
    if (result == 0) {
        result = open_at(disk, folder, name, flags);
        free(name);
    }
    return end(disk, result);
}

static int recorded_open_at(void *self, int folder_fd, const char *path, int flags)
{
    struct slc_recorded *disk = self;
    struct slc_recorded_descriptor *descriptor = begin(disk, folder_fd);
    uint32_t folder;
    char *name;

    if (descriptor == NULL) {
        return -EBADF;
    }
    int result = slc_tree_walk(&disk->tree, descriptor->node, path, &folder, &name);
    if (result == 0) {
        result = open_at(disk, folder, name, flags);
        free(name);
    }
    return end(disk, result);
}

/* The two descriptors have separate positions, so that reads of one do not move the other. */
static int recorded_open_again(void *self, int fd, int flags)
{
    struct slc_recorded *disk = self;
    struct slc_recorded_descriptor *descriptor = begin(disk, fd);

    if (descriptor == NULL) {
        return -EBADF;
    }
    return end(disk, (flags & O_DIRECT) != 0 ? -EINVAL : open_descriptor(disk, descriptor->node));
}

static int recorded_close(void *self, int fd)
{
    struct slc_recorded_descriptor *descriptor = begin(self, fd);

    if (descriptor == NULL) {
        return -EBADF;
    }
    descriptor->open = false;
    return end(self, 0);
}

static int64_t
read_some(struct slc_recorded *disk, uint32_t at, void *data, uint64_t bytes, uint64_t offset)
{
    const struct slc_tree_node *node = &disk->tree.nodes[at];

    if (node->kind != 'f') {
        return -EISDIR;
    }
    if (offset >= node->bytes || bytes == 0) {
        return 0;
    }
    bytes = bytes < node->bytes - offset ? bytes : node->bytes - offset;
    memcpy(data, node->data + offset, bytes);
    return (int64_t)bytes;
}

/* Implements both kinds of reads; `offset` is SLC_NOWHERE for a sequential read. */
static int64_t recorded_read_at(void *self, int fd, void *data, uint64_t bytes, uint64_t offset)
{
    struct slc_recorded *disk = self;
    struct slc_recorded_descriptor *descriptor = begin(disk, fd);
    int64_t result;

    if (descriptor == NULL) {
        return -EBADF;
    }
    result = read_some(disk, descriptor->node, data, bytes,
                       offset == SLC_NOWHERE ? descriptor->position : offset);
    if (offset == SLC_NOWHERE && result > 0) {
        descriptor->position += (uint64_t)result;
    }
    (void)end(disk, 0);
    return result;
}

static int64_t recorded_read(void *self, int fd, void *data, uint64_t bytes)
{
    return recorded_read_at(self, fd, data, bytes, SLC_NOWHERE);
}

/* Implements both kinds of writes. Copies the data, because it may be in read-only memory. */
static int64_t
recorded_write_at(void *self, int fd, const void *data, uint64_t bytes, uint64_t offset)
{
    struct slc_recorded *disk = self;
    struct slc_recorded_descriptor *descriptor = begin(disk, fd);
    struct slc_change write = {.kind = SLC_CHANGE_WRITE, .bytes = bytes};

    if (descriptor == NULL) {
        return -EBADF;
    }
    if (bytes > 0) {
        write.node = descriptor->node;
        write.offset = offset == SLC_NOWHERE ? descriptor->position : offset;
        write.data = memcpy(slc_tree_memory(NULL, bytes), data, bytes);
        descriptor->position += offset == SLC_NOWHERE ? bytes : 0;
        slc_recorded_change(disk, &write);
        free(write.data);
    }
    (void)end(disk, 0);
    return (int64_t)bytes;
}

static int64_t recorded_write(void *self, int fd, const void *data, uint64_t bytes)
{
    return recorded_write_at(self, fd, data, bytes, SLC_NOWHERE);
}

/* The lock must be held. */
static void sync_node(struct slc_recorded *disk, enum slc_change_kind kind, uint32_t node)
{
    if (!disk->recording) {
        return;
    }
    disk->syncs++;
    if (disk->ignored != UINT64_MAX && disk->ignored != disk->syncs) {
        slc_recorded_change(disk, &(struct slc_change){.kind = kind, .node = node});
    }
}

static int recorded_sync(void *self, int fd)
{
    struct slc_recorded_descriptor *descriptor = begin(self, fd);

    if (descriptor == NULL) {
        return -EBADF;
    }
    sync_node(self, SLC_CHANGE_SYNC, descriptor->node);
    return end(self, 0);
}

static int recorded_sync_folder(void *self, const char *path)
{
    struct slc_recorded *disk = self;
    uint32_t node;
    int result;

    pthread_mutex_lock(&disk->lock);
    node = slc_tree_look(&disk->tree, path, &result);
    if (result == 0 && disk->tree.nodes[node].kind != 'd') {
        result = -ENOTDIR;
    }
    if (result == 0) {
        sync_node(disk, SLC_CHANGE_SYNC_FOLDER, node);
    }
    return end(disk, result);
}

static int recorded_truncate(void *self, int fd, uint64_t bytes)
{
    struct slc_recorded *disk = self;
    struct slc_recorded_descriptor *descriptor = begin(disk, fd);

    if (descriptor == NULL) {
        return -EBADF;
    }
    if (disk->tree.nodes[descriptor->node].bytes != bytes) {
        slc_recorded_change(disk, &(struct slc_change){.kind = SLC_CHANGE_RESIZE,
                                                       .node = descriptor->node,
                                                       .bytes = bytes});
    }
    return end(disk, 0);
}

/* Extends the file with zeros; never fails for lack of space. */
static int recorded_reserve(void *self, int fd, uint64_t bytes)
{
    struct slc_recorded *disk = self;
    struct slc_recorded_descriptor *descriptor = begin(disk, fd);

    if (descriptor == NULL) {
        return -EBADF;
    }
    if (disk->tree.nodes[descriptor->node].bytes < bytes) {
        slc_recorded_change(disk, &(struct slc_change){.kind = SLC_CHANGE_RESIZE,
                                                       .node = descriptor->node,
                                                       .bytes = bytes});
    }
    return end(disk, 0);
}

static void fill_stat(const struct slc_tree *tree, uint32_t node, struct slc_file_stat *stat)
{
    *stat = (struct slc_file_stat){.bytes = tree->nodes[node].bytes,
                                   .inode = node + UINT64_C(1),
                                   .device = 1,
                                   .modified_ns = (int64_t)tree->nodes[node].changes,
                                   .direct_known = true,
                                   .kind = tree->nodes[node].kind};
}

static int recorded_stat_fd(void *self, int fd, struct slc_file_stat *stat)
{
    struct slc_recorded *disk = self;
    struct slc_recorded_descriptor *descriptor = begin(disk, fd);

    if (descriptor == NULL) {
        return -EBADF;
    }
    fill_stat(&disk->tree, descriptor->node, stat);
    return end(disk, 0);
}

static int recorded_stat_path(void *self, const char *path, struct slc_file_stat *stat)
{
    struct slc_recorded *disk = self;
    uint32_t node;
    int result;

    pthread_mutex_lock(&disk->lock);
    node = slc_tree_look(&disk->tree, path, &result);
    if (result == 0) {
        fill_stat(&disk->tree, node, stat);
    }
    return end(disk, result);
}

/* Reports more free bytes than any test needs. */
static int recorded_free_bytes(void *self, const char *path, uint64_t *bytes)
{
    struct slc_recorded *disk = self;
    int result;

    pthread_mutex_lock(&disk->lock);
    (void)slc_tree_look(&disk->tree, path, &result);
    *bytes = INT64_MAX;
    return end(disk, result);
}

/* Renames within the tree. The lock must be held. */
static int
move(struct slc_recorded *disk, const struct slc_tree_place *from, const struct slc_tree_place *to)
{
    const struct slc_tree *tree = &disk->tree;
    const uint32_t node = slc_tree_find(tree, from->folder, from->name);
    const uint32_t there = slc_tree_find(tree, to->folder, to->name);

    if (node == SLC_TREE_NONE) {
        return -ENOENT;
    }
    if (node == there) {
        return 0;
    }
    if (there != SLC_TREE_NONE && tree->nodes[node].kind == 'd') {
        return -EEXIST;
    }
    if (there != SLC_TREE_NONE && tree->nodes[there].kind == 'd') {
        return -EISDIR;
    }
    slc_recorded_change(
        disk,
        &(struct slc_change){.kind = SLC_CHANGE_RENAME, .node = node, .place = *from, .to = *to});
    return 0;
}

/* Exchanges two names. The lock must be held. */
static int
swap(struct slc_recorded *disk, const struct slc_tree_place *a, const struct slc_tree_place *b)
{
    const uint32_t node = slc_tree_find(&disk->tree, a->folder, a->name);
    const uint32_t other = slc_tree_find(&disk->tree, b->folder, b->name);

    if (node == SLC_TREE_NONE || other == SLC_TREE_NONE) {
        return -ENOENT;
    }
    if (node != other) {
        slc_recorded_change(
            disk,
            &(struct slc_change){
                .kind = SLC_CHANGE_EXCHANGE, .node = node, .other = other, .place = *a, .to = *b});
    }
    return 0;
}

/* Applies an operation to the places of two paths. */
static int with_places(struct slc_recorded *disk,
                       const char *from,
                       const char *to,
                       int (*change)(struct slc_recorded *disk,
                                     const struct slc_tree_place *from,
                                     const struct slc_tree_place *to))
{
    struct slc_tree_place places[2] = {{.name = NULL}, {.name = NULL}};
    int result;

    pthread_mutex_lock(&disk->lock);
    result = slc_tree_walk(&disk->tree, SLC_TREE_ROOT, from, &places[0].folder, &places[0].name);
    if (result == 0) {
        result = slc_tree_walk(&disk->tree, SLC_TREE_ROOT, to, &places[1].folder, &places[1].name);
    }
    if (result == 0) {
        result = change(disk, &places[0], &places[1]);
    }
    pthread_mutex_unlock(&disk->lock);
    free(places[0].name);
    free(places[1].name);
    return result;
}

static int recorded_rename(void *self, const char *from, const char *to)
{
    return with_places(self, from, to, move);
}

static int recorded_exchange(void *self, const char *a, const char *b)
{
    return with_places(self, a, b, swap);
}

/* Removes the file or the empty folder (`kind`) at `path`. */
static int remove_name(struct slc_recorded *disk, const char *path, char kind)
{
    struct slc_tree_place place;
    uint32_t node;
    int result;

    pthread_mutex_lock(&disk->lock);
    result = slc_tree_walk(&disk->tree, SLC_TREE_ROOT, path, &place.folder, &place.name);
    if (result == 0) {
        node = slc_tree_find(&disk->tree, place.folder, place.name);
        result = node == SLC_TREE_NONE                    ? -ENOENT
                 : disk->tree.nodes[node].kind != kind    ? (kind == 'f' ? -EISDIR : -ENOTDIR)
                 : disk->tree.nodes[node].entry_count > 0 ? -ENOTEMPTY
                                                          : 0;
        if (result == 0) {
            slc_recorded_change(disk, &(struct slc_change){
                                          .kind = SLC_CHANGE_REMOVE, .node = node, .place = place});
        }
        free(place.name);
    }
    return end(disk, result);
}

static int recorded_unlink(void *self, const char *path)
{
    return remove_name(self, path, 'f');
}

static int recorded_remove_folder(void *self, const char *path)
{
    return remove_name(self, path, 'd');
}

static int recorded_make_folder(void *self, const char *path)
{
    struct slc_recorded *disk = self;
    struct slc_tree_place place;
    int result;

    pthread_mutex_lock(&disk->lock);
    result = slc_tree_walk(&disk->tree, SLC_TREE_ROOT, path, &place.folder, &place.name);
    if (result == 0) {
        if (place.name[0] == '\0' ||
            slc_tree_find(&disk->tree, place.folder, place.name) != SLC_TREE_NONE) {
            result = -EEXIST;
        } else {
            slc_recorded_change(disk, &(struct slc_change){.kind = SLC_CHANGE_CREATE,
                                                           .node_kind = 'd',
                                                           .node = disk->tree.count,
                                                           .place = place});
        }
        free(place.name);
    }
    return end(disk, result);
}

static int recorded_lock(void *self, int fd)
{
    struct slc_recorded *disk = self;
    struct slc_recorded_descriptor *descriptor = begin(disk, fd);
    bool taken = false;

    if (descriptor == NULL) {
        return -EBADF;
    }
    for (uint32_t i = 0; i < disk->descriptor_count; i++) {
        const struct slc_recorded_descriptor *other = &disk->descriptors[i];

        taken = taken || (other != descriptor && other->open && other->locks &&
                          other->node == descriptor->node);
    }
    descriptor->locks = descriptor->locks || !taken;
    return end(disk, taken ? -EWOULDBLOCK : 0);
}

static int recorded_map(void *self, int fd, uint64_t bytes, uint64_t offset, void **address)
{
    struct slc_recorded *disk = self;
    struct slc_recorded_descriptor *descriptor;
    void *memory = NULL;
    int64_t result;

    if (posix_memalign(&memory, PAGE, bytes) != 0) {
        return -ENOMEM;
    }
    memset(memory, 0, bytes);
    descriptor = begin(disk, fd);
    result = descriptor == NULL ? -EBADF : read_some(disk, descriptor->node, memory, bytes, offset);
    if (descriptor != NULL) {
        disk->maps += result >= 0;
        (void)end(disk, 0);
    }
    if (result < 0) {
        free(memory);
        return (int)result;
    }
    *address = memory;
    return 0;
}

static int recorded_unmap(void *self, void *address, uint64_t bytes)
{
    struct slc_recorded *disk = self;

    (void)bytes;
    free(address);
    pthread_mutex_lock(&disk->lock);
    disk->maps--;
    pthread_mutex_unlock(&disk->lock);
    return 0;
}

static int recorded_advise(void *self, void *address, uint64_t bytes, int advice)
{
    (void)self;
    (void)address;
    (void)bytes;
    (void)advice;
    return 0;
}

static int recorded_advise_file(void *self, int fd, uint64_t offset, uint64_t bytes, int advice)
{
    (void)self;
    (void)fd;
    (void)offset;
    (void)bytes;
    (void)advice;
    return 0;
}

/* Copies the names, because the caller may change the folder meanwhile. */
static int recorded_list_folder(void *self,
                                const char *path,
                                int (*entry)(void *context, const char *name, char kind),
                                void *context)
{
    struct slc_recorded *disk = self;
    struct slc_tree_entry *names = NULL;
    char *kinds = NULL;
    uint32_t count = 0, node;
    int result;

    pthread_mutex_lock(&disk->lock);
    node = slc_tree_look(&disk->tree, path, &result);
    if (result == 0 && disk->tree.nodes[node].kind != 'd') {
        result = -ENOTDIR;
    }
    if (result == 0) {
        count = disk->tree.nodes[node].entry_count;
        names = slc_tree_memory(NULL, count * sizeof *names);
        kinds = slc_tree_memory(NULL, count);
        for (uint32_t i = 0; i < count; i++) {
            const struct slc_tree_entry *at = &disk->tree.nodes[node].entries[i];

            names[i] = (struct slc_tree_entry){slc_tree_text(at->name), at->node};
            kinds[i] = disk->tree.nodes[at->node].kind;
        }
    }
    pthread_mutex_unlock(&disk->lock);
    for (uint32_t i = 0; i < count; i++) {
        result = result == 0 ? entry(context, names[i].name, kinds[i]) : result;
        free(names[i].name);
    }
    free(names);
    free(kinds);
    return result;
}

const struct slc_files slc_recorded_operations = {
    .open = recorded_open,
    .open_at = recorded_open_at,
    .open_again = recorded_open_again,
    .close = recorded_close,
    .read_at = recorded_read_at,
    .read = recorded_read,
    .write_at = recorded_write_at,
    .write = recorded_write,
    .sync = recorded_sync,
    .sync_folder = recorded_sync_folder,
    .truncate = recorded_truncate,
    .reserve = recorded_reserve,
    .stat_fd = recorded_stat_fd,
    .stat_path = recorded_stat_path,
    .free_bytes = recorded_free_bytes,
    .rename = recorded_rename,
    .exchange = recorded_exchange,
    .unlink = recorded_unlink,
    .make_folder = recorded_make_folder,
    .lock = recorded_lock,
    .remove_folder = recorded_remove_folder,
    .map = recorded_map,
    .unmap = recorded_unmap,
    .advise = recorded_advise,
    .advise_file = recorded_advise_file,
    .list_folder = recorded_list_folder,
};
