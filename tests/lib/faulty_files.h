/* A table of file operations that fails on demand: it forwards everything to an underlying table
 * (the operating system's), counts operations by kind, and makes a chosen operation fail, transfer
 * too few bytes or flip a bit. It also counts open descriptors and maps, so that a test can look
 * for leaks after an error.
 *
 *     struct slc_faulty faulty;
 *     slc_faulty_init(&faulty);
 *     for (uint64_t k = 1;; k++) {
 *         slc_faulty_fail(&faulty, SLC_FAULTY_WRITE, k, EIO);
 *         status = operation(&faulty.table, .. );
 *         if (!slc_faulty_fired(&faulty)) break; // fewer than k writes: every one has been tried
 *         assert status, state on disk, slc_faulty_open_count(&faulty) == 0
 *     }
 *
 * Syncs are counted but not executed: no test survives a power cut, and syncs are the slowest
 * operations on a busy disk.
 *
 * Threads: any number may use the table; arm and inspect it only while it is idle. */
#ifndef SLC_FAULTY_FILES_H
#define SLC_FAULTY_FILES_H

#include "storage/file/files.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum slc_faulty_kind {
    SLC_FAULTY_OPEN,
    SLC_FAULTY_CLOSE,
    SLC_FAULTY_READ,  /* read and read_at */
    SLC_FAULTY_WRITE, /* write and write_at */
    SLC_FAULTY_SYNC,  /* sync and sync_folder */
    SLC_FAULTY_TRUNCATE,
    SLC_FAULTY_RESERVE,
    SLC_FAULTY_STAT, /* stat_fd and stat_path */
    SLC_FAULTY_RENAME,
    SLC_FAULTY_EXCHANGE,
    SLC_FAULTY_UNLINK,
    SLC_FAULTY_FOLDER, /* make_folder, remove_folder and list_folder */
    SLC_FAULTY_MAP,    /* map and unmap */
    SLC_FAULTY_ADVISE, /* advise and advise_file */
    SLC_FAULTY_LOCK,
    SLC_FAULTY_COMPLETED,
    SLC_FAULTY_KINDS,
    SLC_FAULTY_ANY = SLC_FAULTY_KINDS /* counts operations of every kind together */
};

enum slc_faulty_action {
    SLC_FAULTY_NOTHING,
    SLC_FAULTY_ERRNO,
    SLC_FAULTY_SHORT,
    SLC_FAULTY_FLIP,
    SLC_FAULTY_CALL /* calls a function before the operation, which is executed unchanged */
};

struct slc_faulty {
    struct slc_files table;        /* hand out &faulty.table */
    const struct slc_files *below; /* the table to which operations are forwarded */

    enum slc_faulty_action action;
    enum slc_faulty_kind kind;
    uint64_t k;         /* the operation of `kind` that is hit, from 1; 0: none */
    bool from_then;     /* true: all later operations of this kind are hit, too */
    int error;          /* ERRNO: the errno to return */
    uint64_t detail;    /* SHORT: bytes to transfer at most; FLIP: the bit of the data to flip */
    void (*call)(void); /* CALL: the function to call */

    atomic_uint_fast64_t seen[SLC_FAULTY_KINDS + 1];
    atomic_uint_fast64_t hits;
    atomic_int_fast64_t open_files;
    atomic_int_fast64_t open_maps;
    atomic_uint_fast64_t room;         /* bytes that can still be written before ENOSPC */
    atomic_uint_fast64_t max_transfer; /* bytes of the largest single read or write requested */
    atomic_uint_fast64_t hit_offset;   /* offset of the last read_at that was hit; the threads
                                          determine which read is the k-th */
};

/* The operating system without syncs, so that tests do not wait for a busy drive. Shared;
 * injects no faults. */
const struct slc_files *slc_quick_files(void);

/* Forwards to slc_quick_files; injects no faults. */
void slc_faulty_init(struct slc_faulty *faulty);

/* The k-th following operation of `kind` (k from 1) is not executed and returns -error (close,
 * unmap and remove are executed all the same, as in the kernel). k = 0 disarms. Each of these calls
 * resets the counts and replaces the fault armed before. */
void slc_faulty_fail(struct slc_faulty *faulty, enum slc_faulty_kind kind, uint64_t k, int error);
/* As slc_faulty_fail, but all operations of `kind` from the k-th on fail. */
void slc_faulty_fail_from(struct slc_faulty *faulty,
                          enum slc_faulty_kind kind,
                          uint64_t k,
                          int error);
/* Reads or writes from the k-th on transfer at most `bytes` bytes each; a read of 0 bytes means
 * end of file. */
void slc_faulty_shorten(struct slc_faulty *faulty,
                        enum slc_faulty_kind kind,
                        uint64_t k,
                        uint64_t bytes);
/* Flips bit `bit` (modulo the length) of the data of the k-th read; never COMPLETED. */
void slc_faulty_flip(struct slc_faulty *faulty, uint64_t k, uint64_t bit);
/* Limits the free space to `bytes`: writes are short at the limit, then fail with ENOSPC. */
void slc_faulty_limit_room(struct slc_faulty *faulty, uint64_t bytes);

/* Operations of `kind` since the table was last armed. */
uint64_t slc_faulty_seen(const struct slc_faulty *faulty, enum slc_faulty_kind kind);
/* Whether the armed fault happened (including a full disk). */
bool slc_faulty_fired(const struct slc_faulty *faulty);
/* Open files and maps: 0 if nothing leaks. */
int64_t slc_faulty_open_count(const struct slc_faulty *faulty);

#endif
