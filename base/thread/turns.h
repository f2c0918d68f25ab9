/* Turns: parallel work that is delivered in order. Each worker takes a ticket, prepares a result
 * and waits for the turn of the ticket to deliver the result, so the order of results does not
 * depend on timing. */
#ifndef SLC_BASE_TURNS_H
#define SLC_BASE_TURNS_H

#include "base/error/error.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct slc_turns {
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    uint64_t tickets; /* number of tickets issued so far */
    uint64_t turn;    /* ticket that may deliver now */
    bool stopped;
};

/* Errors: SLC_ERR_SYSTEM. Ownership: slc_turns_destroy. */
enum slc_status slc_turns_init(struct slc_turns *turns, struct slc_error *err) SLC_NODISCARD;
void slc_turns_destroy(struct slc_turns *turns);

/* Stores the next ticket, from 0. Returns false after slc_turns_stop. */
bool slc_turns_take_ticket(struct slc_turns *turns, uint64_t *ticket);
/* Waits until all earlier tickets are done. Returns false after slc_turns_stop. */
bool slc_turns_wait(struct slc_turns *turns, uint64_t ticket);
/* Ends the turn of the current ticket. */
void slc_turns_done(struct slc_turns *turns);
/* Wakes all waiting workers. No further results are delivered. */
void slc_turns_stop(struct slc_turns *turns);

#endif
