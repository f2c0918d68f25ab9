/* File operations that fail on demand. Every operation first asks `strike` for its fate. */
#include "faulty_files.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* Counts an operation and returns its fate. */
static enum slc_faulty_action strike(struct slc_faulty *faulty, enum slc_faulty_kind kind)
{
    uint64_t of_kind = atomic_fetch_add(&faulty->seen[kind], 1) + 1;
    uint64_t of_any = atomic_fetch_add(&faulty->seen[SLC_FAULTY_ANY], 1) + 1;
    uint64_t number = faulty->kind == SLC_FAULTY_ANY ? of_any : of_kind;

    if (faulty->k == 0 || (faulty->kind != kind && faulty->kind != SLC_FAULTY_ANY)) {
        return SLC_FAULTY_NOTHING;
    }
    if (number == faulty->k || (faulty->from_then && number > faulty->k)) {
        atomic_fetch_add(&faulty->hits, 1);
        if (faulty->action != SLC_FAULTY_CALL) {
            return faulty->action;
        }
        faulty->call();
    }
    return SLC_FAULTY_NOTHING;
}

/* Returns 0 or a negated errno, for operations that can only succeed or fail. */
static int strike_plain(struct slc_faulty *faulty, enum slc_faulty_kind kind)
{
    return strike(faulty, kind) == SLC_FAULTY_ERRNO ? -faulty->error : 0;
}

static void note_transfer(struct slc_faulty *faulty, uint64_t bytes)
{
    uint64_t largest = atomic_load(&faulty->max_transfer);

    while (bytes > largest &&
           !atomic_compare_exchange_weak(&faulty->max_transfer, &largest, bytes)) {
    }
}

static int faulty_open(void *self, const char *path, int flags, mode_t mode)
{
    struct slc_faulty *faulty = self;
    int fd = strike_plain(faulty, SLC_FAULTY_OPEN);

    if (fd == 0) {
        fd = faulty->below->open(faulty->below->self, path, flags, mode);
        if (fd >= 0) {
            atomic_fetch_add(&faulty->open_files, 1);
        }
    }
    return fd;
}

static int faulty_open_at(void *self, int folder, const char *path, int flags)
{
    struct slc_faulty *faulty = self;
    int fd = strike_plain(faulty, SLC_FAULTY_OPEN);

    if (fd == 0) {
        fd = faulty->below->open_at(faulty->below->self, folder, path, flags);
        atomic_fetch_add(&faulty->open_files, fd >= 0);
    }
    return fd;
}

static int faulty_open_again(void *self, int file, int flags)
{
    struct slc_faulty *faulty = self;
    int fd = strike_plain(faulty, SLC_FAULTY_OPEN);

    if (fd == 0) {
        fd = faulty->below->open_again(faulty->below->self, file, flags);
        atomic_fetch_add(&faulty->open_files, fd >= 0);
    }
    return fd;
}

static int faulty_close(void *self, int fd)
{
    struct slc_faulty *faulty = self;
    int fault = strike_plain(faulty, SLC_FAULTY_CLOSE);
    int result = faulty->below->close(faulty->below->self, fd);

    atomic_fetch_sub(&faulty->open_files, 1);
    return fault != 0 ? fault : result;
}

/* Implements both kinds of reads; `offset` is SLC_NOWHERE for a sequential read. */
static int64_t
faulty_transfer_in(struct slc_faulty *faulty, int fd, void *data, uint64_t bytes, uint64_t offset)
{
    enum slc_faulty_action action = strike(faulty, SLC_FAULTY_READ);
    int64_t result;

    note_transfer(faulty, bytes);
    if (action != SLC_FAULTY_NOTHING) {
        atomic_store(&faulty->hit_offset, offset);
    }
    if (action == SLC_FAULTY_ERRNO) {
        return -faulty->error;
    }
    if (action == SLC_FAULTY_SHORT && bytes > faulty->detail) {
        bytes = faulty->detail;
    }
    if (bytes == 0) {
        return 0;
    }
    result = offset == SLC_NOWHERE
                 ? faulty->below->read(faulty->below->self, fd, data, bytes)
                 : faulty->below->read_at(faulty->below->self, fd, data, bytes, offset);
    if (action == SLC_FAULTY_FLIP && result > 0) {
        uint64_t bit = faulty->detail % ((uint64_t)result * 8);

        ((unsigned char *)data)[bit / 8] ^= (unsigned char)(1U << (bit % 8));
    }
    return result;
}

static int64_t faulty_read_at(void *self, int fd, void *data, uint64_t bytes, uint64_t offset)
{
    return faulty_transfer_in(self, fd, data, bytes, offset);
}

static int64_t faulty_read(void *self, int fd, void *data, uint64_t bytes)
{
    return faulty_transfer_in(self, fd, data, bytes, SLC_NOWHERE);
}

/* Reserves up to `bytes` of the free space of the disk; returns how many were reserved. */
static uint64_t take_room(struct slc_faulty *faulty, uint64_t bytes)
{
    uint64_t room = atomic_load(&faulty->room);
    uint64_t taken;

    do {
        taken = bytes < room ? bytes : room;
    } while (!atomic_compare_exchange_weak(&faulty->room, &room, room - taken));
    return taken;
}

static int64_t faulty_transfer_out(
    struct slc_faulty *faulty, int fd, const void *data, uint64_t bytes, uint64_t offset)
{
    enum slc_faulty_action action = strike(faulty, SLC_FAULTY_WRITE);
    uint64_t allowed;

    note_transfer(faulty, bytes);
    if (action == SLC_FAULTY_ERRNO) {
        return -faulty->error;
    }
    if (action == SLC_FAULTY_SHORT && bytes > faulty->detail) {
        bytes = faulty->detail;
    }
    allowed = take_room(faulty, bytes);
    if (allowed < bytes) {
        atomic_fetch_add(&faulty->hits, 1);
        if (allowed == 0) {
            return -ENOSPC;
        }
    }
    return offset == SLC_NOWHERE
               ? faulty->below->write(faulty->below->self, fd, data, allowed)
               : faulty->below->write_at(faulty->below->self, fd, data, allowed, offset);
}

static int64_t
faulty_write_at(void *self, int fd, const void *data, uint64_t bytes, uint64_t offset)
{
    return faulty_transfer_out(self, fd, data, bytes, offset);
}

static int64_t faulty_write(void *self, int fd, const void *data, uint64_t bytes)
{
    return faulty_transfer_out(self, fd, data, bytes, SLC_NOWHERE);
}

static int faulty_sync(void *self, int fd)
{
    (void)fd;
    return strike_plain(self, SLC_FAULTY_SYNC);
}

static int faulty_sync_folder(void *self, const char *path)
{
    (void)path;
    return strike_plain(self, SLC_FAULTY_SYNC);
}

static int faulty_truncate(void *self, int fd, uint64_t bytes)
{
    struct slc_faulty *faulty = self;
    int fault = strike_plain(faulty, SLC_FAULTY_TRUNCATE);

    return fault != 0 ? fault : faulty->below->truncate(faulty->below->self, fd, bytes);
}

static int faulty_reserve(void *self, int fd, uint64_t bytes)
{
    struct slc_faulty *faulty = self;
    int fault = strike_plain(faulty, SLC_FAULTY_RESERVE);

    if (fault == 0 && bytes > atomic_load(&faulty->room)) {
        atomic_fetch_add(&faulty->hits, 1);
        fault = -ENOSPC;
    }
    return fault != 0 ? fault : faulty->below->reserve(faulty->below->self, fd, bytes);
}

static int faulty_stat_fd(void *self, int fd, struct slc_file_stat *stat)
{
    struct slc_faulty *faulty = self;
    int fault = strike_plain(faulty, SLC_FAULTY_STAT);

    return fault != 0 ? fault : faulty->below->stat_fd(faulty->below->self, fd, stat);
}

static int faulty_stat_path(void *self, const char *path, struct slc_file_stat *stat)
{
    struct slc_faulty *faulty = self;
    int fault = strike_plain(faulty, SLC_FAULTY_STAT);

    return fault != 0 ? fault : faulty->below->stat_path(faulty->below->self, path, stat);
}

static int faulty_free_bytes(void *self, const char *path, uint64_t *bytes)
{
    struct slc_faulty *faulty = self;
    int fault = strike_plain(faulty, SLC_FAULTY_STAT);

    return fault != 0 ? fault : faulty->below->free_bytes(faulty->below->self, path, bytes);
}

static int faulty_rename(void *self, const char *from, const char *to)
{
    struct slc_faulty *faulty = self;
    int fault = strike_plain(faulty, SLC_FAULTY_RENAME);

    return fault != 0 ? fault : faulty->below->rename(faulty->below->self, from, to);
}

static int faulty_exchange(void *self, const char *a, const char *b)
{
    struct slc_faulty *faulty = self;
    int fault = strike_plain(faulty, SLC_FAULTY_EXCHANGE);

    return fault != 0 ? fault : faulty->below->exchange(faulty->below->self, a, b);
}

static int faulty_unlink(void *self, const char *path)
{
    struct slc_faulty *faulty = self;
    int fault = strike_plain(faulty, SLC_FAULTY_UNLINK);
    int result = faulty->below->unlink(faulty->below->self, path);

    return fault != 0 ? fault : result;
}

static int faulty_make_folder(void *self, const char *path)
{
    struct slc_faulty *faulty = self;
    int fault = strike_plain(faulty, SLC_FAULTY_FOLDER);

    return fault != 0 ? fault : faulty->below->make_folder(faulty->below->self, path);
}

static int faulty_remove_folder(void *self, const char *path)
{
    struct slc_faulty *faulty = self;
    int fault = strike_plain(faulty, SLC_FAULTY_FOLDER);
    int result = faulty->below->remove_folder(faulty->below->self, path);

    return fault != 0 ? fault : result;
}

static int faulty_map(void *self, int fd, uint64_t bytes, uint64_t offset, void **address)
{
    struct slc_faulty *faulty = self;
    int result = strike_plain(faulty, SLC_FAULTY_MAP);

    if (result == 0) {
        result = faulty->below->map(faulty->below->self, fd, bytes, offset, address);
        if (result >= 0) {
            atomic_fetch_add(&faulty->open_maps, 1);
        }
    }
    return result;
}

static int faulty_unmap(void *self, void *address, uint64_t bytes)
{
    struct slc_faulty *faulty = self;
    int fault = strike_plain(faulty, SLC_FAULTY_MAP);
    int result = faulty->below->unmap(faulty->below->self, address, bytes);

    atomic_fetch_sub(&faulty->open_maps, 1);
    return fault != 0 ? fault : result;
}

static int faulty_advise(void *self, void *address, uint64_t bytes, int advice)
{
    struct slc_faulty *faulty = self;
    int fault = strike_plain(faulty, SLC_FAULTY_ADVISE);

    return fault != 0 ? fault : faulty->below->advise(faulty->below->self, address, bytes, advice);
}

static int faulty_advise_file(void *self, int fd, uint64_t offset, uint64_t bytes, int advice)
{
    struct slc_faulty *faulty = self;
    int fault = strike_plain(faulty, SLC_FAULTY_ADVISE);

    return fault != 0 ? fault
                      : faulty->below->advise_file(faulty->below->self, fd, offset, bytes, advice);
}

static int faulty_lock(void *self, int fd)
{
    struct slc_faulty *faulty = self;
    int fault = strike_plain(faulty, SLC_FAULTY_LOCK);

    return fault != 0 ? fault : faulty->below->lock(faulty->below->self, fd);
}

static int64_t faulty_completed(void *self, int fd, uint64_t offset, uint64_t bytes, int64_t result)
{
    struct slc_faulty *faulty = self;
    enum slc_faulty_action action = strike(faulty, SLC_FAULTY_COMPLETED);

    note_transfer(faulty, bytes);
    if (faulty->below->completed != NULL) {
        result = faulty->below->completed(faulty->below->self, fd, offset, bytes, result);
    }
    if (action == SLC_FAULTY_ERRNO) {
        return -faulty->error;
    }
    if (action == SLC_FAULTY_SHORT && result > (int64_t)faulty->detail) {
        return (int64_t)faulty->detail;
    }
    return result;
}

static int faulty_list_folder(void *self,
                              const char *path,
                              int (*entry)(void *context, const char *name, char kind),
                              void *context)
{
    struct slc_faulty *faulty = self;
    int fault = strike_plain(faulty, SLC_FAULTY_FOLDER);

    return fault != 0 ? fault
                      : faulty->below->list_folder(faulty->below->self, path, entry, context);
}

static int quick_sync(void *self, int fd)
{
    (void)self;
    (void)fd;
    return 0;
}

static int quick_sync_folder(void *self, const char *path)
{
    (void)self;
    (void)path;
    return 0;
}

static struct slc_files quick_files;

static void init_quick_files(void)
{
    quick_files = *slc_files_system();
    quick_files.sync = quick_sync;
    quick_files.sync_folder = quick_sync_folder;
}

const struct slc_files *slc_quick_files(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, init_quick_files);
    return &quick_files;
}

void slc_faulty_init(struct slc_faulty *faulty)
{
    memset(faulty, 0, sizeof *faulty);
    faulty->below = slc_quick_files();
    faulty->table = (struct slc_files){
        .self = faulty,
        .open = faulty_open,
        .open_at = faulty_open_at,
        .open_again = faulty_open_again,
        .close = faulty_close,
        .read_at = faulty_read_at,
        .read = faulty_read,
        .write_at = faulty_write_at,
        .write = faulty_write,
        .sync = faulty_sync,
        .sync_folder = faulty_sync_folder,
        .truncate = faulty_truncate,
        .reserve = faulty_reserve,
        .stat_fd = faulty_stat_fd,
        .stat_path = faulty_stat_path,
        .free_bytes = faulty_free_bytes,
        .rename = faulty_rename,
        .exchange = faulty_exchange,
        .unlink = faulty_unlink,
        .make_folder = faulty_make_folder,
        .lock = faulty_lock,
        .remove_folder = faulty_remove_folder,
        .map = faulty_map,
        .unmap = faulty_unmap,
        .advise = faulty_advise,
        .advise_file = faulty_advise_file,
        .completed = faulty_completed,
        .list_folder = faulty_list_folder,
    };
    atomic_store(&faulty->room, UINT64_MAX);
}

static void
arm(struct slc_faulty *faulty, enum slc_faulty_action action, enum slc_faulty_kind kind, uint64_t k)
{
    for (unsigned i = 0; i <= SLC_FAULTY_KINDS; i++) {
        atomic_store(&faulty->seen[i], 0);
    }
    atomic_store(&faulty->hits, 0);
    atomic_store(&faulty->room, UINT64_MAX);
    faulty->action = action;
    faulty->kind = kind;
    faulty->k = k;
    faulty->from_then = false;
    faulty->error = 0;
    faulty->detail = 0;
}

void slc_faulty_fail(struct slc_faulty *faulty, enum slc_faulty_kind kind, uint64_t k, int error)
{
    arm(faulty, SLC_FAULTY_ERRNO, kind, k);
    faulty->error = error;
}

void slc_faulty_fail_from(struct slc_faulty *faulty,
                          enum slc_faulty_kind kind,
                          uint64_t k,
                          int error)
{
    slc_faulty_fail(faulty, kind, k, error);
    faulty->from_then = true;
}

void slc_faulty_shorten(struct slc_faulty *faulty,
                        enum slc_faulty_kind kind,
                        uint64_t k,
                        uint64_t bytes)
{
    arm(faulty, SLC_FAULTY_SHORT, kind, k);
    faulty->from_then = true;
    faulty->detail = bytes;
}

void slc_faulty_flip(struct slc_faulty *faulty, uint64_t k, uint64_t bit)
{
    arm(faulty, SLC_FAULTY_FLIP, SLC_FAULTY_READ, k);
    faulty->detail = bit;
}

void slc_faulty_limit_room(struct slc_faulty *faulty, uint64_t bytes)
{
    arm(faulty, SLC_FAULTY_NOTHING, SLC_FAULTY_ANY, 0);
    atomic_store(&faulty->room, bytes);
}

uint64_t slc_faulty_seen(const struct slc_faulty *faulty, enum slc_faulty_kind kind)
{
    return atomic_load(&faulty->seen[kind]);
}

bool slc_faulty_fired(const struct slc_faulty *faulty)
{
    return atomic_load(&faulty->hits) > 0;
}

int64_t slc_faulty_open_count(const struct slc_faulty *faulty)
{
    return atomic_load(&faulty->open_files) + atomic_load(&faulty->open_maps);
}
