/*
 * A table of file operations that goes wrong on demand: it forwards everything to the table below
 * it (the operating system's), counts operations by kind, and makes a chosen one fail, come up
 * short or deliver a flipped bit. It also counts open descriptors and maps, so that a test can look
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
 * Syncs are counted but not made: no test outlives a power cut, and on a busy disk they take
 * longest.
 *
 * Threads: the table may be used from any number of threads; arm and inspect it while it is idle.
 */
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
    SLC_FAULTY_CALL /* something happens before the operation, which is made as it is */
};

struct slc_faulty {
    struct slc_files table;        /* hand out &faulty.table */
    const struct slc_files *below; /* what it forwards to */

    enum slc_faulty_action action;
    enum slc_faulty_kind kind;
    uint64_t k;         /* the operation of `kind`, from 1, that is hit; 0: none */
    bool from_then;     /* hit every later one, too */
    int error;          /* ERRNO: the errno it gives */
    uint64_t detail;    /* SHORT: bytes it moves at most; FLIP: the bit of the data it flips */
    void (*call)(void); /* CALL: what happens */

    atomic_uint_fast64_t seen[SLC_FAULTY_KINDS + 1];
    atomic_uint_fast64_t hits;
    atomic_int_fast64_t open_files;
    atomic_int_fast64_t open_maps;
    atomic_uint_fast64_t room;         /* bytes that may yet be written before ENOSPC */
    atomic_uint_fast64_t max_transfer; /* bytes of the largest single read or write asked for */
    atomic_uint_fast64_t hit_offset; /* of the last read_at that was hit; which one is k-th depends
                                        on the threads that read */
};

/* The operating system without its syncs, for which tests would wait on a busy drive; shared, fails
 * nothing. */
const struct slc_files *slc_quick_files(void);

/* Forwards to slc_quick_files, fails nothing. */
void slc_faulty_init(struct slc_faulty *faulty);

/*
 * The k-th following operation of `kind` (k from 1) is not made and gives -error (a close, an unmap
 * or a remove is made all the same, as in the kernel). k = 0 disarms. Each of these calls starts
 * counting afresh and replaces what was armed before.
 */
void slc_faulty_fail(struct slc_faulty *faulty, enum slc_faulty_kind kind, uint64_t k, int error);
/* The same for the k-th and all operations after it. */
void slc_faulty_fail_from(struct slc_faulty *faulty,
                          enum slc_faulty_kind kind,
                          uint64_t k,
                          int error);
/* Reads or writes from the k-th on move at most `bytes` bytes each; 0 bytes read means end of file.
 */
void slc_faulty_shorten(struct slc_faulty *faulty,
                        enum slc_faulty_kind kind,
                        uint64_t k,
                        uint64_t bytes);
/* The k-th read delivers its data with bit `bit` (modulo its length) flipped; never COMPLETED. */
void slc_faulty_flip(struct slc_faulty *faulty, uint64_t k, uint64_t bit);
/* A disk with room for `bytes` more bytes: writes go short at its end, then fail with ENOSPC. */
void slc_faulty_limit_room(struct slc_faulty *faulty, uint64_t bytes);

/* Operations of `kind` since the table was last armed. */
uint64_t slc_faulty_seen(const struct slc_faulty *faulty, enum slc_faulty_kind kind);
/* True when what was armed has happened (a full disk included). */
bool slc_faulty_fired(const struct slc_faulty *faulty);
/* Files and maps that are open now: 0 when nothing leaks. */
int64_t slc_faulty_open_count(const struct slc_faulty *faulty);

#endif
