/* Guards maps against SIGBUS.
 *
 * The handler may run in any thread at any time and takes no lock: it searches a fixed table of
 * atomics. A set of ranges is entered before its first map and removed after its last map, so a
 * fault in a guarded map is always found. */
#include "storage/io/map_guard.h"

#include "base/memory/memory.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* Maximum number of sets: one per open mmap reader. A process has one or two mmap readers. */
enum { MAX_SETS = 64 };

static struct {
    struct slc_guarded_range *_Atomic ranges; /* NULL if the entry is free */
    atomic_uint count;
} sets[MAX_SETS];

/* Protects the next two variables and changes of `sets`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned set_count;
static struct sigaction previous_action;
/* Set before the handler is installed, because the handler must not query the system. */
static uint64_t page_bytes;

/* Returns the guarded range that contains `address`, or NULL. */
static struct slc_guarded_range *find_range(uintptr_t address)
{
    for (unsigned s = 0; s < MAX_SETS; s++) {
        struct slc_guarded_range *ranges = atomic_load(&sets[s].ranges);
        unsigned count = ranges == NULL ? 0 : atomic_load(&sets[s].count);

        for (unsigned i = 0; i < count; i++) {
            uintptr_t begin = atomic_load(&ranges[i].begin);

            if (begin != 0 && address >= begin && address - begin < atomic_load(&ranges[i].bytes)) {
                return &ranges[i];
            }
        }
    }
    return NULL;
}

/* Calls the previous handler or performs the default action. */
static void run_previous_handler(int number, siginfo_t *info, void *context)
{
    if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
        previous_action.sa_sigaction(number, info, context);
    } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
        previous_action.sa_handler(number);
    } else {
        /* The raised signal is pending until the handler returns, and then ends the process. */
        (void)signal(number, SIG_DFL);
        (void)raise(number);
    }
}

/* Replaces an unreadable page with zeros. Other threads may read the page at the same time and may
 * see the old or the new page. The system call is made directly: ThreadSanitizer would report a
 * call of mmap as a racing write, and POSIX does not list mmap among the functions allowed in
 * signal handlers. */
static bool replace_page(void *page)
{
    const long address = syscall(SYS_mmap, page, page_bytes, PROT_READ,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1L, 0L);

    return address != -1;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    uintptr_t address = (uintptr_t)info->si_addr;
    /* Codes above 0 come from the kernel; a signal from a process has no address. */
    struct slc_guarded_range *range = info->si_code > 0 ? find_range(address) : NULL;
    void *page = (void *)(address & ~(uintptr_t)(page_bytes - 1));

    if (range != NULL && replace_page(page)) {
        atomic_store(&range->faulted, true);
    } else {
        run_previous_handler(number, info, context);
    }
    errno = saved;
}

enum slc_status
slc_map_guard_add(struct slc_guarded_range *ranges, unsigned count, struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    struct sigaction action;
    unsigned s = 0;

    pthread_mutex_lock(&lock);
    while (s < MAX_SETS && atomic_load(&sets[s].ranges) != NULL) {
        s++;
    }
    if (s == MAX_SETS) {
        status =
            slc_fail_field(err, SLC_ERR_SYSTEM, SLC_FIELD_IO,
                           "%d files are already being read through maps; use pread", MAX_SETS);
    } else if (set_count == 0) {
        page_bytes = slc_memory_page_bytes();
        memset(&action, 0, sizeof action);
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO | SA_RESTART;
        sigemptyset(&action.sa_mask);
        if (sigaction(SIGBUS, &action, &previous_action) != 0) {
            status = slc_fail(err, SLC_ERR_SYSTEM, "guarding a memory map: %s", strerror(errno));
        }
    }
    if (status == SLC_OK) {
        set_count++;
        atomic_store(&sets[s].count, count);
        atomic_store(&sets[s].ranges, ranges);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void slc_map_guard_remove(const struct slc_guarded_range *ranges)
{
    struct sigaction now;

    pthread_mutex_lock(&lock);
    for (unsigned s = 0; s < MAX_SETS && ranges != NULL; s++) {
        if (atomic_load(&sets[s].ranges) != ranges) {
            continue;
        }
        atomic_store(&sets[s].ranges, NULL);
        set_count--;
        /* Do not remove a handler that was installed after on_fault. */
        if (set_count == 0 && sigaction(SIGBUS, NULL, &now) == 0 &&
            (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault) {
            (void)sigaction(SIGBUS, &previous_action, NULL);
        }
    }
    pthread_mutex_unlock(&lock);
}
