/*
 * Turns: work done in parallel, delivered in order. Workers take tickets, prepare in any order and
 * wait for their turn to deliver, so a result never depends on which worker was faster.
 */
#ifndef SLC_BASE_TURNS_H
#define SLC_BASE_TURNS_H

#include "base/error/error.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct slc_turns {
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    uint64_t tickets; /* handed out */
    uint64_t turn;    /* the ticket that may deliver */
    bool stopped;
};

/* Errors: SLC_ERR_SYSTEM. Owns: slc_turns_destroy. */
enum slc_status slc_turns_init(struct slc_turns *turns, struct slc_error *err) SLC_NODISCARD;
void slc_turns_destroy(struct slc_turns *turns);

/* The next ticket, from 0. False after slc_turns_stop. */
bool slc_turns_take(struct slc_turns *turns, uint64_t *ticket);
/* Waits until every earlier ticket is done. False when stopped meanwhile. */
bool slc_turns_wait(struct slc_turns *turns, uint64_t ticket);
/* The holder of the turn has delivered. */
void slc_turns_done(struct slc_turns *turns);
/* Wakes everyone: nothing more is delivered. */
void slc_turns_stop(struct slc_turns *turns);

#endif
