/* Implements turns with one mutex and one condition variable. This suffices because deliveries are
 * rare: one per tile or per megabyte of text. */
#include "base/thread/turns.h"

enum slc_status slc_turns_init(struct slc_turns *turns, struct slc_error *err)
{
    int code = pthread_mutex_init(&turns->mutex, NULL);

    if (code != 0) {
        return slc_fail(err, SLC_ERR_SYSTEM, "cannot create a mutex (error %d)", code);
    }
    code = pthread_cond_init(&turns->moved, NULL);
    if (code != 0) {
        pthread_mutex_destroy(&turns->mutex);
        return slc_fail(err, SLC_ERR_SYSTEM, "cannot create a condition variable (error %d)", code);
    }
    turns->tickets = 0;
    turns->turn = 0;
    turns->stopped = false;
    return SLC_OK;
}

void slc_turns_destroy(struct slc_turns *turns)
{
    pthread_cond_destroy(&turns->moved);
    pthread_mutex_destroy(&turns->mutex);
}

bool slc_turns_take_ticket(struct slc_turns *turns, uint64_t *ticket)
{
    pthread_mutex_lock(&turns->mutex);
    bool go = !turns->stopped;
    if (go) {
        *ticket = turns->tickets++;
    }
    pthread_mutex_unlock(&turns->mutex);
    return go;
}

bool slc_turns_wait(struct slc_turns *turns, uint64_t ticket)
{
    pthread_mutex_lock(&turns->mutex);
    while (turns->turn != ticket && !turns->stopped) {
        pthread_cond_wait(&turns->moved, &turns->mutex);
    }
    bool go = !turns->stopped;
    pthread_mutex_unlock(&turns->mutex);
    return go;
}

void slc_turns_done(struct slc_turns *turns)
{
    pthread_mutex_lock(&turns->mutex);
    turns->turn++;
    pthread_cond_broadcast(&turns->moved);
    pthread_mutex_unlock(&turns->mutex);
}

void slc_turns_stop(struct slc_turns *turns)
{
    pthread_mutex_lock(&turns->mutex);
    turns->stopped = true;
    pthread_cond_broadcast(&turns->moved);
    pthread_mutex_unlock(&turns->mutex);
}
