/* Delivers the results of parallel work in order. Each worker gets a ticket, prepares a result,
 * waits for the turn of its ticket and delivers the result. The order of results therefore does not
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

/* Initializes the struct. Errors: SLC_ERR_SYSTEM. Ownership: release with slc_turns_destroy. */
enum slc_status slc_turns_init(struct slc_turns *turns, struct slc_error *err) SLC_NODISCARD;
void slc_turns_destroy(struct slc_turns *turns);

/* Stores the next ticket in *ticket; the first ticket is 0. Returns false after slc_turns_stop. */
bool slc_turns_take_ticket(struct slc_turns *turns, uint64_t *ticket);
/* Waits until the turns of all earlier tickets have ended. Returns false after slc_turns_stop. */
bool slc_turns_wait(struct slc_turns *turns, uint64_t ticket);
/* Ends the turn of the current ticket. */
void slc_turns_done(struct slc_turns *turns);
/* Wakes all waiting workers. No further results are delivered. */
void slc_turns_stop(struct slc_turns *turns);

#endif
