/* Runs teams with a pool of threads that sleep between jobs.
 *
 * The pool is for passes over a tensor. Their jobs last about a millisecond, and a thread that
 * reads blocks needs a processor, too. OpenMP's threads would spin for milliseconds after each
 * region (measured in docs/PERFORMANCE.md). Waking a sleeping thread costs 10 to 50 microseconds,
 * so a thread that has finished polls for the next job for about the same time before it sleeps. If
 * jobs follow each other quickly, as for a tensor in memory, no thread has to be woken.
 *
 * Only one job at a time uses the pool. A team that another thread or a worker starts during this
 * job gets its own threads. The pool grows to the largest team so far, ends when the library is
 * unloaded or the program exits, and starts empty in a forked child.
 *
 * A thread that was bound for a job stays bound until a job without binding. If the thread were
 * bound again for each job, it would wake on an arbitrary processor and then migrate. Teams with
 * their own threads are not bound, because two teams that run at the same time would be bound to
 * the same processors. */
#include "base/error/fault.h"
#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "base/thread/team_kinds.h"
#include "base/thread/thread.h"
#include "base/topology/affinity.h"
#include "base/topology/placement.h"
#include "base/topology/spread.h"

#include <pthread.h>
#include <stdbool.h>

/* Number of polls before a thread sleeps; they last about 30 microseconds. */
enum { LOOKS = 1000 };

struct job {
    slc_team_fn *fn;
    void *context;
    unsigned workers;
    const struct slc_placement *placement; /* NULL if threads are not bound */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t begun; /* signaled when a job starts or the pool closes */
    pthread_cond_t ended; /* signaled when `running` becomes 0 */
    bool busy;            /* true while a job uses the pool */
    bool closing;
    unsigned threads;
    /* The members below are written with the lock held, but may be read without it. */
    /* number of jobs started so far; a thread detects a new job by a change of this number */
    uint64_t jobs;
    unsigned running; /* number of workers of the job, without worker 0, that have not returned */
    struct job job;
    pthread_t thread[SLC_MAX_THREADS];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .begun = PTHREAD_COND_INITIALIZER,
          .ended = PTHREAD_COND_INITIALIZER};

/* Processors of the workers of the current job; each worker writes its own entry. */
static struct slc_spread spread;

static pthread_once_t fork_handler = PTHREAD_ONCE_INIT;

/* Resets the pool in a forked child. The child does not have the threads of the parent, and locks
 * may be in any state. */
static void forget_pool(void)
{
    (void)pthread_mutex_init(&pool.lock, NULL);
    (void)pthread_cond_init(&pool.begun, NULL);
    (void)pthread_cond_init(&pool.ended, NULL);
    pool.busy = false;
    pool.threads = 0;
}

static void handle_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget_pool);
}

__attribute__((destructor)) static void close_pool(void)
{
    unsigned threads = 0;

    (void)pthread_mutex_lock(&pool.lock);
    /* if busy, the program exits during a job, and the threads cannot be joined */
    if (!pool.busy) {
        pool.closing = true;
        threads = pool.threads;
        (void)pthread_cond_broadcast(&pool.begun);
    }
    (void)pthread_mutex_unlock(&pool.lock);
    for (unsigned i = 0; i < threads; i++) {
        (void)pthread_join(pool.thread[i], NULL);
    }
}

/* Polls, for a short time, until a job after job number `seen` starts. */
static void look_for_job(uint64_t seen)
{
    for (unsigned i = 0; i < LOOKS && __atomic_load_n(&pool.jobs, __ATOMIC_RELAXED) == seen; i++) {
        slc_thread_pause();
    }
}

/* Polls, for a short time, until the other workers have returned. */
static void look_for_end(void)
{
    for (unsigned i = 0; i < LOOKS && __atomic_load_n(&pool.running, __ATOMIC_RELAXED) > 0; i++) {
        slc_thread_pause();
    }
}

/* Runs a thread of the pool, which is worker `number` of all jobs with more than `number`
 * workers. */
static void *pool_thread(void *context)
{
    const unsigned number = (unsigned)(uintptr_t)context;

    (void)pthread_mutex_lock(&pool.lock);
    /* This thread was created with the lock held, before its first job started. */
    uint64_t seen = pool.jobs - (pool.running > 0);
    for (;;) {
        while (pool.jobs == seen && !pool.closing) {
            (void)pthread_cond_wait(&pool.begun, &pool.lock);
        }
        if (pool.closing) {
            break;
        }
        seen = pool.jobs;
        if (number < pool.job.workers) {
            const struct job job = pool.job;

            (void)pthread_mutex_unlock(&pool.lock);
            if (job.placement != NULL) {
                slc_thread_bind(job.placement->processor[number]);
            } else {
                slc_thread_unbind();
                slc_spread_place_worker(&spread, number, job.workers);
            }
            job.fn(job.context, number, job.workers);
            (void)pthread_mutex_lock(&pool.lock);
            if (__atomic_sub_fetch(&pool.running, 1, __ATOMIC_RELAXED) == 0) {
                (void)pthread_cond_signal(&pool.ended);
            }
            (void)pthread_mutex_unlock(&pool.lock);
            look_for_job(seen);
            (void)pthread_mutex_lock(&pool.lock);
        }
    }
    (void)pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* Creates threads until the pool has `threads` threads. Needs: the lock is held. Errors:
 * SLC_ERR_SYSTEM if a thread cannot be created or woken. */
static enum slc_status grow(unsigned threads, struct slc_error *err)
{
    for (unsigned i = 0; i < threads; i++) {
        enum slc_status status = SLC_OK;

        if (i < pool.threads) {
            if (slc_fault_hit(SLC_FAULT_THREAD)) {
                status =
                    slc_fail_field(err, SLC_ERR_SYSTEM, SLC_FIELD_THREADS,
                                   "thread %u of a team does not wake: use fewer threads", i + 2);
            }
        } else {
            status = slc_thread_start(&pool.thread[i], pool_thread, (void *)(uintptr_t)(i + 1),
                                      "a thread of a team", err);
            pool.threads += status == SLC_OK;
        }
        SLC_TRY(status);
    }
    return SLC_OK;
}

/* A worker of a team outside the pool, whose threads end with the job. */
struct member {
    struct gathering *gathering;
    unsigned worker;
    pthread_t thread;
};

struct gathering {
    struct job job;
    pthread_mutex_t lock;
    pthread_cond_t decided;
    /* 0 while threads are being created; then 1 to run, or -1 to leave, because a thread could not
     * be created */
    int go;
};

static void *member_main(void *argument)
{
    struct member *member = argument;
    struct gathering *gathering = member->gathering;

    (void)pthread_mutex_lock(&gathering->lock);
    while (gathering->go == 0) {
        (void)pthread_cond_wait(&gathering->decided, &gathering->lock);
    }
    int go = gathering->go;
    (void)pthread_mutex_unlock(&gathering->lock);
    if (go > 0) {
        gathering->job.fn(gathering->job.context, member->worker, gathering->job.workers);
    }
    return NULL;
}

enum slc_status
slc_team_run_apart(unsigned workers, slc_team_fn *fn, void *context, struct slc_error *err)
{
    struct gathering gathering = {
        {fn, context, workers, NULL}, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    struct member *members = slc_calloc(workers, sizeof *members);
    enum slc_status status = SLC_OK;
    unsigned created = 1;

    SLC_TRY(slc_check_memory(members != NULL, err, "for a team of %u threads", workers));
    for (; created < workers; created++) {
        members[created].gathering = &gathering;
        members[created].worker = created;
        status = slc_thread_start(&members[created].thread, member_main, &members[created],
                                  "a thread of a team", err);
        if (status != SLC_OK) {
            break;
        }
    }
    (void)pthread_mutex_lock(&gathering.lock);
    gathering.go = status == SLC_OK ? 1 : -1;
    (void)pthread_cond_broadcast(&gathering.decided);
    (void)pthread_mutex_unlock(&gathering.lock);
    if (status == SLC_OK) {
        fn(context, 0, workers);
    }
    for (unsigned i = 1; i < created; i++) {
        (void)pthread_join(members[i].thread, NULL);
    }
    slc_free(members);
    (void)pthread_cond_destroy(&gathering.decided);
    (void)pthread_mutex_destroy(&gathering.lock);
    return status;
}

/* Runs worker 0 in the calling thread, which is bound only while `fn` runs. */
static void run_first(const struct job *job)
{
    if (job->placement != NULL) {
        slc_thread_bind(job->placement->processor[0]);
    } else if (job->workers > 1) {
        slc_spread_place_worker(&spread, 0, job->workers);
    }
    job->fn(job->context, 0, job->workers);
    if (job->placement != NULL) {
        slc_thread_unbind();
    }
}

enum slc_status
slc_team_run_pool(unsigned workers, slc_team_fn *fn, void *context, struct slc_error *err)
{
    const struct job job = {fn, context, workers, slc_placement_of_team(workers)};

    if (workers <= 1) {
        run_first(&job);
        return SLC_OK;
    }
    (void)pthread_once(&fork_handler, handle_forks);
    (void)pthread_mutex_lock(&pool.lock);
    if (pool.busy) {
        (void)pthread_mutex_unlock(&pool.lock);
        return slc_team_run_apart(workers, fn, context, err);
    }
    enum slc_status status = grow(workers - 1, err);
    if (status == SLC_OK) {
        pool.busy = true;
        pool.job = job;
        __atomic_store_n(&pool.running, workers - 1, __ATOMIC_RELAXED);
        __atomic_store_n(&pool.jobs, pool.jobs + 1, __ATOMIC_RELAXED);
        (void)pthread_cond_broadcast(&pool.begun);
    }
    (void)pthread_mutex_unlock(&pool.lock);
    SLC_TRY(status);
    run_first(&job);
    look_for_end();
    (void)pthread_mutex_lock(&pool.lock);
    while (pool.running > 0) {
        (void)pthread_cond_wait(&pool.ended, &pool.lock);
    }
    pool.busy = false;
    (void)pthread_mutex_unlock(&pool.lock);
    return SLC_OK;
}
