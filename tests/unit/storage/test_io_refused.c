/* Block readers on systems that refuse features: no io_uring (container profiles), no statx (old
 * kernels), little lockable memory. Each case runs in a child process that first disables the
 * feature, by a seccomp filter or by dropping a capability. */
#include "slc_test.h"

#include "base/error/fault.h"
#include "base/memory/limits.h"
#include "storage/io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = SLC_PAGE_BYTES, SLOTS = 16, SLOT_PAGES = 4, FILE_PAGES = 128 };

/* Outcome of a child. */
enum verdict { PASSED, FAILED, IMPOSSIBLE };

static char path[256];
static int refused_later; /* error of io_uring_enter after the first reads; 0: none */

/* Makes one system call fail with `error` from now on. */
static bool refuse_call(long number, int error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)error & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {(unsigned short)SLC_COUNT(filter), filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Limits the lockable memory of this process to `bytes` and drops the right to exceed it. */
static bool limit_locked_memory(uint64_t bytes)
{
    struct rlimit limit = {bytes, bytes};
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];

    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || syscall(SYS_capget, &header, data) != 0) {
        return false;
    }
    data[CAP_IPC_LOCK / 32].effective &= ~(1U << (CAP_IPC_LOCK % 32));
    data[CAP_IPC_LOCK / 32].permitted &= ~(1U << (CAP_IPC_LOCK % 32));
    return syscall(SYS_capset, &header, data) == 0;
}

/* Opens a reader and reads the whole file through all slots. */
static enum slc_status
read_all(enum slc_io_kind kind, bool direct, struct slc_io_stats *stats, struct slc_error *err)
{
    static struct slc_io_request requests[SLOTS];
    const char *const paths[] = {path};
    struct slc_io_options options = {NULL, paths, 1, SLOTS, SLOT_PAGES * PAGE, 0, direct};
    struct slc_io *io;
    enum slc_status status = slc_io_open(kind, &options, &io, err);
    unsigned wrong = 0;

    if (status != SLC_OK) {
        return status;
    }
    for (unsigned round = 0; round < FILE_PAGES / SLOT_PAGES / SLOTS && wrong == 0; round++) {
        for (unsigned slot = 0; slot < SLOTS; slot++) {
            requests[slot].slot = slot;
            requests[slot].bytes = SLOT_PAGES * PAGE;
            requests[slot].offset = (uint64_t)(round * SLOTS + slot) * SLOT_PAGES * PAGE;
            wrong += slc_io_submit(io, &requests[slot], err) != SLC_OK;
        }
        for (unsigned slot = 0; slot < SLOTS && wrong == 0; slot++) {
            struct slc_io_request *done;

            wrong += slc_io_wait(io, &done, err) != SLC_OK || done->status != SLC_OK ||
                     *(const unsigned char *)done->data != (done->offset / PAGE & 0xff);
        }
        if (refused_later != 0) {
            wrong += !refuse_call(SYS_io_uring_enter, refused_later);
            refused_later = 0;
        }
    }
    wrong += slc_io_kind(io) == SLC_IO_AUTO;
    slc_io_stats(io, stats);
    slc_io_close(io);
    return wrong == 0 ? SLC_OK : SLC_ERR_DAMAGED;
}

static enum verdict without_uring(void)
{
    static const int reasons[] = {ENOSYS, EPERM, EACCES, ENOMEM};
    struct slc_io_stats stats;

    for (size_t r = 0; r < SLC_COUNT(reasons); r++) {
        struct slc_error err = SLC_ERROR_INIT;

        /* Of several filters, the latest has precedence. */
        if (!refuse_call(SYS_io_uring_setup, reasons[r])) {
            return IMPOSSIBLE;
        }
        if (read_all(SLC_IO_AUTO, true, &stats, &err) != SLC_OK ||
            (stats.direct && strstr(stats.note, "io_uring") == NULL)) {
            return FAILED;
        }
        if (read_all(SLC_IO_URING, true, &stats, &err) != SLC_ERR_UNSUPPORTED ||
            strstr(err.message, "pread") == NULL) {
            return FAILED;
        }
    }
    return PASSED;
}

/* The kernel refuses all reads from the second round on, or from the start. */
static enum verdict with_refused_reads(void)
{
    static const int reasons[] = {EBUSY, ENOMEM, EAGAIN, EINTR};
    struct slc_io_stats stats;
    struct slc_error err = SLC_ERROR_INIT;

    if (read_all(SLC_IO_URING, true, &stats, &err) != SLC_OK || !stats.direct) {
        return IMPOSSIBLE;
    }
    for (size_t r = 0; r < (slc_test_full() ? SLC_COUNT(reasons) : 2); r++) {
        refused_later = reasons[r];
        if (read_all(SLC_IO_AUTO, true, &stats, &err) != SLC_OK ||
            strstr(stats.note, "since io_uring refused reads") == NULL || stats.reads != 32) {

            return FAILED;
        }
    }
    /* A user who requests io_uring gets an error. */
    return read_all(SLC_IO_URING, true, &stats, &err) != SLC_OK && err.status == SLC_ERR_IO &&
                   strstr(err.message, "pread") != NULL
               ? PASSED
               : FAILED;
}

/* The kernel refuses one call; no reader notices. */
static enum verdict with_one_refusal(void)
{
    struct slc_io_stats stats;
    struct slc_error err = SLC_ERROR_INIT;

    if (read_all(SLC_IO_URING, true, &stats, &err) != SLC_OK) {
        return IMPOSSIBLE;
    }
    for (uint64_t k = 1;; k++) {
        slc_fault_arm(SLC_FAULT_URING, k);
        if (read_all(SLC_IO_URING, true, &stats, &err) != SLC_OK || stats.reads != 32) {
            return FAILED;
        }
        if (slc_fault_seen(SLC_FAULT_URING) < k) {
            return k > 32 ? PASSED : FAILED;
        }
    }
}

static enum verdict without_statx(void)
{
    static const enum slc_io_kind kinds[] = {SLC_IO_AUTO, SLC_IO_PREAD, SLC_IO_MMAP};
    struct slc_io_stats stats;

    if (!refuse_call(SYS_statx, ENOSYS)) {
        return IMPOSSIBLE;
    }
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        struct slc_error err = SLC_ERROR_INIT;

        if (read_all(kinds[k], true, &stats, &err) != SLC_OK) {
            return FAILED;
        }
    }
    return PASSED;
}

static enum verdict with_little_locked_memory(void)
{
    static const uint64_t limits[] = {0, PAGE * SLOT_PAGES, PAGE * SLOT_PAGES * 7 + PAGE};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_io_stats stats;
    enum slc_status status;

    if (read_all(SLC_IO_URING, true, &stats, &err) != SLC_OK) {
        return IMPOSSIBLE;
    }
    for (size_t l = SLC_COUNT(limits); l-- > 0;) {
        if (!limit_locked_memory(limits[l])) {
            return IMPOSSIBLE;
        }
        if (read_all(SLC_IO_AUTO, true, &stats, &err) != SLC_OK) {
            return FAILED;
        }
        /* The ring itself is locked memory, too, and may be refused if little can be locked. */
        status = read_all(SLC_IO_URING, true, &stats, &err);
        if (status == SLC_ERR_UNSUPPORTED && limits[l] <= PAGE * SLOT_PAGES) {
            slc_error_clear(&err);
            continue;
        }
        /* The kernel determines whether pinned pages count as locked memory; reading must work in
         * both cases. */
        if (status != SLC_OK || (!stats.registered && strstr(stats.note, "ulimit") == NULL)) {
            return FAILED;
        }
    }
    return PASSED;
}

static void run_in_child(enum verdict (*run)(void))
{
    static unsigned char page[PAGE];
    int state = 0;
    pid_t child;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/refused.blk", slc_test_folder());
    file = fopen(path, "wb");
    CU_ASSERT_FATAL(file != NULL);
    for (unsigned p = 0; p < FILE_PAGES; p++) {
        memset(page, (int)p, sizeof page);
        CU_ASSERT(fwrite(page, sizeof page, 1, file) == 1);
    }
    CU_ASSERT(fclose(file) == 0);
    (void)fflush(stdout);
    child = fork();
    if (child == 0) {
        _exit((int)run());
    }
    CU_ASSERT_FATAL(child > 0);
    CU_ASSERT_FATAL(waitpid(child, &state, 0) == child);
    CU_ASSERT_FATAL(WIFEXITED(state));
    if (WEXITSTATUS(state) == IMPOSSIBLE) {
        slc_test_skip("this system does not let a process give that up, or has no io_uring");
    } else {
        CU_ASSERT_EQUAL(WEXITSTATUS(state), PASSED);
    }
}

static void test_without_uring(void)
{
    run_in_child(without_uring);
}

static void test_refused_reads(void)
{
    run_in_child(with_refused_reads);
}

static void test_one_refusal(void)
{
    run_in_child(with_one_refusal);
}

static void test_without_statx(void)
{
    run_in_child(without_statx);
}

static void test_little_locked_memory(void)
{
    run_in_child(with_little_locked_memory);
}

static const struct slc_test tests[] = {
    {"io_uring refused", test_without_uring},
    {"reads refused by io_uring", test_refused_reads},
    {"one refusal by io_uring", test_one_refusal},
    {"statx missing", test_without_statx},
    {"little lockable memory", test_little_locked_memory},
};

SLC_SUITE(io_refused)
{
    return slc_test_main("io_refused", tests, SLC_COUNT(tests), argc, argv);
}
