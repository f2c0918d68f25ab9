/*
 * Fibers: functions on stacks of their own that give way to whoever resumed them. Emulated CUDA
 * threads and streams are fibers, all of one thread of the system.
 *
 * AddressSanitizer is told which stack is in use. To ThreadSanitizer every fiber is a thread, and
 * giving way orders nothing: what comes before what is for those to say who emulate barriers
 * (slc_fiber_release, slc_fiber_acquire). This file and its users that schedule are themselves
 * compiled without it.
 *
 * Threads: a fiber is resumed by one thread at a time.
 */
#ifndef SLC_EMULATION_FIBER_H
#define SLC_EMULATION_FIBER_H

struct slc_fiber;

typedef void slc_fiber_fn(void *argument);

/*
 * A fiber with a stack of SLC_FIBER_STACK bytes above a page that may not be touched. Stacks of
 * successive ordinals begin at different places of their pages: equal places of hundreds of stacks
 * would share few sets of the cache. Ends the program when memory does.
 */
enum { SLC_FIBER_STACK = 64 << 10 };
struct slc_fiber *slc_fiber_create(unsigned ordinal);
void slc_fiber_destroy(
    struct slc_fiber *fiber); /* takes NULL; not while it is begun and not done */

/* The next resume calls function(argument) on the fiber; it is done when that returns. */
void slc_fiber_begin(struct slc_fiber *fiber, slc_fiber_fn *function, void *argument);
/* Runs the fiber until it gives way or is done. True while it is not done. */
bool slc_fiber_resume(struct slc_fiber *fiber);
/* From within the running fiber: back to whoever resumed it. */
void slc_fiber_give_way(void);

/* What the running fiber, or thread, did before a release comes before what follows an acquire of
 * the same object. */
void slc_fiber_release(const void *object);
void slc_fiber_acquire(const void *object);

/*
 * Between the two, what the running fiber, or thread, itself does is not looked at: memory that the
 * emulation takes and moves has no place in the order of what it emulates. Fibers that it resumes
 * are looked at.
 */
void slc_fiber_ignore_begin(void);
void slc_fiber_ignore_end(void);

#endif
