/* Fibers: functions with their own stacks that yield to the code that resumed them. Emulated CUDA
 * threads and streams are fibers, all of one system thread.
 *
 * AddressSanitizer is notified of the current stack. For ThreadSanitizer every fiber is a thread,
 * and yielding orders nothing: code that emulates barriers declares the order (slc_fiber_release,
 * slc_fiber_acquire). This file and the schedulers that use it are themselves compiled without it.
 *
 * Threads: a fiber is resumed by one thread at a time. */
#ifndef SLC_EMULATION_FIBER_H
#define SLC_EMULATION_FIBER_H

struct slc_fiber;

typedef void slc_fiber_fn(void *argument);

/* Creates a fiber with a stack of SLC_FIBER_STACK bytes above a guard page. Stacks of successive
 * ordinals start at different offsets in their pages: equal offsets of hundreds of stacks would
 * share few cache sets. Ends the program if memory runs out. */
enum { SLC_FIBER_STACK = 64 << 10 };
struct slc_fiber *slc_fiber_create(unsigned ordinal);
void slc_fiber_destroy(struct slc_fiber *fiber); /* accepts NULL; not for an unfinished fiber */

/* The next resume calls function(argument) on the fiber; the fiber is done when it returns. */
void slc_fiber_begin(struct slc_fiber *fiber, slc_fiber_fn *function, void *argument);
/* Runs the fiber until it yields or is done. Returns true while it is not done. */
bool slc_fiber_resume(struct slc_fiber *fiber);
/* From within the running fiber: yields to the code that resumed it. */
void slc_fiber_give_way(void);

/* Everything that the running fiber, or thread, did before a release is ordered before
 * everything after an acquire of the same object. */
void slc_fiber_release(const void *object);
void slc_fiber_acquire(const void *object);

/* Between the two calls, ThreadSanitizer ignores accesses of the running fiber or thread itself:
 * the emulation's own memory has no place in the order that it emulates. Fibers that it resumes are
 * still checked. */
void slc_fiber_ignore_begin(void);
void slc_fiber_ignore_end(void);

#endif
